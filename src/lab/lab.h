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
#include "backend/kernel.h"
#include "base/isa.h"

enum {
    LAB_INPUTS = 2,
    LAB_SIZES = 3,
    LAB_RUNGS = 28,
    LAB_ODD = 8,
    LAB_MAPS = 3,
    LAB_STAGES = 2,
    LAB_FORMS = 2
};

/* The types of a ladder's elements, one bit each. With LAB_TF32 inputs are floats, which the tensor
 * cores may round to TF32, and the kernel is compiled with TF32 = 1. */
enum lab_type { LAB_F32 = 1, LAB_TF32 = 2, LAB_BF16 = 4 };

/* A ladder's problem at one size. The caller sets n and dtype, the ladder the rest. */
struct lab_problem {
    int64_t n[LAB_SIZES];
    enum lab_type type;
    int form;               /* which of the ladder's forms */
    int processors;         /* multiprocessors of a GPU; 0: a CPU */
    enum dtype dtype;       /* of the inputs: DT_F32 or DT_BF16 */
    enum dtype out_dtype;   /* of the output; it is set to dtype before the ladder sees it */
    int64_t in[LAB_INPUTS]; /* elements of each input; 0: there is no such input */
    int64_t out;            /* elements of the output */
    int64_t columns;        /* of it, if it is a matrix; 0: it is none */
    double bytes, flops;    /* that a solution cannot do without: each input and output once */
    double scale, offset;   /* of the first input: standard normals times scale, plus offset */
};

/* One call of a rung: what its kernel gets. On a GPU these are the kernel's arguments, in the order
 * out, in[0] ..., n[0] ..., with sizes as long long; tensor maps come before them and scratch after
 * them, if the rung has any. The kernel has the name of its ladder, and ELEMENT is the type of the
 * elements. */
struct lab_call {
    void *out;
    const void *in[LAB_INPUTS];
    int64_t n[LAB_SIZES];
    int form;      /* of the problem; a kernel of a GPU has it as FORM */
    int threads;   /* of a CPU, that the user allows */
    void *scratch; /* 64-byte aligned, undefined content */
};
typedef void (*lab_fn)(const struct lab_call *c);

/* A tensor map that a kernel of a GPU gets: of an input, the output or scratch. */
struct lab_map {
    enum { LAB_OUT, LAB_IN_0, LAB_IN_1, LAB_SCRATCH } of;
    int64_t offset; /* of the matrix, in bytes */
    struct kernel_map map;
};

/* Of a GPU: another kernel of the file of a rung, and its blocks and threads for a problem. */
struct lab_stage {
    const char *entry; /* NULL: there is none */
    void (*shape)(const struct lab_problem *p, struct kernel_shape *ret);
};

struct lab_rung {
    const char *name; /* "vectorized" */
    const char *file; /* below src/lab: "copy/gpu/03_vectorized.cu"; NULL: see `variant` */
    /* Not a file, but the row of that name of the backend's table for the ladder's operator, such
     * as that of a library; "*": the first that fits, which training uses. */
    const char *variant;
    const struct lab_own *own; /* not a file of Strobe's, but the user's (lab/own.h); NULL: ours */
    const char *idea;          /* what the table says of it; NULL: what its file says (lab_idea) */
    bool ceiling;              /* its time is the ceiling of the ladder */
    unsigned types;            /* the enum lab_type that it supports; 0: LAB_F32 and LAB_BF16 */
    /* Why it cannot solve a problem of this size; NULL: it can. The function may be NULL. */
    const char *(*refuses)(const struct lab_problem *p);
    const char *options; /* of a GPU: constants beside ELEMENT, "-DSTRIDE=32"; NULL: none */
    /* Of a GPU: blocks and threads for a problem. */
    void (*shape)(const struct lab_problem *p, struct kernel_shape *ret);
    int arch; /* the least compute capability x 10; 0: any */
    /* Of a GPU: tensor maps, at most LAB_MAPS; returns their number. NULL: none. */
    int (*maps)(const struct lab_problem *p, struct lab_map *ret);
    /* Bytes of scratch; `threads` of a CPU. NULL: none. */
    int64_t (*scratch)(const struct lab_problem *p, int threads);
    /* Of a GPU: kernels that are launched before, in this order, with the same arguments after the
     * tensor maps, unless their shape has no blocks. */
    struct lab_stage before[LAB_STAGES];
    /* Of a CPU: the version for each instruction set that has one of its own. */
    lab_fn run[ISA_COUNT];
    bool zeroed; /* the output is set to zero before each call, as part of it */
    /* Bytes that move between memory and caches, as the rung touches memory: whole sectors or
     * lines, and on a CPU the lines that a store reads first. NULL: as many as the problem needs.
     * Of a problem with FLOPs, by count: what warps move to and from global memory, in sectors of
     * 32 bytes, before any cache; of a CPU, lines that move to and from L1. */
    double (*moved)(const struct lab_problem *p);
    /* Of a GPU: bytes written to shared memory and read from it, by count; a word that several
     * lanes of a warp read at once counts once. NULL: none. */
    double (*shared)(const struct lab_problem *p);
    const char
        *bound; /* what keeps it from the ceiling if not memory: "the latency of an addition" */
    /* Why it need not be faster than the rung before, where it is not; and the problems for which
     * that is the reason (NULL: all). */
    const char *no_gain;
    bool (*no_gain_at)(const struct lab_problem *p);
};

