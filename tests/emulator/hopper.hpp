/* hopper.hpp - the functions of hopper.cuh for compute capability 9.0, as kernel sources call them,
 * and the table of the engine's functions that implement them (block.hpp).
 *
 * Asynchronous work completes as late as allowed, or, with EMU_EARLY=1, at once. A WGMMA reads
 * shared memory when it is waited for; until then its accumulator is NaN. A copy to shared memory
 * arrives when no thread can continue without it; until then the memory is NaN. A copy from shared
 * memory reads it when it is waited for.
 *
 * Reported as errors: threads of a warpgroup that do not issue the same WGMMA; a WGMMA without a
 * fence; misplaced operands, copies and tensors; writes of stmatrix that no fence_async (of the
 * writer, or later of the reader) made visible to WGMMAs and copies; barriers with more arrivals or
 * bytes than announced, or that were overwritten; work in flight when a block ends; a dependent
 * launch that does not wait for the previous one. A deadlock prints what the threads wait for.
 *
 * Not found: plain stores to shared memory without fence_async; accumulator registers that are
 * touched without a fence while another WGMMA is in flight (the compiler warns about these, and
 * tests/backend/test_cuda_texts fails on it). */
#pragma once
#include <stddef.h>

struct emu_wgmma {
    float *d;
    int n; /* columns */
    unsigned long long a, b;
    const unsigned *registers;     /* operand a in registers; NULL: in shared memory */
    bool ta, tb, accumulate, tf32; /* operands of bf16, k = 16, or tf32, k = 8 */
};

/* The emulated result of cuTensorMapEncodeTiled. */
enum { EMU_RANK = 5 };
struct emu_map {
    char word[8]; /* "a tensor" */
    char *at;
    unsigned long long dim[EMU_RANK], step[EMU_RANK]; /* step[0]: bytes of an element */
    unsigned short box[EMU_RANK];
    unsigned short span; /* bytes of the swizzle; 0: none */
    bool rounds;         /* floats to tf32, as they come to shared memory */
};

/* Shared memory is addressed by the offset from the first dynamic byte. */
struct emu_hopper {
    void (*product)(const emu_wgmma &p);
    void (*matmul_fence)();
    void (*matmul_commit)();
    void (*matmul_wait)(int groups);
    void (*barrier_init)(unsigned at, int threads);
    void (*barrier_fence)();
    void (*barrier_arrive)(unsigned at, int bytes);
    void (*barrier_wait)(unsigned at, int parity);
    void (*fence_async)();
    void (*wrote)(unsigned at); /* by stmatrix */
    void (*load_box)(unsigned to, const void *map, unsigned barrier, const int *c);
    void (*store_box)(const void *map, unsigned from, const int *c);
    void (*load)(unsigned to, const void *from, int bytes, unsigned barrier);
    void (*add)(float *to, unsigned from, int bytes);
    void (*store)(void *to, unsigned from, int bytes);
    void (*store_commit)();
    void (*store_wait)(int groups);
    void (*named_barrier)(int id, int threads, bool wait);
    void (*registers)(int n);
    void (*dependents_wait)();
};

#ifdef EMU_TEXT
/* Constants of kernel sources are macros and may have any name in capitals. */
#define EMU_HOPPER (*emu_this.engine->hopper)
static inline unsigned emu_offset(unsigned shared)
{
    return shared - (1u << 30);
}

static inline void wgmma_fence()
{
    EMU_HOPPER.matmul_fence();
}
static inline void wgmma_commit()
{
    EMU_HOPPER.matmul_commit();
}
template <int emu_n> static inline void wgmma_wait()
{
    EMU_HOPPER.matmul_wait(emu_n);
}
template <int emu_n> static inline void wgmma_hold(float (&)[emu_n]) {}
template <int emu_n> static inline void wgmma_forget(float (&)[emu_n]) {}
template <int emu_n> static inline void computed(unsigned (&)[emu_n]) {}
template <int emu_n, bool emu_ta, bool emu_tb>
static inline void wgmma_ss(float (&d)[emu_n / 2], unsigned long long a, unsigned long long b,
                            bool accumulate)
{
    EMU_HOPPER.product({d, emu_n, a, b, nullptr, emu_ta, emu_tb, accumulate, false});
}
template <int emu_n>
static inline void wgmma_ss_tf32(float (&d)[emu_n / 2], unsigned long long a, unsigned long long b,
                                 bool accumulate)
{
    EMU_HOPPER.product({d, emu_n, a, b, nullptr, false, false, accumulate, true});
}
template <int emu_n, bool emu_tb>
static inline void wgmma_rs(float (&d)[emu_n / 2], const unsigned (&a)[4], unsigned long long b,
                            bool accumulate)
{
    EMU_HOPPER.product({d, emu_n, 0, b, a, false, emu_tb, accumulate, false});
}

