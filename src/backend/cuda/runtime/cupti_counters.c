#include "backend/cuda/runtime/cupti_counters.h"

#include "backend/cuda/runtime/cupti_library.h"
#include "base/heap.h"

#include <stddef.h>
#include <stdlib.h>

#ifdef HAVE_CUPTI_RANGES

/* The metrics of each set, and for each metric the field of kernel_counters and the unit. An H100
 * counts all metrics of COUNTERS_OF_TIME in one pass. */
enum { METRICS = 5, SECTOR = 32 };
#define TO(field) offsetof(struct kernel_counters, field)
static const char *metrics[][METRICS] = {
    [COUNTERS_OF_TIME] = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                          "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                          "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
                          "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
    [COUNTERS_OF_BYTES] = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                           "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                           "l1tex__m_xbar2l1tex_read_bytes.sum"},
};
static const struct {
    size_t to;
    double unit;
} values[][METRICS] = {
    [COUNTERS_OF_TIME] = {{TO(dram_read), 1},
                          {TO(dram_written), 1},
                          {TO(tensor_active), 0.01},
                          {TO(sm_active), 0.01},
                          {TO(dram_busy), 0.01}},
    [COUNTERS_OF_BYTES] = {{TO(dram_read), 1},
                           {TO(dram_written), 1},
                           {TO(warp_read), SECTOR},
                           {TO(warp_written), SECTOR},
                           {TO(l2_read), 1}},
};

static struct counting {
    bool on;
    CUpti_Profiler_Host_Object *host;
    CUpti_RangeProfiler_Object *ranges;
    uint8_t *available, *config, *data;
    size_t config_bytes, data_bytes;
    int64_t most;
    enum counter_set set;
} counting;

