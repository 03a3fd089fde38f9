#include "check/check_rules.h"

#include "backend/backend.h"
#include "base/rng.h"
#include "check/cases.h"
#include "check/check.h"
#include "check/reference.h"
#include "graph/build.h"
#include "plan/plan.h"

#include <math.h>

const double gradient_tolerance = 1e-6, expansion_tolerance = 1e-12;

/* A graph of one case, planned in double precision on the CPU. */
struct bench {
    struct arena arena;
    const struct backend *cpu;
    struct target target; /* of `cpu` */
    struct case_data data;
    struct graph graph;
    value in[MAX_IN];
    int weights; /* number of weighted outputs; set for a gradient */
    value weight[MAX_OUT];
    double *weight_data[MAX_OUT];
    struct plan plan;
    struct storage_blocks storage;
    bool planned;
};

/* Creates a leaf for each input: in STORAGE_WEIGHTS if the node writes it, else a graph input. */
static enum status bench_init(struct bench *w, int i)
{
    *w = (struct bench){.cpu = backend_find("cpu")};
    TRY(case_fill(i, &w->arena, &w->data));
    graph_init(&w->graph, &w->arena);
    const struct op_case *c = w->data.c;
    int64_t offset = 0;
    w->graph.numerics = c->numerics;
    for (int k = 0; k < case_inputs(c); k++) {
        struct type t = case_type(c, k, DT_F64);
        const char *name = arena_printf(&w->arena, "in%d", k);
        w->in[k] = k < op_writes(c->op) ? g_leaf(&w->graph, STORAGE_WEIGHTS, name, t, offset)
                                        : g_input(&w->graph, name, t);
        int64_t n = type_elements(&t) + RANGE_ALIGNMENT - 1;
        if (k < op_writes(c->op)) offset += n - n % RANGE_ALIGNMENT;
    }
    return graph_status(&w->graph);
}

static value bench_node(struct bench *w)
{
    const struct op_case *c = w->data.c;
    struct type given = case_given(c, DT_F64);
    return graph_add(&w->graph, c->op, &c->attr, case_inputs(c), w->in, given.rank ? &given : NULL);
}

static enum status bench_plan(struct bench *w)
{
    struct plan_options options = {.poison = true, .variant = "ref"};
    w->storage = (struct storage_blocks){.backend = w->cpu};
    TRY(graph_status(&w->graph));
    w->target.backend = w->cpu;
    TRY(plan_build(&w->plan, &w->graph, &w->target, &options, &w->arena));
    w->planned = true;
    storage_reserve(&w->storage, &w->plan);
    TRY(storage_alloc(&w->storage));
    return plan_bind(&w->plan, &w->storage);
}

/* Writes `data`, doubles or integers, into the value, converted to its type. */
static enum status feed(struct bench *w, value v, const void *data)
{
    const struct type *t = graph_type(&w->graph, v);
    enum dtype from = t->dtype == DT_I32 ? DT_I32 : DT_F64;
    return reference_convert(plan_address(&w->plan, v), t->dtype, data, from, type_elements(t));
}

/* Writes the inputs before each run, because their memory is reused after they were read. */
static enum status bench_run(struct bench *w)
{
    for (int k = 0; k < case_inputs(w->data.c); k++) TRY(feed(w, w->in[k], w->data.in[k]));
    for (int i = 0; i < w->weights; i++) TRY(feed(w, w->weight[i], w->weight_data[i]));
    return plan_run(&w->plan, NULL);
}

static void bench_release(struct bench *w)
{
    if (w->planned) plan_release(&w->plan);
    storage_free(&w->storage);
    arena_release(&w->arena);
}

static value flat(struct graph *g, value x)
{
    return g_reshape(g, x, type_1d(DT_F64, type_elements(graph_type(g, x))));
}

/* The sum over all elements of the outputs, each multiplied by a random weight. The weights are
 * graph inputs. */
static value weighted_sum(struct bench *w, value first)
{
    struct graph *g = &w->graph;
    value sum = {0};
    w->weights = w->data.c->loss_outputs ? w->data.c->loss_outputs : 1;
    for (int i = 0; i < w->weights; i++) {
        value x = flat(g, graph_out(first, i));
        int64_t n = type_elements(graph_type(g, x));
        w->weight[i] = g_input(g, arena_printf(&w->arena, "weight%d", i), type_1d(DT_F64, n));
        w->weight_data[i] = ARENA_NEW(&w->arena, double, n);
        for (int64_t j = 0; j < n; j++)
            w->weight_data[i][j] = (double)rng_normal(2, RNG_TEST, (uint32_t)i, (uint64_t)j);
        value part = g_sum_row(g, g_mul(g, x, w->weight[i]));
        sum = sum.i ? g_add(g, sum, part) : part;
    }
    return sum;
}

static enum status slope_at(struct bench *w, double *x, double *ret_slope)
{
    static const double h = 1e-4;
    const double *loss = plan_output(&w->plan, "loss");
    double here = *x;
    *x = here + h;
    TRY(bench_run(w));
    double above = *loss;
    *x = here - h;
    TRY(bench_run(w));
    *x = here;
    *ret_slope = (above - *loss) / (2 * h);
    return ST_OK;
}

/* The index of the element that test `sample` tests. In a small tensor all elements are tested; in
 * a larger tensor random elements. Every second test takes the element with the largest gradient of
 * FEW random elements, because most slopes of a sharp softmax are lost in rounding. */
