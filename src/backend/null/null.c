#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

struct null_context {
    uintptr_t next; /* the next unused address */
};

static enum status null_run(const struct kernel_call *)
{
    return ST_OK;
}

static const struct kernel rows[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = {.op = OP_##name, .variant = "null", .run = null_run},
#include "graph/op_list.h"
#undef OP
};

static const struct kernel *null_kernel(int op, const struct kernel_call *, int n)
{
    return n == 0 ? &rows[op] : NULL;
}

static const struct kernel *null_row(int i)
{
    return i < OP_COUNT ? &rows[i] : NULL;
}

/* Answers as the CPU backend does, because the null backend reproduces the plans of the CPU. */
static bool null_fusion_pays(int op, const struct kernel_call *)
{
    return op == OP_GELU_BOTH;
}

static enum status null_open(int, void **ret_ctx)
{
    struct null_context *ctx = HEAP_NEW(struct null_context, 1);
    ctx->next = 1 << 20; /* far from NULL, so that no small offset looks like NULL */
    *ret_ctx = ctx;
    return ST_OK;
}

static void null_close(void *ctx)
{
    free(ctx);
}

static enum status null_alloc(void *ctx, int64_t size, void **ret_mem)
{
    struct null_context *null = ctx;
    /* Allocated ranges do not overlap, so an address still identifies its value. */
    *ret_mem = (void *)null->next;
    null->next += ((uintptr_t)size + 64) / 64 * 64;
    return ST_OK;
}

static void null_free(void *, void *) {}

static enum status null_upload(void *, void *, const void *, int64_t)
{
    return ST_OK;
}

static enum status null_download(void *, void *dst, const void *, int64_t size)
{
    memset(dst, 0, (size_t)size);
    return ST_OK;
}

static enum status null_describe(int, struct device_facts *ret)
{
    *ret = (struct device_facts){.name = "nothing"};
    return ST_OK;
}

static int64_t null_free_memory(int)
{
    return -1;
}

static enum status null_fill(void *, void *, uint8_t, int64_t)
{
    return ST_OK;
}

static int null_device_count(void)
{
    return 1;
}

static enum status null_sync(void *)
{
    return ST_OK;
}

static enum status null_event(void *, int)
{
    return ST_OK;
}

static enum status null_event_elapsed(void *, int, int, double *ret_ms)
{
    *ret_ms = 0;
    return ST_OK;
}

const struct backend null_backend = {
    .name = "null",
    .kernels.find = null_kernel,
    .kernels.fusion_pays = null_fusion_pays,
    .kernels.row = null_row,
    .devices.count = null_device_count,
    .devices.describe = null_describe,
    .devices.free_memory = null_free_memory,
    .open = null_open,
    .close = null_close,
    .memory.alloc = null_alloc,
    .memory.free = null_free,
    .memory.upload = null_upload,
    .memory.download = null_download,
    .memory.download_later = null_download,
    .memory.stage = null_upload,
    .memory.unstage = null_upload,
    .memory.copy = null_upload,
    .memory.fill = null_fill,
    .stream.sync = null_sync,
    .stream.event_record = null_event,
    .stream.event_wait = null_event,
    .stream.event_elapsed = null_event_elapsed,
};
