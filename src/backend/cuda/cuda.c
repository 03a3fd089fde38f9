/* One GPU as a backend: the primary context of a device, and one stream on which all work runs in
 * order, unless the caller selects further streams. */
#include "backend/backend.h"
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/planned.h"
#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/cupti.h"
#include "backend/cuda/runtime/cupti_counters.h"
#include "backend/cuda/runtime/device_facts.h"
#include "backend/cuda/runtime/fault.h"
#include "backend/cuda/runtime/jit.h"
#include "backend/cuda/runtime/nccl.h"
#include "backend/cuda/runtime/nvml.h"
#include "backend/cuda/runtime/recording.h"
#include "backend/cuda/runtime/text_kernel.h"
#include "backend/cuda/runtime/tracer.h"
#include "backend/cuda/runtime/transfer.h"
#include "backend/cuda/runtime/workspace_pool.h"
#include "backend/range.h"
#include "base/heap.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

/* Compute capabilities: the oldest that is supported, the first with bf16 and TF32, and the first
 * with float8. */
enum { OLDEST_ARCH = 70, TENSOR_ARCH = 80, FLOAT8_ARCH = 89 };

struct cuda_context {
    CUdevice handle;
    CUcontext primary;
    CUstream stream;                   /* the selected stream, one of `streams` */
    CUstream streams[BACKEND_STREAMS]; /* each is created when it is first selected */
    CUstream ranks;                    /* created by cuda_ranks_stream */
    struct nccl *nccl;                 /* created by cuda_ranks_nccl */
    int64_t launches;                  /* kernel launches so far */
    int64_t choosing_ns;               /* time for choosing algorithms of matmuls so far */
    struct {
        CUevent event;     /* created when it is first recorded */
        int64_t downloads; /* deferred downloads begun before the event */
    } event[BACKEND_EVENTS];
    struct jit *jit;
    struct transfer *transfer;
    struct nvml_gpu telemetry;
    struct tracer *tracer;       /* created when a trace first begins */
    struct workspace_pool *pool; /* created when a capture first begins */
};

CUstream cuda_stream(const void *context)
{
    return ((const struct cuda_context *)context)->stream;
}

void cuda_count_launch(void *context, const char *entry)
{
    struct cuda_context *ctx = context;
    ctx->launches++;
    fault_launched(entry);
    tracer_launched(ctx->tracer);
}

struct workspace_pool **cuda_workspace_pool(void *context)
{
    return &((struct cuda_context *)context)->pool;
}

void *cuda_workspace_piece(void *context, int64_t bytes)
{
    return workspace_pool_piece(*cuda_workspace_pool(context), bytes);
}

static int64_t cuda_launch_count(void *context)
{
    return ((const struct cuda_context *)context)->launches;
}

void cuda_count_choosing(void *context, int64_t ns)
{
    if (context) ((struct cuda_context *)context)->choosing_ns += ns;
}

static void cuda_setup(void *context, struct kernel_setup *ret)
{
    const struct cuda_context *ctx = context;
    *ret = (struct kernel_setup){.choose_ms = (double)ctx->choosing_ns * 1e-6};
    jit_times(ctx->jit, &ret->compile_ms, &ret->load_ms);
}

CUdevice cuda_handle(const void *context)
{
    return ((const struct cuda_context *)context)->handle;
}

struct jit *cuda_jit(const void *context)
{
    return ((const struct cuda_context *)context)->jit;
}

struct tracer *cuda_tracer(const void *context)
{
    return ((const struct cuda_context *)context)->tracer;
}

static enum status find_compiler(void)
{
    const char *why;
    if (cuda_nvrtc(&why)) return ST_OK;
    return fail(ST_UNSUPPORTED,
                "kernels cannot be compiled: %s (NVRTC of CUDA 12 or 13, Debian: libnvrtc); use "
                "device=cpu",
                why);
}

