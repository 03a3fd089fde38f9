/* Ten steps of AdamW against PyTorch in float64 (reference/golden.py), at every rung. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "data/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 10, B = 4, T = 12, C = 20, V = 29 };

/* Observed errors over all files and rungs: losses 2e-7, gradients 9e-7, norms 7e-7, weights
 * 6e-6. */
static const double LOSS_TOLERANCE = 1e-5, GRADIENT_TOLERANCE = 1e-5, NORM_TOLERANCE = 1e-5;
/* Adam divides each gradient by its magnitude, so ten steps amplify the rounding errors of small
 * elements. */
static const double WEIGHT_TOLERANCE = 3e-5;

struct golden {
    struct arena arena;
    struct safetensors file;
};

static void golden_open(struct golden *g, enum gelu gelu, bool bias)
{
    char path[128];
    *g = (struct golden){0};
    snprintf(path, sizeof path, "tests/golden/gpt_%s_%s.safetensors",
             gelu == GELU_TANH ? "tanh" : "erf", bias ? "bias" : "nobias");
    hand_ok(safetensors_open(&g->file, path, &g->arena));
    for (int i = 0; i < g->file.count; i++) {
        struct safetensor *t = &g->file.tensor[i];
        void *data = arena_alloc(&g->arena, t->bytes);
        hand_ok(safetensors_read(&g->file, t, data));
        t->data = data;
    }
}

static void golden_close(struct golden *g)
{
    safetensors_close(&g->file);
    arena_release(&g->arena);
}

static const struct safetensor *tensor(const struct golden *g, const char *prefix, const char *name,
                                       int64_t bytes)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const struct safetensor *t = safetensors_find(&g->file, full);
    if (!t) fail_msg("no tensor %s", full);
    if (t->bytes != bytes) fail_msg("%s has %lld bytes", full, (long long)t->bytes);
    return t;
}

static double number(const struct golden *g, const char *name, int step)
{
    double x;
    const char *data = tensor(g, "", name, STEPS * 8)->data;
    memcpy(&x, data + 8 * step, sizeof x);
    return x;
}

static struct config golden_config(enum gelu gelu, bool bias)
{
    struct config c = tiny_config();
    c.model = (struct config_model){
        .n_layer = 2, .n_head = 2, .n_embd = C, .block_size = T, .bias = bias, .gelu = gelu};
    c.data.batch_size = B;
    c.train.beta1 = 0.9;
    c.train.beta2 = 0.95;
    c.train.weight_decay = 0.1;
    c.train.grad_clip = 1;
    return c;
}

static void load_weights(struct tiny *t, const struct golden *g)
{
    for (int i = 0; i < t->engine.program.model.parameters; i++) {
        const struct parameter *p = &t->engine.program.model.parameter[i];
        const struct safetensor *w = tensor(g, "w.", p->name, type_bytes(&p->type));
        assert_int_equal(w->rank, p->type.rank);
        for (int d = 0; d < w->rank; d++) assert_int_equal(w->dim[d], p->type.dim[d]);
        memcpy(tiny_parameter(t, STORAGE_WEIGHTS, p), w->data, (size_t)w->bytes);
    }
}

static double loss_at(struct tiny *t, const struct golden *g, int step)
{
    const int64_t bytes = B * T * 4;
    const char *inputs = tensor(g, "", "inputs", STEPS * bytes)->data;
    const char *targets = tensor(g, "", "targets", STEPS * bytes)->data;
    int32_t positions[T], unused = step;
    float loss;
    for (int i = 0; i < T; i++) positions[i] = i;
    struct engine *e = &t->engine;
    hand_ok(plan_feed(&e->program.plan[GRAPH_MICRO], "tokens", inputs + step * bytes, bytes));
    hand_ok(plan_feed(&e->program.plan[GRAPH_MICRO], "targets", targets + step * bytes, bytes));
    hand_ok(plan_feed(&e->program.plan[GRAPH_MICRO], "positions", positions, sizeof positions));
    hand_ok(plan_feed(&e->program.plan[GRAPH_MICRO], "step", &unused, sizeof unused));
    hand_ok(plan_run(&e->program.plan[GRAPH_MICRO], NULL));
    hand_ok(plan_read(&e->program.plan[GRAPH_MICRO], "loss", 0, &loss, sizeof loss));
    return (double)loss;
}

