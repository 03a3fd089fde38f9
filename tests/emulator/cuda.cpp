/* The driver: device properties, memory, modules, kernel launches. */
#include "engine.hpp"
#include "streams.hpp"

#include <chrono>
#include <cudaProfiler.h>
#include <dlfcn.h>
#include <map>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

enum : size_t { PAGE = 4096, ALIGNMENT = 256, POISONED_MOST = 64 << 20 };
enum { POISON = 0xff };
/* The duration of a launch, and the bytes that a copy moves in a millisecond: realistic for a
 * GPU. */
const double START_MS = 0.003, BYTES_PER_MS = 1e9;

int arch()
{
    return (int)emu_number("EMU_ARCH", 90);
}

/* The most that a block may request, by generation. */
int shared_most()
{
    int a = arch();
    return (a >= 90 ? 227 : a == 80 ? 163 : a == 87 ? 163 : a > 80 ? 99 : a == 75 ? 64 : 96) << 10;
}

size_t memory()
{
    return (size_t)emu_number("EMU_MEMORY", 8ll << 30);
}

struct block {
    char *mapped;
    size_t mapped_bytes, bytes;
};
std::map<CUdeviceptr, block> blocks;
size_t taken;
std::map<char *, size_t> pinned;

struct function {
    emu_module *module;
    const emu_entry *entry;
    std::string name;
};

bool is(const char *variable, const std::string &name)
{
    const char *wanted = getenv(variable);
    return wanted && name == wanted;
}

bool is_pinned(const void *p)
{
    auto after = pinned.upper_bound((char *)p);
    if (after == pinned.begin()) return false;
    auto at = std::prev(after);
    return (const char *)p < at->first + at->second;
}

