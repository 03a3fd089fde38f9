/* cpu.h - the header that every CPU rung includes.
 *
 * A CPU rung is a file with one function, RUNG(LADDER_NAME), which reads its arguments from the
 * parameter c. The Makefile compiles the file once for each instruction set. The rung uses the
 * vectors of W floats of backend/cpu/vector: vf_load, vf_store and the operators of C. */
#ifndef LAB_CPU_H
#define LAB_CPU_H

#include "backend/cpu/vector/vector.h"
#include "lab/lab.h"

#define RUNG(name)                           \
    void VEC(name)(const struct lab_call *); \
    void VEC(name)(const struct lab_call *c)

/* In a loop body, keeps the compiler from vectorizing the loop or replacing it by a call of memcpy.
 * It generates no instruction. */
#define AS_WRITTEN __asm__ volatile("")

/* Stores with a non-temporal instruction, which bypasses the caches, or with a normal one if the
 * instruction set has no non-temporal store; p is aligned to the vector's size. */
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

/* Orders non-temporal stores before all later stores. */
INLINE void vf_stream_end(void)
{
#if defined(__SSE2__) && !defined(VEC_PLAIN)
    _mm_sfence();
#endif
}

#endif
