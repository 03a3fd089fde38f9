/* The CS336 model against PyTorch in float64 (reference/cs336.py), at every rung: loss, logits,
 * gradients.
 * test: release; it compares numbers of whole steps, which test_cs336.sh runs with sanitizers */
#include "../support/hand.h"
#include "../support/tiny.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Observed errors: losses 1e-7, logits 2e-6, gradients 3e-6, as with PyTorch's float32. */
static const double TOLERANCE = 1e-5;

/* --- weights, generated as in the script --- */

static uint32_t seed_of(const char *name)
{
    uint32_t h = 0x811c9dc5u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x01000193u;
    return h;
}

static uint32_t word(uint32_t seed, int64_t i)
{
    uint32_t x = (uint32_t)i * 0x9e3779b1u + seed;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

/* A number in -1 ... 1 with 24 bits. */
static float uniform(uint32_t seed, int64_t i)
{
    return (float)(word(seed, i) >> 8) * 0x1p-23f - 1.0f;
}

static void fill(const struct tiny *t)
{
    for (int k = 0; k < t->engine.program.model.parameters; k++) {
        const struct parameter *p = &t->engine.program.model.parameter[k];
        float *w = tiny_parameter(t, STORAGE_WEIGHTS, p);
        uint32_t seed = seed_of(p->name);
        bool norm = p->type.rank == 1, table = !strcmp(p->name, "wte.weight");
        float spread = (float)sqrt(table ? 3 : 6 / (double)(p->type.dim[0] + p->type.dim[1]));
        for (int64_t i = 0; i < type_elements(&p->type); i++) {
            float x = uniform(seed, i);
            w[i] = norm ? 1.0f + 0.5f * x : spread * x;
        }
    }
}

static void feed(struct tiny *t, enum graph_kind kind, int64_t B)
{
    int64_t T = t->config.model.block_size, V = t->engine.program.model.vocab;
    int32_t *ids = ARENA_NEW(&t->arena, int32_t, B * T), step = 0;
    const char *const names[] = {"tokens", "targets"};
    for (int k = 0; k < (kind == GRAPH_LOGITS ? 1 : 2); k++) {
        for (int64_t i = 0; i < B * T; i++)
            ids[i] = (int32_t)(word(seed_of(names[k]), i) % (uint32_t)V);
        hand_ok(plan_feed(&t->engine.program.plan[kind], names[k], ids, B * T * 4));
    }
    for (int64_t i = 0; i < T; i++) ids[i] = (int32_t)i;
    hand_ok(plan_feed(&t->engine.program.plan[kind], "positions", ids, T * 4));
    hand_ok(plan_feed(&t->engine.program.plan[kind], "step", &step, 4));
    hand_ok(plan_run(&t->engine.program.plan[kind], NULL));
}

/* --- comparisons --- */

static double number(const json_t *all, const char *key)
{
    const json_t *x = json_object_get(all, key);
    if (!json_is_number(x)) fail_msg("no number %s", key);
    return json_number_value(x);
}

static struct config config_of(const json_t *all)
{
    struct config c = tiny_config();
    c.model = (struct config_model){.kind = MODEL_CS336,
                                    .n_layer = (int64_t)number(all, "n_layer"),
                                    .n_head = (int64_t)number(all, "n_head"),
                                    .n_embd = (int64_t)number(all, "n_embd"),
                                    .d_ff = (int64_t)number(all, "d_ff"),
                                    .rope_theta = number(all, "rope_theta"),
                                    .block_size = (int64_t)number(all, "block_size")};
    c.data.batch_size = (int64_t)number(all, "batch_size");
    return c;
}

static void within(const char *what, double error, double *worst)
{
    if (!(error <= TOLERANCE)) fail_msg("%s differs by %.2e", what, error);
    if (error > *worst) *worst = error;
}

/* Compares the norm of each gradient, and its dot product with fixed numbers, which depends on the
 * order of the elements. */
static void compare_gradients(struct tiny *t, const json_t *expected, double *worst)
{
    assert_int_equal(json_object_size(expected), t->engine.program.model.parameters);
    for (int k = 0; k < t->engine.program.model.parameters; k++) {
        const struct parameter *p = &t->engine.program.model.parameter[k];
        const json_t *e = json_object_get(expected, p->name);
        if (json_array_size(e) != 2) fail_msg("no gradient of %s", p->name);
        const float *g = tiny_parameter(t, STORAGE_GRADIENTS, p);
        double squares = 0, product = 0, norm = json_number_value(json_array_get(e, 0));
        uint32_t seed = seed_of(arena_printf(&t->arena, "%s.along", p->name));
        for (int64_t i = 0; i < type_elements(&p->type); i++) {
            squares += (double)g[i] * (double)g[i];
            product += (double)g[i] * (double)uniform(seed, i);
        }
        within(p->name, fabs(sqrt(squares) - norm) / norm, worst);
        within(p->name, fabs(product - json_number_value(json_array_get(e, 1))) / norm, worst);
    }
}

/* Errors relative to the root mean square. */
static void compare_logits(struct tiny *t, const json_t *expected, double *worst)
{
    int64_t n = t->config.model.block_size * t->engine.program.model.vocab;
    float *y = ARENA_NEW(&t->arena, float, n);
    double squares = 0;
    size_t count = json_array_size(expected);
    assert_true(count > 10);
    feed(t, GRAPH_LOGITS, 1);
    hand_ok(plan_read(&t->engine.program.plan[GRAPH_LOGITS], "logits", 0, y, n * 4));
    for (size_t i = 0; i < count; i++)
        squares += pow(json_number_value(json_array_get(json_array_get(expected, i), 1)), 2);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(expected, i);
        int64_t at = json_integer_value(json_array_get(one, 0));
        double off = fabs((double)y[at] - json_number_value(json_array_get(one, 1)));
        assert_in_range(at, 0, n - 1);
        within("a logit", off / sqrt(squares / (double)count), worst);
    }
}

