/* The pass `fuse` on small graphs: which patterns are fused and which are not, and that results do
 * not change. */
#include "../support/hand.h"
#include "pass/pass.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Small graphs whose results must not depend on the pass. */
enum { B = 2, H = 2, T = 8, C = 16, V = 10 };

struct made {
    struct graph *g;
    value step, a, b, w; /* (B,T,C), (B,T,C), (C) */
    value scores;        /* (B,H,T,T) */
};

static struct dropout drop(enum dropout_pattern pattern, int threshold)
{
    return (struct dropout){pattern, threshold, 1, 2};
}

typedef void build_fn(const struct made *m);

static void make(struct hand *s, build_fn *build)
{
    hand_init(s);
    struct graph *g = &s->graph;
    struct made m = {.g = g};
    m.step = g_input(g, "step", type_scalar(DT_I32));
    m.a = g_input(g, "a", type_3d(DT_F32, B, T, C));
    m.b = g_input(g, "b", type_3d(DT_F32, B, T, C));
    m.w = g_input(g, "w", type_1d(DT_F32, C));
    m.scores = g_input(g, "scores", type_4d(DT_F32, B, H, T, T));
    build(&m);
    hand_ok(graph_status(g));
}

/* The update of three parameters. Tests change their offsets, weight decay and beta. */
struct update {
    int64_t offset[3];
    bool decay[3];
    double beta[3];
    int moment_shift, undecayed; /* undecayed: elements at the end of each decayed parameter */
};

static const int64_t SIZE[] = {16, 20, 5};
static struct update update = {{0, 16, 48}, {true, false, false}, {0.9, 0.9, 0.9}, 0, 0};

/* Fills the parameters and leaves the gaps between them zero, as in a range (graph/op.h). */
static void fill_state(struct hand *s)
{
    for (int storage = STORAGE_WEIGHTS; storage <= STORAGE_MOMENT2; storage++)
        for (int i = 0; i < 3; i++) {
            float *at = s->storage.base[storage];
            if (!at) return;
            at += update.offset[i];
            hand_fill(at, SIZE[i], (uint32_t)(10 * storage + i));
            for (int k = 0; k < SIZE[i]; k++) at[k] *= at[k]; /* the second moment is positive */
        }
}

static void feed_and_run(struct hand *s)
{
    hand_plan(s, NULL);
    fill_state(s);
    for (int id = 0; id < s->graph.nodes; id++) {
        const struct node *n = &s->graph.node[id];
        if (n->op != OP_LEAF || n->attr.leaf.storage != STORAGE_INPUT) continue;
        const struct type *t = graph_type(&s->graph, n->out[0]);
        if (t->dtype == DT_F32)
            hand_fill(plan_address(&s->plan, n->out[0]), type_elements(t), strlen(n->scope));
        else
            for (int64_t i = 0; i < type_elements(t); i++)
                ((int32_t *)plan_address(&s->plan, n->out[0]))[i] = (int32_t)i % V;
    }
    hand_run(s);
}

static const struct pass_kernels *kernels; /* option of the pass; may be NULL */

/* Checks that the fused graph has `count` nodes of the operator and the same outputs. */
static void check(build_fn *build, enum op op, int count)
{
    struct hand plain, fused;
    struct pass_options o = {.rung = RUNG_FULL, .kernels = kernels};
    make(&plain, build);
    make(&fused, build);
    hand_ok(pass_run(pass_find("fuse"), &fused.graph, &fused.graph, &o));
    hand_ok(pass_run(pass_find("dead"), &fused.graph, &fused.graph, &o));
    assert_int_equal(hand_count(&fused.graph, op), count);
    feed_and_run(&plain);
    feed_and_run(&fused);
    for (int i = 0; i < plain.graph.outputs; i++) {
        const char *name = plain.graph.output[i].name;
        int64_t n = type_elements(graph_type(&plain.graph, plain.graph.output[i].v));
        double apart = hand_distance(hand_output(&fused, name), hand_output(&plain, name), n);
        if (!(apart < 1e-6)) fail_msg("output %s differs by %.2e", name, apart);
    }
    const float *a = fused.storage.base[STORAGE_WEIGHTS], *b = plain.storage.base[STORAGE_WEIGHTS];
    int64_t n = plain.storage.bytes[STORAGE_WEIGHTS] / (int64_t)sizeof(float);
    if (n) assert_true(hand_distance(a, b, n) < 1e-6);
    hand_close(&plain);
    hand_close(&fused);
}

