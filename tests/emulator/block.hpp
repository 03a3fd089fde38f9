/* block.hpp - the block that runs, for what compute capability 9.0 adds to it (hopper.hpp): products.cpp, barriers.cpp
 * and tensors.cpp. */
#pragma once
#include "engine.hpp"
#include "hopper.hpp"

#include <stdint.h>

/* engine.cpp */
const emu_start &emu_block(); /* the kernel */
unsigned emu_thread();        /* that runs */
bool emu_early();
/* Until the number is another one; others run meanwhile. */
void emu_wait_for(const uint64_t *number);
/* One that waited for the number, which is another one now, goes on before this thread does: who gives something away too
 * early loses it. In the other order (EMU_REVERSE) it keeps its turn. */
void emu_let_go(const uint64_t *number);
[[noreturn]] void emu_broken(const char *what);
/* As printf. */
[[noreturn]] void emu_broken_by(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* Called before the first thread of a block, when a thread ends, behind the last. */
extern const emu_hopper emu_hopper_functions;
void emu_products_begin();
void emu_products_thread_ends();
void emu_barriers_begin();
void emu_barriers_end();
void emu_tensors_begin();
void emu_tensors_thread_ends();
void emu_tensors_end();
/* No thread can go on: lets a copy come; false if there is none. */
bool emu_tensors_proceed();
/* For what threads wait, on stderr. */
void emu_barriers_tell();

/* Dynamic shared memory from that offset. */
unsigned char *emu_shared_at(unsigned at, unsigned bytes);
/* When this thread last made what was written visible to its own products and copies. */
uint64_t emu_fenced();
/* Breaks off where a thread wrote there and made it not visible to products and copies, and who reads fenced before that. */
void emu_visible(unsigned at, unsigned bytes, uint64_t fenced);
void emu_wrote(unsigned at);
void emu_fence_async();
/* Where a chunk of 16 bytes really lies, of rows of `span` bytes that are swizzled. */
inline unsigned emu_swizzled(unsigned at, unsigned span)
{
    return span ? at ^ (at >> 7 & (span / 16 - 1)) << 4 : at;
}

void emu_product_add(const emu_product &p);
void emu_product_fence();
void emu_product_commit();
void emu_product_wait(int groups);
void emu_barrier_init(unsigned at, int threads);
void emu_barrier_fence();
void emu_barrier_arrive(unsigned at, int bytes);
void emu_barrier_wait(unsigned at, int parity);
/* So many bytes have come. */
void emu_barrier_complete(unsigned at, int bytes);
/* Breaks off where no copy may be counted there. */
void emu_barrier_counts(unsigned at);
void emu_named_barrier(int id, int threads, bool wait);
void emu_registers(int n);
void emu_dependents_wait();
void emu_load_box(unsigned to, const void *map, unsigned barrier, const int *c);
void emu_store_box(const void *map, unsigned from, const int *c);
void emu_load(unsigned to, const void *from, int bytes, unsigned barrier);
void emu_add(float *to, unsigned from, int bytes);
void emu_store_commit();
void emu_store_wait(int groups);
