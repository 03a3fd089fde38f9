#include "backend/cuda/runtime/launch.h"

#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/fault.h"
#include "backend/cuda/runtime/jit.h"
#include "backend/cuda/runtime/signature.h"
#include "backend/cuda/runtime/tensor_map.h"
#include "base/heap.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, HOPPER_ARCH = 90 };

/* The state of a prepared call: its launches, and a function for each. */
struct prepared {
    struct cuda_launches l;
    int module[LAUNCHES];
    CUfunction function[LAUNCHES];
    struct tensor_map *map; /* LAUNCH_MAPS per launch; NULL: no launch has any */
    bool ready;
    void *of_row; /* the row's own state (cuda_row_state) */
};

bool cuda_hopper(const struct kernel_call *c)
{
    const struct target *d = cuda_device_of(c);
    return d->arch == HOPPER_ARCH && d->tensor_maps;
}

struct cuda_launch *launch_add(struct cuda_launches *l, const char *text, const char *entry,
                               int64_t grid_x, int block)
{
    BUG_IF(l->n == LAUNCHES, "%s: too many launches", entry);
    BUG_IF(text && (block < 1 || block > 1024), "%s: %d threads per block", entry, block);
    struct cuda_launch *k = &l->launch[l->n++];
    *k = (struct cuda_launch){.text = text, .entry = entry, .block = (unsigned)block};
    launch_grid(k, grid_x, 1, 1);
    return k;
}

void launch_grid(struct cuda_launch *k, int64_t x, int64_t y, int64_t z)
{
    BUG_IF(x > INT32_MAX || y > UINT16_MAX || z > UINT16_MAX, "%s: a grid of %lld, %lld, %lld",
           k->entry, (long long)x, (long long)y, (long long)z);
    k->grid[0] = (unsigned)x, k->grid[1] = (unsigned)y, k->grid[2] = (unsigned)z;
}

static struct cuda_arg *arg_add(struct cuda_launch *k, const char *name, enum cuda_arg_kind kind)
{
    BUG_IF(k->args == LAUNCH_ARGS, "%s: too many arguments", k->entry);
    BUG_IF(strlen(name) >= ARG_NAME, "%s: the name %s is too long", k->entry, name);
    struct cuda_arg *a = &k->arg[k->args++];
    *a = (struct cuda_arg){.kind = kind};
    strcpy(a->name, name);
    return a;
}

void arg_in(struct cuda_launch *k, const char *name, int index)
{
    arg_add(k, name, ARG_IN)->index = index;
}
void arg_out(struct cuda_launch *k, const char *name, int index)
{
    arg_add(k, name, ARG_OUT)->index = index;
}
void arg_scratch(struct cuda_launch *k, const char *name, int64_t offset)
{
    arg_add(k, name, ARG_SCRATCH)->offset = offset;
}
void arg_null(struct cuda_launch *k, const char *name)
{
    arg_add(k, name, ARG_NULL);
}
void arg_in_if(struct cuda_launch *k, bool present, const char *name, int index)
{
    arg_add(k, name, present ? ARG_IN : ARG_NULL)->index = index;
}
void arg_i32(struct cuda_launch *k, const char *name, int64_t v)
{
    BUG_IF(v < INT32_MIN || v > INT32_MAX, "%s: %s: %lld is not an int", k->entry, name,
           (long long)v);
    arg_add(k, name, ARG_I32)->number.i32 = (int32_t)v;
}
void arg_u32(struct cuda_launch *k, const char *name, int64_t v)
{
    BUG_IF(v < 0 || v > UINT32_MAX, "%s: %s: %lld is not a u32", k->entry, name, (long long)v);
    arg_add(k, name, ARG_U32)->number.u32 = (uint32_t)v;
}
void arg_i64(struct cuda_launch *k, const char *name, int64_t v)
{
    arg_add(k, name, ARG_I64)->number.i64 = v;
}
void arg_f32(struct cuda_launch *k, const char *name, double v)
{
    arg_add(k, name, ARG_F32)->number.f32 = (float)v;
}