static value norm(const struct made *m, value x)
{
    return g_layernorm(m->g, x, m->w, (value){0}, 1e-5);
}

static void sum_and_norm(const struct made *m)
{
    value sum = g_add(m->g, m->a, m->b), y = norm(m, sum);
    graph_output(m->g, "y", g_exp(m->g, y));
    /* later uses read the fused node's output */
    graph_output(m->g, "after", g_scale(m->g, sum, 2));
    graph_output(m->g, "rstd", graph_out(y, 2));
}

static void sum_used_in_between(const struct made *m)
{
    value sum = g_add(m->g, m->a, m->b), twice = g_scale(m->g, sum, 2);
    graph_output(m->g, "y", norm(m, sum));
    graph_output(m->g, "twice", twice);
}

static void sum_of_a_repeated_branch(const struct made *m)
{
    graph_output(m->g, "y", norm(m, g_add(m->g, m->a, m->w)));
}

static void two_norms_of_one_sum(const struct made *m)
{
    value sum = g_add(m->g, m->a, m->b);
    graph_output(m->g, "y", norm(m, sum));
    graph_output(m->g, "z", g_layernorm(m->g, sum, m->w, m->w, 1e-5));
}

static void dropped_branch(const struct made *m)
{
    value branch = g_dropout(m->g, m->b, m->step, drop(DROPOUT_POINTWISE, 51));
    graph_output(m->g, "y", norm(m, g_add(m->g, m->a, branch)));
}

static void branch_dropped_as_attention(const struct made *m)
{
    value branch = g_dropout(m->g, m->b, m->step, drop(DROPOUT_ATTENTION, 51));
    graph_output(m->g, "y", norm(m, g_add(m->g, m->a, branch)));
}

static void dropped_branch_used_again(const struct made *m)
{
    value branch = g_dropout(m->g, m->b, m->step, drop(DROPOUT_POINTWISE, 51));
    graph_output(m->g, "y", norm(m, g_add(m->g, m->a, branch)));
    graph_output(m->g, "branch", g_scale(m->g, branch, 2));
}

static void test_add_layernorm(void **state)
{
    (void)state;
    check(sum_and_norm, OP_ADD_LAYERNORM, 1);
    check(sum_and_norm, OP_ADD, 0);
    check(sum_used_in_between, OP_ADD_LAYERNORM, 0);
    check(sum_of_a_repeated_branch, OP_ADD_LAYERNORM, 0);
    check(two_norms_of_one_sum, OP_ADD_LAYERNORM, 1);
    check(two_norms_of_one_sum, OP_LAYERNORM, 1);
    check(dropped_branch, OP_DROPOUT, 0);
    check(branch_dropped_as_attention, OP_ADD_LAYERNORM, 1);
    check(branch_dropped_as_attention, OP_DROPOUT, 1);
    check(dropped_branch_used_again, OP_ADD_LAYERNORM, 1);
    check(dropped_branch_used_again, OP_DROPOUT, 1);
}

static value rms(const struct made *m, value x)
{
    return g_rmsnorm(m->g, x, m->w, 1e-5);
}

static void sum_and_rms(const struct made *m)
{
    value sum = g_add(m->g, m->a, m->b), y = rms(m, sum);
    graph_output(m->g, "y", g_exp(m->g, y));
    graph_output(m->g, "after", g_scale(m->g, sum, 2));
    graph_output(m->g, "rrms", graph_out(y, 1));
}

static void rms_of_a_sum_used_in_between(const struct made *m)
{
    value sum = g_add(m->g, m->a, m->b), twice = g_scale(m->g, sum, 2);
    graph_output(m->g, "y", rms(m, sum));
    graph_output(m->g, "twice", twice);
}

static void rms_of_a_repeated_branch(const struct made *m)
{
    graph_output(m->g, "y", rms(m, g_add(m->g, m->a, m->w)));
}

