/* Every rung trains the same model: dropout masks are bitwise the same, and losses differ only by
 * rounding. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, H = 3, STEP = 77, THRESHOLD = 51 };

static struct dropout drop(enum dropout_pattern pattern)
{
    return (struct dropout){pattern, THRESHOLD, 5, 9};
}

static void plan_and_run(struct hand *h)
{
    hand_plan(h, NULL);
    *(int32_t *)hand_input(h, "step") = STEP;
    hand_run(h);
}

/* The same elements are kept, and some are dropped. */
static void same_mask(const char *what, const float *a, const float *b, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((a[i] != 0) != (b[i] != 0)) fail_msg("%s: element %lld", what, (long long)i);
        kept += a[i] != 0;
    }
    assert_true(kept > n / 10 && kept < n);
}

/* Masks of (B,T,C): alone, applied to ones, on the branch of a norm, on embeddings. */
static void test_pointwise_masks(void **state)
{
    (void)state;
    enum { T = 20, C = 36, N = B * T * C };
    const struct dropout d = drop(DROPOUT_POINTWISE);
    struct hand h;
    hand_init(&h);
    struct graph *g = &h.graph;
    struct type t = type_3d(DT_F32, B, T, C);
    value step = g_input(g, "step", type_scalar(DT_I32)), ones = g_fill(g, t, 1);
    graph_output(g, "alone", g_dropout_mask(g, step, d, t));
    graph_output(g, "applied", g_dropout(g, ones, step, d));
    union attr norm = {.norm = {.eps = 1e-5, .drop = d}};
    value branch[] = {g_fill(g, t, 0), ones, step, g_fill(g, type_1d(DT_F32, C), 1)};
    graph_output(g, "branch", graph_add(g, OP_ADD_LAYERNORM, &norm, 4, branch, NULL));
    union attr sum = {.drop = d};
    value table = g_fill(g, type_2d(DT_F32, T, C), 0.5);
    value ids = g_input(g, "ids", type_2d(DT_I32, B, T)), at = g_input(g, "at", type_1d(DT_I32, T));
    value in[] = {table, ids, table, at, step};
    graph_output(g, "embedded", graph_add(g, OP_EMBED_SUM, &sum, 5, in, NULL));
    plan_and_run(&h);
    const float *alone = hand_output(&h, "alone");
    for (int i = 0; i < N; i++) {
        struct rng_words w = dropout_pointwise(d.seed, d.site, STEP, (uint64_t)i / 16);
        bool keep = (int)(w.w[i % 16 / 4] >> 8 * (i % 4) & 255) >= THRESHOLD;
        assert_true(alone[i] == (keep ? dropout_scale(THRESHOLD) : 0));
    }
    same_mask("applied", hand_output(&h, "applied"), alone, N);
    same_mask("branch", hand_output(&h, "branch"), alone, N);
    same_mask("embedded", hand_output(&h, "embedded"), alone, N);
    hand_close(&h);
}

/* qkv with equal scores, and v = one row of the identity per key: then y (B,T,H*T) is p after
 * dropout. */
static void fill_qkv(float *qkv, int T, int kv_heads)
{
    int row = (H + 2 * kv_heads) * T;
    memset(qkv, 0, sizeof(float) * (size_t)(B * T * row));
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++)
            for (int h = 0; h < kv_heads; h++)
                qkv[(b * T + t) * row + (H + kv_heads + h) * T + t] = 1;
}

/* Attention masks (B,H,T,T): alone, from the dropout of op, from the fused softmax, inside flash
 * attention; if heads share keys, separately for each query head. */
