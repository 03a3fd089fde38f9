/* 03_vectors.c - vectors, and four sums that do not wait for each other.
 *
 * There are three passes again, each with vectors of W floats. The passes over L1 take little time
 * compared with loading the row from memory and storing the result. */
#include "lab/layernorm/cpu/row.h"

RUNG(layernorm_vectors)
{
    int64_t columns = c->n[1];
    const float *weight = c->in[1];
    for (int64_t i = 0; i < c->n[0]; i++)
        layernorm_row((float *)c->out + i * columns, (const float *)c->in[0] + i * columns, weight,
                      weight + columns, columns, false);
}