static enum status check_arch(const struct target *d)
{
    int oldest = 0, newest = 0;
    jit_archs(&oldest, &newest);
    if (d->arch < OLDEST_ARCH || d->arch < oldest)
        return fail(
            ST_UNSUPPORTED,
            "%s is too old (compute capability %d.%d; %d.%d is needed%s); use device=cpu", d->name,
            d->arch / 10, d->arch % 10, (oldest > OLDEST_ARCH ? oldest : OLDEST_ARCH) / 10,
            (oldest > OLDEST_ARCH ? oldest : OLDEST_ARCH) % 10,
            d->arch < OLDEST_ARCH ? "" : " by the installed NVRTC; an older one may support it");
    if (newest && d->arch > newest)
        return fail(ST_UNSUPPORTED,
                    "%s is newer (compute capability %d.%d) than the installed NVRTC, which "
                    "supports up to %d.%d: install a newer one, or use device=cpu",
                    d->name, d->arch / 10, d->arch % 10, newest / 10, newest % 10);
    return ST_OK;
}

enum status cuda_enter(const void *context)
{
    return cuda_check(
        cuda_driver(NULL)->cuCtxSetCurrent(((const struct cuda_context *)context)->primary),
        "select its context");
}

static enum status create_stream(CUstream *s)
{
    if (*s) return ST_OK;
    return cuda_check(cuda_driver(NULL)->cuStreamCreate(s, CU_STREAM_NON_BLOCKING),
                      "create a stream");
}

enum status cuda_ranks_stream(void *context, CUstream *ret)
{
    struct cuda_context *ctx = context;
    TRY(create_stream(&ctx->ranks));
    *ret = ctx->ranks;
    return ST_OK;
}

enum status cuda_ranks_nccl(void *context, struct communicator *c, struct nccl **ret)
{
    struct cuda_context *ctx = context;
    if (!ctx->nccl) TRY(nccl_open(&ctx->nccl, c, ctx));
    *ret = ctx->nccl;
    return ST_OK;
}

static enum status cuda_select(void *context, int stream)
{
    struct cuda_context *ctx = context;
    BUG_IF(stream < 0 || stream >= BACKEND_STREAMS, "stream %d", stream);
    TRY(create_stream(&ctx->streams[stream]));
    ctx->stream = ctx->streams[stream];
    return ST_OK;
}

/* Checks the device and its libraries, and opens everything that is not created on first use. */
static enum status open_parts(struct cuda_context *ctx, int number)
{
    struct target device;
    TRY(cuda_find(number, &ctx->handle));
    TRY(find_compiler());
    TRY(cuda_target(number, &device));
    TRY(check_arch(&device));
    const struct cuda_driver *d = cuda_driver(NULL);
    TRY(cuda_check(d->cuDevicePrimaryCtxRetain(&ctx->primary, ctx->handle), "start a context"));
    TRY(cuda_enter(ctx));
    TRY(cuda_select(ctx, 0));
    TRY(transfer_open(ctx->stream, &ctx->transfer));
    (void)cublaslt_handle(); /* warns if cuBLASLt is missing */
    ctx->jit = jit_open(device.arch);
    return ST_OK;
}

static void cuda_close(void *context)
{
    struct cuda_context *ctx = context;
    const struct cuda_driver *d = cuda_driver(NULL);
    if (ctx->jit) jit_close(ctx->jit);
    tracer_close(ctx->tracer);
    workspace_pool_close(ctx->pool);
    for (int i = 0; i < BACKEND_EVENTS; i++)
        if (ctx->event[i].event) d->cuEventDestroy(ctx->event[i].event);
    if (ctx->transfer) transfer_close(ctx->transfer);
    /* The primary context is not released, because libraries keep handles in it. */
    for (int i = 0; i < BACKEND_STREAMS; i++)
        if (ctx->streams[i]) d->cuStreamDestroy(ctx->streams[i]);
    nccl_close(ctx->nccl);
    if (ctx->ranks) d->cuStreamDestroy(ctx->ranks);
    nvml_close(&ctx->telemetry);
    free(ctx);
}

static enum status cuda_open(int device, void **ret_context)
{
    struct cuda_context *ctx = HEAP_NEW(struct cuda_context, 1);
    enum status st = open_parts(ctx, device);
    if (st != ST_OK)
        cuda_close(ctx);
    else
        *ret_context = ctx;
    return st;
}

static enum status cuda_sample(void *context, struct device_sample *ret)
{
    struct cuda_context *ctx = context;
    return nvml_sample(&ctx->telemetry, ctx->handle, ret);
}