static int64_t choose(const double *gradient, int64_t n, int k, int sample, int samples)
{
    enum { FEW = 64 };
    if (n == samples) return sample;
    int64_t best = rng_below(3, RNG_TEST, (uint32_t)k, (uint64_t)(sample * FEW), n);
    for (int i = 1; sample % 2 && i < FEW; i++) {
        int64_t other = rng_below(3, RNG_TEST, (uint32_t)k, (uint64_t)(sample * FEW + i), n);
        if (fabs(gradient[other]) > fabs(gradient[best])) best = other;
    }
    return best;
}

/* Compares the computed gradient of input k with finite differences, for a sample of elements. */
static enum status compare_slopes(struct bench *w, int k, double *ret_error)
{
    enum { MOST = 40, OF_LARGE = 8, LARGE = 1000 };
    double gradient[MOST], slope[MOST];
    int64_t n = type_elements(graph_type(&w->graph, w->in[k]));
    int samples = n < MOST ? (int)n : n < LARGE ? MOST : OF_LARGE;
    int64_t at[MOST];
    const double *computed = plan_output(&w->plan, arena_printf(&w->arena, "d%d", k));
    TRY(bench_run(w));
    for (int s = 0; s < samples; s++) {
        at[s] = choose(computed, n, k, s, samples);
        gradient[s] = computed[at[s]];
    }
    for (int s = 0; s < samples; s++) TRY(slope_at(w, (double *)w->data.in[k] + at[s], &slope[s]));
    *ret_error = check_distance(gradient, slope, samples);
    return ST_OK;
}

static enum status differentiate(struct bench *w, int n, const int *wrt_in)
{
    value wrt[MAX_IN], gradient[MAX_IN];
    struct graph *g = &w->graph;
    for (int i = 0; i < n; i++) wrt[i] = w->in[wrt_in[i]];
    value loss = weighted_sum(w, bench_node(w));
    graph_output(g, "loss", loss);
    TRY(graph_status(g));
    value one = g_fill(g, type_scalar(DT_F64), 1);
    TRY(graph_differentiate(g, loss, one, n, wrt, gradient));
    for (int i = 0; i < n; i++)
        graph_output(g, arena_printf(&w->arena, "d%d", wrt_in[i]), gradient[i]);
    return ST_OK;
}

static enum status gradient_of(struct bench *w, double *ret_error)
{
    int wrt[MAX_IN], n = 0;
    double worst = 0;
    for (int k = 0; k < case_inputs(w->data.c); k++)
        if (w->data.c->in[k].type.dtype == DT_F32 && !w->data.c->in[k].fixed) wrt[n++] = k;
    TRY(differentiate(w, n, wrt));
    TRY(bench_plan(w));
    for (int i = 0; i < n; i++) {
        double error = 0;
        TRY(compare_slopes(w, wrt[i], &error));
        worst = fmax(worst, error);
    }
    *ret_error = worst;
    return ST_OK;
}

enum status check_gradient(int i, double *ret_error)
{
    struct bench w;
    enum status st = bench_init(&w, i);
    if (st == ST_OK) st = gradient_of(&w, ret_error);
    bench_release(&w);
    return st;
}

static enum status add_outputs(struct bench *w, bool expanded)
{
    const struct op_case *c = w->data.c;
    struct node node;
    struct type in[MAX_IN], out_type[MAX_OUT];
    value out[MAX_OUT] = {{0}};
    TRY(case_node(c, DT_F64, &node, in, out_type));
    if (expanded) {
        op_def(c->op)->expand(&w->graph, &node, w->in, out);
    } else {
        value first = bench_node(w);
        for (int k = 0; k < node.n_out; k++) out[k] = graph_out(first, k);
    }
    TRY(graph_status(&w->graph));
    for (int k = 0; k < node.n_out; k++) {
        BUG_IF(!type_same(graph_type(&w->graph, out[k]), &out_type[k]),
               "%s: output %d has another type", op_def(c->op)->name, k);
        graph_output(&w->graph, arena_printf(&w->arena, "out%d", k), out[k]);
    }
    return ST_OK;
}

static enum status run_form(struct bench *w, bool expanded)
{
    TRY(add_outputs(w, expanded));
    TRY(bench_plan(w));
    return bench_run(w);
}

static enum status output_of(struct bench *w, int k, double **ret_x)
{
    value v = w->graph.output[k].v;
    const struct type *t = graph_type(&w->graph, v);
    int64_t n = type_elements(t);
    *ret_x = ARENA_NEW(&w->arena, double, n);
    return reference_convert(*ret_x, DT_F64, plan_address(&w->plan, v), t->dtype, n);
}

enum status check_expansion(int i, double *ret_error)
{
    struct bench whole, parts;
    double worst = 0;
    enum status st = bench_init(&whole, i), st_parts = bench_init(&parts, i);
    if (st == ST_OK) st = st_parts;
    if (st == ST_OK) st = run_form(&whole, false);
    if (st == ST_OK) st = run_form(&parts, true);
    for (int k = 0; st == ST_OK && k < whole.graph.outputs; k++) {
        double *x, *y;
        st = output_of(&parts, k, &x);
        if (st == ST_OK) st = output_of(&whole, k, &y);
        const struct type *t = graph_type(&whole.graph, whole.graph.output[k].v);
        if (st == ST_OK) worst = fmax(worst, check_distance(x, y, type_elements(t)));
    }
    bench_release(&whole);
    bench_release(&parts);
    *ret_error = worst;
    return st;
}
