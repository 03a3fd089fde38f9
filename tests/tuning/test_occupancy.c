/* Occupancy: values of NVIDIA's occupancy calculator, and a sweep beside cuda_occupancy.h of the
 * toolkit, where it is installed. */
#include "tuning/occupancy.h"

#include "../support/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <math.h>

#if defined(HAVE_CUDA) && __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#define HAS_CALCULATOR 1
#endif

static void test_known_values(void **state)
{
    (void)state;
    static const struct {
        int arch;
        struct occupancy_kernel kernel;
        int blocks, warps;
        const char *limit;
    } cases[] = {
        /* Full: 64 warps of 8 blocks. */
        {80, {256, 32, 0, 0}, 8, 64, "threads"},
        {90, {1024, 32, 0, 0}, 2, 64, "threads"},
        {75, {256, 32, 0, 0}, 4, 32, "threads"},
        {86, {256, 40, 0, 0}, 6, 48, "threads"},
        {120, {256, 40, 0, 0}, 6, 48, "threads"},
        /* 33 registers are 40 in units of 8 for each thread: 12 warps in each part. */
        {80, {256, 33, 0, 0}, 6, 48, "registers"},
        {90, {256, 128, 0, 0}, 2, 16, "registers"},
        {90, {384, 168, 0, 0}, 1, 12, "registers"},
        {70, {256, 255, 0, 0}, 1, 8, "registers"},
        /* 96 registers: 5 warps in each part, not 21 in all. */
        {80, {32, 96, 0, 0}, 20, 20, "registers"},
        /* Small blocks. */
        {80, {32, 16, 0, 0}, 32, 32, "blocks"},
        {86, {64, 16, 0, 0}, 16, 32, "blocks"},
        {87, {64, 16, 0, 0}, 16, 32, "blocks"},
        {89, {32, 16, 0, 0}, 24, 24, "blocks"},
        {100, {64, 16, 0, 0}, 32, 64, "blocks"},
        /* 48 KiB: 1 KiB more from 8.0 on. */
        {70, {128, 32, 48 << 10, 0}, 2, 8, "shared memory"},
        {80, {128, 32, 48 << 10, 0}, 3, 12, "shared memory"},
        {90, {128, 32, 16 << 10, 32 << 10}, 4, 16, "shared memory"},
        {86, {128, 32, 48 << 10, 0}, 2, 8, "shared memory"},
        {120, {128, 32, 0, 99 << 10}, 1, 4, "shared memory"},
        {90, {128, 32, 0, 227 << 10}, 1, 4, "shared memory"},
        {87, {128, 32, 0, 81 << 10}, 2, 8, "shared memory"},
        /* What cannot be launched. */
        {90, {128, 32, 0, (227 << 10) + 1}, 0, 0, "shared memory"},
        {80, {1025, 16, 0, 0}, 0, 0, "threads"},
        {80, {1024, 65, 0, 0}, 0, 0, "registers"},
        {80, {32, 256, 0, 0}, 0, 0, "registers"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct occupancy o;
        occupancy_of(occupancy_limits(cases[i].arch), &cases[i].kernel, &o);
        if (o.blocks != cases[i].blocks || o.warps != cases[i].warps)
            fail_msg("case %d: %d blocks, %d warps", i, o.blocks, o.warps);
        assert_string_equal(o.limit, cases[i].limit);
    }
    assert_null(occupancy_limits(61));
}

static void test_grids(void **state)
{
    (void)state;
    struct occupancy o = {.blocks = 2};
    struct occupancy_grid g;
    occupancy_grid(&o, 264, 132, &g);
    assert_true(g.waves == 1 && g.tail == 0);
    occupancy_grid(&o, 330, 132, &g);
    assert_true(g.waves == 1.25 && g.tail == 0.75);
    occupancy_grid(&o, 66, 132, &g);
    assert_true(g.waves == 0.25 && g.tail == 0.75);
    o.blocks = 0;
    occupancy_grid(&o, 66, 132, &g);
    assert_true(isnan(g.waves) && isnan(g.tail));
}

#ifdef HAS_CALCULATOR
static int calculator(const struct occupancy_limits *l, const struct occupancy_kernel *k)
{
    const cudaOccDeviceProp device = {.computeMajor = l->arch / 10,
                                      .computeMinor = l->arch % 10,
                                      .maxThreadsPerBlock = 1024,
                                      .maxThreadsPerMultiprocessor = 32 * l->warps,
                                      .regsPerBlock = l->registers,
                                      .regsPerMultiprocessor = l->registers,
                                      .warpSize = 32,
                                      .sharedMemPerBlock = 48 << 10,
                                      .sharedMemPerMultiprocessor = (size_t)l->shared_bytes,
                                      .numSms = 1,
                                      .sharedMemPerBlockOptin = (size_t)l->block_shared_bytes,
                                      .reservedSharedMemPerBlock = (size_t)l->reserved_bytes};
    const cudaOccFuncAttributes function = {.maxThreadsPerBlock = INT_MAX,
                                            .numRegs = k->registers,
                                            .sharedSizeBytes = (size_t)k->static_bytes,
                                            .partitionedGCConfig = PARTITIONED_GC_OFF,
                                            .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                            .maxDynamicSharedSizeBytes = (size_t)k->dynamic_bytes};
    const cudaOccDeviceState set = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
    cudaOccResult r;
    cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &device, &function, &set,
                                                             k->threads, (size_t)k->dynamic_bytes);
    return e == CUDA_OCC_SUCCESS ? r.activeBlocksPerMultiprocessor : -1;
}

static void test_sweep(void **state)
{
    (void)state;
    static const int archs[] = {70, 75, 80, 86, 87, 89, 90, 100, 120};
    int compared = 0;
    for (int i = 0; i < COUNT_OF(archs); i++) {
        const struct occupancy_limits *l = occupancy_limits(archs[i]);
        for (int threads = 1; threads <= 1056; threads += 31)
            for (int registers = 1; registers < 256; registers += 7)
                for (int64_t shared = 0; shared <= l->block_shared_bytes + 4096; shared += 4099) {
                    struct occupancy_kernel k = {threads, registers, shared / 3,
                                                 shared - shared / 3};
                    int expected = calculator(l, &k);
                    struct occupancy o;
                    if (expected < 0) continue; /* an older toolkit */
                    compared++;
                    occupancy_of(l, &k, &o);
                    if (o.blocks != expected)
                        fail_msg("%d, %d threads, %d registers, %lld bytes: %d, not %d", l->arch,
                                 threads, registers, (long long)shared, o.blocks, expected);
                }
    }
    assert_true(compared > 100000);
}
#else
static void test_sweep(void **state)
{
    (void)state;
    SKIP("built without cuda_occupancy.h of the CUDA toolkit");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
