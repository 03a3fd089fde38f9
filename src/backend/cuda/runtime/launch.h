/* launch.h - how all GPU kernels are launched.
 *
 * For each call a row of the kernel table selects sources, constants and launch shapes. The
 * selection depends only on types, attributes and the device, so it needs no GPU, and tests compile
 * every row without one. Preparing a call requests modules (jit.h); its first run compiles them. A
 * run fills in addresses and launches the kernels in order on the context's stream. */
#ifndef BACKEND_CUDA_RUNTIME_LAUNCH_H
#define BACKEND_CUDA_RUNTIME_LAUNCH_H

#include "backend/cuda/runtime/driver.h"
#include "backend/kernel.h"
#include "tuning/tuning.h"

struct str;

/* An argument of a kernel. Addresses are known only when the call runs. */
enum cuda_arg_kind {
    ARG_IN,
    ARG_OUT,
    ARG_SCRATCH,
    ARG_NULL,
    ARG_I32,
    ARG_U32,
    ARG_I64,
    ARG_F32,
    ARG_TENSOR_MAP
};
enum { ARG_NAME = 24 };
struct cuda_arg {
    char name[ARG_NAME];
    enum cuda_arg_kind kind;
    /* ARG_IN, ARG_OUT: tensor of the call; ARG_TENSOR_MAP: map of the launch */
    int index;
    int64_t offset; /* ARG_SCRATCH: bytes */
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        float f32;
    } number;
};

/* A tensor from which a kernel for compute capability 9.0 copies boxes (TMA, hopper.cuh).
 * Dimensions are innermost first; unused ones are 1. Strides and the address are multiples of 16
 * bytes. A box has at most 256 elements in a dimension. A row of a box (dimension 0) has as many
 * bytes as the swizzle spans, or, without a swizzle, a multiple of 16. */
enum { MAP_RANK = 5 };
struct cuda_tensor {
    enum dtype dtype;       /* f32 or bf16 */
    bool tf32;              /* copies round f32 to the nearest TF32 */
    int64_t dim[MAP_RANK];  /* elements */
    int64_t step[MAP_RANK]; /* strides in bytes; step[0] is not used */
    int box[MAP_RANK];      /* elements */
    int swizzle;            /* bytes: 128, 64, 32; 0: none */
};
struct cuda_map {
    struct cuda_arg of; /* the memory of the tensor: ARG_IN, ARG_OUT or ARG_SCRATCH */
    struct cuda_tensor tensor;
};

enum { LAUNCH_ARGS = 32, LAUNCH_OPTIONS = 384, LAUNCHES = 6, LAUNCH_MAPS = 8 };

struct cuda_launch {
    /* The source file, "norm.cu". NULL: the launch is no kernel, but sets the first zero_bytes
     * bytes of arg[0] to zero. */
    const char *text;
    /* Generates the source; a pure function. NULL: the source is the built-in file `text`. */
    void (*write)(const struct kernel_call *c, struct str *s);
    const char *entry;                     /* an extern "C" __global__ function of the source */
    char options[LAUNCH_OPTIONS];          /* "-DCOLUMNS=768 -DT_X=bf16" */
    unsigned grid[3], block, shared_bytes; /* shared_bytes: dynamic shared memory */
    bool spills; /* may spill registers; tests fail if another kernel does */
    int arch;    /* 90: only for compute capability 9.0; 0: for all GPUs */
    /* The kernel may begin before the previous launch of the same row ends (programmatic dependent
     * launch, compute capability 9.0 and later). The kernel calls dependents_wait (hopper.cuh)
     * before it accesses memory that the previous launch reads or writes. */
    bool dependent;
    int64_t zero_bytes;
    int args, maps;
    struct cuda_arg arg[LAUNCH_ARGS];
    struct cuda_map map[LAUNCH_MAPS];
};

struct cuda_launches {
    const struct target *device;
    const struct cuda_row *row;
    int n;
    struct cuda_launch launch[LAUNCHES];
    int64_t scratch_bytes; /* the sum of the launch_scratch calls */
};

/* A row of the kernel table. `kernel` is the first member, so a pointer to it is also a pointer to
 * the row. */
struct cuda_row {
    struct kernel kernel;
    void (*launches)(const struct kernel_call *c, struct cuda_launches *l);
    const char *entry; /* the entry of the kernel, if several rows share `launches` */
};

/* A row that only launches kernels; such rows share prepare, scratch_bytes, release and run. The
 * letters of types (kernel.h) and `fits` may be NULL. `entry` may follow as the last argument. */
