/* What is available: the GPU, its driver, and the libraries that are opened at run time. */
#include "backend/cuda/runtime/device_facts.h"

#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/cupti_library.h"
#include "backend/cuda/runtime/nccl.h"
#include "backend/cuda/runtime/nvml.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Without a GPU, plans are made for an H200, with the numbers that its data sheet and its driver
 * state. */
static void default_target(struct target *t)
{
    t->arch = 90;
    t->processors = 132;
    t->shared_bytes = 227 << 10;
    t->l2_bytes = 60 << 20;
    t->bytes = (int64_t)141 << 30;
    t->tensor_maps = true;
    t->library = 130000;
    snprintf(t->name, sizeof t->name, "NVIDIA H200");
}

/* Returns the version of cuBLASLt, such as 130001, or 0 if the library is missing or needs a newer
 * CUDA than the driver supports. */
static int64_t usable_library(const struct cuda_driver *d)
{
    int driver = 0; /* 13000 of CUDA 13.0 */
    int64_t library = cublaslt_version();
    bool known = d->cuDriverGetVersion(&driver) == CUDA_SUCCESS;
    return known && driver / 1000 >= library / 10000 ? library : 0;
}

static enum status read_device(CUdevice handle, struct target *ret)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    int major = 0, minor = 0, l2 = 0;
    size_t bytes = 0;
    const struct {
        int *to;
        CUdevice_attribute attribute;
    } facts[] = {{&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
                 {&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
                 {&ret->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
                 {&ret->shared_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
                 {&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE}};
    for (int i = 0; i < COUNT_OF(facts); i++)
        TRY(cuda_check(d->cuDeviceGetAttribute(facts[i].to, facts[i].attribute, handle),
                       "report its attributes"));
    TRY(cuda_check(d->cuDeviceTotalMem(&bytes, handle), "report its memory"));
    TRY(cuda_check(d->cuDeviceGetName(ret->name, sizeof ret->name, handle), "report its name"));
    ret->arch = major * 10 + minor;
    ret->l2_bytes = l2;
    ret->bytes = (int64_t)bytes;
    ret->tensor_maps = d->cuTensorMapEncodeTiled != NULL;
    ret->library = usable_library(d);
    return ST_OK;
}

enum status cuda_target(int number, struct target *ret)
{
    CUdevice handle;
    if (number == TARGET_ANY && cuda_device_count() == 0) {
        default_target(ret);
        return ST_OK;
    }
    TRY(cuda_find(number == TARGET_ANY ? 0 : number, &handle));
    return read_device(handle, ret);
}

enum status cuda_find(int number, CUdevice *ret)
{
    const char *why;
    const struct cuda_driver *d = cuda_driver(&why);
    if (!d) return fail(ST_UNSUPPORTED, "no NVIDIA GPU can be used: %s; use device=cpu", why);
    CUresult r = d->cuInit(0);
    int devices = 0;
    if (r == CUDA_SUCCESS) r = d->cuDeviceGetCount(&devices);
    if (r != CUDA_SUCCESS || devices == 0) {
        const char *text = "no device found";
        if (r != CUDA_SUCCESS) d->cuGetErrorString(r, &text);
        return fail(ST_UNSUPPORTED,
                    "no NVIDIA GPU can be used: the driver reports: %s; use device=cpu", text);
    }
    if (number >= devices)
        return fail(ST_UNSUPPORTED,
                    "there is no cuda:%d; this machine has %d GPU%s, counted from 0", number,
                    devices, devices == 1 ? "" : "s");
    return cuda_check(d->cuDeviceGet(ret, number), "be opened");
}

int cuda_device_count(void)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    int devices = 0;
    if (!d || d->cuInit(0) != CUDA_SUCCESS || d->cuDeviceGetCount(&devices) != CUDA_SUCCESS)
        return 0;
    return devices;
}

/* Returns an attribute of the device, or 0 if the driver does not report the attribute. */
static int attribute_of(CUdevice handle, CUdevice_attribute which)
{
    int x = 0;
    CUresult r = cuda_driver(NULL)->cuDeviceGetAttribute(&x, which, handle);
    return r == CUDA_SUCCESS ? x : 0;
}

enum status cuda_describe(int number, struct device_facts *ret)
{
    CUdevice handle;
    struct target device;
    TRY(cuda_find(number, &handle));
    TRY(read_device(handle, &device));
    *ret = (struct device_facts){
        .processors = device.processors, .bytes = device.bytes, .cache_bytes = device.l2_bytes};
    /* Not every driver reports the next three attributes. The memory bus transfers its width twice
     * per clock cycle. */
    int khz = attribute_of(handle, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    int memory_khz = attribute_of(handle, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    int bits = attribute_of(handle, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    ret->clock_mhz = khz * 1e-3;
    ret->memory_rate = 2e3 * memory_khz * bits / 8;
    ret->memory_bits = bits;
    ret->sm_threads = attribute_of(handle, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    ret->sm_blocks = attribute_of(handle, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    ret->sm_registers = attribute_of(handle, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    ret->sm_shared_bytes =
        attribute_of(handle, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    snprintf(ret->name, sizeof ret->name, "%s", device.name);
    snprintf(ret->capability, sizeof ret->capability, "%d.%d", device.arch / 10, device.arch % 10);
    return ST_OK;
}

int64_t cuda_free_memory(int number)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUdevice handle;
    CUcontext primary;
    size_t left = 0, all = 0;
    if (cuda_find(number, &handle) != ST_OK) return -1;
    if (d->cuDevicePrimaryCtxRetain(&primary, handle) != CUDA_SUCCESS) return -1;
    bool known =
        d->cuCtxSetCurrent(primary) == CUDA_SUCCESS && d->cuMemGetInfo(&left, &all) == CUDA_SUCCESS;
    return known ? (int64_t)left : -1;
}

/* "580.95.05" from "NVRM version: ... Kernel Module 580.95.05 ..."; empty: unknown. */
static void driver_release(char ret[32])
{
    char line[256] = "", *rest = line;
    FILE *f = fopen("/proc/driver/nvidia/version", "r");
    ret[0] = '\0';
    if (!f) return;
    if (!fgets(line, sizeof line, f)) line[0] = '\0';
    fclose(f);
    for (char *word; !ret[0] && (word = strtok_r(rest, " \t\n", &rest));)
        if (isdigit((unsigned char)word[0]) && strspn(word, "0123456789.") == strlen(word))
            snprintf(ret, 32, "%.31s", word);
}

static void find_driver(struct device_library *l)
{
    char release[32];
    int version = 0;
    const struct cuda_driver *d = cuda_driver(&l->unavailable_because);
    if (!d || d->cuDriverGetVersion(&version) != CUDA_SUCCESS) return;
    driver_release(release);
    snprintf(l->version, sizeof l->version, "%s%sCUDA %d.%d", release, *release ? ", " : "",
             version / 1000, version % 1000 / 10);
}

static void find_nvrtc(struct device_library *l)
{
    int major = 0, minor = 0;
    const struct cuda_nvrtc *n = cuda_nvrtc(&l->unavailable_because);
    if (n && n->nvrtcVersion(&major, &minor) == NVRTC_SUCCESS)
        snprintf(l->version, sizeof l->version, "%d.%d", major, minor);
}

static void find_cublaslt(struct device_library *l)
{
    int64_t v = cublaslt(&l->unavailable_because) ? cublaslt_version() : 0;
    if (v)
        snprintf(l->version, sizeof l->version, "%lld.%lld.%lld", (long long)(v / 10000),
                 (long long)(v / 100 % 100), (long long)(v % 100));
}

static void find_nvml(struct device_library *l)
{
    nvml_version(l->version, &l->unavailable_because);
}

static void find_cupti(struct device_library *l)
{
    if (cupti_available(&l->unavailable_because)) cupti_version(l->version);
}

static void find_nccl(struct device_library *l)
{
    l->unavailable_because = nccl_missing(l->version);
}

/* The libraries that training runs use, except the last one: CUPTI is used only by traces and
 * hardware counters. */
static const struct library {
    const char *name, *consequence;
    bool needed;
    void (*find)(struct device_library *);
} libraries[] = {
    {"driver", "no GPU can be used", true, find_driver},
    {"NVRTC", "kernels cannot be compiled, so no GPU can be used", true, find_nvrtc},
    {"cuBLASLt", "matmuls run on built-in kernels without tensor cores, many times slower", false,
     find_cublaslt},
    {"NVML", "the GPU's utilization, clock, power and temperature are unknown", false, find_nvml},
    {"NCCL", "ranks on several GPUs cannot sum their gradients", false, find_nccl},
    {"CUPTI", "profiles time kernels by events between them, with more overhead and less detail",
     false, find_cupti},
};
enum { OF_RUNS = COUNT_OF(libraries) - 1 };

static void look(const struct library *l, struct device_library *ret)
{
    *ret = (struct device_library){
        .name = l->name, .consequence = l->consequence, .needed = l->needed};
    l->find(ret);
}

bool cuda_library(int i, struct device_library *ret)
{
    if (i >= OF_RUNS) return false;
    look(&libraries[i], ret);
    return true;
}

void cuda_trace_library(struct device_library *ret)
{
    look(&libraries[OF_RUNS], ret);
}