double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* The host gets an error of the launch now, and an error while it runs when it waits. */
CUresult run(const function *f, const emu_start &s, std::vector<std::vector<char>> &parameters)
{
    std::vector<void *> at;
    for (auto &p : parameters) at.push_back(p.data());
    static long long left = emu_number("EMU_FAULT_AFTER", 0);
    if (is("EMU_FAULT", f->name) && left-- <= 0)
        return (CUresult)emu_number("EMU_FAULT_CODE", CUDA_ERROR_ILLEGAL_ADDRESS);
    double before = seconds();
    f->module->engine = &emu_functions;
    bool fine = emu_run(s, at.data());
    if (emu_number("EMU_VERBOSE", 0))
        fprintf(stderr, "emulator: %.2f ms %s, %u x %u x %u blocks of %u\n",
                1e3 * (seconds() - before), s.name, s.grid.x, s.grid.y, s.grid.z, s.threads);
    return fine ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

enum { TO_DEVICE = 1, TO_HOST, WITHIN = 8 }; /* CUPTI's kinds of copies */

CUresult move(CUstream s, void *to, const void *from, size_t bytes, int direction)
{
    emu_what what = {EMU_COPY, NULL, bytes, direction};
    return emu_enqueue(s, START_MS + (double)bytes / BYTES_PER_MS, what, [=] {
        memmove(to, from, bytes);
        return CUDA_SUCCESS;
    });
}

const struct {
    CUresult result;
    const char *name, *words;
} results[] = {
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "uncorrectable ECC error encountered"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

} // namespace

/* Once, as the driver does it. */
static void inject()
{
    static bool tried;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (tried || !path) return;
    tried = true;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    auto *begin = library ? (int (*)())dlsym(library, "InitializeInjection") : NULL;
    if (begin)
        begin();
    else
        fprintf(stderr, "emulator: %s\n", dlerror());
}

CUresult cuInit(unsigned)
{
    inject();
    return emu_number("EMU_DEVICES", 1) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = (int)emu_number("EMU_DRIVER", 13000);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n)
{
    *n = (int)emu_number("EMU_DEVICES", 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *d, int number)
{
    *d = number;
    return number < emu_number("EMU_DEVICES", 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* NVML has the same bus numbers (nvml.cpp), and counts from the lowest. */
CUresult cuDeviceGetPCIBusId(char *bus, int n, CUdevice d)
{
    static const char *const places[] = {"0000:3A:00.0", "0000:1B:00.0"};
    if (d < 0 || d > 1) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(bus, (size_t)n, "%s", places[d]);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int n, CUdevice)
{
    snprintf(name, (size_t)n, "emulated GPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice)
{
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = arch() / 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = arch() % 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = (int)emu_number("EMU_SMS", 132);
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = shared_most();
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 50 << 20;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = 1500000; /* kHz */
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = 2048;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = 32;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        *value = 65536;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = shared_most() + 1024;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice)
{
    *bytes = memory();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice)
{
    *context = (CUcontext)&blocks;
    return emu_fault();
}

CUresult cuDevicePrimaryCtxRelease(CUdevice)
{
    return emu_fault();
}

CUresult cuCtxSynchronize()
{
    emu_call call("cuCtxSynchronize");
    return emu_recording() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : emu_drain();
}

/* For a profiler; the emulator prints the calls. */
CUresult cuProfilerStart()
{
    if (emu_number("EMU_VERBOSE", 0)) fprintf(stderr, "emulator: cuProfilerStart\n");
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop()
{
    if (emu_number("EMU_VERBOSE", 0)) fprintf(stderr, "emulator: cuProfilerStop\n");
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult r, const char **name)
{
    *name = NULL;
    for (auto &one : results)
        if (one.result == r) *name = one.name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult r, const char **words)
{
    *words = NULL;
    for (auto &one : results)
        if (one.result == r) *words = one.words;
    return *words ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool emu_take(size_t bytes)
{
    if (bytes > memory() - taken) return false;
    taken += bytes;
    return true;
}

void emu_give(size_t bytes)
{
    taken -= bytes;
}

CUresult cuMemGetInfo(size_t *left, size_t *all)
{
    *all = memory();
    *left = *all - taken;
    return emu_fault();
}

/* An allocation ends at a protected page, so its length determines its start. */
CUresult cuMemAlloc(CUdeviceptr *ret, size_t bytes)
{
    emu_call call("cuMemAlloc_v2");
    if (emu_fault() != CUDA_SUCCESS) return emu_fault();
    if (emu_recording()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded > memory() - taken) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t pages = (rounded + PAGE - 1) / PAGE * PAGE, all = pages + PAGE;
    char *p = (char *)mmap(NULL, all, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    mprotect(p + pages, PAGE, PROT_NONE);
    if (rounded <= POISONED_MOST) memset(p, POISON, pages);
    *ret = (CUdeviceptr)(p + pages - rounded);
    blocks[*ret] = {p, all, rounded};
    taken += rounded;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr p)
{
    emu_call call("cuMemFree_v2");
    auto found = blocks.find(p);
    if (found == blocks.end()) return CUDA_ERROR_INVALID_VALUE;
    emu_drain();
    munmap(found->second.mapped, found->second.mapped_bytes);
    taken -= found->second.bytes;
    blocks.erase(found);
    return emu_fault();
}

CUresult cuMemAllocHost(void **ret, size_t bytes)
{
    emu_call call("cuMemAllocHost_v2");
    *ret = calloc(bytes, 1);
    if (!*ret) return CUDA_ERROR_OUT_OF_MEMORY;
    pinned[(char *)*ret] = bytes;
    return emu_fault();
}

CUresult cuMemFreeHost(void *p)
{
    emu_call call("cuMemFreeHost");
    emu_drain();
    pinned.erase((char *)p);
    free(p);
    return emu_fault();
}

/* Memory that is not pinned is read before the call returns, and written before it returns. */
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
    emu_call call("cuMemcpyHtoDAsync_v2");
    if (is_pinned(from)) return move(s, (void *)to, from, bytes, TO_DEVICE);
    std::vector<char> copy((const char *)from, (const char *)from + bytes);
    emu_what what = {EMU_COPY, NULL, bytes, TO_DEVICE};
    return emu_enqueue(s, START_MS + (double)bytes / BYTES_PER_MS, what,
                       [to, copy = std::move(copy)] {
                           memcpy((void *)to, copy.data(), copy.size());
                           return CUDA_SUCCESS;
                       });
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
    emu_call call("cuMemcpyDtoHAsync_v2");
    CUresult r = move(s, to, (const void *)from, bytes, TO_HOST);
    return r != CUDA_SUCCESS || is_pinned(to) ? r : cuStreamSynchronize(s);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s)
{
    emu_call call("cuMemcpyDtoDAsync_v2");
    return move(s, (void *)to, (const void *)from, bytes, WITHIN);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream s)
{
    emu_call call("cuMemsetD8Async");
    emu_what what = {EMU_FILL, NULL, bytes, 0, to, byte};
    return emu_enqueue(s, START_MS + (double)bytes / BYTES_PER_MS, what, [=] {
        memset((void *)to, byte, bytes);
        return CUDA_SUCCESS;
    });
}

/* An image as nvrtc.cpp makes it: 8 letters, its length, a shared object. */
CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
    emu_call call("cuModuleLoadData");
    uint64_t bytes;
    int served = (int)emu_number("EMU_DRIVER", 13000) / 1000;
    if (served < 13 || memcmp(image, "emulated", 8)) return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&bytes, (const char *)image + 8, sizeof bytes);
    int file = memfd_create("kernels", MFD_CLOEXEC);
    if (file < 0 || write(file, (const char *)image + 16, bytes) != (ssize_t)bytes)
        return CUDA_ERROR_INVALID_IMAGE;
    std::string path = "/proc/self/fd/" + std::to_string(file);
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "emulator: %s\n", dlerror());
    *ret = (CUmodule)library;
    /* The descriptor stays open: the loader treats two files of the same name as one library. */
    return library ? emu_fault() : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleUnload(CUmodule)
{
    emu_call call("cuModuleUnload");
    return emu_drain(); /* the library stays open: graphs may still refer to its kernels */
}

CUresult cuModuleGetFunction(CUfunction *ret, CUmodule m, const char *name)
{
    auto *entry = (const emu_entry *)dlsym((void *)m, (std::string("emu_entry_") + name).c_str());
    auto *module = (emu_module *)dlsym((void *)m, "emu_this");
    if (!entry || !module) return CUDA_ERROR_NOT_FOUND;
    *ret = (CUfunction) new function{module, entry, name};
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute which, int value)
{
    bool fits = which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value <= shared_most();
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction)
{
    *value = 0;
    return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig &c, CUfunction f, bool dependent, void **parameters)
{
    auto *fn = (const function *)f;
    const emu_index grid = {c.gridDimX, c.gridDimY, c.gridDimZ};
    const emu_index block = {c.blockDimX, c.blockDimY, c.blockDimZ};
    bool fits = grid.x && grid.y && grid.z && grid.x <= INT32_MAX && grid.y <= 65535 &&
                grid.z <= 65535 && block.x && block.y && block.z && block.x <= 1024 &&
                block.y <= 1024 && block.z <= 64 && block.x * block.y * block.z <= 1024;
    if (!fits || c.sharedMemBytes > (unsigned)shared_most()) return CUDA_ERROR_INVALID_VALUE;
    if (is("EMU_FAIL", fn->name)) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    std::vector<std::vector<char>> copies;
    for (int i = 0; i < fn->entry->parameters; i++)
        copies.emplace_back((char *)parameters[i], (char *)parameters[i] + fn->entry->size[i]);
    emu_start s = {
        fn->module,       fn->entry, fn->name.c_str(), grid, block, block.x * block.y * block.z,
        c.sharedMemBytes, dependent};
    emu_what what = {EMU_KERNEL, fn->name.c_str(), 0, 0};
    static const double ms = (double)emu_number("EMU_KERNEL_US", 3) * 1e-3;
    return emu_enqueue(c.hStream, ms, what, [=]() mutable { return run(fn, s, copies); });
}

CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared_bytes, CUstream stream, void **parameters,
                        void **)
{
    emu_call call("cuLaunchKernel");
    return launch({x, y, z, bx, by, bz, shared_bytes, stream, NULL, 0}, f, false, parameters);
}

/* The only known attribute is programmatic dependent launch. Here the previous kernel has already
 * ended, but the kernel must still wait for it. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **parameters, void **)
{
    emu_call call("cuLaunchKernelEx");
    bool dependent = false;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION || arch() < 90)
            return CUDA_ERROR_INVALID_VALUE;
        dependent = c->attrs[i].value.programmaticStreamSerializationAllowed;
    }
    return launch(*c, f, dependent, parameters);
}