struct lab_ladder {
    const char *name, *question;  /* which `strobe lab` lists */
    const char *sizes[LAB_SIZES]; /* "n"; NULL after the last */
    const char *forms[LAB_FORMS]; /* of the problem, as --form takes them; none: there is one */
    int64_t gpu[LAB_SIZES], cpu[LAB_SIZES]; /* what is timed unless the user gives a size */
    enum lab_type type;                     /* on a GPU, unless the user gives one; 0: LAB_F32 */
    unsigned types; /* on a GPU; 0: LAB_F32 and LAB_BF16. On a CPU there is only LAB_F32. */
    int64_t odd[LAB_ODD][LAB_SIZES];                /* what is only checked; ends with 0 */
    double odd_scale[LAB_ODD], odd_offset[LAB_ODD]; /* of the first input there; scale 0: 1 */
    void (*problem)(struct lab_problem *p);
    /* The solution in double precision. Returns what errors are relative to, such as its norm. May
     * end early, with any result, after Ctrl-C (base/interrupt.h). */
    double (*reference)(const struct lab_problem *p, const double *const *in, double *out);
    double (*tolerance)(const struct lab_problem *p); /* of the error, relative, by norm */
    /* The problem as a call of an operator, for rungs with a `variant`. Its inputs are those of the
     * problem; a second one that the problem lacks is zeros, a third lies behind the second. */
    enum op (*operator_of)(const struct lab_problem *p, union attr *ret_attr,
                           struct kernel_call *ret_call);
    const struct lab_rung *of_gpu, *of_cpu; /* end with a rung without a name */
};

/* ladders.c: THE list. Ladder i; NULL after the last. */
const struct lab_ladder *lab_ladder_at(int i);
/* The number of forms that a ladder has, at least 1. */
int lab_forms(const struct lab_ladder *l);
/* The rungs of a ladder for a device, and their number. */
const struct lab_rung *lab_rungs(const struct lab_ladder *l, const struct device *d, int *ret_n);
/* Whether a rung runs in that type. */
bool lab_has_type(const struct lab_rung *r, enum lab_type type);
/* Blocks and threads of a rung on a GPU. ST_USAGE: the user's file has none for this problem. */
enum status lab_shape(const struct lab_rung *r, const struct lab_problem *p,
                      struct kernel_shape *ret);
/* Bytes of scratch of a rung. */
int64_t lab_scratch(const struct lab_rung *r, const struct lab_problem *p, int threads);
/* What the kernels of a rung on a GPU are compiled with: "-DELEMENT=float -DFORM=0 -DSTRIDE=32". */
const char *lab_options(const struct lab_rung *r, enum lab_type type, int form, struct arena *a);
/* "rows 4096, columns 1024" */
const char *lab_size_text(const struct lab_ladder *l, const int64_t n[LAB_SIZES], struct arena *a);
/* "float32", "tf32", "bfloat16", as --dtype takes them. */
const char *lab_type_name(enum lab_type type);
/* The file from which a user begins a kernel of the ladder. */
const char *lab_template(const struct lab_ladder *l, bool gpu);
/* The source of a rung, and the first line of its comment, "16 bytes per thread". A rung without a
 * file has no source: NULL. */
const char *lab_source(const struct lab_rung *r, int64_t *ret_bytes);
/* The source of a rung on a GPU with the headers of its ladder's folder in place of the lines that
 * include them: what the compiler gets. In `a`. */
const char *lab_text(const struct lab_rung *r, struct arena *a);
/* A header of a ladder's folder that the source includes, the i-th of all, also of those that its
 * headers include: its path below src and its text. False after the last. */
bool lab_header(const struct lab_rung *r, int i, const char **ret_path, const char **ret_text);
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