static const char *cuda_no_counters(void *context)
{
    const struct nvml_gpu *g = &((struct cuda_context *)context)->telemetry;
    return g->counted[1] ? NULL : g->no_counters;
}

static const char *cuda_refuses(const struct target *d, enum dtype dtype, bool tf32)
{
    static _Thread_local char why[160];
    int needed = dtype_is_float8(dtype) ? FLOAT8_ARCH : dtype == DT_BF16 || tf32 ? TENSOR_ARCH : 0;
    if (d->arch < needed) {
        snprintf(why, sizeof why, "%s has compute capability %d.%d and %d.%d is needed", d->name,
                 d->arch / 10, d->arch % 10, needed / 10, needed % 10);
        return why;
    }
    return dtype_is_float8(dtype) && !d->library
               ? "its matmuls need cuBLASLt, which is not installed"
               : NULL;
}

static enum status cuda_alloc(void *context, int64_t size, void **ret_mem)
{
    struct cuda_context *ctx = context;
    const struct cuda_driver *d = cuda_driver(NULL);
    CUdeviceptr p = 0;
    CUresult r = d->cuMemAlloc(&p, (size_t)(size > 0 ? size : 1));
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        size_t left = 0, all = 0;
        d->cuMemGetInfo(&left, &all);
        char needed[32], there[32];
        return fail(ST_MEMORY,
                    "a block of %s of the GPU's memory cannot be allocated, and %s are free; try a "
                    "smaller batch_size or model",
                    str_bytes(needed, (double)size), str_bytes(there, (double)left));
    }
    TRY(cuda_check(r, "allocate memory"));
    if (size > 0) r = d->cuMemsetD8Async(p, 0, (size_t)size, ctx->stream);
    /* Staged data arrives on another stream; without this wait the memset might overwrite it. */
    if (r == CUDA_SUCCESS) r = d->cuStreamSynchronize(ctx->stream);
    if (r == CUDA_SUCCESS)
        *ret_mem = (void *)p;
    else
        d->cuMemFree(p);
    return cuda_check(r, "clear memory");
}

static void cuda_free(void *, void *mem)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    d->cuCtxSynchronize();
    d->cuMemFree((CUdeviceptr)mem);
}

static enum status cuda_copy(void *context, void *dst, const void *src, int64_t size)
{
    struct cuda_context *ctx = context;
    if (size <= 0) return ST_OK;
    return cuda_check(cuda_driver(NULL)->cuMemcpyDtoDAsync((CUdeviceptr)dst, (CUdeviceptr)src,
                                                           (size_t)size, ctx->stream),
                      "copy memory");
}

static enum status pinned_alloc(void *, int64_t size, void **ret_host)
{
    return cuda_check(cuda_driver(NULL)->cuMemAllocHost(ret_host, (size_t)size), "pin host memory");
}

static void pinned_free(void *, void *host)
{
    cuda_driver(NULL)->cuMemFreeHost(host);
}

static enum status pinned_to_device(void *context, void *dst, const void *host, int64_t size)
{
    struct cuda_context *ctx = context;
    return cuda_check(
        cuda_driver(NULL)->cuMemcpyHtoDAsync((CUdeviceptr)dst, host, (size_t)size, ctx->stream),
        "upload data");
}

static enum status pinned_to_host(void *context, void *host, const void *src, int64_t size)
{
    struct cuda_context *ctx = context;
    return cuda_check(
        cuda_driver(NULL)->cuMemcpyDtoHAsync(host, (CUdeviceptr)src, (size_t)size, ctx->stream),
        "download data");
}

static enum status cuda_fill(void *context, void *dst, uint8_t byte, int64_t size)
{
    struct cuda_context *ctx = context;
    if (size <= 0) return ST_OK;
    return cuda_check(
        cuda_driver(NULL)->cuMemsetD8Async((CUdeviceptr)dst, byte, (size_t)size, ctx->stream),
        "fill memory");
}

static struct transfer *transfer_of(void *context)
{
    return ((struct cuda_context *)context)->transfer;
}

/* Ends a wait for the device that returned `st`. If another rank or NCCL failed during the wait,
 * returns this failure instead, because it is the cause. */
static enum status wait_end(void *context, enum status st)
{
    enum status watched = nccl_wait_end(((struct cuda_context *)context)->nccl);
    return watched != ST_OK ? watched : st;
}

