/* lab.h - kernel ladders: one problem, solved by one small kernel after the other, each built on
 * one more idea.
 *
 * A ladder is a C file with its problem and a row for each rung; a rung is a file that teaches, a
 * kernel below a comment. On a GPU it is CUDA, compiled when the ladder runs; on a CPU it is C,
 * compiled with the program once for each instruction set (lab/cpu.h). docs/ADDING.md describes how
 * to add a rung: one file, one row. run.h runs a ladder. */
#ifndef LAB_LAB_H
#define LAB_LAB_H

#include "backend/backend.h"
#include "base/isa.h"

enum { LAB_INPUTS = 2, LAB_SIZES = 3, LAB_RUNGS = 16, LAB_ODD = 8 };

/* A ladder's problem at one size. The caller sets n and dtype, the ladder the rest. */
struct lab_problem {
    int64_t n[LAB_SIZES];
    enum dtype dtype;       /* of the inputs: DT_F32 or DT_BF16 */
    enum dtype out_dtype;   /* of the output; it is set to dtype before the ladder sees it */
    int64_t in[LAB_INPUTS]; /* elements of each input; 0: there is no such input */
    int64_t out;            /* elements of the output */
    double bytes, flops;    /* that a solution cannot do without: each input and output once */
};

/* One call of a rung: what its kernel gets. On a GPU these are the kernel's arguments, in the order
 * out, in[0] ..., n[0] ..., with sizes as long long; the kernel has the name of its ladder, and
 * ELEMENT is the type of the elements. */
struct lab_call {
    void *out;
    const void *in[LAB_INPUTS];
    int64_t n[LAB_SIZES];
    int threads; /* of a CPU, that the user allows */
};
typedef void (*lab_fn)(const struct lab_call *c);

struct lab_rung {
    const char *name;    /* "vectorized" */
    const char *file;    /* below src/lab: "copy/gpu/03_vectorized.cu" */
    const char *options; /* of a GPU: constants beside ELEMENT, "-DSTRIDE=32"; NULL: none */
    /* Of a GPU: blocks and threads for a problem. */
    void (*shape)(const struct lab_problem *p, struct kernel_shape *ret);
    int arch; /* the least compute capability x 10; 0: any */
    /* Of a CPU: the version for each instruction set that has one of its own. */
    lab_fn run[ISA_COUNT];
    bool zeroed; /* the output is set to zero before each call, as part of it */
    /* Bytes that move between memory and caches, as the rung touches memory: whole sectors or
     * lines, and on a CPU the lines that a store reads first. NULL: as many as the problem needs.
     * */
    double (*moved)(const struct lab_problem *p);
    const char
        *bound; /* what keeps it from the ceiling if not memory: "the latency of an addition" */
    const char *no_gain; /* why it need not be faster than the rung before, where it is not */
};

struct lab_ladder {
    const char *name, *question;            /* which `strobe lab` lists */
    const char *sizes[LAB_SIZES];           /* "n"; NULL after the last */
    int64_t gpu[LAB_SIZES], cpu[LAB_SIZES]; /* what is timed unless the user gives a size */
    int64_t odd[LAB_ODD][LAB_SIZES];        /* what is only checked; ends with 0 */
    void (*problem)(struct lab_problem *p);
    /* The solution in double precision. Returns what errors are relative to, such as its norm. */
    double (*reference)(const struct lab_problem *p, const double *const *in, double *out);
    double (*tolerance)(const struct lab_problem *p); /* of the error, relative, by norm */
    const struct lab_rung *of_gpu, *of_cpu;           /* end with a rung without a name */
};

/* ladders.c: THE list. Ladder i; NULL after the last. */
const struct lab_ladder *lab_ladder_at(int i);
/* The rungs of a ladder for a device, and their number. */
const struct lab_rung *lab_rungs(const struct lab_ladder *l, const struct device *d, int *ret_n);
/* The source of a rung, and the first line of its comment, "16 bytes per thread". */
const char *lab_source(const struct lab_rung *r, int64_t *ret_bytes);
const char *lab_idea(const struct lab_rung *r, char *buffer, int bytes);
/* The function of a rung for this processor and its limit (base/isa.h). */
lab_fn lab_function(const struct lab_rung *r);

/* Declares the versions of a rung on a CPU, and lists them for its row: LAB_CPU(copy_vectors). */
#if defined(__x86_64__)
#define LAB_CPU_DECLARE(name)                                                          \
    void name##_avx512(const struct lab_call *), name##_avx2(const struct lab_call *), \
        name##_sse2(const struct lab_call *), name##_plain(const struct lab_call *)
#define LAB_CPU(name)                                                                     \
    {                                                                                     \
        [ISA_AVX512] = name##_avx512, [ISA_AVX2] = name##_avx2, [ISA_SSE2] = name##_sse2, \
        [ISA_PLAIN] = name##_plain                                                        \
    }
#elif defined(__aarch64__)
#define LAB_CPU_DECLARE(name) \
    void name##_neon(const struct lab_call *), name##_plain(const struct lab_call *)
#define LAB_CPU(name)                                        \
    {                                                        \
        [ISA_NEON] = name##_neon, [ISA_PLAIN] = name##_plain \
    }
#else
#define LAB_CPU_DECLARE(name) void name##_plain(const struct lab_call *)
#define LAB_CPU(name)              \
    {                              \
        [ISA_PLAIN] = name##_plain \
    }
#endif

#endif