#define CUDA_ROW(op_name, variant_name, in_letters, out_letters, fits_fn, launches_fn, ...) \
    {                                                                                       \
        .kernel = {.op = OP_##op_name,                                                      \
                   .variant = variant_name,                                                 \
                   .in = in_letters,                                                        \
                   .out = out_letters,                                                      \
                   .act = DT_COUNT,                                                         \
                   .fits = fits_fn,                                                         \
                   .scratch_bytes = cuda_scratch_bytes,                                     \
                   .prepare = cuda_prepare,                                                 \
                   .release = cuda_release,                                                 \
                   .run = cuda_run},                                                        \
        .launches = launches_fn, __VA_ARGS__                                                \
    }
#define CUDA_ROWS_END    \
    {                    \
        .launches = NULL \
    }
/* Fills in the launches of call `c` by row k, which must be a cuda_row. */
void cuda_launches_of(const struct kernel *k, const struct kernel_call *c,
                      struct cuda_launches *ret);
int64_t cuda_scratch_bytes(const struct kernel *k, const struct kernel_call *c);
enum status cuda_prepare(const struct kernel *k, struct kernel_call *c);
void cuda_release(struct kernel_call *c);
enum status cuda_run(const struct kernel_call *c);
/* For rows with cuda_prepare and their own `run`. Returns launch i of a prepared call, with
 * arguments in the order of the parameters, and the launch's function, which the first call
 * compiles. */
enum status cuda_function(const struct kernel_call *c, int i, const struct cuda_launch **ret_launch,
                          CUfunction *ret);
/* Returns the place where a row with its own `run` keeps its state of a prepared call; the state is
 * NULL at first. The row's `release` frees the state, then calls cuda_release. Returns NULL if
 * prepare was not called. */
void **cuda_row_state(const struct kernel_call *c);
/* Appends the sources generated for this call, each with its options and launch. Returns false if
 * the call has no generated source. */
bool cuda_generated(const struct kernel *k, const struct kernel_call *c, struct str *s);
static inline const struct target *cuda_device_of(const struct kernel_call *c)
{
    BUG_IF(!c->target, "a call that is planned for no device");
    return c->target;
}
/* Whether the call's device runs hopper.cuh: compute capability 9.0, a driver with tensor maps. */
bool cuda_hopper(const struct kernel_call *c);

/* Adds a launch with blocks of 1 to 1024 threads. A grid of 0 blocks is not launched. */
struct cuda_launch *launch_add(struct cuda_launches *l, const char *text, const char *entry,
                               int64_t grid_x, int block);
/* Sets the first `bytes` bytes of output `index` to zero. */
void launch_zero_out(struct cuda_launches *l, int index, int64_t bytes);
void launch_grid(struct cuda_launch *k, int64_t x, int64_t y, int64_t z);
void launch_define(struct cuda_launch *k, const char *name, int64_t number); /* -DNAME=VALUE */
void launch_define_word(struct cuda_launch *k, const char *name, const char *word);
/* -DNAME=float, double, bf16 or int */
void launch_define_type(struct cuda_launch *k, const char *name, enum dtype dtype);
/* Reserves scratch, rounded up to a multiple of 256 bytes; returns its offset. */
int64_t launch_scratch(struct cuda_launches *l, int64_t bytes);

/* Arguments, in any order; each has the name of a parameter of the entry. When a call is
 * prepared, and in the tests, they are matched with the source's parameters (signature.h). */
void arg_in(struct cuda_launch *k, const char *name, int index);
void arg_out(struct cuda_launch *k, const char *name, int index);
void arg_scratch(struct cuda_launch *k, const char *name, int64_t offset);
/* A null pointer, for an operand that the call does not have. */
void arg_null(struct cuda_launch *k, const char *name);
/* Input `index` if `present`, else a null pointer. */
void arg_in_if(struct cuda_launch *k, bool present, const char *name, int index);
void arg_i32(struct cuda_launch *k, const char *name, int64_t v);
void arg_u32(struct cuda_launch *k, const char *name, int64_t v);
void arg_i64(struct cuda_launch *k, const char *name, int64_t v);
void arg_f32(struct cuda_launch *k, const char *name, double v);
/* Inputs or outputs from `first` on, one per name, separated by blanks: "dy x w mean rstd". */
void args_in(struct cuda_launch *k, int first, const char *names);
void args_out(struct cuda_launch *k, int first, const char *names);
/* A `const __grid_constant__ tensor_map` of input or output `at`, or of scratch from byte `at`
 * on. It is created when the call first runs, and again when the address changes. */
void arg_tensor_map(struct cuda_launch *k, const char *name, enum cuda_arg_kind of, int64_t at,
                    const struct cuda_tensor *t);
/* Sorts the arguments into the order of the parameters; fails if they do not match. */
enum status launch_match_arguments(const struct kernel_call *c, struct cuda_launch *k);

#endif