/* The parameter structure of a CUPTI call, with its size; fields that are not given are zero. */
#define PARAMS(call, ...) call##_Params p = {.structSize = call##_Params_STRUCT_SIZE, __VA_ARGS__}
#define HOST_PARAMS(call, ...)                \
    CUpti_Profiler_Host_##call##_Params p = { \
        .structSize = sizeof(CUpti_Profiler_Host_##call##_Params), __VA_ARGS__}

static enum status check(CUptiResult r, const char *doing)
{
    if (r == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
        return fail(ST_UNSUPPORTED,
                    "this user may not read the GPU's hardware counters "
                    "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES): run as root, or have the driver loaded "
                    "with NVreg_RestrictProfilingToAdminUsers=0 (a line `options nvidia "
                    "NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d/, then restart)");
    if (r == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
        return fail(ST_UNSUPPORTED,
                    "this virtual machine may not read the GPU's hardware counters "
                    "(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES): the host's "
                    "administrator has to allow profiling for its vGPU");
    const char *text = NULL;
    if (r == CUPTI_SUCCESS) return ST_OK;
    cupti(NULL)->cuptiGetResultString(r, &text);
    return fail(ST_UNSUPPORTED,
                "CUPTI cannot %s: %s; if another profiler uses the counters (Nsight Compute, "
                "DCGM), end it and try again",
                doing, text ? text : "no reason is given");
}

/* --- begin ------------------------------------------------------------------------------------ */

static enum status find_available(CUcontext context)
{
    static const char doing[] = "ask which hardware counters there are";
    const struct cupti *c = cupti(NULL);
    PARAMS(CUpti_Profiler_GetCounterAvailability, .ctx = context);
    TRY(check(c->cuptiProfilerGetCounterAvailability(&p), doing));
    counting.available = heap_zeroed((int64_t)p.counterAvailabilityImageSize);
    p.pCounterAvailabilityImage = counting.available;
    return check(c->cuptiProfilerGetCounterAvailability(&p), doing);
}

static enum status open_host(int device)
{
    const struct cupti *c = cupti(NULL);
    CUpti_Device_GetChipName_Params chip = {.structSize = sizeof chip,
                                            .deviceIndex = (size_t)device};
    TRY(check(c->cuptiDeviceGetChipName(&chip), "name the chip"));
    HOST_PARAMS(Initialize, .profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER,
                .pChipName = chip.pChipName, .pCounterAvailabilityImage = counting.available);
    TRY(check(c->cuptiProfilerHostInitialize(&p), "open its profiler"));
    counting.host = p.pHostObject;
    return ST_OK;
}

static enum status choose_metrics(void)
{
    const struct cupti *c = cupti(NULL);
    HOST_PARAMS(ConfigAddMetrics, .pHostObject = counting.host,
                .ppMetricNames = metrics[counting.set], .numMetrics = METRICS);
    if (c->cuptiProfilerHostConfigAddMetrics(&p) != CUPTI_SUCCESS)
        return fail(ST_UNSUPPORTED, "this GPU does not have all of these hardware counters "
                                    "(DRAM bytes, tensor cores, SMs, sectors)");
    CUpti_Profiler_Host_GetConfigImageSize_Params size = {.structSize = sizeof size,
                                                          .pHostObject = counting.host};
    TRY(check(c->cuptiProfilerHostGetConfigImageSize(&size), "choose the counters"));
    counting.config_bytes = size.configImageSize;
    counting.config = heap_zeroed((int64_t)counting.config_bytes);
    CUpti_Profiler_Host_GetConfigImage_Params image = {.structSize = sizeof image,
                                                       .pHostObject = counting.host,
                                                       .configImageSize = counting.config_bytes,
                                                       .pConfigImage = counting.config};
    return check(c->cuptiProfilerHostGetConfigImage(&image), "choose the counters");
}

static enum status enable(CUcontext context)
{
    PARAMS(CUpti_RangeProfiler_Enable, .ctx = context);
    TRY(check(cupti(NULL)->cuptiRangeProfilerEnable(&p), "count"));
    counting.ranges = p.pRangeProfilerObject;
    return ST_OK;
}

static enum status make_space(void)
{
    const struct cupti *c = cupti(NULL);
    PARAMS(CUpti_RangeProfiler_GetCounterDataSize, .pRangeProfilerObject = counting.ranges,
           .pMetricNames = metrics[counting.set], .numMetrics = METRICS,
           .maxNumOfRanges = (size_t)counting.most,
           .maxNumRangeTreeNodes = (uint32_t)counting.most);
    TRY(check(c->cuptiRangeProfilerGetCounterDataSize(&p), "make space for counters"));
    counting.data_bytes = p.counterDataSize;
    counting.data = heap_zeroed((int64_t)counting.data_bytes);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params image = {
        .structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
        .pRangeProfilerObject = counting.ranges,
        .counterDataSize = counting.data_bytes,
        .pCounterData = counting.data};
    return check(c->cuptiRangeProfilerCounterDataImageInitialize(&image),
                 "make space for counters");
}

static enum status start(void)
{
    const struct cupti *c = cupti(NULL);
    PARAMS(CUpti_RangeProfiler_SetConfig, .pRangeProfilerObject = counting.ranges,
           .configSize = counting.config_bytes, .pConfig = counting.config,
           .counterDataImageSize = counting.data_bytes, .pCounterDataImage = counting.data,
           .range = CUPTI_AutoRange, .replayMode = CUPTI_KernelReplay,
           .maxRangesPerPass = (size_t)counting.most, .numNestingLevels = 1, .minNestingLevel = 1,
           .targetNestingLevel = 1);
    TRY(check(c->cuptiRangeProfilerSetConfig(&p), "count kernel by kernel"));
    CUpti_RangeProfiler_Start_Params started = {.structSize =
                                                    CUpti_RangeProfiler_Start_Params_STRUCT_SIZE,
                                                .pRangeProfilerObject = counting.ranges};
    return check(c->cuptiRangeProfilerStart(&started), "start counting");
}

static void close_all(void)
{
    const struct cupti *c = cupti(NULL);
    if (counting.ranges) {
        PARAMS(CUpti_RangeProfiler_Disable, .pRangeProfilerObject = counting.ranges);
        c->cuptiRangeProfilerDisable(&p);
    }
    if (counting.host) {
        HOST_PARAMS(Deinitialize, .pHostObject = counting.host);
        c->cuptiProfilerHostDeinitialize(&p);
    }
    if (counting.on) {
        PARAMS(CUpti_Profiler_DeInitialize, .pPriv = NULL);
        c->cuptiProfilerDeInitialize(&p);
    }
    free(counting.available);
    free(counting.config);
    free(counting.data);
    counting = (struct counting){0};
}

static enum status open_all(CUdevice device, CUcontext context)
{
    PARAMS(CUpti_Profiler_Initialize, .pPriv = NULL);
    TRY(check(cupti(NULL)->cuptiProfilerInitialize(&p), "open its profiler"));
    counting.on = true;
    TRY(find_available(context));
    TRY(open_host((int)device));
    TRY(choose_metrics());
    TRY(enable(context));
    TRY(make_space());
    return start();
}

/* Fails if CUPTI is missing or too old to have the functions of the range profiler. */
static enum status find_functions(void)
{
    const char *why;
    const struct cupti *c = cupti(&why);
    char version[48];
    if (!c) return fail(ST_UNSUPPORTED, "%s", why);
    cupti_version(version);
    if (c->cuptiRangeProfilerEnable && c->cuptiProfilerHostInitialize && c->cuptiProfilerInitialize)
        return ST_OK;
    return fail(ST_UNSUPPORTED,
                "CUPTI %s cannot count kernel by kernel; install that of CUDA 12.6 or newer",
                version);
}

enum status cupti_counters_begin(CUdevice device, enum counter_set set, int64_t most)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUcontext context;
    BUG_IF(counting.on, "counting twice at once");
    TRY(find_functions());
    TRY(cuda_check(d->cuDevicePrimaryCtxRetain(&context, device), "find its context"));
    counting.most = most;
    counting.set = set;
    enum status st = open_all(device, context);
    d->cuDevicePrimaryCtxRelease(device);
    if (st == ST_OK) return ST_OK;
    struct failure first;
    fail_keep(&first);
    close_all();
    fail_restore(&first);
    return st;
}

/* --- end -------------------------------------------------------------------------------------- */

static enum status stop(int64_t *ret_kernels)
{
    const struct cupti *c = cupti(NULL);
    PARAMS(CUpti_RangeProfiler_Stop, .pRangeProfilerObject = counting.ranges);
    TRY(check(c->cuptiRangeProfilerStop(&p), "stop counting"));
    CUpti_RangeProfiler_DecodeData_Params decode = {
        .structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE,
        .pRangeProfilerObject = counting.ranges};
    TRY(check(c->cuptiRangeProfilerDecodeData(&decode), "read the counters"));
    CUpti_RangeProfiler_GetCounterDataInfo_Params info = {
        .structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE,
        .pCounterDataImage = counting.data,
        .counterDataImageSize = counting.data_bytes};
    TRY(check(c->cuptiRangeProfilerGetCounterDataInfo(&info), "read the counters"));
    *ret_kernels = min_i64((int64_t)info.numTotalRanges, counting.most);
    return ST_OK;
}

static enum status evaluate(struct kernel_counters *ret, int64_t kernels)
{
    for (int64_t i = 0; i < kernels; i++) {
        double v[METRICS] = {0};
        HOST_PARAMS(EvaluateToGpuValues, .pHostObject = counting.host,
                    .pCounterDataImage = counting.data, .counterDataImageSize = counting.data_bytes,
                    .rangeIndex = (size_t)i, .ppMetricNames = metrics[counting.set],
                    .numMetrics = METRICS, .pMetricValues = v);
        TRY(check(cupti(NULL)->cuptiProfilerHostEvaluateToGpuValues(&p), "read the counters"));
        ret[i] = (struct kernel_counters){0};
        for (int k = 0; k < METRICS; k++)
            *(double *)((char *)&ret[i] + values[counting.set][k].to) =
                v[k] * values[counting.set][k].unit;
    }
    return ST_OK;
}

enum status cupti_counters_end(struct kernel_counters *ret, int64_t *ret_kernels)
{
    BUG_IF(!counting.on, "nothing is counted");
    enum status st = stop(ret_kernels);
    if (st == ST_OK) st = evaluate(ret, *ret_kernels);
    struct failure first;
    fail_keep(&first);
    close_all();
    if (st != ST_OK) fail_restore(&first);
    return st;
}

#else

enum status cupti_counters_begin(CUdevice, enum counter_set, int64_t)
{
    const char *why = NULL;
    if (!cupti_available(&why)) return fail(ST_UNSUPPORTED, "%s", why);
    return fail(ST_UNSUPPORTED, "this program was built with CUPTI's headers of before CUDA 12.6; "
                                "build it with a newer toolkit");
}

enum status cupti_counters_end(struct kernel_counters *, int64_t *ret_kernels)
{
    *ret_kernels = 0;
    return fail(ST_UNSUPPORTED, "nothing is counted");
}
#endif