static void compare(const json_t *all, const struct config *c, double worst[3])
{
    struct tiny t;
    float loss;
    int64_t V = (int64_t)number(all, "vocab_size");
    tiny_open_bare(&t, c, V, 1u << GRAPH_MICRO | 1u << GRAPH_LOGITS);
    fill(&t);
    hand_ok(engine_refresh(&t.engine));
    compare_logits(&t, json_object_get(all, "logits"), &worst[1]);
    feed(&t, GRAPH_MICRO, c->data.batch_size);
    hand_ok(plan_read(&t.engine.program.plan[GRAPH_MICRO], "loss", 0, &loss, sizeof loss));
    within("the loss", fabs((double)loss / number(all, "loss") - 1), &worst[0]);
    compare_gradients(&t, json_object_get(all, "gradients"), &worst[2]);
    tiny_close(&t);
}

static json_t *read_file(const char *shape)
{
    char path[64];
    json_error_t error;
    snprintf(path, sizeof path, "reference/cs336/%s.json", shape);
    json_t *all = json_load_file(path, 0, &error);
    if (!all) fail_msg("%s: %s", path, error.text);
    return all;
}

static void say(const char *shape, const double worst[3])
{
    print_message("%s, largest: losses %.1e, logits %.1e, gradients %.1e\n", shape, worst[0],
                  worst[1], worst[2]);
}

static void test_every_rung(void **state)
{
    (void)state;
    json_t *all = read_file("tiny");
    struct config c = config_of(all);
    double worst[3] = {0};
    for (int rung = 0; rung < 12; rung++) {
        c.plan.fusion = (enum fusion)(rung / 4);
        c.plan.flash = rung / 2 % 2;
        c.plan.recompute = rung % 2 ? RECOMPUTE_BLOCK : RECOMPUTE_NONE;
        compare(all, &c, worst);
    }
    say("tiny", worst);
    json_decref(all);
}

/* 129 million parameters: the course's size "small", on one short sequence. */
static void test_size_small(void **state)
{
    (void)state;
    json_t *all = read_file("small");
    struct config c = config_of(all);
    double worst[3] = {0};
    c.plan.threads = 0;
    compare(all, &c, worst);
    say("small", worst);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rung),
        cmocka_unit_test(test_size_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
