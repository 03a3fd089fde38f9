/* The CS336 model: gradients equal finite differences, every rung computes the same, and the sizes
 * are those of the course. tests/engine/test_cs336_golden.c compares its results with PyTorch. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* 3 x 7 positions of 16 columns in 4 heads. */
static struct config small(void)
{
    struct config c = tiny_config();
    c.model = (struct config_model){.kind = MODEL_CS336,
                                    .n_layer = 2,
                                    .n_head = 4,
                                    .n_embd = 16,
                                    .d_ff = 24,
                                    .rope_theta = 100,
                                    .block_size = 7};
    return c;
}

/* --- gradients, in double precision ----------------------------------------------------------- */

struct wide {
    struct hand h;
    struct model model;
};

static double *doubles(struct wide *w, value v)
{
    assert_int_equal(graph_type(&w->h.graph, v)->dtype, DT_F64);
    return plan_address(&w->h.plan, v);
}

static void feed_ids(struct wide *w, const char *name, int by)
{
    value v = graph_find_leaf(&w->h.graph, STORAGE_INPUT, name);
    int32_t *id = plan_address(&w->h.plan, v);
    for (int64_t i = 0; i < type_elements(graph_type(&w->h.graph, v)); i++)
        id[i] = (int32_t)(by * (i + 1) % TINY_VOCAB);
}

static double loss_of(struct wide *w)
{
    feed_ids(w, "tokens", 5);
    feed_ids(w, "targets", 11);
    int32_t *position = hand_input(&w->h, "positions");
    for (int i = 0; i < w->model.config.block_size; i++) position[i] = 3 * i;
    hand_run(&w->h);
    return *(const double *)plan_output(&w->h.plan, "loss");
}

/* The training graph with all values in double precision; weights are random, those of norms about
 * 1. */
static void wide_open(struct wide *w, const struct config *c)
{
    struct graph g;
    struct pass_options o = {.compute = DT_F64};
    *w = (struct wide){0};
    hand_init(&w->h);
    model_init(&w->model, &c->model, TINY_VOCAB, 1, &w->h.arena);
    hand_ok(program_graph(GRAPH_MICRO, c, &w->model, NULL, NULL, NULL, &g, &w->h.arena));
    hand_ok(pass_run(pass_find("precision"), &g, &w->h.graph, &o));
    hand_plan(&w->h, &(struct plan_options){.variant = "ref"});
    for (int id = 0; id < w->h.graph.nodes; id++) {
        const struct node *n = &w->h.graph.node[id];
        if (n->op != OP_LEAF || n->attr.leaf.storage != STORAGE_WEIGHTS) continue;
        double *x = doubles(w, n->out[0]);
        for (int64_t i = 0; i < type_elements(graph_type(&w->h.graph, n->out[0])); i++)
            x[i] = (double)rng_normal(3, RNG_TEST, (uint32_t)id, (uint64_t)i) * 0.4 +
                   (strstr(n->scope, "ln") != NULL);
    }
}

/* Compares finite differences with the gradient for some elements of each weight. */
static void compare_slopes(struct wide *w, const char *name, value weight, value gradient)
{
    int64_t n = type_elements(graph_type(&w->h.graph, weight));
    const int64_t spots[] = {0, n / 3, n / 2 + 1, n - 1};
    double *x = doubles(w, weight), made[COUNT_OF(spots)];
    loss_of(w);
    for (int i = 0; i < COUNT_OF(spots); i++) made[i] = doubles(w, gradient)[spots[i]];
    for (int i = 0; i < COUNT_OF(spots); i++) {
        const double h = 1e-5;
        double here = x[spots[i]];
        x[spots[i]] = here + h;
        double above = loss_of(w);
        x[spots[i]] = here - h;
        double slope = (above - loss_of(w)) / (2 * h);
        x[spots[i]] = here;
        if (fabs(made[i] - slope) > 1e-7 * (1 + fabs(slope)))
            fail_msg("%s, element %lld: %.9g, the slope is %.9g", name, (long long)spots[i],
                     made[i], slope);
    }
}

static void check_slopes(const struct config *c, int leaves)
{
    struct wide w;
    wide_open(&w, c);
    const struct graph *g = &w.h.graph;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op != OP_LEAF || n->attr.leaf.storage != STORAGE_WEIGHTS) continue;
        compare_slopes(&w, n->scope, n->out[0], graph_find_leaf(g, STORAGE_GRADIENTS, n->scope));
        leaves--;
    }
    assert_int_equal(leaves, 0);
    hand_close(&w.h);
}