static void args_add(struct cuda_launch *k, enum cuda_arg_kind kind, int first, const char *names)
{
    for (const char *at = names; *at; first++) {
        int n = (int)strcspn(at, " ");
        char name[ARG_NAME];
        snprintf(name, sizeof name, "%.*s", n, at);
        arg_add(k, name, kind)->index = first;
        at += n + (at[n] == ' ');
    }
}
void args_in(struct cuda_launch *k, int first, const char *names)
{
    args_add(k, ARG_IN, first, names);
}
void args_out(struct cuda_launch *k, int first, const char *names)
{
    args_add(k, ARG_OUT, first, names);
}

void arg_tensor_map(struct cuda_launch *k, const char *name, enum cuda_arg_kind of, int64_t at,
                    const struct cuda_tensor *t)
{
    BUG_IF(k->maps == LAUNCH_MAPS || of > ARG_SCRATCH, "%s: too many tensor maps", k->entry);
    struct cuda_arg where = {.kind = of};
    if (of == ARG_SCRATCH)
        where.offset = at;
    else
        where.index = (int)at;
    arg_add(k, name, ARG_TENSOR_MAP)->index = k->maps;
    k->map[k->maps++] = (struct cuda_map){.of = where, .tensor = *t};
}

void launch_zero_out(struct cuda_launches *l, int index, int64_t bytes)
{
    struct cuda_launch *k = launch_add(l, NULL, "zero", 1, 1);
    arg_out(k, "memory", index);
    k->zero_bytes = bytes;
}

/* False for an input or output that the call does not have. */
static bool has_tensor(const struct kernel_call *c, const struct cuda_arg *a)
{
    return a->kind == ARG_IN ? a->index < c->n_in : a->kind != ARG_OUT || a->index < c->n_out;
}

/* The source of a launch: built in, or generated into `s`. */
static const char *source_of(const struct kernel_call *c, const struct cuda_launch *k,
                             struct str *s)
{
    int64_t bytes;
    if (!k->write) return cuda_text(k->text, &bytes);
    k->write(c, s);
    return str_text(s);
}

static enum status match_source(const struct kernel_call *c, struct cuda_launch *k,
                                const char *source)
{
    struct signature s;
    for (int i = 0; i < k->args; i++) {
        const struct cuda_arg *a = &k->arg[i];
        if (a->kind == ARG_TENSOR_MAP) a = &k->map[a->index].of;
        if (!has_tensor(c, a))
            return fail(ST_FORMAT, "%s: argument %s of %s: the call has no such tensor", k->text,
                        k->arg[i].name, k->entry);
    }
    TRY(signature_read(k, source, &s));
    return signature_match(&s, k);
}

enum status launch_match_arguments(const struct kernel_call *c, struct cuda_launch *k)
{
    struct str s = {0};
    enum status st = k->text ? match_source(c, k, source_of(c, k, &s)) : ST_OK;
    str_release(&s);
    return st;
}

static void option(struct cuda_launch *k, const char *name, const char *word)
{
    size_t used = strlen(k->options);
    int n = snprintf(k->options + used, sizeof k->options - used, "%s-D%s=%s", used ? " " : "",
                     name, word);
    BUG_IF(n < 0 || (size_t)n >= sizeof k->options - used, "%s: too many options", k->entry);
}

void launch_define(struct cuda_launch *k, const char *name, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    option(k, name, text);
}

void launch_define_word(struct cuda_launch *k, const char *name, const char *word)
{
    option(k, name, word);
}

void launch_define_type(struct cuda_launch *k, const char *name, enum dtype dtype)
{
    static const char *const words[DT_COUNT] = {
        [DT_F32] = "float", [DT_F64] = "double", [DT_BF16] = "bf16", [DT_I32] = "int"};
    option(k, name, words[dtype]);
}