static void wait_begin(void *context)
{
    nccl_wait_begin(((struct cuda_context *)context)->nccl);
}

static enum status cuda_sync(void *context)
{
    wait_begin(context);
    return wait_end(context, transfer_sync(transfer_of(context)));
}

static enum status cuda_upload(void *context, void *dst, const void *src, int64_t size)
{
    return transfer_upload(transfer_of(context), dst, src, size);
}

static enum status cuda_download(void *context, void *dst, const void *src, int64_t size)
{
    wait_begin(context);
    return wait_end(context, transfer_download(transfer_of(context), dst, src, size));
}

static enum status cuda_download_later(void *context, void *dst, const void *src, int64_t size)
{
    return transfer_download_later(transfer_of(context), dst, src, size);
}

static enum status cuda_stage(void *context, void *staging, const void *src, int64_t size)
{
    return transfer_stage(transfer_of(context), staging, src, size);
}

static enum status cuda_unstage(void *context, void *dst, const void *staging, int64_t size)
{
    return transfer_unstage(transfer_of(context), dst, staging, size);
}

static enum status cuda_event_record(void *context, int event)
{
    struct cuda_context *ctx = context;
    const struct cuda_driver *d = cuda_driver(NULL);
    BUG_IF(event < 0 || event >= BACKEND_EVENTS, "event %d", event);
    CUevent *e = &ctx->event[event].event;
    if (!*e) TRY(cuda_check(d->cuEventCreate(e, CU_EVENT_DEFAULT), "create an event"));
    ctx->event[event].downloads = transfer_downloads(ctx->transfer);
    return cuda_check(d->cuEventRecord(*e, ctx->stream), "record an event");
}

static enum status cuda_event_wait(void *context, int event)
{
    struct cuda_context *ctx = context;
    BUG_IF(event < 0 || event >= BACKEND_EVENTS || !ctx->event[event].event, "event %d", event);
    wait_begin(ctx);
    enum status st = cuda_check(cuda_driver(NULL)->cuEventSynchronize(ctx->event[event].event),
                                "wait for an event");
    TRY(wait_end(ctx, st));
    transfer_hand_out(ctx->transfer, ctx->event[event].downloads);
    return ST_OK;
}

static enum status cuda_stream_wait(void *context, int event)
{
    struct cuda_context *ctx = context;
    BUG_IF(event < 0 || event >= BACKEND_EVENTS || !ctx->event[event].event, "event %d", event);
    return cuda_check(cuda_driver(NULL)->cuStreamWaitEvent(ctx->stream, ctx->event[event].event,
                                                           CU_EVENT_WAIT_DEFAULT),
                      "wait for an event");
}

static enum status cuda_event_elapsed(void *context, int from, int to, double *ret_ms)
{
    struct cuda_context *ctx = context;
    const struct cuda_driver *d = cuda_driver(NULL);
    CUevent begin = ctx->event[from].event, end = ctx->event[to].event;
    float ms = 0;
    BUG_IF(!begin || !end, "events %d, %d", from, to);
    wait_begin(ctx);
    TRY(wait_end(ctx, cuda_check(d->cuEventSynchronize(end), "wait for an event")));
    TRY(cuda_check(d->cuEventElapsedTime(&ms, begin, end), "measure elapsed time"));
    *ret_ms = (double)ms;
    return ST_OK;
}

/* CUPTI serves one profiler. A profiler that receives our NVTX ranges already uses CUPTI. */
static enum status cuda_trace_begin(void *context)
{
    struct cuda_context *ctx = context;
    if (range_active())
        return fail(ST_UNSUPPORTED, "another profiler is attached to this process, and CUPTI "
                                    "serves one");
    TRY(cuda_sync(ctx));
    return tracer_begin(&ctx->tracer, ctx->stream);
}

static void cuda_trace_mark(void *context, int mark)
{
    tracer_mark(((struct cuda_context *)context)->tracer, mark);
}

static enum status cuda_trace_end(void *context, struct trace *ret, struct arena *a)
{
    enum status st = cuda_sync(context);
    if (st == ST_OK) st = cuda_check(cuda_driver(NULL)->cuCtxSynchronize(), "finish its work");
    struct failure first;
    fail_keep(&first);
    enum status ended = tracer_end(((struct cuda_context *)context)->tracer, ret, a);
    if (st == ST_OK) return ended;
    fail_restore(&first);
    return st;
}