static value rms_grad(const struct made *m)
{
    value in[] = {m->b, m->a, m->w, graph_out(rms(m, m->a), 1)};
    return graph_add(m->g, OP_RMSNORM_GRAD, &(union attr){.norm.eps = 1e-5}, 4, in, NULL);
}

static void residual_and_rms_grad(const struct made *m)
{
    value d = rms_grad(m);
    graph_output(m->g, "dx", g_exp(m->g, g_add(m->g, m->b, d)));
    graph_output(m->g, "dw", graph_out(d, 1));
}

static void rms_grad_used_again(const struct made *m)
{
    value d = rms_grad(m);
    graph_output(m->g, "dx", g_exp(m->g, g_add(m->g, m->b, d)));
    graph_output(m->g, "dx alone", g_exp(m->g, d));
}

static void rms_grad_of_a_weight_read_before(const struct made *m)
{
    value d = rms_grad(m), dw = g_exp(m->g, graph_out(d, 1));
    graph_output(m->g, "dx", g_exp(m->g, g_add(m->g, m->b, d)));
    graph_output(m->g, "dw", dw);
}

static void test_add_rmsnorm(void **state)
{
    (void)state;
    check(sum_and_rms, OP_ADD_RMSNORM, 1);
    check(sum_and_rms, OP_ADD, 0);
    check(rms_of_a_sum_used_in_between, OP_ADD_RMSNORM, 0);
    check(rms_of_a_repeated_branch, OP_ADD_RMSNORM, 0);
    check(residual_and_rms_grad, OP_RMSNORM_GRAD_ADD, 1);
    check(residual_and_rms_grad, OP_ADD, 0);
    check(rms_grad_used_again, OP_RMSNORM_GRAD_ADD, 0);
    check(rms_grad_of_a_weight_read_before, OP_RMSNORM_GRAD_ADD, 0);
}

static value masked(const struct made *m)
{
    return g_causal_mask(m->g, g_scale(m->g, m->scores, 0.5), -INFINITY);
}

static void slow_softmax(const struct made *m)
{
    graph_output(m->g, "p", g_softmax(m->g, masked(m)));
}

static void slow_softmax_dropped(const struct made *m)
{
    value p = g_softmax(m->g, masked(m));
    graph_output(m->g, "d", g_dropout(m->g, p, m->step, drop(DROPOUT_ATTENTION, 51)));
    graph_output(m->g, "p", p);
}

static void softmax_dropped_pointwise(const struct made *m)
{
    value p = g_softmax(m->g, masked(m));
    graph_output(m->g, "d", g_dropout(m->g, p, m->step, drop(DROPOUT_POINTWISE, 51)));
}

static void softmax_dropped_by_nothing(const struct made *m)
{
    value p = g_softmax(m->g, masked(m));
    graph_output(m->g, "d", g_exp(m->g, g_dropout(m->g, p, m->step, drop(DROPOUT_ATTENTION, 0))));
}

static void softmax_used_before_dropout(const struct made *m)
{
    value p = g_softmax(m->g, masked(m)), twice = g_scale(m->g, p, 2);
    graph_output(m->g, "d", g_dropout(m->g, p, m->step, drop(DROPOUT_ATTENTION, 51)));
    graph_output(m->g, "twice", twice);
}

static void scores_used_again(const struct made *m)
{
    value s = masked(m);
    graph_output(m->g, "p", g_softmax(m->g, s));
    graph_output(m->g, "e", g_exp(m->g, s));
}

static void scores_that_are_an_output(const struct made *m)
{
    value s = g_scale(m->g, m->scores, 0.5);
    graph_output(m->g, "p", g_softmax(m->g, s));
    graph_output(m->g, "s", s);
}

static void masked_by_a_number(const struct made *m)
{
    value s = g_causal_mask(m->g, g_scale(m->g, m->scores, 0.5), 0.25);
    graph_output(m->g, "p", g_softmax(m->g, s));
}

static void without_a_mask(const struct made *m)
{
    graph_output(m->g, "p", g_softmax(m->g, g_scale(m->g, m->scores, 0.5)));
}

static void softmax_of_rows(const struct made *m) /* (B,T,C): no attention */
{
    graph_output(m->g, "p", g_softmax(m->g, g_scale(m->g, m->a, 0.5)));
}

