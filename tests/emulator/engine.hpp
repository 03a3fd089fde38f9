/* engine.hpp - a GPU that is not there: kernel texts, and the host code that starts them, run on the processor.
 *
 * The program opens the driver, NVRTC, cuBLASLt, NVML and CUPTI when it runs; with LD_LIBRARY_PATH=build/release/emulator it finds
 * these in their place, and nothing of it knows. C++, unlike the program: kernel texts are.
 *
 *     libcuda.so.1        cuda.cpp, streams.cpp, engine.cpp: memory, streams, recordings; blocks, threads;
 *                         products.cpp, barriers.cpp, tensors.cpp: compute capability 9.0 (hopper.hpp)
 *     libnvrtc.so.13      nvrtc.cpp: g++ compiles a text, with kernel.hpp, ptx.hpp and hopper.hpp before it, to a shared object
 *     libcublasLt.so.13   cublaslt.cpp: products and what is done with their sums
 *     libnvidia-ml.so.1   nvml.cpp: clock, power, what slows them
 *     libcupti.so.13      cupti.cpp: records of what was done, in the order and with the times of the emulated device
 *     without.so          without.c: preloaded, it hides libraries that a machine has (EMU_WITHOUT)
 *     listener.so         listener.c: a profiler that hears ranges (NVTX_INJECTION64_PATH) and prints them
 *
 * What is emulated. A thread of a kernel is a fiber; a block's fibers take turns, and give way at __syncthreads, at what a
 * warp does together (shuffles, votes, ldmatrix, mma) and at nothing else. Shared memory is poisoned before each
 * block and has a guard behind; memory of the device is poisoned, and ends at a page that must not be touched, whose touch is
 * CUDA's illegal access. Asynchronous copies to shared memory happen as late as they may, as do products of warpgroups. So do kernels and copies on a
 * stream: when somebody waits for them. A recorded stream refuses what CUDA refuses.
 *
 * What is not. Blocks do not run side by side, so a race between them is not seen; nor is one inside a warp between
 * two of its meetings. No fused multiply-add; exp, log and their like are the C library's; a product of tensor cores adds
 * in order of k. Registers, bank conflicts, time: events tell a time that is reckoned, the same in every run.
 *
 * The environment says what GPU it is, and what goes wrong with it:
 *     EMU_ARCH=90          compute capability times ten; a text may use no instruction that is newer
 *     EMU_SMS=132          multiprocessors
 *     EMU_MEMORY=BYTES     of the device (8 GiB)
 *     EMU_RECORDING=0      bytes of the device's memory that a recording takes
 *     EMU_DEVICES=1        devices; 0: the driver finds none
 *     EMU_DRIVER=13000     the CUDA version that the driver serves
 *     EMU_REVERSE=1        threads and blocks take turns in the other order
 *     EMU_EARLY=1          copies, kernels and asynchronous copies to shared memory happen at once
 *     EMU_FAIL=ENTRY       a kernel that cannot be started: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
 *     EMU_FAULT=ENTRY      a kernel that fails while it runs: CUDA_ERROR_ILLEGAL_ADDRESS, from then on
 *     EMU_NVML=MODE        refuses: NVML does not start; poor: it knows clocks alone; old: it counts no energy
 *     EMU_NVML_MS=0        milliseconds that a sample takes
 *     EMU_THROTTLE=N       samples N and N + 1, from 0, are of a clock that is slowed
 *     EMU_CUPTI_DROP=N     each N-th record of CUPTI is lost, and counted
 *     EMU_CUPTI_REFUSE=N   CUPTI does not begin; N is its result (39: another profiler is attached)
 *     EMU_CUPTI_LATE=1     it sees nothing of recordings that were made ready before it began, as some versions
 *     EMU_CUPTI_SILENT=1   it begins, and tells nothing
 *     EMU_WITHOUT=NAMES    libraries, by parts of their names, that dlopen does not find
 *     EMU_KERNEL_US=3      microseconds that a kernel is reckoned to take
 *     EMU_VERBOSE=1        each kernel and product as it runs, with its milliseconds
 *     EMU_KEEP=1           the folder of each compilation stays, in TMPDIR */
#pragma once
#include <stddef.h>

struct emu_index {
    unsigned x, y, z;
};

/* What a lane brings to a meeting of its warp, for the others to read. */
enum { EMU_WARP = 32, EMU_SLOT = 32 };
struct emu_slot {
    alignas(16) unsigned char bytes[EMU_SLOT];
};

/* What the engine does for a module; its functions are called by fibers. */
struct emu_engine {
    void (*barrier)();
    /* Waits until all lanes of the mask are here; returns what each brought, good until the warp's next meeting but one. */
    const emu_slot *(*meet)(unsigned mask, const void *bytes, unsigned size);
    /* Copies to shared memory: noted, closed as a group, until at most so many groups are under way. */
    void (*copy)(void *to, const void *from, int bytes);
    void (*copies_commit)();
    void (*copies_wait)(int groups);
    [[noreturn]] void (*broken)(const char *what);
    const struct emu_hopper *hopper; /* what compute capability 9.0 has (hopper.hpp) */
};

/* A module, as kernel.hpp defines it: where the engine says which thread runs, and where shared memory lies. */
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

/* One start of a kernel. */
struct emu_start {
    emu_module *module;
    const emu_entry *entry;
    const char *name;
    emu_index grid;
    unsigned threads, shared_bytes;
    bool dependent; /* it may begin while the one before ends, and must wait for that */
};

#ifndef EMU_TEXT
/* engine.cpp: runs all blocks. False: it touched memory that is not there; the emulator has said so. */
bool emu_run(const emu_start &s, void **parameters);
extern const emu_engine emu_functions;
/* A number, or a switch, of the environment. */
long long emu_number(const char *name, long long otherwise);
#endif
