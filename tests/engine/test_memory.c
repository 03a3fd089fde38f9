/* Memory of a training step: values over time, tensors, the bytes a block saves by a closed
 * formula, recompute variants, and the largest batch that fits. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "engine/facts.h"
#include "engine/fit.h"
#include "engine/memory.h"
#include "engine/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { L = 4, V = 100 };

static struct arena arena;
static struct config config;
static struct program program;

static int fresh(void **state)
{
    (void)state;
    arena = (struct arena){0};
    config = tiny_config();
    config.model.n_layer = L;
    config.model.n_head = 3;
    config.model.n_embd = 96;
    config.model.block_size = 48;
    config.data.batch_size = 5;
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static void plan(enum memory_extent extent)
{
    hand_ok(program_for(&program, &config, V, memory_kinds(&config, extent), "cpu", &arena));
}

static void test_course(void **state)
{
    (void)state;
    struct memory_course c;
    config.train.gradient_accumulation_steps = 3;
    static const struct {
        enum graph_kind kind[3];
        int kinds;
    } expected[EXTENTS] = {{{GRAPH_EVAL}, 1},
                           {{GRAPH_MICRO, GRAPH_MICRO_MORE}, 2},
                           {{GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_UPDATE}, 3}};
    for (int extent = 0; extent < EXTENTS; extent++) {
        plan((enum memory_extent)extent);
        memory_course(&program, &c, &arena);
        assert_int_equal(c.total, program_bytes(&program));
        int at = 0;
        for (int k = 0; k < expected[extent].kinds; k++) {
            const struct plan *p = &program.plan[expected[extent].kind[k]];
            for (int id = 0; id < p->steps; id++) {
                if (!p->step[id].kernel) continue;
                const struct memory_moment *m = &c.moment[at++];
                assert_int_equal(m->kind, expected[extent].kind[k]);
                assert_int_equal(m->step, id);
                assert_int_equal(m->used + m->bytes[MEMORY_UNUSED], c.total);
                assert_true(m->used <= c.moment[c.peak].used);
            }
        }
        assert_int_equal(at, c.moments);
        const int64_t *peak = c.moment[c.peak].bytes;
        assert_int_equal(peak[MEMORY_SAVED] > 0, extent != EXTENT_INFERENCE);
        assert_int_equal(peak[MEMORY_GRADIENTS] > 0, extent != EXTENT_INFERENCE);
        assert_int_equal(peak[MEMORY_OPTIMIZER] > 0, extent == EXTENT_STEP);
    }
}

/* Every step of the plan belongs to one column, which shows the maximum of its steps. */
static void test_columns(void **state)
{
    (void)state;
    struct memory_moment moment[10] = {0};
    static const int64_t used[10] = {1, 5, 2, 2, 9, 3, 4, 4, 1, 0};
    for (int i = 0; i < 10; i++) moment[i].used = used[i];
    const struct memory_course c = {moment, 10, 4, 9};
    int at[20];
    assert_int_equal(memory_columns(&c, 3, at), 3); /* 0-2, 3-5, 6-9 */
    assert_int_equal(at[0], 1);
    assert_int_equal(at[1], 4);
    assert_int_equal(at[2], 6);
    assert_int_equal(memory_columns(&c, 20, at), 10);
    for (int i = 0; i < 10; i++) assert_int_equal(at[i], i);
    for (int i = 0; i < 10; i++) moment[i].kind = i == 9 ? GRAPH_UPDATE : GRAPH_MICRO;
    assert_int_equal(memory_columns(&c, 3, at), 3); /* 0-3, 4-8, 9: each graph gets a column */
    assert_int_equal(at[0], 1);
    assert_int_equal(at[1], 4);
    assert_int_equal(at[2], 9);
}

/* At every step the tensors add up to the parts, except for gaps between parameters. */
static void test_tensors_add_up_to_parts(void **state)
{
    (void)state;
    struct memory_course c;
    struct memory_tensors list;
    config.plan.dtype = PRECISION_BFLOAT16;
    plan(EXTENT_STEP);
    memory_course(&program, &c, &arena);
    for (int i = 0; i < c.moments; i += 7) {
        int64_t part[MEMORY_PARTS] = {0}, sum = 0;
        memory_tensors(&program, &c.moment[i], &list, &arena);
        for (int k = 0; k < list.n; k++) {
            const struct memory_tensor *t = &list.tensor[k];
            if (k) assert_true(t->bytes <= list.tensor[k - 1].bytes);
            part[t->part] += t->bytes;
            sum += t->bytes;
        }
        assert_int_equal(sum, list.bytes);
        for (int k = MEMORY_CACHE; k < MEMORY_UNUSED; k++)
            assert_int_equal(part[k], c.moment[i].bytes[k]);
        int64_t weights = 4 * model_count(&program.model, true);
        assert_int_equal(part[MEMORY_WEIGHTS], weights);
        assert_int_equal(part[MEMORY_GRADIENTS], weights);
        assert_int_equal(part[MEMORY_OPTIMIZER], 2 * weights);
        assert_true(part[MEMORY_COPIES] >= weights / 2);
    }
    const struct memory_moment last = c.moment[c.moments - 1];
    assert_int_equal(last.kind, GRAPH_UPDATE);
    assert_int_equal(last.bytes[MEMORY_SAVED], 0);
}

