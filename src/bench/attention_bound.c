/* The work of attention: unmasked tiles, and the lower bound on its time. */
#include "bench/bench_attention.h"

#include <math.h>

double attention_tiles(const struct attention_cell *c)
{
    double side = (double)ceil_div(c->T, ATTENTION_TILE);
    double of_head = c->causal ? side * (side + 1) / 2 : side * side;
    return (double)(c->B * c->H) * of_head;
}

static double bytes_of(const struct attention_cell *c, int backward)
{
    double rows = (double)(c->B * c->T), size = c->precision == MACHINE_BF16 ? 2 : 4;
    double qkv = rows * (double)((c->H + 2 * c->KV) * c->D), y = rows * (double)(c->H * c->D);
    return size * (qkv + y) * (backward ? 2 : 1);
}

double attention_bound_ms(const struct attention_cell *c, const struct machine *m, int backward)
{
    double flops = backward ? c->backward_flops : c->forward_flops;
    struct floor f = machine_floor(m, c->precision, flops, bytes_of(c, backward), NAN);
    return f.compute_ms > 0 && f.memory_ms > 0 ? f.ms : 0;
}