int64_t launch_scratch(struct cuda_launches *l, int64_t bytes)
{
    int64_t offset = l->scratch_bytes;
    l->scratch_bytes = round_up(offset + bytes, ALIGNMENT);
    return offset;
}

void cuda_launches_of(const struct kernel *k, const struct kernel_call *c,
                      struct cuda_launches *ret)
{
    const struct cuda_row *row = (const struct cuda_row *)k;
    *ret = (struct cuda_launches){.device = cuda_device_of(c), .row = row};
    row->launches(c, ret);
}

int64_t cuda_scratch_bytes(const struct kernel *k, const struct kernel_call *c)
{
    struct cuda_launches l;
    cuda_launches_of(k, c, &l);
    return l.scratch_bytes;
}

enum status cuda_prepare(const struct kernel *k, struct kernel_call *c)
{
    struct prepared *p = HEAP_NEW(struct prepared, 1);
    cuda_launches_of(k, c, &p->l);
    c->state = p;
    for (int i = 0; i < p->l.n; i++)
        if (p->l.launch[i].maps && !p->map) p->map = tensor_maps_new(LAUNCHES * LAUNCH_MAPS);
    for (int i = 0; i < p->l.n; i++) {
        struct cuda_launch *l = &p->l.launch[i];
        struct str generated = {0};
        if (!l->text) continue;
        const char *source = source_of(c, l, &generated);
        enum status st = match_source(c, l, source);
        BUG_IF(st != ST_OK, "%s", fail_message());
        p->module[i] =
            jit_request(cuda_jit(c->context), l->text, l->write ? source : NULL, l->options);
        str_release(&generated);
    }
    return ST_OK;
}

bool cuda_generated(const struct kernel *k, const struct kernel_call *c, struct str *s)
{
    if (k->prepare != cuda_prepare) return false; /* a matmul of the library */
    struct cuda_launches l;
    bool any = false;
    cuda_launches_of(k, c, &l);
    for (int i = 0; i < l.n; i++) {
        const struct cuda_launch *one = &l.launch[i];
        if (!one->write) continue;
        str_printf(s, "// %s: %u x %u x %u blocks of %u threads%s%s\n", one->entry, one->grid[0],
                   one->grid[1], one->grid[2], one->block, *one->options ? ", " : "", one->options);
        one->write(c, s);
        any = true;
    }
    return any;
}

void cuda_release(struct kernel_call *c)
{
    struct prepared *p = c->state;
    if (p) free(p->map);
    free(p);
    c->state = NULL;
}

/* Called before the first run. Compiles all modules requested so far, in parallel. */
static enum status make_ready(struct prepared *p, const void *context)
{
    struct jit *j = cuda_jit(context);
    TRY(jit_finish(j));
    for (int i = 0; i < p->l.n; i++) {
        const struct cuda_launch *k = &p->l.launch[i];
        if (!k->text) continue;
        TRY(jit_function(j, p->module[i], k->entry, &p->function[i]));
        TRY(cuda_raise_shared(p->function[i], k->shared_bytes));
    }
    p->ready = true;
    return ST_OK;
}

static CUdeviceptr address(const struct kernel_call *c, const struct cuda_arg *a)
{
    switch (a->kind) {
    case ARG_IN:
        return (CUdeviceptr)c->in[a->index];
    case ARG_OUT:
        return (CUdeviceptr)c->out[a->index];
    case ARG_NULL:
        return 0;
    default:
        return (CUdeviceptr)c->scratch + (CUdeviceptr)a->offset;
    }
}

/* Fills `ret` with pointers to the arguments: to numbers, to tensor maps, and to addresses, which
 * are stored in `at`. */
