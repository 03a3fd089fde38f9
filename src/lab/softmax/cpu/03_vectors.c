/* 03_vectors.c - W exponentials at once.
 *
 * e^x is 2^n times a polynomial: x / ln 2 is rounded to an integer n, which becomes the exponent of
 * a float, and a polynomial of degree 6 gives e^remainder. There is no table and no branch, so all
 * lanes of a vector run the same instructions. There are three passes again, with a vector of
 * maxima and a vector of sums. With 16 lanes, computing an exponential takes less time than moving
 * its element to and from memory. */
#include "lab/softmax/cpu/row.h"

RUNG(softmax_vectors)
{
    int64_t columns = c->n[1];
    for (int64_t i = 0; i < c->n[0]; i++)
        softmax_row((float *)c->out + i * columns, (const float *)c->in[0] + i * columns, columns);
}
