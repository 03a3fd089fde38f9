/* The sentence about how busy memory and arithmetic were. */
#include "report/busy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct run run_of(const char *name, double dram, double bytes)
{
    struct run r = {.name = name, .figures = {.plan_flops = 0.22, .plan_bytes = bytes}};
    for (int i = 0; i < GAUGE_VALUES; i++) r.figures.gauges.value[i].mean = NAN;
    r.figures.gauges.value[GAUGE_DRAM].mean = dram;
    r.figures.gauges.value[GAUGE_TENSOR].mean = dram / 2;
    return r;
}

static void test_counters(void **state)
{
    (void)state;
    struct arena a = {0};
    struct run runs[] = {run_of("slow", 71, 0.5), run_of("flash", 30, 0.5)};
    assert_string_equal(busy_words(runs, 2, &a),
                        "By the GPU's counters, slow keeps memory 71 % busy and tensor cores 36 %; "
                        "flash keeps memory 30 % busy and tensor cores 15 %.");
    runs[0].figures.gauges.value[GAUGE_SM].mean = 95;
    assert_string_equal(busy_words(runs, 1, &a),
                        "By the GPU's counters, slow keeps memory 71 % busy and tensor cores 36 %, "
                        "with work on 95 % of its SMs.");
    arena_release(&a);
}

/* Without counters of all runs the plan's work over the peaks is given, and named an estimate. */
static void test_estimate(void **state)
{
    (void)state;
    struct arena a = {0};
    struct run runs[] = {run_of("slow", 71, 1.5), run_of("flash", NAN, 0.1)};
    runs[1].figures.gauges.value[GAUGE_MEMORY_UTILIZATION].mean = 45;
    assert_string_equal(
        busy_words(runs, 2, &a),
        "An estimate, by the FLOPs and bytes of the plan over the measured peaks: slow reads and "
        "writes at 150 % of the speed of memory and computes at 22 %, caches included; flash reads "
        "and writes at 10 % of the speed of memory and computes at 22 % (the driver saw memory in "
        "use 45 % of the time).");
    runs[1].figures.plan_flops = 1.27;
    assert_non_null(
        strstr(busy_words(runs, 2, &a),
               "computes at 127 % (the driver saw memory in use 45 % of the time). No "
               "run can compute faster than the peak, so the peak was measured too low"));
    runs[0].figures.plan_bytes = NAN;
    assert_null(busy_words(runs, 2, &a));
    assert_null(busy_words(runs, 0, &a));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_estimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
