#include "backend/cuda/runtime/text_kernel.h"

#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/fault.h"
#include "backend/cuda/runtime/jit.h"
#include "backend/cuda/runtime/tensor_map.h"
#include "base/heap.h"
#include "base/str.h"
#include "tuning/occupancy.h"

#include <stdlib.h>
#include <string.h>

enum { WARP = 32 };

struct text_kernel {
    int module;
    char *name, *entry;
    CUfunction function; /* NULL: not compiled yet */
};

enum status text_kernel_add(void *context, const struct kernel_text *t, void **ret_kernel)
{
    struct text_kernel *k = HEAP_NEW(struct text_kernel, 1);
    k->module = jit_request(cuda_jit(context), t->name, t->source, t->options);
    k->name = heap_strdup(t->name);
    k->entry = heap_strdup(t->entry);
    *ret_kernel = k;
    return ST_OK;
}

void text_kernel_free(void *, void *kernel)
{
    struct text_kernel *k = kernel;
    if (!k) return;
    free(k->name);
    free(k->entry);
    free(k);
}

static enum status make_ready(void *context, struct text_kernel *k, const struct kernel_shape *s)
{
    if (!k->function) {
        TRY(jit_finish(cuda_jit(context)));
        TRY(jit_function(cuda_jit(context), k->module, k->entry, &k->function));
    }
    return cuda_raise_shared(k->function, s->shared_bytes);
}

enum status text_kernel_launch(void *context, void *kernel, const struct kernel_shape *s,
                               void **argument)
{
    struct text_kernel *k = kernel;
    TRY(make_ready(context, k, s));
    cuda_count_launch(context, k->entry);
    CUresult r = cuda_driver(NULL)->cuLaunchKernel(
        k->function, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2],
        (unsigned)s->shared_bytes, cuda_stream(context), argument, NULL);
    if (r == CUDA_SUCCESS || fault_is(r)) return cuda_check(r, "launch a kernel");
    return fail_in(cuda_check(r, "launch it"), "kernel %s of %s", k->entry, k->name);
}

enum status text_kernel_map(void *, const struct kernel_map *m, void *matrix, void *ret_argument)
{
    struct tensor_map map = {.at = 0};
    int64_t all = m->pitch * m->rows;
    struct cuda_tensor t = {.dtype = m->dtype,
                            .tf32 = m->tf32,
                            .dim = {m->columns, m->rows, 1, 1, 1},
                            .step = {0, m->pitch, all, all, all},
                            .box = {m->box_columns, m->box_rows, 1, 1, 1},
                            .swizzle = m->box_columns * (int)dtype_size(m->dtype)};
    _Static_assert(sizeof map.map == KERNEL_MAP_BYTES, "a tensor map");
    TRY(tensor_map_make(&t, (CUdeviceptr)matrix, &map));
    memcpy(ret_argument, &map.map, sizeof map.map);
    return ST_OK;
}

enum status text_kernel_assembly(void *context, const struct kernel_text *t, struct str *ret)
{
    char *ptx = NULL, *log;
    enum status st = jit_ptx(cuda_jit(context), t->name, t->source, t->options, &ptx, &log);
    if (st == ST_OK || log) str_append(ret, st == ST_OK ? ptx : log);
    free(ptx);
    free(log);
    return st;
}

/* --- resources -------------------------------------------------------------------------------- */

int sm_resident(const struct sm_limits *sm, int threads, int registers, int64_t shared_bytes,
                const char **ret_limit)
{
    const struct occupancy_limits l = {.registers = sm->registers,
                                       .warps = sm->threads / WARP,
                                       .blocks = sm->blocks,
                                       .shared_bytes = sm->shared_bytes,
                                       .block_shared_bytes = sm->shared_bytes,
                                       .reserved_bytes = 1 << 10,
                                       .shared_unit = 128};
    const struct occupancy_kernel k = {threads, registers, 0, shared_bytes};
    struct occupancy o;
    occupancy_of(&l, &k, &o);
    *ret_limit = o.limit;
    return o.blocks;
}

/* Reads the limits of an SM. Returns false if the driver does not report all limits. */
static bool read_limits(CUdevice device, struct sm_limits *ret)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    int shared = 0;
    const struct {
        int *to;
        CUdevice_attribute which;
    } all[] = {
        {&ret->threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
        {&ret->blocks, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
        {&ret->registers, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
        {&shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    };
    for (int i = 0; i < COUNT_OF(all); i++)
        if (d->cuDeviceGetAttribute(all[i].to, all[i].which, device) != CUDA_SUCCESS) return false;
    ret->shared_bytes = shared;
    return true;
}

enum status text_kernel_resources(void *context, void *kernel, const struct kernel_shape *s,
                                  struct kernel_resources *ret)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    struct text_kernel *k = kernel;
    struct sm_limits sm;
    int registers = 0, shared = 0, local = 0, blocks = 0;
    int threads = (int)(s->block[0] * s->block[1] * s->block[2]);
    *ret = (struct kernel_resources){-1, -1, -1, -1, -1, -1, NULL};
    TRY(make_ready(context, k, s));
    const struct {
        int *to;
        CUfunction_attribute which;
    } all[] = {{&registers, CU_FUNC_ATTRIBUTE_NUM_REGS},
               {&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
               {&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES}};
    for (int i = 0; i < COUNT_OF(all); i++)
        TRY(cuda_check(d->cuFuncGetAttribute(all[i].to, all[i].which, k->function),
                       "report what a kernel takes"));
    if (!registers || !d->cuOccupancyMaxActiveBlocksPerMultiprocessor ||
        !read_limits(cuda_handle(context), &sm))
        return ST_OK;
    TRY(cuda_check(d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k->function, threads,
                                                                  (size_t)s->shared_bytes),
                   "report how many blocks an SM holds"));
    *ret = (struct kernel_resources){.registers = registers,
                                     .shared_bytes = shared + s->shared_bytes,
                                     .local_bytes = local,
                                     .blocks = blocks,
                                     .warps = blocks * ((threads + WARP - 1) / WARP),
                                     .max_warps = sm.threads / WARP};
    /* sm_resident computes the number of blocks and names the limit. If its number differs from the
     * driver's, its rule is wrong for this device, and no limit is named. */
    const char *limit;
    if (sm_resident(&sm, threads, registers, ret->shared_bytes, &limit) == blocks)
        ret->limit = limit;
    return ST_OK;
}
