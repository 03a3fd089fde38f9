/* Models that are only timed: gradients equal finite differences, every rung computes the same, and
 * random inputs are generated once. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "../support/workdir.h"
#include "base/rng.h"
#include "engine/memory.h"
#include "engine/tune.h"
#include "measure/random_step.h"
#include "train/trainer.h"

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

/* --- gradients, in double precision ----------------------------------------------------------- */

struct wide {
    struct hand h;
    struct model model;
};

/* The training graph at that rung with all values in double precision. */
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

/* Random weights and inputs; the weights of norms are not close to 0. */
static void fill(struct wide *w)
{
    const struct graph *g = &w->h.graph;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op != OP_LEAF) continue;
        enum storage s = n->attr.leaf.storage;
        if (s != STORAGE_WEIGHTS && s != STORAGE_RANDOM) continue;
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

/* Compares finite differences with the gradient for the first, middle and last element of x. */
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

static void test_gradients_match_differences(void **state)
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
                compare_slopes(&w, "x", graph_find_leaf(g, STORAGE_RANDOM, "x"),
                               plan_output(&w.h.plan, "dx"));
            assert_true(w.model.parameters || kind == MODEL_ELU);
            hand_close(&w.h);
        }
}

/* --- rungs ------------------------------------------------------------------------------------ */

static const unsigned TRAINING = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;

/* A micro-step on random inputs; the loss, and a copy of the gradients or of dx. */
static double run_step(const struct config *c, struct arena *a, float **ret_gradient,
                       int64_t *ret_elements)
{
    struct tiny t;
    struct random_step n;
    struct sequence micro;
    const float *loss;
    tiny_open_bare(&t, c, 0, TRAINING);
    hand_ok(random_step_init(&n, &t.engine, &t.arena));
    sequence_init_plan(&micro, &t.engine, GRAPH_MICRO, "loss", &t.arena);
    hand_ok(random_step_feed(&n, &micro, 0, 0));
    hand_ok(sequence_start(&micro, NULL));
    hand_ok(sequence_wait(&micro, &loss));
    const struct plan *p = &t.engine.program.plan[GRAPH_MICRO];
    bool bare = !t.engine.program.model.parameters;
    int64_t elements =
        bare ? c->data.batch_size * c->model.block_size : t.engine.program.model.elements;
    const float *from = bare ? plan_output(p, "dx") : tiny_range(&t, STORAGE_GRADIENTS);
    *ret_gradient = ARENA_NEW(a, float, elements);
    memcpy(*ret_gradient, from, (size_t)elements * sizeof *from);
    *ret_elements = elements;
    double ret = (double)*loss;
    random_step_close(&n);
    tiny_close(&t);
    return ret;
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
            /* A ReLU unit whose input is almost 0 may be on at one rung and off at another. */
            double most_off = kind == MODEL_TOY && rung % 2 ? 0.15 : most;
            if (!(fabs(now / loss - 1) < most) || !(off < most_off))
                fail_msg("%s, rung %d: loss %.7g, not %.7g; gradient off by %.2e",
                         model_words[kind], rung, now, loss, off);
        }
        arena_release(&a);
    }
}

/* Half of the values are negative, so that ELU is tested on both sides. */
static void test_random_inputs(void **state)
{
    (void)state;
    enum { N = 64 * 1000 };
    struct config c = small(MODEL_ELU);
    struct tiny t;
    struct random_step n;
    double ms, sum = 0, squares = 0;
    c.data.batch_size = 64;
    c.model.block_size = 1000;
    tiny_open_bare(&t, &c, 0, TRAINING);
    hand_ok(random_step_init(&n, &t.engine, &t.arena));
    assert_int_equal(n.inputs, 0);
    assert_true(n.step.image_bytes < 1000); /* none of it is copied in each step */
    float *x = tiny_range(&t, STORAGE_RANDOM), *before = ARENA_NEW(&t.arena, float, N);
    memcpy(before, x, N * sizeof *x);
    for (int64_t i = 0; i < N; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    assert_true(fabs(sum / N) < 4 / sqrt(N) && fabs(squares / N - 1) < 6 / sqrt(N));
    hand_ok(random_step_run(&n, 0, NULL, &ms));
    double first = n.loss;
    hand_ok(random_step_run(&n, 1, NULL, &ms));
    assert_true(n.loss == first);
    assert_memory_equal(before, x, N * sizeof *x);
    random_step_close(&n);
    tiny_close(&t);
}

/* Class ids are random in each step and below the number of classes. */
static void test_class_ids_are_random(void **state)
{
    (void)state;
    struct config c = small(MODEL_TOY);
    struct tiny t;
    struct random_step n;
    struct sequence micro;
    double ms, first;
    tiny_open_bare(&t, &c, 0, TRAINING);
    hand_ok(random_step_init(&n, &t.engine, &t.arena));
    assert_int_equal(n.inputs, 1);
    hand_ok(random_step_run(&n, 0, NULL, &ms));
    first = n.loss;
    sequence_init_plan(&micro, &t.engine, GRAPH_MICRO, NULL, &t.arena);
    hand_ok(random_step_feed(&n, &micro, 0, 1));
    const int32_t *id = plan_input(&t.engine.program.plan[GRAPH_MICRO], "targets");
    bool seen[12] = {false};
    for (int i = 0; i < 21; i++) {
        assert_in_range(id[i], 0, 11);
        seen[id[i]] = true;
    }
    int kinds = 0;
    for (int i = 0; i < 12; i++) kinds += seen[i];
    assert_true(kinds > 6);
    hand_ok(random_step_run(&n, 1, NULL, &ms));
    assert_true(n.loss != first);
    random_step_close(&n);
    tiny_close(&t);
}

/* Every byte belongs to a part, including the random inputs. */
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
        assert_true(f.random > 0 && f.inputs >= f.random);
        assert_int_equal(f.total, f.weights + f.gradients + f.optimizer + f.copies + f.inputs +
                                      f.activations);
        assert_int_equal(course.total, f.total);
        assert_true(course.moment[0].bytes[MEMORY_INPUTS] >= f.inputs);
        tiny_close(&t);
    }
}

/* --- errors ----------------------------------------------------------------------------------- */

static void test_training_is_an_error(void **state)
{
    (void)state;
    workdir_open();
    for (int kind = MODEL_ATTENTION_BLOCK; kind < MODEL_COUNT; kind++) {
        struct arena a = {0};
        struct config c = small(kind);
        struct trainer t;
        struct program p;
        struct trainer_options o = {0};
        c.train.out_dir = workdir_path("absent");
        c.train.init_from = INIT_SCRATCH;
        assert_int_equal(trainer_open(&t, &c, &o, &a), ST_UNSUPPORTED);
        assert_non_null(strstr(fail_message(), "only timed on random inputs"));
        assert_non_null(strstr(fail_message(), model_words[kind]));
        assert_int_equal(program_for(&p, &c, 0, 1u << GRAPH_LOGITS, "cpu", &a), ST_UNSUPPORTED);
        assert_non_null(strstr(fail_message(), "no graph logits"));
        arena_release(&a);
    }
    workdir_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_match_differences),
        cmocka_unit_test(test_every_rung_computes_the_same),
        cmocka_unit_test(test_random_inputs),
        cmocka_unit_test(test_class_ids_are_random),
        cmocka_unit_test(test_memory_adds_up),
        cmocka_unit_test(test_training_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