static void attention_masks(int T)
{
    const struct dropout d = drop(DROPOUT_ATTENTION);
    const int64_t N = (int64_t)B * H * T * T;
    struct hand h;
    hand_init(&h);
    struct graph *g = &h.graph;
    struct type t = type_4d(DT_F32, B, H, T, T);
    value step = g_input(g, "step", type_scalar(DT_I32));
    value qkv = g_input(g, "qkv", type_3d(DT_F32, B, T, 3 * H * T));
    value causal = g_causal_mask(g, g_fill(g, t, 1), 0);
    graph_output(g, "alone", g_mul(g, causal, g_dropout_mask(g, step, d, t)));
    graph_output(g, "op", g_dropout(g, g_causal_mask(g, g_fill(g, t, 1), 0), step, d));
    union attr score = {.score = {0.5, true, d}};
    value in[] = {g_fill(g, t, 1), step};
    graph_output(g, "fused", graph_out(graph_add(g, OP_SCORE_SOFTMAX, &score, 2, in, NULL), 1));
    value y = g_attention(g, qkv, step, H, 0, true, d); /* (B,T,H*T) */
    graph_output(g, "flash", g_split_heads(g, y, H, 0, 1));
    value shared = g_input(g, "shared", type_3d(DT_F32, B, T, (H + 2) * T));
    y = g_attention(g, shared, step, H, 1, true, d);
    graph_output(g, "shared keys", g_split_heads(g, y, H, 0, 1));
    hand_plan(&h, NULL);
    fill_qkv(hand_input(&h, "qkv"), T, H);
    fill_qkv(hand_input(&h, "shared"), T, 1);
    *(int32_t *)hand_input(&h, "step") = STEP;
    hand_run(&h);
    const float *alone = hand_output(&h, "alone");
    same_mask("op", hand_output(&h, "op"), alone, N);
    same_mask("fused", hand_output(&h, "fused"), alone, N);
    same_mask("flash", hand_output(&h, "flash"), alone, N);
    same_mask("shared keys", hand_output(&h, "shared keys"), alone, N);
    for (int64_t i = 0; i < N; i++) {
        int64_t q = i / T % T, k = i % T;
        uint8_t byte = dropout_attention_byte(d.seed, d.site, STEP, (uint32_t)(i / T / T),
                                              (uint32_t)q, (uint32_t)k);
        assert_true((alone[i] != 0) == (k <= q && byte >= THRESHOLD));
    }
    hand_close(&h);
}

static void test_attention_masks(void **state)
{
    (void)state;
    attention_masks(32);
    attention_masks(20);
}

/* Masks differ between steps and between sites. */
static void test_masks_change(void **state)
{
    (void)state;
    struct hand h;
    hand_init(&h);
    struct graph *g = &h.graph;
    struct type t = type_1d(DT_F32, 4096);
    struct dropout d = drop(DROPOUT_POINTWISE), other = d;
    other.site++;
    value step = g_input(g, "step", type_scalar(DT_I32));
    value next = g_input(g, "next", type_scalar(DT_I32));
    graph_output(g, "now", g_dropout_mask(g, step, d, t));
    graph_output(g, "later", g_dropout_mask(g, next, d, t));
    graph_output(g, "elsewhere", g_dropout_mask(g, step, other, t));
    hand_plan(&h, NULL);
    *(int32_t *)hand_input(&h, "step") = STEP;
    *(int32_t *)hand_input(&h, "next") = STEP + 1;
    hand_run(&h);
    int later = 0, elsewhere = 0;
    for (int i = 0; i < 4096; i++) {
        later += hand_output(&h, "now")[i] != hand_output(&h, "later")[i];
        elsewhere += hand_output(&h, "now")[i] != hand_output(&h, "elsewhere")[i];
    }
    assert_true(later > 1000 && elsewhere > 1000); /* expected: 2 * 0.2 * 0.8 of them, 1311 */
    hand_close(&h);
}

enum { SHORT = 20, LONG = 200 };

/* A training that must give the same losses on every rung. */
struct course {
    double dropout;
    int64_t heads, kv_heads;
    int steps;
};

