#include "../support/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Runs before main, so that no test program has to call it. */
__attribute__((constructor)) static void read_case(void)
{
    const char *pattern = getenv("CASE");
    if (pattern && *pattern) cmocka_set_test_filter(pattern);
}

bool shard_has(int i)
{
    const char *shard = getenv("TEST_SHARD");
    int k, n;
    if (!shard || sscanf(shard, "%d/%d", &k, &n) != 2 || n < 1) return true;
    return i % n == k - 1;
}

void print_skipped(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("skipped: ", stdout);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    fflush(stdout);
}
