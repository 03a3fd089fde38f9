/* Models that are only timed: their gradients are slopes, every rung computes the same, and what they work on is drawn once. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/rng.h"
#include "measure/noise.h"
#include "train/memory.h"
#include "train/trainer.h"
#include "train/tune.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* 3 x 7 positions of 12 columns in 2 heads. */
static struct config small(int kind)
{
    struct config c = tiny_config();
    c.model = (struct config_model){
        .kind = (enum model_kind)kind, .n_layer = 1, .n_head = 2, .n_embd = 12, .block_size = 7};
    return c;
}

/* --- slopes, in double precision ---------------------------------------------------------------- */

struct wide {
    struct hand h;
    struct model model;
};

/* The graph that is trained with, at that rung, all of it in doubles. */
static void wide_open(struct wide *w, const struct config *c)
{
    struct graph g;
    struct pass_options o = {.compute = DT_F64};
    *w = (struct wide){0};
    hand_init(&w->h);
    model_init(&w->model, &c->model, 0, 1, &w->h.arena);
    hand_ok(program_graph(GRAPH_MICRO, c, &w->model, NULL, NULL, NULL, &g, &w->h.arena));
    hand_ok(pass_run(pass_find("precision"), &g, &w->h.graph, &o));
    hand_plan(&w->h, &(struct plan_options){.variant = "ref"});
}

static double *doubles(struct wide *w, value v)
{
    assert_true(v.i > 0);
    assert_int_equal(graph_type(&w->h.graph, v)->dtype, DT_F64);
    return plan_address(&w->h.plan, v);
}

/* Weights and what is drawn; the norms' weights are not near 0. */
static void fill(struct wide *w)
{
    const struct graph *g = &w->h.graph;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op != OP_LEAF) continue;
        enum storage s = n->attr.leaf.storage;
        if (s != STORAGE_WEIGHTS && s != STORAGE_DRAWN) continue;
        double *x = doubles(w, n->out[0]);
        for (int64_t i = 0; i < type_elements(graph_type(g, n->out[0])); i++)
            x[i] = (double)rng_normal(3, RNG_TEST, (uint32_t)id, (uint64_t)i) * 0.5 +
                   (strstr(n->scope, "ln") != NULL);
    }
}

static double loss_of(struct wide *w)
{
    const double *loss = plan_output(&w->h.plan, "loss");
    value targets = graph_find_leaf(&w->h.graph, STORAGE_INPUT, "targets");
    if (targets.i) {
        int32_t *id = plan_address(&w->h.plan, targets);
        for (int64_t i = 0; i < type_elements(graph_type(&w->h.graph, targets)); i++)
            id[i] = (int32_t)(5 * i % w->model.vocab);
    }
    hand_run(&w->h);
    return *loss;
}

/* Elements first, middle and last of x against those of the gradient that was made of it. */
static void compare_slopes(struct wide *w, const char *name, value of, const double *gradient)
{
    int64_t n = type_elements(graph_type(&w->h.graph, of));
    const int64_t spots[] = {0, n / 2, n - 1};
    double *x = doubles(w, of), made[3];
    loss_of(w);
    for (int i = 0; i < 3; i++) made[i] = gradient[spots[i]];
    for (int i = 0; i < 3; i++) {
        const double h = 1e-5;
        double here = x[spots[i]];
        x[spots[i]] = here + h;
        double above = loss_of(w);
        x[spots[i]] = here - h;
        double slope = (above - loss_of(w)) / (2 * h);
        x[spots[i]] = here;
        if (fabs(made[i] - slope) > 1e-7 * (1 + fabs(slope)))
            fail_msg("%s of %s, element %lld: %.9g, the slope is %.9g", name,
                     model_words[w->model.config.kind], (long long)spots[i], made[i], slope);
    }
}

