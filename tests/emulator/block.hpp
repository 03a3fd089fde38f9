/* block.hpp - the running block, as wgmma.cpp, barriers.cpp and tensors.cpp see it; they emulate
 * what compute capability 9.0 adds (hopper.hpp). */
#pragma once
#include "engine.hpp"
#include "hopper.hpp"

#include <stdint.h>

/* engine.cpp */
const emu_start &emu_block(); /* the launch of this block */
unsigned emu_thread();        /* the running thread */
bool emu_early();
/* Waits until the number changes; other threads run meanwhile. */
void emu_wait_for(const uint64_t *number);
/* After the number changed: a thread that waited for it runs before this thread continues, so a
 * resource that is released too early is lost. In the other order (EMU_REVERSE) this thread
 * continues first. */
void emu_let_go(const uint64_t *number);
[[noreturn]] void emu_broken(const char *what);
/* Formatted as by printf. */
[[noreturn]] void emu_broken_by(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* Called before the first thread of a block, when a thread ends, and after the last. */
extern const emu_hopper emu_hopper_functions;
void emu_wgmma_begin();
void emu_wgmma_thread_ends();
void emu_barriers_begin();
void emu_barriers_end();
void emu_tensors_begin();
void emu_tensors_thread_ends();
void emu_tensors_end();
/* No thread can continue: completes one copy; false if there is none. */
bool emu_tensors_proceed();
/* Prints what threads wait for, on stderr. */
void emu_barriers_tell();

/* Dynamic shared memory at that offset. */
unsigned char *emu_shared_at(unsigned at, unsigned bytes);
/* When this thread last made writes visible to its own WGMMAs and copies. */
uint64_t emu_fenced();
/* Fails if a thread wrote there without making it visible to WGMMAs and copies, and the reader's
 * last fence was earlier. */
void emu_visible(unsigned at, unsigned bytes, uint64_t fenced);
void emu_wrote(unsigned at);
void emu_fence_async();
/* The real position of a chunk of 16 bytes in swizzled rows of `span` bytes. */
inline unsigned emu_swizzled(unsigned at, unsigned span)
{
    return span ? at ^ (at >> 7 & (span / 16 - 1)) << 4 : at;
}

void emu_wgmma_add(const emu_wgmma &p);
void emu_wgmma_fence();
void emu_wgmma_commit();
void emu_wgmma_wait(int groups);
void emu_barrier_init(unsigned at, int threads);
void emu_barrier_fence();
void emu_barrier_arrive(unsigned at, int bytes);
void emu_barrier_wait(unsigned at, int parity);
/* Counts arrived bytes. */
void emu_barrier_complete(unsigned at, int bytes);
/* Fails if no copy may be counted at that barrier. */
void emu_barrier_counts(unsigned at);
void emu_named_barrier(int id, int threads, bool wait);
void emu_registers(int n);
void emu_dependents_wait();
void emu_load_box(unsigned to, const void *map, unsigned barrier, const int *c);
void emu_store_box(const void *map, unsigned from, const int *c);
void emu_load(unsigned to, const void *from, int bytes, unsigned barrier);
void emu_add(float *to, unsigned from, int bytes);
void emu_store(void *to, unsigned from, int bytes);
void emu_store_commit();
void emu_store_wait(int groups);
