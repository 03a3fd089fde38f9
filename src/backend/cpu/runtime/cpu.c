#include "backend/backend.h"

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/matmul/onednn_isa.h"
#include "backend/sample.h"
#include "base/caches.h"
#include "base/clock.h"
#include "base/free_memory.h"
#include "base/heap.h"
#include "base/host.h"
#include "base/str.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct cpu_context {
    int64_t event_ns[BACKEND_EVENTS];
    int64_t sampled_ns; /* time of the previous sample; 0: there was none */
    double work_s;      /* CPU seconds that this process had used until the previous sample */
};

static enum status fail_number(int device)
{
    return fail(ST_UNSUPPORTED, "there is no cpu:%d; use cpu, which means all cores", device);
}

/* GELU is bound by its exponential, so computing value and slope together pays. */
static bool cpu_fusion_pays(int op, const struct kernel_call *)
{
    return op == OP_GELU_BOTH;
}

static enum status cpu_target(int device, struct target *ret)
{
    (void)ret; /* a CPU target holds no device properties */
    return device > 0 ? fail_number(device) : onednn_limit();
}

static enum status cpu_open(int device, void **ret_ctx)
{
    if (device > 0) return fail_number(device);
    TRY(onednn_limit());
    *ret_ctx = HEAP_NEW(struct cpu_context, 1);
    return ST_OK;
}

static void cpu_close(void *ctx)
{
    free(ctx);
}

static enum status cpu_alloc(void *, int64_t size, void **ret_mem)
{
    enum { SMALL_ALIGNMENT = 64, HUGE_PAGE = 2 << 20, LARGE = 16 << 20 };
    size_t alignment = size < HUGE_PAGE ? SMALL_ALIGNMENT : HUGE_PAGE;
    size_t bytes = ((size_t)size + alignment) / alignment * alignment; /* never 0 */
    /* Most systems grant more memory than they have and kill the process when it touches the
     * memory, so a large block is compared with the free memory first. engine_open has already
     * compared the sum of all blocks (engine/fit.h). */
    struct free_memory there = FREE_MEMORY_UNKNOWN;
    if (size >= LARGE) there = free_memory_now();
    int64_t least = free_memory_least(&there)->bytes;
    bool fits = least < 0 || size <= least;
    void *mem = fits ? aligned_alloc(alignment, bytes) : NULL;
    if (!mem) {
        char needed[32], left[32];
        if (fits) there = free_memory_now();
        const struct memory_limit *limit = free_memory_least(&there);
        str_bytes(needed, (double)size);
        if (limit->bytes < 0)
            return fail(ST_MEMORY,
                        "a block of %s of memory cannot be allocated; try a smaller batch_size or "
                        "model",
                        needed);
        return fail(
            ST_MEMORY,
            "a block of %s of memory cannot be allocated, and %s are free %s; try a smaller "
            "batch_size or model",
            needed, str_bytes(left, (double)limit->bytes), limit->name);
    }
#ifdef MADV_HUGEPAGE
    /* Huge pages reduce TLB misses. On a system without huge pages the call fails harmlessly. What
     * does not fill one has small pages, so that no memory beyond `size` is used. */
    if (alignment == HUGE_PAGE)
        (void)madvise(mem, (size_t)size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    memset(mem, 0, (size_t)size);
    *ret_mem = mem;
    return ST_OK;
}

static void cpu_free(void *, void *mem)
{
    free(mem);
}

static const char *cpu_library_isa(void)
{
    return onednn_limit() == ST_OK ? onednn_isa() : NULL;
}

static enum status cpu_copy(void *, void *dst, const void *src, int64_t size)
{
    if (size > 0) memcpy(dst, src, (size_t)size);
    return ST_OK;
}

static enum status cpu_fill(void *, void *dst, uint8_t byte, int64_t size)
{
    memset(dst, byte, (size_t)size);
    return ST_OK;
}

static int cpu_device_count(void)
{
    return 1;
}

static enum status cpu_describe(int device, struct device_facts *ret)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    *ret = (struct device_facts){.processors = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    if (device > 0) return fail_number(device);
    ret->bytes = pages > 0 ? pages * sysconf(_SC_PAGESIZE) : 0;
    ret->cache_bytes = caches_last();
    return ST_OK;
}

static int64_t cpu_free_memory(int)
{
    return free_memory_bytes();
}

/* Utilization is the CPU time of this process since the previous sample, including busy waiting.
 * The clock frequency is that of the machine's cores, whichever process uses them. */
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

static enum status cpu_sync(void *)
{
    return ST_OK;
}

static enum status cpu_event_record(void *ctx, int event)
{
    BUG_IF(event < 0 || event >= BACKEND_EVENTS, "there is no event %d", event);
    ((struct cpu_context *)ctx)->event_ns[event] = clock_ns();
    return ST_OK;
}

static enum status cpu_event_wait(void *, int)
{
    return ST_OK;
}

static enum status cpu_event_elapsed(void *ctx, int from, int to, double *ret_ms)
{
    const int64_t *event_ns = ((struct cpu_context *)ctx)->event_ns;
    BUG_IF(from < 0 || from >= BACKEND_EVENTS || to < 0 || to >= BACKEND_EVENTS,
           "event %d or %d does not exist", from, to);
    *ret_ms = clock_ms(event_ns[from], event_ns[to]);
    return ST_OK;
}

const struct backend cpu_backend = {
    .name = "cpu",
    .devices.target = cpu_target,
    .kernels.find = cpu_kernel,
    .kernels.fusion_pays = cpu_fusion_pays,
    .kernels.row = cpu_row,
    .kernels.library_isa = cpu_library_isa,
    .devices.count = cpu_device_count,
    .host_memory = true,
    .devices.describe = cpu_describe,
    .devices.free_memory = cpu_free_memory,
    .open = cpu_open,
    .close = cpu_close,
    .memory.alloc = cpu_alloc,
    .memory.free = cpu_free,
    .memory.upload = cpu_copy,
    .memory.download = cpu_copy,
    .memory.download_later = cpu_copy,
    .memory.stage = cpu_copy,
    .memory.unstage = cpu_copy,
    .memory.copy = cpu_copy,
    .memory.fill = cpu_fill,
    .stream.sync = cpu_sync,
    .stream.event_record = cpu_event_record,
    .stream.event_wait = cpu_event_wait,
    .stream.event_elapsed = cpu_event_elapsed,
    .telemetry =
        &(const struct backend_telemetry){
            .sample = cpu_sample,
        },
};