static void test_gradients_are_slopes(void **state)
{
    (void)state;
    for (int kind = MODEL_ATTENTION_BLOCK; kind < MODEL_COUNT; kind++)
        for (int rung = 0; rung < 6; rung++) {
            struct config c = small(kind);
            struct wide w;
            c.plan.fusion = (enum fusion)(rung / 2);
            c.plan.flash = rung % 2;
            wide_open(&w, &c);
            fill(&w);
            const struct graph *g = &w.h.graph;
            for (int i = 0; i < w.model.parameters; i++) {
                const char *name = w.model.parameter[i].name;
                compare_slopes(&w, name, graph_find_leaf(g, STORAGE_WEIGHTS, name),
                               doubles(&w, graph_find_leaf(g, STORAGE_GRADIENTS, name)));
            }
            if (!w.model.parameters)
                compare_slopes(&w, "x", graph_find_leaf(g, STORAGE_DRAWN, "x"),
                               plan_output(&w.h.plan, "dx"));
            assert_true(w.model.parameters || kind == MODEL_ELU);
            hand_close(&w.h);
        }
}

/* --- rungs ---------------------------------------------------------------------------------------- */

static const unsigned TRAINING = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;

/* A micro-step on noise; the loss, and a copy of the gradients or of dx. */
static double run_step(const struct config *c, struct arena *a, float **ret_gradient,
                       int64_t *ret_elements)
{
    struct tiny t;
    struct noise n;
    float loss;
    tiny_open_bare(&t, c, 0, TRAINING);
    hand_ok(noise_init(&n, &t.engine, &t.arena));
    hand_ok(noise_feed(&n, GRAPH_MICRO, 0));
    hand_ok(plan_run(&t.engine.program.plan[GRAPH_MICRO], NULL));
    hand_ok(engine_read(&t.engine, GRAPH_MICRO, "loss", &loss, sizeof loss));
    const struct plan *p = &t.engine.program.plan[GRAPH_MICRO];
    bool bare = !t.engine.program.model.parameters;
    int64_t elements =
        bare ? c->data.batch_size * c->model.block_size : t.engine.program.model.elements;
    const float *from = bare ? plan_output(p, "dx") : tiny_range(&t, STORAGE_GRADIENTS);
    *ret_gradient = ARENA_NEW(a, float, elements);
    memcpy(*ret_gradient, from, (size_t)elements * sizeof *from);
    *ret_elements = elements;
    noise_close(&n);
    tiny_close(&t);
    return (double)loss;
}

static void test_every_rung_computes_the_same(void **state)
{
    (void)state;
    for (int kind = MODEL_ATTENTION_BLOCK; kind < MODEL_COUNT; kind++) {
        struct arena a = {0};
        float *first, *gradient;
        int64_t n;
        struct config c = small(kind);
        c.plan.fusion = FUSION_PRIMITIVE;
        c.plan.flash = false;
        double loss = run_step(&c, &a, &first, &n);
        assert_true(isfinite(loss) && loss > 0.05);
        for (int rung = 0; rung < 12; rung++) {
            c.plan.fusion = (enum fusion)(rung / 4);
            c.plan.flash = rung / 2 % 2;
            c.plan.dtype = rung % 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
            c.plan.recompute = rung == 8 ? RECOMPUTE_BLOCK : RECOMPUTE_NONE;
            c.plan.poison = rung > 6;
            double now = run_step(&c, &a, &gradient, &n), most = rung % 2 ? 2e-2 : 1e-5;
            double off = hand_distance(gradient, first, n);
            /* A unit of ReLU whose sum is nearly 0 is on here and off there. */
            double most_off = kind == MODEL_TOY && rung % 2 ? 0.15 : most;
            if (!(fabs(now / loss - 1) < most) || !(off < most_off))
                fail_msg("%s, rung %d: loss %.7g, not %.7g; gradient off by %.2e",
                         model_words[kind], rung, now, loss, off);
        }
        arena_release(&a);
    }
}

