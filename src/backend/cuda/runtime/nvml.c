#include "backend/cuda/runtime/nvml.h"

#include "backend/cuda/runtime/driver.h"
#include "backend/sample.h"
#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NVML_SUCCESS = 0, NVML_CLOCK_SM = 1, NVML_TEMPERATURE_GPU = 0, BUS_ID_BYTES = 32 };

struct nvml_utilization {
    unsigned gpu, memory;
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

/* GPM: the hardware counters of Hopper and newer GPUs that every user may read. A value is a mean
 * in percent between two samples, which should be at least 100 ms apart. The library uses the first
 * `n` elements of `metric`. */
enum { GPM_VERSION = 1, GPM_SM = 2, GPM_TENSOR = 5, GPM_DRAM = 10, GPM_VALUES = 3 };
static const int64_t gpm_least_ns = 100000000;
struct nvml_gpm_support {
    unsigned version, supported;
};
struct nvml_gpm_metric {
    unsigned id;
    int error;
    double value;
    const char *name[3];
};
struct nvml_gpm_metrics {
    unsigned version, n;
    void *from, *to;
    struct nvml_gpm_metric metric[GPM_VALUES];
};

/* All functions except nvmlErrorString return an int, which is 0 for success. */
typedef struct nvml_device *gpu;
/* clang-format off */
#define NVML_NEEDED(F)                                                  \
    F(nvmlInit_v2, int, (void))                                         \
    F(nvmlErrorString, const char *, (int))                             \
    F(nvmlDeviceGetHandleByPciBusId_v2, int, (const char *, gpu *))
#define NVML_OPTIONAL(F)                                                \
    F(nvmlSystemGetNVMLVersion, int, (char *, unsigned))                \
    F(nvmlDeviceGetUtilizationRates, int, (gpu, struct nvml_utilization *)) \
    F(nvmlDeviceGetClockInfo, int, (gpu, int, unsigned *))              \
    F(nvmlDeviceGetMaxClockInfo, int, (gpu, int, unsigned *))           \
    F(nvmlDeviceGetPowerUsage, int, (gpu, unsigned *))                  \
    F(nvmlDeviceGetEnforcedPowerLimit, int, (gpu, unsigned *))          \
    F(nvmlDeviceGetTotalEnergyConsumption, int, (gpu, unsigned long long *)) \
    F(nvmlDeviceGetMemoryInfo, int, (gpu, struct nvml_memory *))        \
    F(nvmlDeviceGetTemperature, int, (gpu, int, unsigned *))            \
    F(nvmlDeviceGetCurrentClocksEventReasons, int, (gpu, unsigned long long *)) \
    F(nvmlDeviceGetCurrentClocksThrottleReasons, int, (gpu, unsigned long long *)) \
    F(nvmlDeviceGetComputeRunningProcesses_v3, int, (gpu, unsigned *, struct nvml_process *)) \
    F(nvmlGpmQueryDeviceSupport, int, (gpu, struct nvml_gpm_support *)) \
    F(nvmlGpmSampleAlloc, int, (void **))                               \
    F(nvmlGpmSampleFree, int, (void *))                                 \
    F(nvmlGpmSampleGet, int, (gpu, void *))                             \
    F(nvmlGpmMetricsGet, int, (struct nvml_gpm_metrics *))
/* clang-format on */

#define MEMBER(name, type, parameters) type(*name) parameters;
#define SYMBOL(name, type, parameters) #name,
struct nvml_needed {
    NVML_NEEDED(MEMBER)
};
struct nvml_optional {
    NVML_OPTIONAL(MEMBER) /* NULL: missing in this driver */
};

static struct {
    bool found;
    char why[LIBRARY_WHY];
    struct nvml_needed must;
    struct nvml_optional may;
} nvml;

static void open_library(void)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
    static const char *const needed[] = {NVML_NEEDED(SYMBOL)}, *const optional[] = {
                                                                   NVML_OPTIONAL(SYMBOL)};
    void *function[COUNT_OF(optional)] = {NULL};
    char why[LIBRARY_WHY];
    _Static_assert(sizeof nvml.must == sizeof needed, "one pointer per name");
    _Static_assert(sizeof nvml.may == sizeof optional, "one pointer per name");
    nvml.found = library_open(names, needed, COUNT_OF(needed), function, nvml.why);
    if (!nvml.found) { /* containers whose image requests only compute do not see the library */
        size_t length = strlen(nvml.why);
        snprintf(nvml.why + length, sizeof nvml.why - length,
                 " (a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility to see it)");
        return;
    }
    memcpy(&nvml.must, function, sizeof nvml.must);
    for (int i = 0; i < COUNT_OF(optional); i++)
        if (!library_open(names, &optional[i], 1, &function[i], why)) function[i] = NULL;
    memcpy(&nvml.may, function, sizeof nvml.may);
    int error = nvml.must.nvmlInit_v2();
    if (error == NVML_SUCCESS) return;
    snprintf(nvml.why, sizeof nvml.why, "%s reports: %s", names[0],
             nvml.must.nvmlErrorString(error));
    nvml.found = false;
}

