/* cpu.h - what the rungs of ladders on a CPU include.
 *
 * A rung is a file with one function, RUNG(LADDER_NAME), which works on the call c. The Makefile
 * compiles it once for each instruction set, as it does the kernels of backend/cpu/vector, whose
 * vectors of W floats it uses: vf_load, vf_store and the operators of C. */
#ifndef LAB_CPU_H
#define LAB_CPU_H

#include "backend/cpu/vector/vector.h"
#include "lab/lab.h"

#define RUNG(name)                           \
    void VEC(name)(const struct lab_call *); \
    void VEC(name)(const struct lab_call *c)

/* In a loop: the compiler keeps it as it is written, one step at a time. Without it, it would make
 * vectors of scalars, and a call of memcpy of a loop that copies. It is no instruction. */
#define AS_WRITTEN __asm__ volatile("")

/* Stores around the caches; p is a multiple of the vector's size. A normal store where the
 * instruction set, or gcc for it, has no such store. */
INLINE void vf_stream(float *p, vf a)
{
#if defined(__AVX512F__)
    _mm512_stream_ps(p, a);
#elif defined(__AVX2__)
    _mm256_stream_ps(p, a);
#elif defined(__SSE2__) && !defined(VEC_PLAIN)
    _mm_stream_ps(p, a);
#else
    vf_store(p, a);
#endif
}

/* Streamed stores are ordered by nothing else. */
INLINE void vf_stream_end(void)
{
#if defined(__SSE2__) && !defined(VEC_PLAIN)
    _mm_sfence();
#endif
}

#endif
