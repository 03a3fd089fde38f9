/* driver.h - the CUDA driver and NVRTC, opened at run time; the program works without them.
 *
 * For each library one list, with the toolkit's names, makes a table of function pointers and a
 * table of symbols. If the toolkit's headers define cuMemAlloc as cuMemAlloc_v2, the macro renames
 * both the pointer and the symbol. */
#ifndef BACKEND_CUDA_RUNTIME_DRIVER_H
#define BACKEND_CUDA_RUNTIME_DRIVER_H

#include "base/base.h"

#include <cuda.h>
#include <cudaProfiler.h>
#include <nvrtc.h>
#include <stdatomic.h>

/* clang-format off */
#define DRIVER_LIST(F)                                                                            \
    F(cuInit) F(cuDriverGetVersion) F(cuDeviceGetCount) F(cuDeviceGet) F(cuDeviceGetName)         \
    F(cuDeviceGetAttribute) F(cuDeviceGetPCIBusId) F(cuDeviceTotalMem)                            \
    F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxRelease) F(cuCtxSetCurrent)                   \
    F(cuCtxSynchronize) F(cuGetErrorString) F(cuGetErrorName) F(cuMemGetInfo) F(cuMemAlloc)       \
    F(cuMemFree) F(cuMemAllocHost) F(cuMemFreeHost) F(cuMemcpyHtoDAsync) F(cuMemcpyDtoHAsync)     \
    F(cuMemcpyDtoDAsync) F(cuMemsetD8Async) F(cuStreamCreate) F(cuStreamDestroy)                  \
    F(cuStreamSynchronize) F(cuStreamWaitEvent) F(cuEventCreate) F(cuEventDestroy)                \
    F(cuEventRecord) F(cuEventSynchronize) F(cuEventElapsedTime) F(cuModuleLoadData)              \
    F(cuModuleUnload) F(cuModuleGetFunction) F(cuFuncSetAttribute) F(cuFuncGetAttribute)          \
    F(cuLaunchKernel) F(cuStreamBeginCapture) F(cuStreamEndCapture)                               \
    F(cuGraphInstantiateWithFlags) F(cuGraphLaunch) F(cuGraphDestroy) F(cuGraphExecDestroy)       \
    F(cuGraphGetNodes) F(cuGraphNodeGetType) F(cuProfilerStart) F(cuProfilerStop)
/* Optional functions, which drivers before CUDA 12 lack; NULL there. */
#define DRIVER_NEWER_LIST(F)                                                                      \
    F(cuTensorMapEncodeTiled) F(cuLaunchKernelEx) F(cuGraphMemsetNodeGetParams)                   \
    F(cuGraphMemsetNodeSetParams) F(cuGraphNodeGetDependencies) F(cuGraphNodeGetDependentNodes)   \
    F(cuGraphAddDependencies) F(cuGraphDestroyNode)                                               \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor)
#define NVRTC_LIST(F)                                                                             \
    F(nvrtcVersion) F(nvrtcCreateProgram) F(nvrtcDestroyProgram) F(nvrtcCompileProgram)           \
    F(nvrtcGetCUBINSize) F(nvrtcGetCUBIN) F(nvrtcGetProgramLogSize) F(nvrtcGetProgramLog)         \
    F(nvrtcGetPTXSize) F(nvrtcGetPTX) F(nvrtcGetErrorString) F(nvrtcGetNumSupportedArchs)         \
    F(nvrtcGetSupportedArchs)
/* clang-format on */

/* A function of the lists as a member of its library's table, and as a symbol. */
#define LIBRARY_MEMBER(name) __typeof__(name) *name;
#define TEXT_OF(name)        #name
#define LIBRARY_SYMBOL(name) TEXT_OF(name),
#define OPTIONAL_TEXT(name)  "?" TEXT_OF(name), /* an optional symbol of library_open */
struct cuda_driver {
    DRIVER_LIST(LIBRARY_MEMBER)
    DRIVER_NEWER_LIST(LIBRARY_MEMBER)
};
struct cuda_nvrtc {
    NVRTC_LIST(LIBRARY_MEMBER)
};

/* NULL if the library is missing or too old; *ret_why (which may be NULL) then states what was
 * searched for. The first call opens the library, which stays open. */
const struct cuda_driver *cuda_driver(const char **ret_why);
const struct cuda_nvrtc *cuda_nvrtc(const char **ret_why);

/* "out of memory (CUDA_ERROR_OUT_OF_MEMORY)" */
void cuda_error_text(CUresult r, char ret_text[160]);
/* Fails with "the GPU cannot copy: out of memory (CUDA_ERROR_OUT_OF_MEMORY)", ST_MEMORY for this
 * error, else ST_DEVICE. If `r` is the fault of a kernel, names the kernel (fault.h). */
enum status cuda_check(CUresult r, const char *doing);

/* Raises a function's limit of dynamic shared memory to `bytes`; the default limit is 48 KiB minus
 * its static shared memory. Calls of different sizes share a function, so the limit never falls. */
enum status cuda_raise_shared(CUfunction f, int64_t bytes);

/* The newest CUDA version that the driver supports, 13000 for 13.0; 0 without a driver. */
int cuda_driver_version(void);
/* `names` are a library's file names; the first name is the name in CUDA 13. Skips the first name
 * if the driver is older than CUDA 13: such a driver cannot load modules of a newer NVRTC or run a
 * newer cuBLASLt. */
const char *const *library_names(const char *const *names);
/* Opens the first available library of `names` (NULL after the last) and fills n function pointers
 * in the order of `symbols`. Returns false, with the reason in ret_why, if no library can be opened
 * or a function is missing. A symbol "?name" is optional: its pointer is NULL if the library lacks
 * it. */
enum { LIBRARY_WHY = 256 };
bool library_open(const char *const *names, const char *const *symbols, int n, void **ret_function,
                  char ret_why[LIBRARY_WHY]);
/* States whether a library was opened, and if not, why. All zeros at first. */
struct library_state {
    atomic_bool tried;
    bool found;
    char why[LIBRARY_WHY];
};
/* Returns `table`, which the first call fills (library_open). Returns NULL if the library is not
 * available; *ret_why (which may be NULL) then states why. If `newest_by_driver` is true,
 * library_names is applied to `names`. */
void *library_table(struct library_state *l, const char *const *names, bool newest_by_driver,
                    const char *const *symbols, int n, void *table, const char **ret_why);

#endif