static enum status parameters_of(const struct kernel_call *c, const struct cuda_launch *k,
                                 struct tensor_map *map, CUdeviceptr at[LAUNCH_ARGS],
                                 void *ret[LAUNCH_ARGS])
{
    for (int i = 0; i < k->args; i++) {
        const struct cuda_arg *a = &k->arg[i];
        if (a->kind == ARG_TENSOR_MAP) {
            const struct cuda_map *m = &k->map[a->index];
            TRY(tensor_map_make(&m->tensor, address(c, &m->of), &map[a->index]));
            ret[i] = &map[a->index].map;
        } else if (a->kind <= ARG_NULL) {
            at[i] = address(c, a);
            ret[i] = &at[i];
        } else {
            ret[i] = (void *)&a->number;
        }
    }
    return ST_OK;
}

/* Whether launch i may begin before the previous launch ends. Captures preserve such programmatic
 * dependent launches only from CUDA 12.3 on. */
static bool begins_early(const struct cuda_launches *l, int i)
{
    enum { CAPTURED_FROM = 12030 };
    return l->launch[i].dependent && i > 0 && l->launch[i - 1].text &&
           l->device->arch >= HOPPER_ARCH && cuda_driver(NULL)->cuLaunchKernelEx &&
           cuda_driver_version() >= CAPTURED_FROM;
}

static CUresult launch_kernel(const struct cuda_launch *k, bool early, CUfunction f,
                              CUstream stream, void **parameter)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    if (!early)
        return d->cuLaunchKernel(f, k->grid[0], k->grid[1], k->grid[2], k->block, 1, 1,
                                 k->shared_bytes, stream, parameter, NULL);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {.hStream = stream, .attrs = &attribute, .numAttrs = 1};
    config.gridDimX = k->grid[0], config.gridDimY = k->grid[1], config.gridDimZ = k->grid[2];
    config.blockDimX = k->block, config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = k->shared_bytes;
    return d->cuLaunchKernelEx(&config, f, parameter, NULL);
}

static enum status launch(const struct kernel_call *c, struct prepared *p, int i)
{
    const struct cuda_launch *k = &p->l.launch[i];
    CUstream stream = cuda_stream(c->context);
    if (!k->text)
        return cuda_check(cuda_driver(NULL)->cuMemsetD8Async(address(c, &k->arg[0]), 0,
                                                             (size_t)k->zero_bytes, stream),
                          "set memory to zero");
    if (!k->grid[0] || !k->grid[1] || !k->grid[2]) return ST_OK;
    cuda_count_launch(c->context, k->entry);
    CUdeviceptr at[LAUNCH_ARGS];
    void *parameter[LAUNCH_ARGS];
    struct tensor_map *map = p->map ? &p->map[i * LAUNCH_MAPS] : NULL;
    enum status st = parameters_of(c, k, map, at, parameter);
    if (st != ST_OK) return fail_in(st, "kernel %s of %s", k->entry, k->text);
    CUresult r = launch_kernel(k, begins_early(&p->l, i), p->function[i], stream, parameter);
    if (r == CUDA_SUCCESS || fault_is(r)) return cuda_check(r, "launch a kernel");
    return fail_in(cuda_check(r, "launch it"), "kernel %s of %s", k->entry, k->text);
}

enum status cuda_run(const struct kernel_call *c)
{
    struct prepared *p = c->state;
    if (!p->ready) TRY(make_ready(p, c->context));
    for (int i = 0; i < p->l.n; i++) TRY(launch(c, p, i));
    return ST_OK;
}

enum status cuda_function(const struct kernel_call *c, int i, const struct cuda_launch **ret_launch,
                          CUfunction *ret)
{
    struct prepared *p = c->state;
    if (!p->ready) TRY(make_ready(p, c->context));
    *ret_launch = &p->l.launch[i];
    *ret = p->function[i];
    return ST_OK;
}

void **cuda_row_state(const struct kernel_call *c)
{
    struct prepared *p = c->state;
    return p ? &p->of_row : NULL;
}