static void test_gradients_match_differences(void **state)
{
    (void)state;
    enum { LEAVES = 2 * 9 + 3, JOINED = 2 * (2 + 1) };
    for (int rung = 0; rung < 12; rung++) {
        struct config c = small();
        c.plan.fusion = (enum fusion)(rung / 4);
        c.plan.flash = rung / 2 % 2;
        c.model.n_kv_head = rung % 2 ? 2 : 0;
        check_slopes(&c, c.plan.fusion == FUSION_FULL ? LEAVES - JOINED : LEAVES);
    }
}

/* --- rungs ------------------------------------------------------------------------------------ */

static const unsigned TRAINING = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;

/* Loss and gradients of one step. */
static double run_step(const struct config *c, struct arena *a, float **ret_gradient,
                       int64_t *ret_n)
{
    struct tiny t;
    tiny_open(&t, c, TRAINING);
    double loss = (double)tiny_loss(&t, GRAPH_MICRO, 3);
    *ret_gradient = tiny_copy(&t, STORAGE_GRADIENTS, a);
    *ret_n = t.engine.program.model.elements;
    tiny_close(&t);
    return loss;
}

static void check_rungs(struct config c)
{
    struct arena a = {0};
    float *first, *gradient;
    int64_t n;
    c.plan.fusion = FUSION_PRIMITIVE;
    c.plan.flash = false;
    double loss = run_step(&c, &a, &first, &n);
    assert_true(fabs(loss - log(TINY_VOCAB)) < 1.5);
    for (int rung = 0; rung < 24; rung++) {
        c.plan.fusion = (enum fusion)(rung / 8);
        c.plan.flash = rung / 4 % 2;
        c.plan.dtype = rung % 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        c.plan.pack_weights =
            rung / 2 % 2 && rung >= 16 && tiny_packs(c.plan.dtype) ? PACKING_TRUE : PACKING_FALSE;
        c.plan.recompute = rung % 8 == 3   ? RECOMPUTE_BLOCK
                           : rung % 8 == 6 ? RECOMPUTE_GELU
                                           : RECOMPUTE_NONE;
        c.plan.poison = rung > 12;
        double now = run_step(&c, &a, &gradient, &n), most = rung % 2 ? 2e-2 : 1e-5;
        double off = hand_distance(gradient, first, n);
        if (!(fabs(now / loss - 1) < most) || !(off < most))
            fail_msg("rung %d: loss %.7g, not %.7g; gradient off by %.2e", rung, now, loss, off);
    }
    arena_release(&a);
}

static void test_every_rung_computes_the_same(void **state)
{
    (void)state;
    struct config c = small();
    check_rungs(c);
    c.model.n_kv_head = 1;
    check_rungs(c);
    c.model.n_kv_head = 0;
    c.model.pad_vocab = 64;
    check_rungs(c);
    /* 6 x 6 and 10 x 6 elements: the padding between them keeps them apart at every rung. */
    c.model.pad_vocab = 0;
    c.model.n_head = 1;
    c.model.n_embd = 6;
    c.model.d_ff = 10;
    check_rungs(c);
}

/* The number of nodes of an operator in the graph of a step; with `packed` only matmuls with a
 * packed weight. */
static int count(const struct config *c, enum op op, bool packed)
{
    struct tiny t;
    int n = 0;
    tiny_open(&t, c, TRAINING);
    const struct graph *g = &t.engine.program.graph[GRAPH_MICRO];
    for (int id = 0; id < g->nodes; id++)
        n += g->node[id].op == op && (!packed || g->node[id].attr.matmul.packed);
    tiny_close(&t);
    return n;
}

/* Below `full` a layer has seven matmuls, plus the head, each with two more in the backward pass;
 * at `full` a layer has four. */
static void test_operator_counts(void **state)
{
    (void)state;
    enum { L = 2 };
    struct config c = small();
    bool packs = tiny_packs(c.plan.dtype);
    c.plan.pack_weights = packs ? PACKING_TRUE : PACKING_FALSE;
    assert_int_equal(count(&c, OP_MATMUL, false), 3 * (4 * L + 1));
    assert_int_equal(count(&c, OP_MATMUL, true), packs ? 2 * (4 * L + 1) : 0);
    assert_int_equal(count(&c, OP_ADD_RMSNORM, false), 2 * L);
    assert_int_equal(count(&c, OP_RMSNORM_GRAD_ADD, false), 2 * L);
    assert_int_equal(count(&c, OP_ADD, false), 0);
    assert_int_equal(count(&c, OP_CONCAT, false), 0);
    assert_int_equal(count(&c, OP_SWIGLU, false), L);
    assert_int_equal(count(&c, OP_ROPE_TABLE, false), 1);
    c.plan.recompute = RECOMPUTE_GELU;
    assert_int_equal(count(&c, OP_SWIGLU, false), 2 * L); /* recomputed */
    assert_int_equal(count(&c, OP_MATMUL, false), 3 * (4 * L + 1));
    c.plan.recompute = RECOMPUTE_NONE;
    c.plan.pack_weights = PACKING_FALSE;
    c.plan.fusion = FUSION_OP;
    assert_int_equal(count(&c, OP_MATMUL, false), 3 * (7 * L + 1));
    assert_int_equal(count(&c, OP_SILU, false), L);
    assert_int_equal(count(&c, OP_SWIGLU, false), 0);
}