static bool is_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* for ranks that are threads */
    pthread_once(&once, open_library);
    return nvml.found;
}

bool nvml_version(char ret_version[48], const char **ret_why)
{
    bool open = is_open();
    ret_version[0] = '\0';
    *ret_why = open ? NULL : nvml.why;
    if (open && nvml.may.nvmlSystemGetNVMLVersion &&
        nvml.may.nvmlSystemGetNVMLVersion(ret_version, 48) != NVML_SUCCESS)
        ret_version[0] = '\0';
    return open;
}

/* --- one GPU ---------------------------------------------------------------------------------- */

/* A value that this GPU or its driver does not provide stays -1. */
#define QUERY(name, ...) (nvml.may.name && nvml.may.name(__VA_ARGS__) == NVML_SUCCESS)

static enum status find(struct nvml_gpu *g, CUdevice handle)
{
    char bus[BUS_ID_BYTES];
    unsigned mhz;
    if (g->device) return ST_OK;
    if (!is_open()) return fail(ST_UNSUPPORTED, "%s", nvml.why);
    TRY(cuda_check(cuda_driver(NULL)->cuDeviceGetPCIBusId(bus, sizeof bus, handle),
                   "report its PCI bus id"));
    int error = nvml.must.nvmlDeviceGetHandleByPciBusId_v2(bus, &g->device);
    if (error != NVML_SUCCESS) {
        g->device = NULL;
        return fail(ST_UNSUPPORTED, "libnvidia-ml.so.1 reports for the GPU at %s: %s", bus,
                    nvml.must.nvmlErrorString(error));
    }
    g->clock_max_mhz =
        QUERY(nvmlDeviceGetMaxClockInfo, g->device, NVML_CLOCK_SM, &mhz) ? (double)mhz : -1;
    return ST_OK;
}

static int reasons_of(unsigned long long bits)
{
    /* NVML's bits in order; bit 0 means that the GPU is idle, which slows nothing. */
    static const int reason[] = {-1,
                                 THROTTLE_USER,
                                 THROTTLE_POWER,
                                 THROTTLE_HARDWARE,
                                 THROTTLE_SYNC,
                                 THROTTLE_HEAT,
                                 THROTTLE_HEAT,
                                 THROTTLE_BRAKE,
                                 THROTTLE_USER};
    int reasons = 0;
    for (int i = 1; i < COUNT_OF(reason); i++)
        if (bits >> i & 1) reasons |= 1 << reason[i];
    return reasons;
}

/* --- counters --------------------------------------------------------------------------------- */

static void open_counters(struct nvml_gpu *g)
{
    struct nvml_gpm_support support = {.version = GPM_VERSION};
    g->counters_tried = true;
    if (!nvml.may.nvmlGpmMetricsGet || !nvml.may.nvmlGpmSampleGet || !nvml.may.nvmlGpmSampleFree) {
        snprintf(g->no_counters, sizeof g->no_counters,
                 "the driver has no GPM, which came with version 525");
        return;
    }
    int error = nvml.may.nvmlGpmQueryDeviceSupport
                    ? nvml.may.nvmlGpmQueryDeviceSupport(g->device, &support)
                    : NVML_SUCCESS;
    if (error == NVML_SUCCESS && !support.supported) {
        snprintf(g->no_counters, sizeof g->no_counters,
                 "this GPU has no GPM, which came with compute capability 9.0");
        return;
    }
    for (int i = 0; i < COUNT_OF(g->counted) && error == NVML_SUCCESS; i++)
        error = nvml.may.nvmlGpmSampleAlloc ? nvml.may.nvmlGpmSampleAlloc(&g->counted[i]) : -1;
    if (error == NVML_SUCCESS) error = nvml.may.nvmlGpmSampleGet(g->device, g->counted[1]);
    g->counted_ns = clock_ns();
    if (error == NVML_SUCCESS) return;
    nvml_close(g);
    snprintf(g->no_counters, sizeof g->no_counters, "GPM of libnvidia-ml.so.1 reports: %s",
             nvml.must.nvmlErrorString(error));
}

