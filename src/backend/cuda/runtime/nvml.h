/* nvml.h - NVML, the driver's telemetry library, opened at run time. Training does not need it;
 * without it clock, power and utilization are unknown.
 *
 * Some toolkits lack NVML's header, so nvml.c repeats the few declarations that it uses, which hold
 * for all drivers from CUDA 12 on. If the driver lacks a function, only its value is missing. */
#ifndef BACKEND_CUDA_RUNTIME_NVML_H
#define BACKEND_CUDA_RUNTIME_NVML_H

#include "base/base.h"

#include <cuda.h>

struct device_sample;
struct nvml_device; /* defined by the library */

/* NVML's state of one GPU in a context; zeroed until the first sample. */
struct nvml_gpu {
    struct nvml_device *device;
    double clock_max_mhz; /* constant */
    /* Two samples of the counters in buffers of the library; counted[1] is the later one, taken at
     * counted_ns. NULL: no counters. */
    void *counted[2];
    int64_t counted_ns;
    bool counters_tried;
    char no_counters[160]; /* why there are no counters */
};

/* The version of the library; empty: unknown. False with the reason if there is no library. */
bool nvml_version(char ret_version[48], const char **ret_why);
/* Finds the GPU by its PCI bus id, because NVML numbers devices differently from CUDA. The first
 * call opens the library, which stays open. A failure states why there is no sample. */
enum status nvml_sample(struct nvml_gpu *g, CUdevice handle, struct device_sample *ret);
/* Releases the buffers. */
void nvml_close(struct nvml_gpu *g);

#endif
