#include "backend/backend.h"

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/onednn_isa.h"
#include "backend/sample.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/room.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct cpu_context {
    int64_t event_ns[BACKEND_EVENTS];
    int64_t sampled_ns; /* 0: not yet */
    double work_s;      /* of this process, then */
};

static enum status fail_number(int device)
{
    return fail(ST_UNSUPPORTED, "there is no cpu:%d; use cpu, which is all cores together", device);
}

/* On a processor GELU is bound by its exponential. */
static bool cpu_gains(int op, const struct kernel_call *call)
{
    (void)call;
    return op == OP_GELU_BOTH;
}

static enum status cpu_target(int device, struct target *ret)
{
    (void)ret; /* of a processor there is nothing that the process does not know */
    return device > 0 ? fail_number(device) : onednn_limit();
}

static enum status cpu_open(int device, void **ret_ctx)
{
    if (device > 0) return fail_number(device);
    TRY(onednn_limit());
    *ret_ctx = calloc(1, sizeof(struct cpu_context));
    BUG_IF(!*ret_ctx, "no host memory");
    return ST_OK;
}

static void cpu_close(void *ctx)
{
    free(ctx);
}

static enum status cpu_alloc(void *ctx, int64_t size, void **ret_mem)
{
    (void)ctx;
    enum { SMALL_ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };
    size_t alignment = size < HUGE_PAGE ? SMALL_ALIGNMENT : HUGE_PAGE;
    size_t bytes = ((size_t)size + alignment) / alignment * alignment; /* never 0 */
    void *mem = aligned_alloc(alignment, bytes);
    if (!mem)
        return fail(ST_MEMORY,
                    "%.1f GiB of memory are not to be had; try a smaller batch_size or model",
                    (double)size / (1 << 30));
#ifdef MADV_HUGEPAGE
    /* Large pages save translation misses; a kernel without them says no, and nothing is lost. */
    if (alignment == HUGE_PAGE) (void)madvise(mem, bytes, MADV_HUGEPAGE);
#endif
    memset(mem, 0, bytes);
    *ret_mem = mem;
    return ST_OK;
}

static void cpu_free(void *ctx, void *mem)
{
    (void)ctx;
    free(mem);
}

static const char *cpu_library_isa(void)
{
    return onednn_limit() == ST_OK ? onednn_isa() : NULL;
}

static enum status cpu_copy(void *ctx, void *dst, const void *src, int64_t size)
{
    (void)ctx;
    if (size > 0) memcpy(dst, src, (size_t)size);
    return ST_OK;
}

static enum status cpu_fill(void *ctx, void *dst, uint8_t byte, int64_t size)
{
    (void)ctx;
    memset(dst, byte, (size_t)size);
    return ST_OK;
}

static int cpu_devices(void)
{
    return 1;
}

static enum status cpu_describe(int device, struct device_facts *ret)
{
    long pages = sysconf(_SC_PHYS_PAGES), cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    *ret = (struct device_facts){.processors = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    if (device > 0) return fail_number(device);
    ret->bytes = pages > 0 ? pages * sysconf(_SC_PAGESIZE) : 0;
    ret->cache_bytes = cache > 0 ? cache : 0;
    return ST_OK;
}

static int64_t cpu_room(int device)
{
    (void)device;
    return room_bytes();
}

/* Of its own threads it is known how much they ran since the sample before, waiting for each other in a loop included; of the
 * machine, the clock. */
static enum status cpu_sample(void *ctx, struct device_sample *ret)
{
    struct cpu_context *cpu = ctx;
    int64_t now_ns = clock_ns(), threads = threads_count();
    struct host_clock clock =
        host_clock_now("/sys/devices/system/cpu", "/proc/cpuinfo", (int)threads);
    double work_s = host_own_seconds(), seconds = clock_ms(cpu->sampled_ns, now_ns) * 1e-3;
    struct device_sample s = sample_unknown;
    s.clock_mhz = clock.mhz;
    s.clock_max_mhz = clock.most_mhz;
    s.memory_bytes = (double)host_anonymous_bytes();
    if (cpu->sampled_ns && seconds > 0) {
        double share = 100 * (work_s - cpu->work_s) / seconds / (double)threads;
        s.utilization = share < 100 ? share : 100;
    }
    cpu->sampled_ns = now_ns;
    cpu->work_s = work_s;
    *ret = s;
    return ST_OK;
}

static enum status cpu_sync(void *ctx)
{
    (void)ctx;
    return ST_OK;
}

static enum status cpu_mark(void *ctx, int event)
{
    BUG_IF(event < 0 || event >= BACKEND_EVENTS, "event %d", event);
    ((struct cpu_context *)ctx)->event_ns[event] = clock_ns();
    return ST_OK;
}

static enum status cpu_reached(void *ctx, int event)
{
    (void)ctx, (void)event;
    return ST_OK;
}

static enum status cpu_elapsed(void *ctx, int from, int to, double *ret_ms)
{
    const int64_t *event_ns = ((struct cpu_context *)ctx)->event_ns;
    BUG_IF(from < 0 || from >= BACKEND_EVENTS || to < 0 || to >= BACKEND_EVENTS, "events %d, %d",
           from, to);
    *ret_ms = clock_ms(event_ns[from], event_ns[to]);
    return ST_OK;
}

const struct backend cpu_backend = {
    .name = "cpu",
    .target = cpu_target,
    .kernel = cpu_kernel,
    .gains = cpu_gains,
    .row = cpu_row,
    .library_isa = cpu_library_isa,
    .devices = cpu_devices,
    .host_memory = true,
    .describe = cpu_describe,
    .room = cpu_room,
    .open = cpu_open,
    .close = cpu_close,
    .sample = cpu_sample,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_copy,
    .download = cpu_copy,
    .download_later = cpu_copy,
    .stage = cpu_copy,
    .unstage = cpu_copy,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .sync = cpu_sync,
    .mark = cpu_mark,
    .reached = cpu_reached,
    .elapsed = cpu_elapsed,
};
