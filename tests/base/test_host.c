#include "base/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* What is touched is counted, what is not is not. */
static void test_anonymous_grows(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20 };
    int64_t before = host_anonymous_bytes();
    assert_true(before > 0);
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_true(host_anonymous_bytes() - before < BYTES / 4);
    memset(p, 1, BYTES);
    int64_t grown = host_anonymous_bytes() - before;
    assert_true(grown >= BYTES && grown < BYTES + BYTES / 4);
    assert_true(host_peak_bytes() >= before + BYTES);
    munmap(p, BYTES);
    assert_true(host_anonymous_bytes() - before < BYTES / 4);
    assert_true(host_peak_bytes() >= before + BYTES); /* a peak stays */
}

/* What this process does is part of what everybody does; ticks are 10 ms. */
static void test_work_is_counted(void **state)
{
    (void)state;
    struct host_work before = host_work_now(), now;
    assert_true(before.all > 0 && before.own >= 0);
    do now = host_work_now();
    while (now.own - before.own < 0.2);
    assert_true(now.all - before.all >= 0.2 - 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_anonymous_grows),
                                       cmocka_unit_test(test_work_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