static enum status cuda_calls_begin(void)
{
    if (range_active()) return fail(ST_UNSUPPORTED, "another profiler is attached to this process");
    return cupti_begin(true);
}

static enum status cuda_calls_end(struct trace *ret, struct arena *a)
{
    struct trace_input in;
    int64_t dropped;
    TRY(cupti_end(&in, &dropped, a));
    trace_join(&in, ret, a);
    ret->dropped = dropped;
    return ST_OK;
}

static void cuda_profiler_range(void *, bool begin)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    if (begin)
        d->cuProfilerStart();
    else
        d->cuProfilerStop();
}

/* --- hardware counters ------------------------------------------------------------------------ */

static enum status cuda_counters_begin(void *context, enum counter_set set, int64_t most)
{
    if (range_active())
        return fail(ST_UNSUPPORTED, "another profiler is attached to this process, and CUPTI "
                                    "serves one");
    TRY(cuda_sync(context));
    return cupti_counters_begin(((struct cuda_context *)context)->handle, set, most);
}

static enum status cuda_counters_end(void *context, struct kernel_counters *ret,
                                     int64_t *ret_kernels)
{
    struct failure first;
    enum status st = cuda_sync(context);
    fail_keep(&first);
    enum status ended = cupti_counters_end(ret, ret_kernels);
    if (st == ST_OK) return ended;
    fail_restore(&first);
    return st;
}

const struct backend cuda_backend = {
    .name = "cuda",
    .devices.target = cuda_target,
    .kernels.tune = cuda_tune,
    .kernels.find = cuda_kernel,
    .kernels.fusion_pays = cuda_fusion_pays,
    .kernels.row = cuda_row_at,
    .devices.count = cuda_device_count,
    .devices.describe = cuda_describe,
    .devices.library = cuda_library,
    .open = cuda_open,
    .close = cuda_close,
    .devices.refuses = cuda_refuses,
    .devices.free_memory = cuda_free_memory,
    .memory.alloc = cuda_alloc,
    .memory.free = cuda_free,
    .memory.upload = cuda_upload,
    .memory.download = cuda_download,
    .memory.download_later = cuda_download_later,
    .memory.stage = cuda_stage,
    .memory.unstage = cuda_unstage,
    .memory.copy = cuda_copy,
    .memory.fill = cuda_fill,
    .stream.sync = cuda_sync,
    .stream.event_record = cuda_event_record,
    .stream.event_wait = cuda_event_wait,
    .stream.event_elapsed = cuda_event_elapsed,
    .launches =
        &(const struct backend_launches){
            .generated = cuda_generated,
            .planned = cuda_planned,
            .compile = cuda_compile,
            .count = cuda_launch_count,
            .setup = cuda_setup,
        },
    .pinned =
        &(const struct backend_pinned){pinned_alloc, pinned_free, pinned_to_device, pinned_to_host},
    .streams = &(const struct backend_streams){.select = cuda_select, .wait = cuda_stream_wait},
    .texts =
        &(const struct backend_texts){
            .add = text_kernel_add,
            .free = text_kernel_free,
            .launch = text_kernel_launch,
            .map = text_kernel_map,
            .resources = text_kernel_resources,
            .assembly = text_kernel_assembly,
        },
    .trace =
        &(const struct backend_trace){
            .library = cuda_trace_library,
            .begin = cuda_trace_begin,
            .mark = cuda_trace_mark,
            .end = cuda_trace_end,
            .calls_begin = cuda_calls_begin,
            .calls_end = cuda_calls_end,
            .profiler_range = cuda_profiler_range,
        },
    .counters =
        &(const struct backend_counters){.begin = cuda_counters_begin, .end = cuda_counters_end},
    .telemetry =
        &(const struct backend_telemetry){
            .sample = cuda_sample,
            .no_counters = cuda_no_counters,
        },
    .recording =
        &(const struct backend_recording){
            .begin = cuda_capture_begin,
            .end = cuda_capture_end,
            .replay = cuda_replay,
            .free = cuda_recording_free,
        },
};