/* If ranks sum gradients in bf16, all parameters have another gradient of two bytes. */
static void test_reduced_gradients(void **state)
{
    (void)state;
    struct memory_course c;
    struct memory_tensors list;
    config.ranks.count = config.train.gradient_accumulation_steps = 2;
    config.ranks.reduce_dtype = REDUCE_BFLOAT16;
    unsigned kinds = memory_kinds(&config, EXTENT_STEP);
    hand_ok(program_for(&program, &config, V, kinds, "cuda", &arena));
    memory_course(&program, &c, &arena);
    memory_tensors(&program, &c.moment[0], &list, &arena);
    int64_t gradients = 0;
    for (int k = 0; k < list.n; k++)
        if (list.tensor[k].part == MEMORY_GRADIENTS) gradients += list.tensor[k].bytes;
    assert_int_equal(gradients, 2 * model_count(&program.model, true));
}

/* The bytes that one block saves. With elements of s bytes: the incoming residual, its norm, q, k
 * and v, the attention output, the second residual, its norm, (B,T,4C) before and after GELU: 16 s
 * BTC, plus mean and 1/std of two norms. Attention adds one sum per row (flash) or its
 * probabilities (slow), twice with dropout. (Korthikanti et al. count 34 BTC + 5 BHT^2 bytes in 16
 * bits, including dropout masks, which are regenerated here.) */
static int64_t saved_by_formula(void)
{
    int64_t B = config.data.batch_size, T = config.model.block_size, C = config.model.n_embd,
            H = config.model.n_head, s = config.plan.dtype == PRECISION_BFLOAT16 ? 2 : 4;
    int64_t squares = config.plan.flash ? 0 : config.model.dropout > 0 ? 2 : 1;
    bool gelu = config.plan.recompute == RECOMPUTE_GELU; /* saves only GELU's input */
    int64_t sums = config.plan.flash ? 4 * B * H * T : 0;
    if (config.plan.recompute >= RECOMPUTE_BLOCK) return s * B * T * C;
    return s * (gelu ? 12 : 16) * B * T * C + 4 * 4 * B * T + sums + squares * s * B * H * T * T;
}

static void test_saved_by_a_block(void **state)
{
    (void)state;
    for (int bits = 0; bits < 32; bits++) {
        struct memory_tensors saved;
        config.plan.flash = bits & 1;
        config.plan.dtype = bits & 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        config.model.dropout = bits & 4 ? 0.1 : 0;
        config.plan.recompute = (enum recompute)(bits >> 3);
        if (bits >> 3 == 3) config.plan.recompute = RECOMPUTE_NONE, config.model.bias = true;
        plan(EXTENT_STEP);
        for (int layer = 1; layer < L; layer++) {
            memory_saved(&program, layer, &saved, &arena);
            if (saved.bytes != saved_by_formula())
                fail_msg("flash %d, dtype %d, dropout %g, recompute %d: block %d saves %lld, not "
                         "%lld bytes",
                         config.plan.flash, config.plan.dtype, config.model.dropout,
                         config.plan.recompute, layer, (long long)saved.bytes,
                         (long long)saved_by_formula());
            for (int i = 0; i < saved.n; i++) assert_int_equal(saved.tensor[i].layer, layer);
        }
    }
}

/* The bytes saved by the blocks and outside of them equal the timeline at the end of the forward
 * pass. */
static void test_blocks_add_up(void **state)
{
    (void)state;
    struct memory_course c;
    int64_t sum = 0, most = 0;
    config.plan.fusion = FUSION_OP;
    plan(EXTENT_BACKWARD);
    memory_course(&program, &c, &arena);
    for (int layer = -1; layer < L; layer++) {
        struct memory_tensors saved;
        memory_saved(&program, layer, &saved, &arena);
        sum += saved.bytes;
    }
    for (int i = 0; i < c.moments; i++)
        if (c.moment[i].bytes[MEMORY_SAVED] > most) most = c.moment[i].bytes[MEMORY_SAVED];
    assert_true(most <= sum &&
                most > sum - sum / 10); /* the loss's values are saved after others are dead */
    plan(EXTENT_INFERENCE);
    struct memory_tensors none;
    memory_saved(&program, 1, &none, &arena);
    assert_int_equal(none.n, 0);
}

