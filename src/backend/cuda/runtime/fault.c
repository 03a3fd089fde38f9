#include "backend/cuda/runtime/fault.h"

#include "backend/cuda/runtime/driver.h"

#include <stdio.h>

/* A row starts no more than that; so where the host waits after every row, all are named. */
enum { NAMED = 16 };

/* Of the one device that a process uses. */
static struct {
    const char *entry[NAMED];
    int started; /* NAMED + 1: more */
} under_way;

void fault_started(const char *entry)
{
    if (under_way.started < NAMED) under_way.entry[under_way.started] = entry;
    if (under_way.started <= NAMED) under_way.started++;
}

void fault_played(void)
{
    under_way.started = NAMED + 1;
}

void fault_waited(void)
{
    under_way.started = 0;
}

bool fault_is(CUresult r)
{
    static const CUresult faults[] = {
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_MISALIGNED_ADDRESS,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
        CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC,
        CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_ECC_UNCORRECTABLE,
    };
    for (int i = 0; i < COUNT_OF(faults); i++)
        if (faults[i] == r) return true;
    return false;
}

/* "kernel gelu", or "one of the kernels gelu, matmul" */
static void name_suspects(char *ret, size_t size)
{
    int n = under_way.started;
    size_t used = (size_t)snprintf(ret, size, n == 1 ? "kernel" : "one of the kernels");
    for (int i = 0; i < n && used < size; i++)
        used +=
            (size_t)snprintf(ret + used, size - used, "%s %s", i ? "," : "", under_way.entry[i]);
}

enum status fault_fail(CUresult r)
{
    char who[512], text[160];
    cuda_words(r, text);
    if (under_way.started == 0) return fail(ST_DEVICE, "the GPU failed: %s", text);
    if (under_way.started > NAMED)
        return fail(ST_DEVICE,
                    "one of the kernels that the GPU was working on failed: %s; run again with "
                    "--check_nan=true, which waits for each and names it",
                    text);
    name_suspects(who, sizeof who);
    return fail(ST_DEVICE, "%s failed: %s", who, text);
}
