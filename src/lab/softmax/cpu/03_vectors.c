/* 03_vectors.c - W exponentials at once.
 *
 * e^x is 2^n times a polynomial: x / ln 2 is rounded to an integer n, which becomes the exponent of
 * a float, and a polynomial of degree 6 gives e^remainder. No table and no branch: the same
 * instructions for every lane of a vector. The three passes are as before, with a vector of maxima
 * and one of sums. With 16 lanes an exponential costs less than its share of memory. */
#include "lab/softmax/cpu/row.h"

RUNG(softmax_vectors)
{
    int64_t columns = c->n[1];
    for (int64_t i = 0; i < c->n[0]; i++)
        softmax_row((float *)c->out + i * columns, (const float *)c->in[0] + i * columns, columns);
}
