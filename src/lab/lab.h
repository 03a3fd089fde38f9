/* lab.h - kernel ladders. A ladder solves one problem with a series of small kernels (rungs); each
 * rung adds one idea to the rung before it.
 *
 * A C file describes a ladder: its problem and a table with a row for each rung. A rung is a source
 * file: a comment that explains the idea, and a kernel. Rungs for a GPU are CUDA, compiled when the
 * ladder runs; rungs for a CPU are C, compiled with the program once for each instruction set
 * (lab/cpu.h). docs/ADDING.md describes how to add a rung. run.h runs a ladder. */
#ifndef LAB_LAB_H
#define LAB_LAB_H

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/isa.h"

enum {
    LAB_INPUTS = 2,
    LAB_SIZES = 3,
    LAB_RUNGS = 28,
    LAB_ODD = 8,
    LAB_MAPS = 3,
    LAB_PROLOGUES = 2,
    LAB_FORMS = 2
};

/* The types of a ladder's elements, one bit each. With LAB_TF32 the inputs are floats, which the
 * tensor cores may round to TF32, and the kernel is compiled with TF32 = 1. */
enum lab_type { LAB_F32 = 1, LAB_TF32 = 2, LAB_BF16 = 4 };

/* A ladder's problem at one size. lab_problem_of (trial.h) sets all members. */
struct lab_problem {
    int64_t n[LAB_SIZES];
    enum lab_type type;
    int form;               /* index in lab_ladder.forms */
    int processors;         /* multiprocessors of the GPU; 0 on a CPU */
    enum dtype dtype;       /* of the inputs: DT_F32 or DT_BF16 */
    enum dtype out_dtype;   /* of the output; dtype unless the ladder changes it */
    int64_t in[LAB_INPUTS]; /* elements of each input; 0: there is no such input */
    int64_t out;            /* elements of the output */
    int64_t columns;        /* of the output; 0: the output is not a matrix */
    double bytes, flops;    /* the least of a solution; bytes: each input and output once */
    double scale, offset;   /* the first input is standard normals times scale, plus offset */
};

/* The arguments of one call of a rung. A GPU kernel has the name of its ladder. Its parameters are
 * the tensor maps, if any, then out, in[0] ..., n[0] ... (as long long), and scratch, if any. The
 * macro ELEMENT is the type of the elements. */
struct lab_call {
    void *out;
    const void *in[LAB_INPUTS];
    int64_t n[LAB_SIZES];
    int form;      /* lab_problem.form; a GPU kernel is compiled with the macro FORM instead */
    int threads;   /* CPU only: the number of threads that the rung may use */
    void *scratch; /* 64-byte aligned, undefined content */
};
typedef void (*lab_fn)(const struct lab_call *c);

/* A tensor map that a GPU kernel gets; it describes a matrix in an input, the output or scratch. */
struct lab_map {
    enum { LAB_OUT, LAB_IN_0, LAB_IN_1, LAB_SCRATCH } of;
    int64_t offset; /* of the matrix in the buffer, in bytes */
    struct kernel_map map;
};

/* GPU only: a kernel in the rung's file that is launched before the main kernel; `shape` returns
 * its blocks and threads. */
struct lab_prologue {
    const char *entry; /* NULL: there is none */
    void (*shape)(const struct lab_problem *p, struct kernel_shape *ret);
};

struct lab_rung {
    const char *name; /* "vectorized" */
    const char *file; /* below src/lab: "copy/gpu/03_vectorized.cu"; NULL: see `variant` */
    /* Without a file: the name of a variant of the ladder's operator in the backend's table, such
     * as a library's; "*": the first variant that fits, which training uses. */
    const char *variant;
    const struct lab_own *own; /* the user's kernel (lab/own.h); NULL: a rung of Strobe */
    const char *idea;          /* text for the table; NULL: the first line of the file (lab_idea) */
    bool ceiling;              /* its time is the ceiling of the ladder */
    unsigned types;            /* bits of enum lab_type that it supports; 0: LAB_F32 and LAB_BF16 */
    /* Returns why the rung cannot solve a problem of this size, or NULL if it can. The function
     * pointer may be NULL: the rung solves every size. */
    const char *(*refuses)(const struct lab_problem *p);
    const char *options; /* GPU only: further macros, such as "-DSTRIDE=32"; NULL: none */
    /* GPU only: blocks and threads for a problem. */
    void (*shape)(const struct lab_problem *p, struct kernel_shape *ret);
    int arch; /* the least compute capability x 10; 0: any */
    /* GPU only: writes at most LAB_MAPS tensor maps and returns their number. NULL: none. */
    int (*maps)(const struct lab_problem *p, struct lab_map *ret);
    /* Returns the bytes of scratch (on a CPU for `threads` threads). NULL: no scratch. */
    int64_t (*scratch)(const struct lab_problem *p, int threads);
    /* GPU only: kernels that are launched before the main kernel, in this order, with the same
     * arguments except the tensor maps. A kernel whose shape has no blocks is skipped. */
    struct lab_prologue prologue[LAB_PROLOGUES];
    /* CPU only: the version for each instruction set; NULL: that instruction set has none. */
    lab_fn run[ISA_COUNT];
    bool zeroed; /* the output is set to zero before each call; the time includes this */
    /* Bytes that move between memory and caches, in whole sectors or cache lines, including the
     * lines that a store on a CPU reads first. If the problem has FLOPs, on a GPU instead: the
     * bytes that warps load from and store to global memory, in sectors of 32 bytes, whether a
     * cache holds them or not; on a CPU: the bytes of the lines that move to and from L1. NULL: the
     * bytes of the problem. */
    double (*moved)(const struct lab_problem *p);
    /* GPU only: bytes written to and read from shared memory, counted by hand from the source; a
     * word that several lanes of a warp read at once counts once. NULL: none. */
    double (*shared)(const struct lab_problem *p);
    const char *bound; /* what limits the speed, if not memory: "the latency of an addition" */
    /* The reason that is shown if the rung is not faster than the rung before it, and the problems
     * for which the reason holds (NULL: all). */
    const char *no_gain;
    bool (*no_gain_at)(const struct lab_problem *p);
};