static void test_score_softmax(void **state)
{
    (void)state;
    check(slow_softmax, OP_SCORE_SOFTMAX, 1);
    check(slow_softmax_dropped, OP_SCORE_SOFTMAX, 1);
    check(slow_softmax_dropped, OP_DROPOUT, 0);
    check(softmax_dropped_pointwise, OP_SCORE_SOFTMAX, 0);
    check(softmax_dropped_by_nothing, OP_DROPOUT, 1);
    check(softmax_used_before_dropout, OP_SCORE_SOFTMAX, 0);
    check(scores_used_again, OP_SCORE_SOFTMAX, 0);
    check(scores_that_are_an_output, OP_SCORE_SOFTMAX, 1);
    check(masked_by_a_number, OP_SCORE_SOFTMAX, 0);
    check(without_a_mask, OP_SCORE_SOFTMAX, 1);
    check(softmax_of_rows, OP_SCORE_SOFTMAX, 0);
}

static value logits(const struct made *m)
{
    value table = g_input(m->g, "table", type_2d(DT_F32, V, C));
    return g_matmul(m->g, m->a, table, false, true); /* (B,T,V) */
}

static void loss_and_gradient(const struct made *m)
{
    struct graph *g = m->g;
    value targets = g_input(g, "targets", type_2d(DT_I32, B, T)), d;
    value loss = g_cross_entropy(g, logits(m), targets, V);
    graph_output(g, "loss", loss);
    hand_ok(graph_differentiate(g, loss, g_fill(g, type_scalar(DT_F32), 1), 1, &m->a, &d));
    graph_output(g, "d", d);
}

static void loss_that_is_scaled(const struct made *m)
{
    struct graph *g = m->g;
    value targets = g_input(g, "targets", type_2d(DT_I32, B, T)), d;
    value loss = g_scale(g, g_cross_entropy(g, logits(m), targets, V), 3);
    graph_output(g, "loss", loss);
    hand_ok(graph_differentiate(g, loss, g_fill(g, type_scalar(DT_F32), 1), 1, &m->a, &d));
    graph_output(g, "d", d);
}

static void log_sum_exp_is_wanted(const struct made *m)
{
    struct graph *g = m->g;
    value targets = g_input(g, "targets", type_2d(DT_I32, B, T)), d;
    value loss = g_cross_entropy(g, logits(m), targets, V);
    graph_output(g, "lse", g_scale(g, graph_out(loss, 1), 2));
    hand_ok(graph_differentiate(g, loss, g_fill(g, type_scalar(DT_F32), 1), 1, &m->a, &d));
    graph_output(g, "d", d);
}

static void log_sum_exp_is_an_output(const struct made *m)
{
    struct graph *g = m->g;
    value targets = g_input(g, "targets", type_2d(DT_I32, B, T)), d;
    value loss = g_cross_entropy(g, logits(m), targets, V);
    graph_output(g, "lse", graph_out(loss, 1));
    hand_ok(graph_differentiate(g, loss, g_fill(g, type_scalar(DT_F32), 1), 1, &m->a, &d));
    graph_output(g, "d", d);
}

static void test_cross_entropy_both(void **state)
{
    (void)state;
    check(loss_and_gradient, OP_CROSS_ENTROPY_BOTH, 1);
    check(loss_that_is_scaled, OP_CROSS_ENTROPY_BOTH, 0); /* the loss is needed earlier */
    check(log_sum_exp_is_wanted, OP_CROSS_ENTROPY_BOTH, 0);
    check(log_sum_exp_is_an_output, OP_CROSS_ENTROPY, 1); /* not fused */
}

static void lookup(const struct made *m, bool used_between, enum dropout_pattern pattern)
{
    struct graph *g = m->g;
    value table = g_input(g, "tokens", type_2d(DT_F32, V, C));
    value places = g_input(g, "places", type_2d(DT_F32, V, C));
    value ids = g_input(g, "ids", type_2d(DT_I32, B, T)), at = g_input(g, "at", type_1d(DT_I32, T));
    value sum = g_add(g, g_embed(g, table, ids), g_embed(g, places, at));
    if (used_between) graph_output(g, "sum", g_scale(g, sum, 2));
    graph_output(g, "x", g_dropout(g, sum, m->step, drop(pattern, 51)));
}

