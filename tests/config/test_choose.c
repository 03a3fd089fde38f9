/* The values of keys that are left at auto. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct arena arena;

static void choose(const char *const *words, const struct config_chooser *by, const char *dtype,
                   const char *replay)
{
    struct config c;
    config_init(&c);
    for (; *words; words++) assert_int_equal(config_set(&c, *words, &arena), ST_OK);
    config_choose(&c, by);
    assert_string_equal(config_value_text(&c, "dtype", &arena), dtype);
    assert_string_equal(config_value_text(&c, "replay", &arena), replay);
}

/* What the user sets stays, and so does what a run began with. */
static void test_choices(void **state)
{
    (void)state;
    struct config before;
    config_init(&before);
    before.plan.dtype = PRECISION_TFLOAT32;
    before.plan.replay = REPLAY_FALSE;
    const struct config_chooser gpu = {.records = true, .bfloat16_is_faster = true},
                                old_gpu = {.records = true}, amx = {.bfloat16_is_faster = true},
                                cpu = {0}, resumed = {true, true, &before};
    static const char *const none[] = {NULL},
                             *const both[] = {"dtype=float8", "--replay=False", NULL},
                             *const replay[] = {"--replay", NULL},
                             *const poison[] = {"poison=true", NULL},
                             *const check[] = {"check_nan=true", NULL};
    choose(none, &gpu, "bfloat16", "true");
    choose(none, &old_gpu, "float32", "true");
    choose(none, &amx, "bfloat16", "false");
    choose(none, &cpu, "float32", "false");
    choose(none, &resumed, "tfloat32", "false");
    choose(both, &gpu, "float8", "false");
    choose(replay, &cpu, "float32", "true");
    choose(replay, &resumed, "tfloat32", "true");
    choose(poison, &gpu, "bfloat16", "false");
    choose(check, &gpu, "bfloat16", "false");
}

static int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices)};
    return cmocka_run_group_tests(tests, NULL, teardown);
}