static void test_variants(void **state)
{
    (void)state;
    const struct target cpu = {.backend = backend_find("cpu")};
    struct memory_variant v[MEMORY_VARIANTS];
    int n;
    static const int expected[] = {RECOMPUTE_NONE,      RECOMPUTE_GELU,      RECOMPUTE_BLOCK,
                                   RECOMPUTE_BLOCK + 1, RECOMPUTE_BLOCK + 2, RECOMPUTE_BLOCK + 3};
    config.plan.recompute = (enum recompute)(RECOMPUTE_BLOCK + 2); /* between 2 and 4 */
    unsigned kinds = memory_kinds(&config, EXTENT_STEP);
    hand_ok(memory_variants(&config, V, kinds, &cpu, NULL, 0, NULL, NULL, v, &n));
    assert_int_equal(n, COUNT_OF(expected));
    for (int i = 0; i < n; i++) {
        assert_int_equal(v[i].recompute, expected[i]);
        assert_int_equal(v[i].batch, 0);
        config.plan.recompute = v[i].recompute;
        plan(EXTENT_STEP);
        struct facts f = facts_of(&program);
        assert_int_equal(v[i].total, f.total);
        assert_true(v[i].flops == f.flops);
        if (i) assert_true(v[i].flops >= v[i - 1].flops && v[i].saved <= v[i - 1].saved);
    }
    const int64_t limit = 64 << 20;
    config.plan.recompute = (enum recompute)(RECOMPUTE_BLOCK + 7); /* above the last power of two */
    config.model.n_layer = 11;
    hand_ok(memory_variants(&config, V, kinds, &cpu, NULL, limit, NULL, NULL, v, &n));
    assert_int_equal(n, 7); /* none, gelu, 1, 2, 4, 8, all 11 */
    config.plan.recompute = (enum recompute)(RECOMPUTE_BLOCK + 9);
    hand_ok(memory_variants(&config, V, kinds, &cpu, NULL, limit, NULL, NULL, v, &n));
    assert_int_equal(n, 8);
    assert_int_equal(v[6].recompute, RECOMPUTE_BLOCK + 9);
    assert_int_equal(v[7].recompute, RECOMPUTE_BLOCK + 10);
    assert_true(v[2].batch > v[1].batch && v[1].batch > v[0].batch && v[0].batch > 0);
}

/* A model without GELUs or without blocks has no such variants. */
static void test_variants_that_do_nothing(void **state)
{
    const struct target cpu = {.backend = backend_find("cpu")};
    (void)state;
    static const struct {
        enum model_kind model;
        int variants;
    } models[] = {{MODEL_GPT, 5}, {MODEL_ATTENTION_BLOCK, 2}, {MODEL_ELU, 1}};
    for (int i = 0; i < COUNT_OF(models); i++) {
        struct memory_variant v[MEMORY_VARIANTS];
        int n;
        config.model.kind = models[i].model;
        unsigned kinds = memory_kinds(&config, EXTENT_STEP);
        hand_ok(memory_variants(&config, V, kinds, &cpu, NULL, 0, NULL, NULL, v, &n));
        assert_int_equal(n, models[i].variants);
    }
}

static int64_t bytes_with(int64_t batch_size)
{
    config.data.batch_size = batch_size;
    plan(EXTENT_STEP);
    int64_t bytes = program_bytes(&program);
    return bytes;
}

/* The batch fits and one more sequence does not, wherever the search starts. */
static void test_fit(void **state)
{
    (void)state;
    const struct target cpu = {.backend = backend_find("cpu")};
    unsigned kinds = memory_kinds(&config, EXTENT_STEP);
    static const int64_t starts[] = {1, 5, 40000};
    for (int i = 0; i < COUNT_OF(starts); i++)
        for (int exact = 0; exact < 2; exact++) {
            int64_t fits, limit = bytes_with(37) - 1 + exact;
            config.data.batch_size = starts[i];
            hand_ok(fit_batch(&config, V, kinds, &cpu, NULL, limit, &fits));
            assert_int_equal(fits, 36 + exact);
        }
    int64_t fits, one = bytes_with(1);
    hand_ok(fit_batch(&config, V, kinds, &cpu, NULL, one - 1, &fits));
    assert_int_equal(fits, 0);
    hand_ok(fit_batch(&config, V, kinds, &cpu, NULL, one, &fits));
    assert_int_equal(fits, 1);
    hand_ok(fit_batch(&config, V, kinds, &cpu, NULL, INT64_MAX, &fits));
    assert_int_equal(fits, BATCH_SIZE_MOST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_course),
        TEST(test_columns),
        TEST(test_tensors_add_up_to_parts),
        TEST(test_reduced_gradients),
        TEST(test_saved_by_a_block),
        TEST(test_blocks_add_up),
        TEST(test_variants),
        TEST(test_variants_that_do_nothing),
        TEST(test_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