/* Adds means since the previous sample; the values stay unknown if that sample is too recent. */
static void sample_counters(struct nvml_gpu *g, struct device_sample *s)
{
    if (!g->counters_tried) {
        open_counters(g);
        return;
    }
    int64_t now_ns = clock_ns();
    if (!g->counted[1] || now_ns - g->counted_ns < gpm_least_ns) return;
    if (nvml.may.nvmlGpmSampleGet(g->device, g->counted[0]) != NVML_SUCCESS) return;
    struct nvml_gpm_metrics m = {.version = GPM_VERSION,
                                 .n = GPM_VALUES,
                                 .from = g->counted[1],
                                 .to = g->counted[0],
                                 .metric = {{.id = GPM_SM}, {.id = GPM_TENSOR}, {.id = GPM_DRAM}}};
    double *to[GPM_VALUES] = {&s->sm_active, &s->tensor_active, &s->dram_active};
    if (nvml.may.nvmlGpmMetricsGet(&m) == NVML_SUCCESS)
        for (int i = 0; i < GPM_VALUES; i++)
            if (m.metric[i].error == NVML_SUCCESS && isfinite(m.metric[i].value))
                *to[i] = m.metric[i].value;
    g->counted[0] = m.from;
    g->counted[1] = m.to;
    g->counted_ns = now_ns;
}

void nvml_close(struct nvml_gpu *g)
{
    for (int i = 0; i < COUNT_OF(g->counted); i++) {
        if (g->counted[i]) nvml.may.nvmlGpmSampleFree(g->counted[i]);
        g->counted[i] = NULL;
    }
}

/* Counts other programs on the GPU. In a container the list may lack even this process; the number
 * is then unknown. The parent process does not count: it may train several runs in turn. */
static void find_others(const struct nvml_gpu *g, struct device_sample *s)
{
    struct nvml_process process[64];
    unsigned n = COUNT_OF(process);
    bool own = false;
    int others = 0;
    if (!QUERY(nvmlDeviceGetComputeRunningProcesses_v3, g->device, &n, process)) return;
    for (unsigned i = 0; i < n; i++) {
        pid_t pid = (pid_t)process[i].pid;
        own |= pid == getpid();
        if (pid == getpid() || pid == getppid()) continue;
        if (!others++) s->other_pid = pid;
    }
    if (own) s->other_programs = others;
}

enum status nvml_sample(struct nvml_gpu *g, CUdevice handle, struct device_sample *ret)
{
    unsigned value;
    unsigned long long wide;
    struct nvml_utilization busy;
    struct nvml_memory memory;
    TRY(find(g, handle));
    struct device_sample s = sample_unknown;
    s.clock_max_mhz = g->clock_max_mhz;
    if (QUERY(nvmlDeviceGetUtilizationRates, g->device, &busy)) {
        s.utilization = busy.gpu;
        s.memory_utilization = busy.memory;
    }
    if (QUERY(nvmlDeviceGetClockInfo, g->device, NVML_CLOCK_SM, &value)) s.clock_mhz = value;
    if (QUERY(nvmlDeviceGetPowerUsage, g->device, &value)) s.power_w = 1e-3 * value;
    if (QUERY(nvmlDeviceGetEnforcedPowerLimit, g->device, &value)) s.power_limit_w = 1e-3 * value;
    if (QUERY(nvmlDeviceGetTotalEnergyConsumption, g->device, &wide))
        s.energy_j = 1e-3 * (double)wide;
    if (QUERY(nvmlDeviceGetMemoryInfo, g->device, &memory)) s.memory_bytes = (double)memory.used;
    if (QUERY(nvmlDeviceGetTemperature, g->device, NVML_TEMPERATURE_GPU, &value))
        s.temperature_c = value;
    /* The new and the old name of one query. */
    if (QUERY(nvmlDeviceGetCurrentClocksEventReasons, g->device, &wide) ||
        QUERY(nvmlDeviceGetCurrentClocksThrottleReasons, g->device, &wide))
        s.throttle = reasons_of(wide);
    find_others(g, &s);
    sample_counters(g, &s);
    *ret = s;
    return ST_OK;
}
