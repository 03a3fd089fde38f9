/* The number of blocks that an SM holds, computed by hand for an H100: 2048 threads, 32 blocks,
 * 65536 registers, 228 KiB of shared memory. */
#include "../support/cases.h"
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/text_kernel.h"

static void test_by_hand(void **state)
{
    (void)state;
    static const struct sm_limits h100 = {2048, 32, 65536, 228 << 10};
    static const struct {
        int threads, registers;
        int64_t shared;
        int blocks;
        const char *limit;
    } cases[] = {
        {256, 32, 0, 8, "threads"},    /* 8 x 256 = 2048 */
        {256, 40, 0, 6, "registers"},  /* 1280 a warp: 12 in each of 4 parts, 48 warps */
        {256, 128, 0, 2, "registers"}, /* 4096 a warp: 4 in each part, 16 warps */
        {32, 16, 0, 32, "blocks"},     /* 64 warps would fit */
        {128, 32, 100 << 10, 2, "shared memory"},
        {1024, 64, 0, 1, "registers"}, /* 2048 a warp: 8 in each part, 32 warps */
        {33, 32, 0, 32, "blocks"},     /* two warps each: a tie goes to the first named */
        {1024, 32, 227 << 10, 1, "shared memory"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        const char *limit;
        int blocks =
            sm_resident(&h100, cases[i].threads, cases[i].registers, cases[i].shared, &limit);
        assert_int_equal(blocks, cases[i].blocks);
        assert_string_equal(limit, cases[i].limit);
    }
}
#else
static void test_by_hand(void **state)
{
    (void)state;
    SKIP("built without the CUDA toolkit's headers");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