static inline void mbarrier_init(unsigned barrier, int threads)
{
    EMU_HOPPER.barrier_init(emu_offset(barrier), threads);
}
static inline void fence_barrier_init()
{
    EMU_HOPPER.barrier_fence();
}
static inline void mbarrier_expect(unsigned barrier, int bytes)
{
    EMU_HOPPER.barrier_arrive(emu_offset(barrier), bytes);
}
static inline void mbarrier_arrive(unsigned barrier)
{
    EMU_HOPPER.barrier_arrive(emu_offset(barrier), 0);
}
static inline void mbarrier_wait(unsigned barrier, int parity)
{
    EMU_HOPPER.barrier_wait(emu_offset(barrier), parity);
}
static inline void fence_async()
{
    EMU_HOPPER.fence_async();
}

static inline void tma_load(unsigned to, const void *map, unsigned barrier, int c0, int c1, int c2,
                            int c3, int c4)
{
    const int c[] = {c0, c1, c2, c3, c4};
    EMU_HOPPER.load_box(emu_offset(to), map, emu_offset(barrier), c);
}
static inline void tma_store(const void *map, unsigned from, int c0, int c1, int c2, int c3, int c4)
{
    const int c[] = {c0, c1, c2, c3, c4};
    EMU_HOPPER.store_box(map, emu_offset(from), c);
}
static inline void tma_store_commit()
{
    EMU_HOPPER.store_commit();
}
template <int emu_n> static inline void tma_store_wait_read()
{
    EMU_HOPPER.store_wait(emu_n);
}
template <int emu_n> static inline void tma_store_wait()
{
    EMU_HOPPER.store_wait(emu_n);
}
static inline void tma_prefetch_map(const void *) {}
static inline void bulk_load(unsigned to, const void *from, int bytes, unsigned barrier)
{
    EMU_HOPPER.load(emu_offset(to), from, bytes, emu_offset(barrier));
}
static inline void bulk_add_f32(float *to, unsigned from, int bytes)
{
    EMU_HOPPER.add(to, emu_offset(from), bytes);
}
static inline void bulk_store(void *to, unsigned from, int bytes)
{
    EMU_HOPPER.store(to, emu_offset(from), bytes);
}

static inline void named_barrier_sync(int id, int threads)
{
    EMU_HOPPER.named_barrier(id, threads, true);
}
static inline void named_barrier_arrive(int id, int threads)
{
    EMU_HOPPER.named_barrier(id, threads, false);
}
template <int emu_n> static inline void registers_inc()
{
    static_assert(emu_n >= 24 && emu_n <= 256 && emu_n % 8 == 0, "registers");
    EMU_HOPPER.registers(emu_n);
}
template <int emu_n> static inline void registers_dec()
{
    registers_inc<emu_n>();
}
static inline void dependents_start() {}
static inline void dependents_wait()
{
    EMU_HOPPER.dependents_wait();
}

static inline const emu_slot *emu_rows(unsigned address)
{
    if (address % 16)
        emu_this.engine->broken("stmatrix at an address that is not a multiple of 16");
    return emu_meet(~0u, address);
}
static inline void emu_store_part(unsigned to, const void *from, int bytes)
{
    memcpy(emu_shared(to), from, bytes);
    EMU_HOPPER.wrote(emu_offset(to));
}
static inline void stmatrix_x4(unsigned address, const unsigned (&r)[4])
{
    const emu_slot *s = emu_rows(address);
    int g = emu_lane() / 4, q = emu_lane() % 4;
    for (int i = 0; i < 4; i++) emu_store_part(emu_of<unsigned>(s, 8 * i + g) + 4 * q, &r[i], 4);
}
static inline void stmatrix_x4_trans(unsigned address, const unsigned (&r)[4])
{
    const emu_slot *s = emu_rows(address);
    int g = emu_lane() / 4, q = emu_lane() % 4;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            unsigned short half = (unsigned short)(r[i] >> (16 * k));
            emu_store_part(emu_of<unsigned>(s, 8 * i + 2 * q + k) + 2 * g, &half, 2);
        }
}
#endif