/* The copies of joined weights follow updates: after thirty steps bf16 and fp32 agree, packed or
 * not. */
static void test_training(void **state)
{
    (void)state;
    enum { STEPS = 30 };
    double first[STEPS], loss[STEPS];
    for (int rung = 0; rung < 6; rung++) {
        struct config c = small();
        struct tiny t;
        c.plan.fusion = rung ? FUSION_FULL : FUSION_OP;
        c.plan.dtype = rung % 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        c.plan.pack_weights = rung > 3 && tiny_packs(c.plan.dtype) ? PACKING_TRUE : PACKING_FALSE;
        tiny_open(&t, &c, TRAINING);
        double *to = rung ? loss : first;
        for (int i = 0; i < STEPS; i++) to[i] = (double)tiny_step(&t, i, 1e-2);
        tiny_close(&t);
        assert_true(first[0] - first[STEPS - 1] > 0.5);
        for (int i = 0; rung && i < STEPS; i++)
            if (fabs(loss[i] - first[i]) > (rung % 2 ? 0.03 : 1e-4))
                fail_msg("rung %d, step %d: %.6f, not %.6f", rung, i, loss[i], first[i]);
    }
}

/* Decoding one position at a time, with rotated keys in the cache, gives the logits of the whole
 * window. */
static void decode(int64_t kv_heads)
{
    enum { T = 7 };
    struct config c = small();
    struct tiny t;
    c.model.n_kv_head = kv_heads;
    tiny_open(&t, &c, 1u << GRAPH_LOGITS | 1u << GRAPH_DECODE);
    struct engine *e = &t.engine;
    int32_t tokens[T], positions[T], step = 0;
    float all[T * TINY_VOCAB], one[TINY_VOCAB];
    for (int i = 0; i < T; i++) tokens[i] = 7 * (i + 1) % TINY_VOCAB, positions[i] = i;
    hand_ok(plan_feed(&e->program.plan[GRAPH_LOGITS], "tokens", tokens, sizeof tokens));
    hand_ok(plan_feed(&e->program.plan[GRAPH_LOGITS], "positions", positions, sizeof positions));
    hand_ok(plan_feed(&e->program.plan[GRAPH_LOGITS], "step", &step, 4));
    hand_ok(plan_run(&e->program.plan[GRAPH_LOGITS], NULL));
    hand_ok(plan_read(&e->program.plan[GRAPH_LOGITS], "logits", 0, all, sizeof all));
    for (int i = 0; i < T; i++) {
        hand_ok(plan_feed(&e->program.plan[GRAPH_DECODE], "tokens", &tokens[i], 4));
        hand_ok(plan_feed(&e->program.plan[GRAPH_DECODE], "positions", &positions[i], 4));
        hand_ok(plan_feed(&e->program.plan[GRAPH_DECODE], "step", &step, 4));
        hand_ok(plan_run(&e->program.plan[GRAPH_DECODE], NULL));
        hand_ok(plan_read(&e->program.plan[GRAPH_DECODE], "logits", 0, one, sizeof one));
        assert_true(hand_distance(one, all + i * TINY_VOCAB, TINY_VOCAB) < 1e-5);
    }
    tiny_close(&t);
}

static void test_decoding(void **state)
{
    (void)state;
    decode(0);
    decode(2);
}

/* --- sizes and initial values ----------------------------------------------------------------- */

