/* CUPTI's range profiler, as far as the program uses it: a range for each kernel that runs between
 * start and stop. The counters are made up: bytes read are a hash of the kernel's name, bytes
 * written its number, so that a test can tell whose they are. */
#include "engine.hpp"
#include "streams.hpp"

#if __has_include(<cupti_range_profiler.h>)
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <map>
#include <string.h>
#include <string>

namespace
{

/* Emulated metrics; tensor cores, SMs and DRAM are busy for 25, 50 and 75 %; warps move 25 and 50
 * sectors, and SMs read 75 bytes from L2. */
const std::map<std::string, int> known = {
    {"dram__bytes_read.sum", 0},
    {"dram__bytes_write.sum", 1},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 2},
    {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 3},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", 4},
    {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 2},
    {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 3},
    {"l1tex__m_xbar2l1tex_read_bytes.sum", 4},
};

struct image {
    size_t ranges, most;
    uint32_t read[]; /* of each range */
};
const size_t CONFIG = 8;
const uint8_t CONFIGURED = 42;

bool opened, started;
int chosen, object;
image *into;

uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

void called(unsigned) {}

void done(const emu_done &d)
{
    if (d.what.kind != EMU_KERNEL) return;
    if (into->ranges < into->most) into->read[into->ranges++] = hash_of(d.what.name) & 0xffff;
}

const emu_watcher watcher = {called, done};

CUptiResult refused()
{
    return (CUptiResult)emu_number("EMU_CUPTI_COUNTERS", 0);
}

bool wrong(size_t given, size_t ours)
{
    return given != ours || !opened;
}

} // namespace

#define SIZED(type) \
    if (wrong(p->structSize, type##_STRUCT_SIZE)) return CUPTI_ERROR_INVALID_PARAMETER

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params *p)
{
    opened = true;
    SIZED(CUpti_Profiler_Initialize_Params);
    /* Activities and ranges exclude each other. */
    return emu_tracing() ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params *p)
{
    SIZED(CUpti_Profiler_DeInitialize_Params);
    opened = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params *p)
{
    SIZED(CUpti_Device_GetChipName_Params);
    p->pChipName = "GH100";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params *p)
{
    SIZED(CUpti_Profiler_GetCounterAvailability_Params);
    p->counterAvailabilityImageSize = CONFIG;
    return refused();
}

CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params *p)
{
    SIZED(CUpti_Profiler_Host_Initialize_Params);
    if (strcmp(p->pChipName, "GH100") || p->profilerType != CUPTI_PROFILER_TYPE_RANGE_PROFILER)
        return CUPTI_ERROR_INVALID_PARAMETER;
    chosen = 0;
    p->pHostObject = (CUpti_Profiler_Host_Object *)&object;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params *p)
{
    SIZED(CUpti_Profiler_Host_Deinitialize_Params);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params *p)
{
    SIZED(CUpti_Profiler_Host_ConfigAddMetrics_Params);
    for (size_t i = 0; i < p->numMetrics; i++)
        if (!known.count(p->ppMetricNames[i])) return CUPTI_ERROR_INVALID_PARAMETER;
    chosen += (int)p->numMetrics;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params *p)
{
    SIZED(CUpti_Profiler_Host_GetConfigImageSize_Params);
    p->configImageSize = CONFIG;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params *p)
{
    SIZED(CUpti_Profiler_Host_GetConfigImage_Params);
    if (!chosen || p->configImageSize < CONFIG) return CUPTI_ERROR_INVALID_PARAMETER;
    memset(p->pConfigImage, CONFIGURED, CONFIG);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params *p)
{
    SIZED(CUpti_RangeProfiler_Enable_Params);
    p->pRangeProfilerObject = (CUpti_RangeProfiler_Object *)&object;
    return p->ctx ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params *p)
{
    SIZED(CUpti_RangeProfiler_Disable_Params);
    if (started) emu_watch(NULL);
    started = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params *p)
{
    SIZED(CUpti_RangeProfiler_GetCounterDataSize_Params);
    p->counterDataSize = sizeof(image) + p->maxNumOfRanges * sizeof(uint32_t);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params *p)
{
    SIZED(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    image *i = (image *)p->pCounterData;
    i->ranges = 0;
    i->most = (p->counterDataSize - sizeof(image)) / sizeof(uint32_t);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params *p)
{
    SIZED(CUpti_RangeProfiler_SetConfig_Params);
    bool configured = p->configSize == CONFIG && p->pConfig[0] == CONFIGURED;
    if (!configured || p->range != CUPTI_AutoRange || p->replayMode != CUPTI_KernelReplay)
        return CUPTI_ERROR_INVALID_PARAMETER;
    into = (image *)p->pCounterDataImage;
    into->most = p->maxRangesPerPass;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params *p)
{
    SIZED(CUpti_RangeProfiler_Start_Params);
    emu_watch(&watcher);
    started = true;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params *p)
{
    SIZED(CUpti_RangeProfiler_Stop_Params);
    emu_watch(NULL);
    started = false;
    p->isAllPassSubmitted = 1;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params *p)
{
    SIZED(CUpti_RangeProfiler_DecodeData_Params);
    p->numOfRangeDropped = 0; /* like CUPTI 13.0, also where there was no space */
    return CUPTI_SUCCESS;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params *p)
{
    SIZED(CUpti_RangeProfiler_GetCounterDataInfo_Params);
    p->numTotalRanges = ((const image *)p->pCounterDataImage)->ranges;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params *p)
{
    SIZED(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
    const image *i = (const image *)p->pCounterDataImage;
    if (p->rangeIndex >= i->ranges) return CUPTI_ERROR_INVALID_PARAMETER;
    const double of[] = {(double)i->read[p->rangeIndex], (double)p->rangeIndex, 25, 50, 75};
    for (size_t k = 0; k < p->numMetrics; k++)
        p->pMetricValues[k] = of[known.at(p->ppMetricNames[k])];
    return CUPTI_SUCCESS;
}
#endif
