#include "backend/cuda/runtime/fault.h"

#include "backend/cuda/runtime/driver.h"

#include <stdio.h>

/* One row launches fewer than NAMED kernels. So if the host waits after every row, all kernels in
 * flight are named. */
enum { NAMED = 16 };

/* The kernels in flight that this thread launched; a rank has one thread. */
static _Thread_local struct {
    const char *entry[NAMED];
    int launched; /* NAMED + 1: more than can be named */
} in_flight;

void fault_launched(const char *entry)
{
    if (in_flight.launched < NAMED) in_flight.entry[in_flight.launched] = entry;
    if (in_flight.launched <= NAMED) in_flight.launched++;
}

void fault_replayed(void)
{
    in_flight.launched = NAMED + 1;
}

void fault_waited(void)
{
    in_flight.launched = 0;
}

/* True if the device itself is lost and no kernel is to blame: ECC cannot correct a memory error,
 * or the link or the driver is gone (a GPU that no longer answers on PCIe reports "unknown error").
 */
static bool is_lost(CUresult r)
{
    return r == CUDA_ERROR_ECC_UNCORRECTABLE || r == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
           r == CUDA_ERROR_DEVICE_UNAVAILABLE || r == CUDA_ERROR_UNKNOWN;
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
    };
    for (int i = 0; i < COUNT_OF(faults); i++)
        if (faults[i] == r) return true;
    return is_lost(r);
}

/* "kernel gelu", or "one of the kernels gelu, matmul" */
static void name_suspects(char *ret, size_t size)
{
    int n = in_flight.launched;
    size_t used = (size_t)snprintf(ret, size, n == 1 ? "kernel" : "one of the kernels");
    for (int i = 0; i < n && used < size; i++)
        used +=
            (size_t)snprintf(ret + used, size - used, "%s %s", i ? "," : "", in_flight.entry[i]);
}

enum status fault_fail(CUresult r)
{
    char who[512], text[160];
    cuda_error_text(r, text);
    if (is_lost(r))
        return fail(ST_DEVICE,
                    "the GPU is lost to this program: %s; `dmesg | grep Xid` and `nvidia-smi -q` "
                    "tell more, and a reset (`nvidia-smi -r`) or another GPU helps",
                    text);
    if (in_flight.launched == 0) return fail(ST_DEVICE, "the GPU failed: %s", text);
    if (in_flight.launched > NAMED)
        return fail(ST_DEVICE,
                    "one of the kernels in flight on the GPU failed: %s; run again with "
                    "--check_nan=true, which waits for each kernel and names the one that fails",
                    text);
    name_suspects(who, sizeof who);
    return fail(ST_DEVICE, "%s failed: %s", who, text);
}