static void near(const char *what, int step, double is, double expected, double tolerance,
                 double *worst)
{
    double error = fabs(is - expected) / fabs(expected);
    if (!(error <= tolerance))
        fail_msg("%s of step %d: %.9g instead of %.9g", what, step, is, expected);
    if (error > *worst) *worst = error;
}

static void compare(const struct tiny *t, const struct golden *g, enum storage storage,
                    const char *prefix, double tolerance, double *worst)
{
    for (int i = 0; i < t->engine.program.model.parameters; i++) {
        const struct parameter *p = &t->engine.program.model.parameter[i];
        int64_t n = type_elements(&p->type);
        float *is = tiny_parameter(t, storage, p), expected[80 * C];
        memcpy(expected, tensor(g, prefix, p->name, type_bytes(&p->type))->data,
               (size_t)n * sizeof(float));
        /* The gradient of the key bias is zero except for rounding, which Adam scales up to full
         * steps: reference/README.md. */
        if (storage == STORAGE_WEIGHTS && strstr(p->name, "c_attn.bias"))
            memcpy(expected + C, is + C, C * sizeof(float));
        double error = hand_distance(is, expected, n);
        if (!(error <= tolerance)) fail_msg("%s%s differs by %.2e", prefix, p->name, error);
        if (error > *worst) *worst = error;
    }
}

static void ten_steps(const struct golden *g, const struct config *c, double worst[4])
{
    struct tiny t;
    tiny_open_bare(&t, c, V, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    load_weights(&t, g);
    for (int step = 0; step < STEPS; step++) {
        double loss = loss_at(&t, g, step);
        near("loss", step, loss, number(g, "losses", step), LOSS_TOLERANCE, &worst[0]);
        if (step == 0) compare(&t, g, STORAGE_GRADIENTS, "g.", GRADIENT_TOLERANCE, &worst[1]);
        double norm = (double)tiny_update(&t, step + 1, number(g, "lr", step));
        near("gradient norm", step, norm, number(g, "grad_norms", step), NORM_TOLERANCE, &worst[2]);
    }
    compare(&t, g, STORAGE_WEIGHTS, "f.", WEIGHT_TOLERANCE, &worst[3]);
    tiny_close(&t);
}

static void every_rung(enum gelu gelu, bool bias)
{
    struct golden g;
    golden_open(&g, gelu, bias);
    struct config c = golden_config(gelu, bias);
    double worst[4] = {0};
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            c.plan.fusion = (enum fusion)fusion;
            c.plan.flash = flash;
            ten_steps(&g, &c, worst);
        }
    print_message("largest: losses %.1e, gradients %.1e, norms %.1e, weights %.1e\n", worst[0],
                  worst[1], worst[2], worst[3]);
    golden_close(&g);
}

static void test_erf_bias(void **state)
{
    (void)state;
    every_rung(GELU_ERF, true);
}

static void test_erf(void **state)
{
    (void)state;
    every_rung(GELU_ERF, false);
}

static void test_tanh_bias(void **state)
{
    (void)state;
    every_rung(GELU_TANH, true);
}

static void test_tanh(void **state)
{
    (void)state;
    every_rung(GELU_TANH, false);
}

/* The model with a padded vocabulary is equivalent: padding tokens get no probability. */
static void test_padded_vocabulary(void **state)
{
    (void)state;
    struct golden g;
    golden_open(&g, GELU_ERF, true);
    struct config c = golden_config(GELU_ERF, true);
    c.model.pad_vocab = 64;
    struct tiny t;
    double worst = 0;
    tiny_open_bare(&t, &c, V, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    for (int i = 0; i < t.engine.program.model.parameters; i++) {
        const struct parameter *p = &t.engine.program.model.parameter[i];
        int64_t bytes = strcmp(p->name, "wte.weight") ? type_bytes(&p->type) : V * C * 4;
        memcpy(tiny_parameter(&t, STORAGE_WEIGHTS, p), tensor(&g, "w.", p->name, bytes)->data,
               (size_t)bytes);
    }
    for (int step = 0; step < STEPS; step++) {
        near("loss", step, loss_at(&t, &g, step), number(&g, "losses", step), LOSS_TOLERANCE,
             &worst);
        tiny_update(&t, step + 1, number(&g, "lr", step));
    }
    tiny_close(&t);
    golden_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_erf_bias),          cmocka_unit_test(test_erf),
        cmocka_unit_test(test_tanh_bias),         cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_padded_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
