#include "bench/attention_graph.h"

#include "graph/build.h"
#include "pass/pass.h"
#include "plan/plan.h"

static const struct {
    const char *name;
    enum pass_rung rung;
    bool flash, portable, deterministic;
} ways[ATTENTION_VARIANTS] = {
    [SLOW_PRIMITIVE] = {"slow primitive", RUNG_PRIMITIVE, false, false, false},
    [SLOW_OP] = {"slow op", RUNG_OP, false, false, false},
    [SLOW_FULL] = {"slow full", RUNG_FULL, false, false, false},
    [FLASH] = {"flash", RUNG_FULL, true, false, false},
    [FLASH_PORTABLE] = {"flash portable", RUNG_FULL, true, true, false},
    [FLASH_DETERMINISTIC] = {"flash deterministic", RUNG_FULL, true, false, true},
    [FLASH_PORTABLE_DETERMINISTIC] = {"flash portable deterministic", RUNG_FULL, true, true, true},
};

const char *attention_variant_name(enum attention_variant way)
{
    return ways[way].name;
}

const char *attention_order_words(const struct attention_cell *c)
{
    if (c->reason || !(c->fastest || c->order.kind)) return NULL;
    return c->fastest ? "fastest" : verdict_name(c->order.kind);
}

bool attention_variant_is_flash(enum attention_variant way)
{
    return ways[way].flash;
}

enum dtype attention_dtype(enum machine_precision p)
{
    return p == MACHINE_BF16 ? DT_BF16 : DT_F32;
}

int64_t attention_packed_columns(const struct attention_cell *c)
{
    return (c->H + 2 * c->KV) * c->D;
}

enum status attention_graph(const struct attention_cell *c, struct graph *g, struct arena *a)
{
    enum dtype dtype = attention_dtype(c->precision);
    struct pass_options p = {.rung = ways[c->way].rung, .flash = ways[c->way].flash};
    int kv_heads = c->KV == c->H ? 0 : (int)c->KV;
    p.compute = dtype;
    p.numerics.tf32 = c->precision == MACHINE_TF32;
    p.numerics.portable = ways[c->way].portable;
    p.numerics.deterministic = ways[c->way].deterministic;
    graph_init(g, a);
    value qkv = g_input(g, "qkv", type_3d(dtype, c->B, c->T, attention_packed_columns(c)));
    value step = g_input(g, "step", type_scalar(DT_I32));
    struct graph_scope top = graph_enter(g, "attention", -1);
    value y = g_attention(g, qkv, step, (int)c->H, kv_heads, c->causal, (struct dropout){0});
    graph_leave(g, top);
    graph_output(g, "y", y);
    TRY(graph_verify(g));
    TRY(passes_run(BEFORE_GRADIENT, g, &p, NULL));

    value dqkv = {0};
    y = graph_find_output(g, "y");
    qkv = graph_find_leaf(g, STORAGE_INPUT, "qkv");
    g->phase = PHASE_BACKWARD;
    value dy = g_input(g, "dy", *graph_type(g, y));
    TRY(graph_differentiate(g, y, dy, 1, &qkv, &dqkv));
    graph_output(g, "dqkv", dqkv);
    return passes_run(AFTER_GRADIENT, g, &p, NULL);
}

/* --- what fits -------------------------------------------------------------------------------- */

int64_t attention_input_bytes(const struct attention_cell *c)
{
    int64_t columns = attention_packed_columns(c) + c->H * c->D;
    return c->B * c->T * columns * dtype_size(attention_dtype(c->precision));
}

/* True if the plan of the cell's variant with this B and T fits in memory; false if it does not fit
 * or no plan can be built. */
static bool fits(const struct attention_cell *c, int64_t B, int64_t T, const struct target *target,
                 int copies, int64_t memory_limit)
{
    struct arena a = {0};
    struct graph g;
    struct plan p;
    struct attention_cell other = *c;
    other.B = B;
    other.T = T;
    bool fits =
        attention_graph(&other, &g, &a) == ST_OK && plan_build(&p, &g, target, NULL, &a) == ST_OK;
    if (fits) {
        fits = p.arena_bytes + copies * attention_input_bytes(&other) <= memory_limit;
        plan_release(&p);
    }
    arena_release(&a);
    return fits;
}

const char *attention_fit_words(const struct attention_cell *c, const struct target *target,
                                int copies, int64_t memory_limit, struct arena *a)
{
    int64_t good = 0, bad = c->B, T = c->T;
    while (bad - good > 1) {
        int64_t B = good + (bad - good) / 2;
        *(fits(c, B, T, target, copies, memory_limit) ? &good : &bad) = B;
    }
    if (good) return arena_printf(a, "a batch of %lld is the largest that fits", (long long)good);
    for (T /= 2; T > 0 && !fits(c, 1, T, target, copies, memory_limit); T /= 2) continue;
    if (!T) return "not even one sequence of one token fits";
    return arena_printf(a, "not even one sequence fits; T %lld would", (long long)T);
}
