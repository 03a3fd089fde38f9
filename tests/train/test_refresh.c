/* The copies of the weights are rebuilt whenever weights are initialized, updated, resumed, or
 * loaded for evaluation. Otherwise kernels would read stale weights. */
#include "../support/small.h"
#include "../support/tiny.h"
#include "train/saved.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const enum storage followed[] = {STORAGE_WEIGHTS, STORAGE_COPY, STORAGE_PACKED};

/* The ranges of an engine, copied to the host; the caller frees them. */
struct ranges {
    void *at[COUNT_OF(followed)];
    int64_t bytes[COUNT_OF(followed)];
};

static struct ranges ranges_of(const struct engine *e)
{
    struct ranges r;
    for (int i = 0; i < COUNT_OF(followed); i++) {
        r.bytes[i] = e->storage.bytes[followed[i]];
        r.at[i] = malloc((size_t)r.bytes[i] + 1);
        if (r.bytes[i]) memcpy(r.at[i], e->storage.base[followed[i]], (size_t)r.bytes[i]);
    }
    return r;
}

static void ranges_free(struct ranges *r)
{
    for (int i = 0; i < COUNT_OF(followed); i++) free(r->at[i]);
}

static void expect_same(const struct ranges *a, const struct ranges *b, const char *what)
{
    static const char *const names[] = {"weights", "bf16 copy", "packed weights"};
    for (int i = 0; i < COUNT_OF(followed); i++) {
        assert_int_equal(a->bytes[i], b->bytes[i]);
        if (memcmp(a->at[i], b->at[i], (size_t)a->bytes[i]) != 0)
            fail_msg("%s: the %s are others", what, names[i]);
    }
}

static struct ranges trained(const struct config *c, bool overwrite)
{
    struct arena a = {0};
    struct trainer t;
    if (trainer_open(&t, c, &(struct trainer_options){.overwrite = overwrite}, &a) != ST_OK)
        fail_msg("%s", fail_message());
    assert_int_equal(trainer_run(&t), ST_OK);
    struct ranges r = ranges_of(&t.learner.engine);
    trainer_close(&t);
    arena_release(&a);
    return r;
}

static struct ranges loaded(const char *run_dir)
{
    struct arena a = {0};
    struct saved_run s;
    struct engine e;
    if (saved_open(&s, run_dir, false, &a) != ST_OK ||
        saved_engine(&s, 1u << GRAPH_EVAL, &e, &a) != ST_OK)
        fail_msg("%s", fail_message());
    struct ranges r = ranges_of(&e);
    engine_close(&e);
    arena_release(&a);
    return r;
}

static void follow(enum precision dtype, int64_t micro_steps)
{
    struct config c = small_config();
    c.plan.dtype = dtype;
    c.plan.pack_weights = tiny_packs(dtype) ? PACKING_TRUE : PACKING_AUTO;
    c.train.gradient_accumulation_steps = micro_steps;
    struct ranges straight = trained(&c, true);
    struct ranges later = loaded(c.train.out_dir);
    expect_same(&straight, &later, "loaded");
    c.train.max_iters = 10;
    struct ranges half = trained(&c, true);
    c.train.max_iters = 20;
    c.train.init_from = INIT_RESUME;
    struct ranges resumed = trained(&c, false);
    expect_same(&straight, &resumed, "resumed");
    assert_true(straight.bytes[1] > 0 || dtype != PRECISION_BFLOAT16);
    assert_memory_not_equal(straight.at[0], half.at[0], (size_t)straight.bytes[0]);
    ranges_free(&straight);
    ranges_free(&later);
    ranges_free(&half);
    ranges_free(&resumed);
}

static void test_copies_follow(void **state)
{
    (void)state;
    for (int64_t micro_steps = 1; micro_steps <= 2; micro_steps++) {
        follow(PRECISION_FLOAT32, micro_steps);
        follow(PRECISION_BFLOAT16, micro_steps);
    }
}

static int make(void **state)
{
    (void)state;
    small_make();
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    small_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_follow),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