/* Half of the numbers below 0, and so on: ELU sees both its sides. */
static void test_what_is_drawn(void **state)
{
    (void)state;
    enum { N = 64 * 1000 };
    struct config c = small(MODEL_ELU);
    struct tiny t;
    struct noise n;
    double ms, sum = 0, squares = 0;
    c.data.batch_size = 64;
    c.model.block_size = 1000;
    tiny_open_bare(&t, &c, 0, TRAINING);
    hand_ok(noise_init(&n, &t.engine, &t.arena));
    assert_int_equal(n.inputs, 0);
    assert_true(n.stepper.image_bytes < 1000); /* none of it is copied in each step */
    float *x = tiny_range(&t, STORAGE_DRAWN), *before = ARENA_NEW(&t.arena, float, N);
    memcpy(before, x, N * sizeof *x);
    for (int64_t i = 0; i < N; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    assert_true(fabs(sum / N) < 4 / sqrt(N) && fabs(squares / N - 1) < 6 / sqrt(N));
    hand_ok(noise_step(&n, 0, NULL, &ms));
    double first = n.loss;
    hand_ok(noise_step(&n, 1, NULL, &ms));
    assert_true(n.loss == first);
    assert_memory_equal(before, x, N * sizeof *x);
    noise_close(&n);
    tiny_close(&t);
}

/* Ids of classes are drawn anew for each step, below the number of classes. */
static void test_classes_are_drawn(void **state)
{
    (void)state;
    struct config c = small(MODEL_TOY);
    struct tiny t;
    struct noise n;
    double ms, first;
    tiny_open_bare(&t, &c, 0, TRAINING);
    hand_ok(noise_init(&n, &t.engine, &t.arena));
    assert_int_equal(n.inputs, 1);
    hand_ok(noise_step(&n, 0, NULL, &ms));
    first = n.loss;
    hand_ok(noise_feed(&n, GRAPH_MICRO, 1));
    const int32_t *id = plan_input(&t.engine.program.plan[GRAPH_MICRO], "targets");
    bool seen[12] = {false};
    for (int i = 0; i < 21; i++) {
        assert_in_range(id[i], 0, 11);
        seen[id[i]] = true;
    }
    int kinds = 0;
    for (int i = 0; i < 12; i++) kinds += seen[i];
    assert_true(kinds > 6);
    hand_ok(noise_step(&n, 1, NULL, &ms));
    assert_true(n.loss != first);
    noise_close(&n);
    tiny_close(&t);
}

/* Every byte is somebody's, what is drawn included. */
static void test_memory_adds_up(void **state)
{
    (void)state;
    for (int kind = MODEL_ATTENTION_BLOCK; kind < MODEL_COUNT; kind++) {
        struct config c = small(kind);
        struct tiny t;
        struct memory_course course;
        tiny_open_bare(&t, &c, 0, TRAINING);
        const struct program *program = &t.engine.program;
        struct facts f = facts_of(program);
        memory_course(program, &course, &t.arena);
        assert_true(f.drawn > 0 && f.inputs >= f.drawn);
        assert_int_equal(f.total, f.weights + f.gradients + f.optimizer + f.copies + f.inputs +
                                      f.activations);
        assert_int_equal(course.total, f.total);
        assert_true(course.moment[0].bytes[MEMORY_INPUTS] >= f.inputs);
        tiny_close(&t);
    }
}

/* --- what they are not --------------------------------------------------------------------------- */

static void test_they_are_not_trained(void **state)
{
    (void)state;
    for (int kind = MODEL_ATTENTION_BLOCK; kind < MODEL_COUNT; kind++) {
        struct arena a = {0};
        struct config c = small(kind);
        struct trainer t;
        struct program p;
        struct trainer_options o = {0};
        c.train.out_dir = "/nowhere";
        assert_int_equal(trainer_open(&t, &c, &o, &a), ST_UNSUPPORTED);
        assert_non_null(strstr(fail_message(), "only timed"));
        assert_non_null(strstr(fail_message(), model_words[kind]));
        assert_int_equal(program_for(&p, &c, 0, 1u << GRAPH_LOGITS, "cpu", &a), ST_UNSUPPORTED);
        assert_non_null(strstr(fail_message(), "no graph logits"));
        arena_release(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_every_rung_computes_the_same),
        cmocka_unit_test(test_what_is_drawn),
        cmocka_unit_test(test_classes_are_drawn),
        cmocka_unit_test(test_memory_adds_up),
        cmocka_unit_test(test_they_are_not_trained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
