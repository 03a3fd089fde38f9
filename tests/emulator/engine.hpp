/* engine.hpp - an emulated GPU: kernel sources, and the host code that launches them, run on the
 * processor.
 *
 * The program opens the driver, NVRTC, cuBLASLt, NVML and CUPTI when it runs. With
 * LD_LIBRARY_PATH=build/release/emulator it finds these libraries instead, without any change. They
 * are C++, unlike the program, because kernel sources are.
 *
 *     libcuda.so.1        cuda.cpp, streams.cpp, engine.cpp: memory, streams, graphs; blocks,
 *                         threads; wgmma.cpp, barriers.cpp, tensors.cpp: compute capability 9.0
 *                         (hopper.hpp)
 *     libnvrtc.so.13      nvrtc.cpp: g++ compiles a source, after kernel.hpp, ptx.hpp and
 *                         hopper.hpp, to a shared object
 *     libcublasLt.so.13   cublaslt.cpp: matmuls and their epilogues
 *     libnvidia-ml.so.1   nvml.cpp: clock, power, throttling
 *     libcupti.so.13      cupti.cpp: activity records, in the order and with the times of the
 *                         emulated device; cupti_ranges.cpp: hardware counters, made up from names
 *     libnccl.so.2        nccl.cpp: collectives between processes, and their faults
 *     without.so          without.c: preloaded, it hides installed libraries (EMU_WITHOUT)
 *     listener.so         listener.c: a profiler that prints ranges (NVTX_INJECTION64_PATH)
 *
 * Emulated: a thread of a kernel is a fiber. The fibers of a block run in turn and switch only at
 * __syncthreads and at collective operations of a warp (shuffles, votes, ldmatrix, mma). Shared
 * memory is poisoned before each block and has a guard after it. Device memory is poisoned and ends
 * at a protected page; touching that page is CUDA's illegal access. Asynchronous copies to shared
 * memory and WGMMAs complete as late as allowed. So do kernels and copies on a stream: when
 * something waits for them. A stream under capture refuses what CUDA refuses.
 *
 * Not emulated: blocks do not run concurrently, so races between them are not found, nor races
 * inside a warp between two of its collective operations. There is no FMA; exp, log and the like
 * are the C library's; tensor cores add in order of k. Registers, bank conflicts and time are not
 * modelled: events report a computed time, the same in every run.
 *
 * The environment selects the GPU and its faults:
 *     EMU_ARCH=90          compute capability times ten; a source may use no newer instruction
 *     EMU_SMS=132          number of SMs
 *     EMU_MEMORY=BYTES     of the device (8 GiB)
 *     EMU_RECORDING=0      bytes of device memory that a captured graph uses
 *     EMU_DEVICES=1        devices; 0: the driver finds none
 *     EMU_DRIVER=13000     the CUDA version that the driver supports
 *     EMU_REVERSE=1        threads and blocks run in the reverse order
 *     EMU_EARLY=1          all copies and kernels complete at once
 *     EMU_FAIL=ENTRY       a kernel that cannot be launched: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
 *     EMU_FAULT=ENTRY      a kernel that fails as it runs: CUDA_ERROR_ILLEGAL_ADDRESS from then on
 *     EMU_FAULT_AFTER=0    times that this kernel succeeds before
 *     EMU_FAULT_CODE=700   the number of the error instead
 *     EMU_NVML=MODE        refuses: NVML does not start; poor: only clocks; old: no energy; hidden:
 *                          it lists no processes, as in a container
 *     EMU_OTHERS="N N"     ids of other processes that NVML lists
 *     EMU_NVML_MS=0        milliseconds for one sample
 *     EMU_THROTTLE=N       samples N and N + 1, from 0, have a throttled clock
 *     EMU_CUPTI_DROP=N     every N-th record of CUPTI is dropped, and counted
 *     EMU_CUPTI_REFUSE=N   CUPTI does not start; N is its result (39: another profiler is attached)
 *     EMU_CUPTI_LATE=1     like some versions, it misses graphs instantiated before it started
 *     EMU_CUPTI_SILENT=1   it starts but reports nothing
 *     EMU_CUPTI_COUNTERS=N it has no hardware counters; N is its result (35: no rights)
 *     EMU_NCCL=HOW         a rank fails (nccl.cpp): init, call, async, hang
 *     EMU_NCCL_RANK=1      which
 *     EMU_NCCL_AFTER=0     collectives that succeed before
 *     EMU_WITHOUT=NAMES    libraries, by parts of their names, that dlopen does not find
 *     EMU_KERNEL_US=3      computed duration of a kernel in microseconds
 *     EMU_VERBOSE=1        prints each kernel and matmul as it runs, with its milliseconds
 *     EMU_KEEP=1           keeps the folder of each compilation, in TMPDIR */
#pragma once
#include <stddef.h>

struct emu_index {
    unsigned x, y, z;
};

/* What a lane contributes to a collective operation of its warp, for the others to read. */
enum { EMU_WARP = 32, EMU_SLOT = 48 };
struct emu_slot {
    alignas(16) unsigned char bytes[EMU_SLOT];
};

/* Functions of the engine for a module; fibers call them. */
struct emu_engine {
    void (*barrier)();
    /* Waits until all lanes of the mask have arrived; returns their contributions, valid until the
     * next collective but one. The last lane calls `finish`, which may replace them by results. */
    const emu_slot *(*meet)(unsigned mask, const void *bytes, unsigned size,
                            void (*finish)(emu_slot *));
    /* Copies to shared memory: register one of `size` bytes, 4 or 16, of which `bytes` are read and
     * the rest is zero; close a group, wait until at most N groups are in flight. */
    void (*copy)(void *to, const void *from, int bytes, int size);
    void (*copies_commit)();
    void (*copies_wait)(int groups);
    [[noreturn]] void (*broken)(const char *what);
    const struct emu_hopper *hopper; /* functions of compute capability 9.0 (hopper.hpp) */
};

/* A module, as kernel.hpp defines it: here the engine sets the running thread, and finds shared
 * memory. */
enum { EMU_DYNAMIC = 227 << 10, EMU_GUARD = 1024 };
struct emu_module {
    const emu_engine *engine;
    emu_index *thread, *block, *block_size, *grid;
    unsigned char *dynamic;     /* EMU_DYNAMIC bytes and a guard */
    unsigned char *begin, *end; /* static shared memory */
};

/* A kernel of a module. */
enum { EMU_PARAMETERS = 40 };
struct emu_entry {
    void (*run)(void **parameters);
    int parameters;
    size_t size[EMU_PARAMETERS];
};

/* One launch of a kernel. */
struct emu_start {
    emu_module *module;
    const emu_entry *entry;
    const char *name;
    emu_index grid, block;
    unsigned threads, shared_bytes; /* threads: of a block */
    bool dependent; /* it may start before the previous launch ends, and must wait for it */
};

#ifndef EMU_TEXT
/* engine.cpp: runs all blocks. False: an illegal access, which the emulator has printed. */
bool emu_run(const emu_start &s, void **parameters);
extern const emu_engine emu_functions;
/* A number, or a switch, from the environment. */
long long emu_number(const char *name, long long otherwise);
#endif