static void embeddings(const struct made *m)
{
    lookup(m, false, DROPOUT_POINTWISE);
}

static void embeddings_used_between(const struct made *m)
{
    lookup(m, true, DROPOUT_POINTWISE);
}

static void embeddings_dropped_as_attention(const struct made *m)
{
    lookup(m, false, DROPOUT_ATTENTION);
}

static void gradient_of_positions(const struct made *m)
{
    struct graph *g = m->g;
    value sum = g_sum_leading(g, m->a, type_2d(DT_F32, T, C));
    value at = g_input(g, "at", type_1d(DT_I32, T));
    graph_output(g, "d", g_embed_grad(g, at, sum, type_2d(DT_F32, V, C)));
}

static void test_embed_sum(void **state)
{
    (void)state;
    check(gradient_of_positions, OP_EMBED_GRAD_SUM, 1);
    check(embeddings, OP_EMBED_SUM, 1);
    check(embeddings_used_between, OP_EMBED_SUM, 0);
    check(embeddings_dropped_as_attention, OP_EMBED_SUM, 0);
}

/* y = x + exp(norm(x)), and its gradient. `also` adds a use that may prevent the fusion. */
static void branch(const struct made *m, bool also)
{
    struct graph *g = m->g;
    value x = g_scale(g, m->a, 1.5), d[2];
    value y = g_add(g, x, g_exp(g, norm(m, x)));
    if (also) y = g_add(g, y, g_exp(g, x));
    value loss = g_reshape(g, g_sum_row(g, g_reshape(g, y, type_1d(DT_F32, B * T * C))),
                           type_scalar(DT_F32));
    value wrt[] = {m->a, m->w};
    hand_ok(graph_differentiate(g, loss, g_fill(g, type_scalar(DT_F32), 1), 2, wrt, d));
    graph_output(g, "da", d[0]);
    graph_output(g, "dw", d[1]);
}

static void residual(const struct made *m)
{
    branch(m, false);
}

static void residual_of_three(const struct made *m)
{
    branch(m, true);
}

static void test_layernorm_grad_add(void **state)
{
    (void)state;
    check(residual, OP_LAYERNORM_GRAD_ADD, 1);
    check(residual, OP_LAYERNORM_GRAD, 0);
    check(residual_of_three, OP_LAYERNORM_GRAD_ADD, 1);
}

/* y = x + exp(norm(x)) and its gradients; `sites` dropouts are applied to the gradient of x. */
static void dropped_gradients(const struct made *m, enum dropout_pattern pattern, int sites)
{
    struct graph *g = m->g;
    value x = g_scale(g, m->a, 1.5), wrt[] = {x, m->w}, d[2];
    value y = g_add(g, x, g_exp(g, norm(m, x)));
    value loss = g_reshape(g, g_sum_row(g, g_reshape(g, y, type_1d(DT_F32, B * T * C))),
                           type_scalar(DT_F32));
    hand_ok(graph_differentiate(g, loss, g_fill(g, type_scalar(DT_F32), 1), 2, wrt, d));
    static const char *const names[] = {"dropped", "dropped again"};
    for (int i = 0; i < sites; i++) {
        struct dropout site = drop(pattern, 51);
        site.site += (uint32_t)i;
        graph_output(g, names[i], g_scale(g, g_dropout(g, d[0], m->step, site), 2));
    }
    graph_output(g, "dx", d[0]);
    graph_output(g, "dw", d[1]);
}

static void residual_dropped(const struct made *m)
{
    dropped_gradients(m, DROPOUT_POINTWISE, 1);
}

static void residual_dropped_twice(const struct made *m)
{
    dropped_gradients(m, DROPOUT_POINTWISE, 2);
}

static void residual_dropped_as_attention(const struct made *m)
{
    dropped_gradients(m, DROPOUT_ATTENTION, 1);
}

static bool gains_or_not(const void *who, const struct node *n, const struct type *in,
                         const struct type *out)
{
    (void)n, (void)in, (void)out;
    return *(const bool *)who;
}

