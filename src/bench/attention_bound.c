/* The work of attention: unmasked tiles, and the lower bound on its time. */
#include "bench/bench_attention.h"

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
    const struct machine_peak *peak = machine_peak(m, c->precision);
    double bytes = bytes_of(c, backward);
    if (!peak || !(peak->flops > 0) || !m->copies) return 0;
    /* On a GPU a large copy, as in `bench kernels`: its caches are smaller than the tensors. */
    double copied = m->gpu ? machine_copy_large(m)->moved : machine_copy_rate(m, bytes);
    double by_flops = (backward ? c->backward_flops : c->forward_flops) / peak->flops;
    double by_bytes = bytes / copied;
    return 1e3 * (by_flops > by_bytes ? by_flops : by_bytes);
}
