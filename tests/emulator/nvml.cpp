/* NVML: telemetry of the emulated GPU. Each query of the utilization begins a new sample, counted
 * from 0, and values change from one to the next; energy is ENERGY_W times wall time. NVML numbers
 * GPUs by their position on the bus, which is not CUDA's order. */
#include "engine.hpp"

#include <chrono>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <unistd.h>

struct nvml_device {
    const char *bus;
    unsigned clock_max;
    int moment;
};

struct nvml_process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
struct gpm_metric {
    unsigned id;
    int error;
    double value;
    const char *name[3];
};
struct gpm_metrics {
    unsigned version, n;
    const double *from, *to;
    gpm_metric metric[333];
};

namespace
{

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, MISMATCH = 18 };
enum { CLOCK_SLOW = 1200, ENERGY_W = 600 };
nvml_device devices[] = {{"0000:1B:00.0", 1755, -1}, {"0000:3A:00.0", 1980, -1}};

bool is(const char *word)
{
    const char *mode = getenv("EMU_NVML");
    return mode && !strcmp(mode, word);
}

/* Two samples, from EMU_THROTTLE on: first by the power limit, then by heat as well. */
int slowed(const nvml_device *d)
{
    long long first = emu_number("EMU_THROTTLE", -10);
    return d->moment == first ? 1 : d->moment == first + 1 ? 2 : 0;
}

int give(unsigned *to, unsigned value)
{
    if (is("poor")) return NOT_SUPPORTED;
    *to = value;
    return SUCCESS;
}

} // namespace

extern "C" {

int nvmlInit_v2()
{
    return is("refuses") ? MISMATCH : SUCCESS;
}

const char *nvmlErrorString(int error)
{
    return error == MISMATCH        ? "Driver/library version mismatch"
           : error == NOT_FOUND     ? "Not Found"
           : error == NOT_SUPPORTED ? "Not Supported"
           : error == 4             ? "Insufficient Permissions"
                                    : "Unknown Error";
}

int nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    snprintf(version, length, "13.580.95.05");
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvml_device **ret)
{
    for (auto &one : devices)
        if (!strcmp(one.bus, bus)) {
            *ret = &one;
            return SUCCESS;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetUtilizationRates(nvml_device *d, unsigned ret[2])
{
    d->moment++;
    std::this_thread::sleep_for(std::chrono::milliseconds(emu_number("EMU_NVML_MS", 0)));
    ret[1] = 20;
    return give(ret, 90u + (unsigned)d->moment % 10);
}

int nvmlDeviceGetClockInfo(nvml_device *d, int type, unsigned *mhz)
{
    if (type != 1) return INVALID;
    *mhz = slowed(d) ? (unsigned)CLOCK_SLOW : d->clock_max - 15 * ((unsigned)d->moment % 3);
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(nvml_device *d, int type, unsigned *mhz)
{
    *mhz = d->clock_max;
    return type == 1 ? SUCCESS : INVALID;
}

int nvmlDeviceGetPowerUsage(nvml_device *d, unsigned *milliwatt)
{
    return give(milliwatt, 500000u + 10000u * ((unsigned)d->moment % 10));
}

int nvmlDeviceGetEnforcedPowerLimit(nvml_device *, unsigned *milliwatt)
{
    return give(milliwatt, 700000);
}

int nvmlDeviceGetTotalEnergyConsumption(nvml_device *, unsigned long long *millijoule)
{
    if (is("poor") || is("old")) return NOT_SUPPORTED;
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    *millijoule = (unsigned long long)(ENERGY_W * 1e3 * std::chrono::duration<double>(now).count());
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvml_device *d, unsigned long long ret[3])
{
    if (is("poor")) return NOT_SUPPORTED;
    ret[0] = 8ull << 30;
    ret[2] = (1ull << 30) + ((unsigned long long)d->moment << 20);
    ret[1] = ret[0] - ret[2];
    return SUCCESS;
}

int nvmlDeviceGetTemperature(nvml_device *d, int, unsigned *celsius)
{
    return give(celsius, 50u + (unsigned)d->moment % 20);
}

/* The parent, this process and those of EMU_OTHERS. */
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device *, unsigned *n, nvml_process *ret)
{
    if (is("poor") || is("old")) return NOT_SUPPORTED;
    const char *others = getenv("EMU_OTHERS");
    unsigned room = *n, pid;
    int used = 0;
    *n = 0;
    if (is("hidden")) return SUCCESS;
    ret[(*n)++] = {(unsigned)getppid(), 0, 0, 0};
    ret[(*n)++] = {(unsigned)getpid(), 0, 0, 0};
    for (; others && sscanf(others, "%u%n", &pid, &used) == 1 && *n < room; others += used)
        ret[(*n)++] = {pid, 0, 0, 0};
    return SUCCESS;
}

/* GPM: the counters between two samples. EMU_NVML=old has a GPU without them. */
int nvmlGpmQueryDeviceSupport(nvml_device *, unsigned support[2])
{
    if (support[0] != 1) return MISMATCH;
    support[1] = !is("poor") && !is("old");
    return SUCCESS;
}

int nvmlGpmSampleAlloc(void **sample)
{
    *sample = calloc(1, sizeof(double));
    return SUCCESS;
}

int nvmlGpmSampleFree(void *sample)
{
    free(sample);
    return SUCCESS;
}

int nvmlGpmSampleGet(nvml_device *, void *sample)
{
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    *static_cast<double *>(sample) = std::chrono::duration<double>(now).count();
    return is("forbids") ? 4 : SUCCESS;
}

/* SMs 95 %, tensor cores 22 %, memory 71 %; other metrics are not supported. */
int nvmlGpmMetricsGet(gpm_metrics *m)
{
    if (m->version != 1) return MISMATCH;
    if (*m->to - *m->from < 0.1) return INVALID; /* samples too close, or exchanged */
    for (unsigned i = 0; i < m->n; i++) {
        gpm_metric *x = &m->metric[i];
        x->value = x->id == 2 ? 95 : x->id == 5 ? 22 : x->id == 10 ? 71 : 0;
        x->error = x->value > 0 ? SUCCESS : NOT_SUPPORTED;
    }
    return SUCCESS;
}

/* Old drivers lack the current name of this function; idle is also a reason, but slows nothing. */
int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device *d, unsigned long long *reasons)
{
    if (is("poor")) return NOT_SUPPORTED;
    int s = slowed(d);
    *reasons = s == 2 ? 0x4 | 0x20 : s == 1 ? 0x4 : 0x1;
    return SUCCESS;
}

} // extern "C"