/* Normal, truncated at three deviations, which leaves 0.98658 of the deviation. */
static void test_initial_values(void **state)
{
    (void)state;
    struct arena a = {0};
    struct model m;
    struct config c = small();
    c.model.n_embd = 128;
    c.model.d_ff = 320;
    model_init(&m, &c.model, 300, 5, &a);
    float *w = ARENA_NEW(&a, float, m.elements);
    model_init_weights(&m, w);
    for (int i = 0; i < m.parameters; i++) {
        const struct parameter *p = &m.parameter[i];
        int64_t n = type_elements(&p->type);
        double sum = 0, squares = 0, most = 0;
        for (int64_t k = 0; k < n; k++) {
            double x = (double)w[p->offset + k];
            sum += x;
            squares += x * x;
            most = fmax(most, fabs(x));
        }
        if (p->type.rank == 1) {
            assert_true(sum == (double)n && squares == (double)n);
            continue;
        }
        bool table = !strcmp(p->name, "wte.weight");
        double std = table ? 1 : sqrt(2 / (double)(p->type.dim[0] + p->type.dim[1]));
        double is = sqrt(squares / (double)n), error = std / sqrt((double)n);
        if (fabs(sum / (double)n) > 4 * error || fabs(is - 0.98658 * std) > 4 * error ||
            most > 3 * std * (1 + 1e-6) || most < 2.9 * std)
            fail_msg("%s: mean %g, deviation %g of %g, at most %g", p->name, sum / (double)n, is,
                     std, most);
    }
    arena_release(&a);
}

/* The course's table of sizes: N = 2 V C + L (4 C^2 + 3 C F + 2 C) + C. */
static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int64_t C, F, L, heads, T, count;
    } sizes[] = {
        {"configs/cs336_small.conf", 768, 3072, 12, 12, 256, 128625408},
        {"configs/cs336_medium.conf", 1024, 4096, 24, 16, 256, 423183360},
        {"configs/cs336_large.conf", 1280, 5120, 36, 20, 256, 969411840},
        {"configs/cs336_xl.conf", 1600, 6400, 48, 25, 256, 1998235200},
        {"configs/cs336_2.7b.conf", 2560, 10240, 32, 32, 256, 3406809600},
        {"configs/cs336_xl2026.conf", 2560, 10240, 32, 32, 256, 3406809600},
        {"configs/cs336_10b.conf", 4608, 12288, 50, 36, 256, 12832823808},
    };
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        struct arena a = {0};
        struct config c;
        struct model m;
        config_init(&c);
        hand_ok(config_read(&c, sizes[i].path, &a));
        hand_ok(model_check(&c));
        assert_int_equal(c.model.kind, MODEL_CS336);
        assert_true(c.model.n_embd == sizes[i].C && c.model.d_ff == sizes[i].F);
        assert_true(c.model.n_layer == sizes[i].L && c.model.n_head == sizes[i].heads);
        assert_true(c.model.block_size == sizes[i].T && c.data.batch_size == 4);
        assert_true(c.model.vocab_size == 10000 && c.train.grad_clip == 0);
        model_init(&m, &c.model, c.model.vocab_size, 1, &a);
        int64_t C = sizes[i].C,
                N = 20000 * C + sizes[i].L * (4 * C * C + 3 * C * sizes[i].F + 2 * C) + C;
        assert_int_equal(model_count(&m, true), N);
        double by_size = 6.0 * (double)N + 1200.0 * (double)(sizes[i].L * C);
        assert_true(model_flops_per_token(&m, 100) == by_size);
        assert_int_equal(N, sizes[i].count);
        arena_release(&a);
    }
}

/* vocab_size may add tokens to those of the text, and pad_vocab padding; a text with more tokens is
 * an error. */
static void test_vocabulary(void **state)
{
    (void)state;
    struct arena a = {0};
    struct model m;
    struct config c = small();
    c.model.vocab_size = 50;
    model_init(&m, &c.model, TINY_VOCAB, 1, &a);
    assert_int_equal(m.vocab, 50);
    assert_int_equal(m.padded_vocab, 50);
    assert_int_equal(m.parameter[0].type.dim[0], 50);
    assert_int_equal(m.parameter[0].rows, 50);
    c.model.pad_vocab = 64;
    model_init(&m, &c.model, TINY_VOCAB, 1, &a);
    assert_int_equal(m.vocab, 50);
    assert_int_equal(m.padded_vocab, 64);
    assert_int_equal(model_check_vocabulary(&c.model, 50), ST_OK);
    assert_int_equal(model_check_vocabulary(&c.model, 51), ST_USAGE);
    assert_non_null(strstr(fail_message(), "51 distinct tokens"));
    c.model.vocab_size = 0;
    assert_int_equal(model_check_vocabulary(&c.model, 51), ST_OK);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_match_differences),
        cmocka_unit_test(test_every_rung_computes_the_same),
        cmocka_unit_test(test_operator_counts),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