static void train_at(enum fusion fusion, bool flash, const struct course *course, float *ret_loss)
{
    struct config c = tiny_config();
    struct tiny t;
    c.model.bias = true;
    c.model.dropout = course->dropout;
    c.model.n_head = course->heads;
    c.model.n_kv_head = course->kv_heads;
    c.plan.fusion = fusion;
    c.plan.flash = flash;
    tiny_open(&t, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    for (int step = 0; step < course->steps; step++) ret_loss[step] = tiny_step(&t, step, 3e-3);
    tiny_close(&t);
}

static void same_course(const struct course *course)
{
    static float first[LONG], other[LONG];
    double near = 0, far = 0;
    int steps = course->steps;
    train_at(FUSION_PRIMITIVE, false, course, first);
    assert_true(steps < LONG || first[steps - 1] < first[0] - 1); /* it learns */
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            train_at((enum fusion)fusion, flash, course, other);
            for (int step = 0; step < steps; step++) {
                double apart = fabs((double)other[step] / (double)first[step] - 1);
                if (step < SHORT && apart > near) near = apart;
                if (apart > far) far = apart;
                if (!(apart < (step < SHORT ? 1e-5 : 1e-3)))
                    fail_msg("fusion %d, flash %d: loss %.7g instead of %.7g at step %d", fusion,
                             flash, (double)other[step], (double)first[step], step);
            }
        }
    print_message("dropout %g: losses differ by %.1e in %d steps, %.1e in %d\n", course->dropout,
                  near, SHORT, far, steps);
}

static void test_rungs_agree(void **state)
{
    (void)state;
    same_course(&(struct course){0, 2, 0, SHORT});
}

/* Slow attention repeats the keys that heads share; flash attention reads them in place. */
static void test_rungs_agree_with_shared_keys(void **state)
{
    (void)state;
    same_course(&(struct course){0.2, 4, 2, SHORT});
    same_course(&(struct course){0, 4, 1, LONG});
}

static void test_rungs_agree_with_dropout(void **state)
{
    (void)state;
    same_course(&(struct course){0.2, 2, 0, LONG});
}

/* Accumulating two micro-steps equals one step with their mean, at every rung. */
static void test_accumulation(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        struct config c = tiny_config();
        struct tiny one, sum;
        struct arena a = {0};
        c.plan.fusion = (enum fusion)fusion;
        tiny_open(&one, &c, 1u << GRAPH_MICRO);
        c.train.gradient_accumulation_steps = 2;
        tiny_open(&sum, &c, 1u << GRAPH_MICRO | 1u << GRAPH_MICRO_MORE);
        int64_t n = one.engine.program.model.elements;
        float first_loss = tiny_loss(&one, GRAPH_MICRO, 1);
        float *mean = tiny_copy(&one, STORAGE_GRADIENTS, &a);
        tiny_loss(&one, GRAPH_MICRO, 2);
        const float *second = tiny_range(&one, STORAGE_GRADIENTS);
        for (int64_t i = 0; i < n; i++) mean[i] = (mean[i] + second[i]) / 2;
        /* the first micro-step must overwrite old contents */
        for (int repeat = 0; repeat < 2; repeat++) {
            assert_true(tiny_loss(&sum, GRAPH_MICRO, 1) == first_loss);
            tiny_loss(&sum, GRAPH_MICRO_MORE, 2);
            assert_true(hand_distance(tiny_range(&sum, STORAGE_GRADIENTS), mean, n) < 1e-6);
        }
        tiny_close(&one);
        tiny_close(&sum);
        arena_release(&a);
    }
}

/* Evaluation between two steps changes nothing, although it shares their memory. */
static void test_evaluation_changes_nothing(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny plain, watched;
    c.model.dropout = 0.2;
    tiny_open(&plain, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    tiny_open(&watched, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE | 1u << GRAPH_EVAL);
    for (int step = 0; step < 5; step++) {
        float loss = tiny_step(&plain, step, 1e-3);
        tiny_loss(&watched, GRAPH_EVAL, 1000 + step);
        assert_true(tiny_loss(&watched, GRAPH_MICRO, step) == loss);
        tiny_loss(&watched, GRAPH_EVAL, 2000 + step);
        tiny_update(&watched, step + 1, 1e-3);
    }
    int64_t bytes = plain.engine.storage.bytes[STORAGE_WEIGHTS];
    assert_memory_equal(tiny_range(&plain, STORAGE_WEIGHTS), tiny_range(&watched, STORAGE_WEIGHTS),
                        (size_t)bytes);
    tiny_close(&plain);
    tiny_close(&watched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pointwise_masks),
        cmocka_unit_test(test_attention_masks),
        cmocka_unit_test(test_masks_change),
        cmocka_unit_test(test_rungs_agree),
        cmocka_unit_test(test_rungs_agree_with_shared_keys),
        cmocka_unit_test(test_rungs_agree_with_dropout),
        cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_evaluation_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
