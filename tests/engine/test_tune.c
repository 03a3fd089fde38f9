/* The tuning stage on a simulated backend: a copy of the CPU backend with lookups and timings. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "../support/workdir.h"
#include "backend/backend.h"
#include "backend/kernel.h"
#include "engine/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct backend *cpu;
static int measured;
static bool forgets; /* entries are measured under a key that no lookup has */

/* Every matmul of a program makes one lookup. */
static const struct kernel *asking_find(int op, const struct kernel_call *call, int n)
{
    if (op == OP_MATMUL && call->lookups && !tuning_lookup_find(call->lookups, "matmul")) {
        struct tuning_lookup *q = tuning_lookup_add(call->lookups, "matmul");
        q->op = OP_MATMUL;
        q->attr = *call->attr;
        q->entry = tuning_find(call->tuning, "matmul");
    }
    return cpu->kernels.find(op, call, n);
}

static enum status answering_tune(void *context, int op, const struct kernel_call *call,
                                  struct tuning_entry *ret)
{
    (void)context, (void)call;
    assert_int_equal(op, OP_MATMUL);
    measured++;
    *ret = (struct tuning_entry){.n = 1, .candidate[0] = {.variant = "ref", .us = 1}};
    snprintf(ret->key, sizeof ret->key, "%s", forgets ? "matmuls" : "matmul");
    return ST_OK;
}

static enum status tune(bool forgetting, int *ret_missing)
{
    struct arena a = {0};
    struct config c = tiny_config();
    struct program p;
    struct tuning t;
    cpu = backend_find("cpu");
    struct backend asking = *cpu;
    asking.kernels.find = asking_find;
    asking.kernels.tune = answering_tune;
    struct target target = {.backend = &asking, .name = "abacus"};
    unsigned kinds = 1u << GRAPH_EVAL;
    measured = 0;
    forgets = forgetting;
    workdir_open();
    setenv("XDG_CACHE_HOME", workdir_path(""), 1);
    tuning_init(&t, &target, &a);
    hand_ok(program_compile(&p, &c, TINY_VOCAB, &target, &t, kinds, &a));
    assert_int_equal(tuning_missing(&p.lookups), 1);
    enum status st = tune_program(&p, kinds, NULL, &t, &a);
    *ret_missing = tuning_missing(&p.lookups);
    workdir_close();
    arena_release(&a);
    return st;
}

static void test_each_matmul_is_measured_once(void **state)
{
    (void)state;
    int missing;
    hand_ok(tune(false, &missing));
    assert_int_equal(missing, 0);
    assert_int_equal(measured, 1);
}

/* An entry that is not found again must not be measured forever. */
static void test_tuning_ends(void **state)
{
    (void)state;
    int missing;
    assert_int_equal(tune(true, &missing), ST_UNSUPPORTED);
    assert_non_null(strstr(fail_message(), "tuning does not settle"));
    assert_non_null(strstr(fail_message(), "1 matmuls, such as matmul,"));
    assert_int_equal(missing, 1);
    assert_int_equal(measured, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_matmul_is_measured_once),
        cmocka_unit_test(test_tuning_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