static void test_layernorm_grad_drop(void **state)
{
    (void)state;
    static const bool yes = true, no = false;
    const struct pass_kernels gaining = {gains_or_not, &yes}, losing = {gains_or_not, &no};
    kernels = &gaining;
    check(residual_dropped, OP_LAYERNORM_GRAD_DROP, 1);
    check(residual_dropped, OP_DROPOUT, 0);
    check(residual_dropped_twice, OP_LAYERNORM_GRAD_DROP, 1);
    check(residual_dropped_twice, OP_DROPOUT, 1);
    check(residual_dropped_as_attention, OP_LAYERNORM_GRAD_DROP, 0);
    check(residual, OP_LAYERNORM_GRAD_DROP, 0);
    check(residual, OP_LAYERNORM_GRAD_ADD, 1);
    kernels = &losing;
    check(residual_dropped, OP_LAYERNORM_GRAD_ADD, 1);
    check(residual_dropped, OP_DROPOUT, 1);
    kernels = NULL;
    check(residual_dropped, OP_LAYERNORM_GRAD_DROP, 0);
}

static void three_parameters(const struct made *m)
{
    static const char *const NAME[] = {"p", "q", "r"};
    struct graph *g = m->g;
    value lr = g_input(g, "lr", type_scalar(DT_F32)), one = g_fill(g, type_scalar(DT_F32), 1);
    value sum = {0}, leaf[3][4];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            leaf[i][k] =
                g_leaf(g, (enum storage)(STORAGE_WEIGHTS + k), NAME[i], type_1d(DT_F32, SIZE[i]),
                       update.offset[i] + (k == 2 ? update.moment_shift : 0));
    for (int i = 0; i < 3; i++) { /* STORAGE_WEIGHTS + 1 is STORAGE_GRADIENTS */
        value s = g_sum_squares(g, leaf[i][1]);
        sum = i ? g_add(g, sum, s) : s;
    }
    value norm_of_all = g_sqrt(g, sum);
    graph_output(g, "norm", norm_of_all);
    for (int i = 0; i < 3; i++) {
        union attr attr = {.adamw = {update.beta[i], 0.99, 1e-8, 0.1,
                                     update.decay[i] ? SIZE[i] - update.undecayed : 0}};
        value in[] = {leaf[i][0], leaf[i][2], leaf[i][3], leaf[i][1], lr, one, one, norm_of_all};
        graph_add(g, OP_ADAMW, &attr, 8, in, NULL);
    }
}

static void fuse_update(int norms, int updates)
{
    struct hand s;
    struct pass_options o = {.rung = RUNG_FULL};
    make(&s, three_parameters);
    hand_ok(pass_run(pass_find("fuse"), &s.graph, &s.graph, &o));
    hand_ok(pass_run(pass_find("dead"), &s.graph, &s.graph, &o));
    assert_int_equal(hand_count(&s.graph, OP_SUM_SQUARES), norms);
    assert_int_equal(hand_count(&s.graph, OP_ADAMW), updates);
    hand_close(&s);
}

static void test_update(void **state)
{
    (void)state;
    const struct update sound = update;
    fuse_update(1, 1);
    check(three_parameters, OP_ADAMW, 1); /* also compares the norm */
    update.offset[2] = 64;                /* a gap before it */
    fuse_update(3, 3);
    check(three_parameters, OP_ADAMW, 3);
    update = sound;
    update.decay[0] = false, update.decay[1] = true; /* decayed parameters are not first */
    fuse_update(1, 3);
    update = sound;
    update.beta[1] = 0.8;
    fuse_update(1, 3);
    update = sound;
    update.undecayed = 4;
    fuse_update(1, 3);
    check(three_parameters, OP_ADAMW, 3);
    update = sound;
    update.moment_shift = 16; /* moments with a layout different from the weights */
    fuse_update(1, 3);
    update = sound;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_layernorm),       cmocka_unit_test(test_add_rmsnorm),
        cmocka_unit_test(test_score_softmax),       cmocka_unit_test(test_cross_entropy_both),
        cmocka_unit_test(test_embed_sum),           cmocka_unit_test(test_layernorm_grad_add),
        cmocka_unit_test(test_layernorm_grad_drop), cmocka_unit_test(test_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