struct lab_ladder {
    const char *name, *question;            /* both are listed by `strobe lab` */
    const char *sizes[LAB_SIZES];           /* names of the sizes, "n"; NULL after the last */
    const char *forms[LAB_FORMS];           /* values of --form; empty: there is only one form */
    int64_t gpu[LAB_SIZES], cpu[LAB_SIZES]; /* sizes that are timed unless the user gives some */
    enum lab_type type;                     /* the default on a GPU; 0: LAB_F32 */
    unsigned types; /* on a GPU; 0: LAB_F32 and LAB_BF16. On a CPU there is only LAB_F32. */
    int64_t odd[LAB_ODD][LAB_SIZES]; /* sizes that are only checked; ends with 0 */
    /* lab_problem.scale and .offset at these sizes; a scale of 0 means 1. */
    double odd_scale[LAB_ODD], odd_offset[LAB_ODD];
    /* Sets the members of a problem that depend on its sizes. */
    void (*problem)(struct lab_problem *p);
    /* Computes the solution in double precision. Returns the number that errors are divided by,
     * such as the norm of the solution. After Ctrl-C (base/interrupt.h) the function may return
     * early with any result. */
    double (*reference)(const struct lab_problem *p, const double *const *in, double *out);
    double (*tolerance)(const struct lab_problem *p); /* largest allowed relative error, by norm */
    /* Describes the problem as a call of an operator, for rungs with a `variant`. If the problem
     * has no second input, the operator's second input is zeros; a third input is stored directly
     * after the second. */
    enum op (*operator_of)(const struct lab_problem *p, union attr *ret_attr,
                           struct kernel_call *ret_call);
    const struct lab_rung *of_gpu, *of_cpu; /* end with a rung without a name */
};

/* Ladder i of the list in ladders.c; NULL after the last. */
const struct lab_ladder *lab_ladder_at(int i);
/* The number of forms that a ladder has, at least 1. */
int lab_forms(const struct lab_ladder *l);
/* The rungs of a ladder for a device, and their number. */
const struct lab_rung *lab_rungs(const struct lab_ladder *l, const struct device *d, int *ret_n);
/* Whether the rung supports this type. */
bool lab_has_type(const struct lab_rung *r, enum lab_type type);
/* Blocks and threads of a GPU rung. ST_USAGE: the formulas in the user's file give no valid
 * numbers for this problem. */
enum status lab_shape(const struct lab_rung *r, const struct lab_problem *p,
                      struct kernel_shape *ret);
/* Bytes of scratch of a rung. */
int64_t lab_scratch(const struct lab_rung *r, const struct lab_problem *p, int threads);
/* The compiler options of a GPU rung: "-DELEMENT=float -DFORM=0 -DSTRIDE=32". */
const char *lab_options(const struct lab_rung *r, enum lab_type type, int form, struct arena *a);
/* "rows 4096, columns 1024" */
const char *lab_size_text(const struct lab_ladder *l, const int64_t n[LAB_SIZES], struct arena *a);
/* "float32", "tf32", "bfloat16", as --dtype takes them. */
const char *lab_type_name(enum lab_type type);
/* The file from which a user begins a kernel of the ladder. */
const char *lab_template(const struct lab_ladder *l, bool gpu);
/* The source of a rung; NULL: the rung has no file. */
const char *lab_source(const struct lab_rung *r, int64_t *ret_bytes);
/* The source of a GPU rung as the compiler gets it: headers of the ladder's folder replace the
 * lines that include them. Lives in `a`. */
const char *lab_text(const struct lab_rung *r, struct arena *a);
/* The i-th header of the ladder's folder that the source includes, directly or through another
 * header: its path below src/lab and its text. False after the last. */
bool lab_header(const struct lab_rung *r, int i, const char **ret_path, const char **ret_text);
/* The idea of a rung, from its row or the first line of its file: "16 bytes per thread". */
const char *lab_idea(const struct lab_rung *r, char *buffer, int bytes);
/* The version of a CPU rung for the best instruction set that the processor has and that is allowed
 * (base/isa.h). */
lab_fn lab_function(const struct lab_rung *r);

/* LAB_CPU_DECLARE(copy_vectors) declares the versions of the CPU rung copy_vectors;
 * LAB_CPU(copy_vectors) is the value of lab_rung.run in its row. */
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
