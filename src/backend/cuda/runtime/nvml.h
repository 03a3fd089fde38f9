/* nvml.h - NVML, the driver's library that reads a GPU's own gauges, opened at run time: without it training is the same, and
 * nobody knows how fast the clock was.
 *
 * Its header is not among those of every toolkit, so the few things that are used are declared here. Functions are told
 * apart by what is known of all drivers that serve CUDA 12 and newer; one that a driver lacks costs its figure alone. */
#ifndef BACKEND_CUDA_RUNTIME_NVML_H
#define BACKEND_CUDA_RUNTIME_NVML_H

#include "base/base.h"

#include <cuda.h>

struct device_sample;
struct nvml_device; /* the library's own */

/* One GPU, as a context holds it: zeroed until the first sample. */
struct nvml_gpu {
    struct nvml_device *device;
    double clock_max_mhz; /* does not change */
};

/* The release of the library; empty: not told. False with the reason where there is no library. */
bool nvml_version(char ret_version[48], const char **ret_why);
/* The GPU is found by its place on the bus: NVML counts otherwise than CUDA. The first call opens the library, which stays open. A
 * failure says why it tells nothing. */
enum status nvml_sample(struct nvml_gpu *g, CUdevice handle, struct device_sample *ret);

#endif
