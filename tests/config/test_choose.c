/* The values of keys that are left at auto. */
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct arena arena;

static void choose(const char *const *words, const struct config_facts *by, const char *dtype,
                   const char *replay, const char *pad_vocab)
{
    struct config c;
    config_init(&c);
    for (; *words; words++) assert_int_equal(config_set(&c, *words, &arena), ST_OK);
    config_choose(&c, by);
    assert_string_equal(config_value_text(&c, "dtype", &arena), dtype);
    assert_string_equal(config_value_text(&c, "replay", &arena), replay);
    assert_string_equal(config_value_text(&c, "pad_vocab", &arena), pad_vocab);
}

/* What the user sets stays, and so do the type and the padding that a run began with, if they have
 * been decided; replay follows the device. */
static void test_choices(void **state)
{
    (void)state;
    struct config before, undecided;
    config_init(&before);
    config_init(&undecided);
    before.plan.dtype = PRECISION_TFLOAT32;
    before.plan.replay = REPLAY_FALSE;
    before.model.pad_vocab = 128;
    const struct config_facts gpu = {.captures = true,
                                     .bfloat16_is_faster = true,
                                     .padding_pays = true},
                              old_gpu = {.captures = true, .padding_pays = true},
                              amx = {.bfloat16_is_faster = true}, cpu = {0},
                              resumed = {true, true, false, true, &before},
                              elsewhere = {false, true, false, true, &before},
                              begun = {true, true, false, true, &undecided},
                              meeting = {true, true, true, true, NULL};
    static const char
        *const none[] = {NULL},
               *const all[] = {"dtype=float8", "--replay=False", "pad_vocab=0", NULL},
               *const replay[] = {"--replay", NULL}, *const poison[] = {"poison=true", NULL},
               *const ranks[] = {"ranks=2", NULL}, *const check[] = {"check_nan=true", NULL},
               *const again[] = {"pad_vocab=0", "pad_vocab=auto", NULL};
    choose(none, &gpu, "bfloat16", "true", "64");
    choose(none, &old_gpu, "float32", "true", "64");
    choose(none, &amx, "bfloat16", "false", "0");
    choose(none, &cpu, "float32", "false", "0");
    choose(none, &resumed, "tfloat32", "true", "128");
    choose(none, &elsewhere, "tfloat32", "false", "128");
    choose(none, &begun, "bfloat16", "true", "64");
    choose(all, &gpu, "float8", "false", "0");
    choose(replay, &cpu, "float32", "true", "0");
    choose(replay, &resumed, "tfloat32", "true", "128");
    choose(poison, &gpu, "bfloat16", "false", "64");
    choose(check, &gpu, "bfloat16", "false", "64");
    choose(ranks, &meeting, "bfloat16", "false", "64");
    choose(again, &gpu, "bfloat16", "true", "64");
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
