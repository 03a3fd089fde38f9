#include "backend/cuda/runtime/transfer.h"

#include "backend/cuda/runtime/fault.h"

#include <stdlib.h>
#include <string.h>

enum { RING_BYTES = 8 << 20, READING_BYTES = 64, READINGS = 64, HALVES = 2 };

/* A few bytes on their way to the host. */
struct reading {
    void *dst;
    int64_t size;
};

struct transfer {
    CUstream stream;
    char *ring; /* pinned; what is uploaded waits here */
    int64_t filled;
    char *readings; /* pinned: READINGS pieces, a ring */
    struct reading reading[READINGS];
    int64_t begun, handed; /* downloads */

    CUstream beside;
    struct half { /* pinned; what is staged waits here, the next one in the other half */
        char *bytes;
        int64_t capacity;
        CUevent copied;
    } half[HALVES];
    int last;     /* the half that was staged last */
    CUevent used; /* what was staged before has been taken */
};

static enum status open_parts(struct transfer *t)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    const size_t readings = (size_t)READINGS * READING_BYTES;
    TRY(cuda_check(d->cuMemAllocHost((void **)&t->ring, RING_BYTES), "pin host memory"));
    TRY(cuda_check(d->cuMemAllocHost((void **)&t->readings, readings), "pin host memory"));
    TRY(cuda_check(d->cuStreamCreate(&t->beside, CU_STREAM_NON_BLOCKING), "open a stream"));
    TRY(cuda_check(d->cuEventCreate(&t->used, CU_EVENT_DISABLE_TIMING), "make an event"));
    for (int i = 0; i < HALVES; i++)
        TRY(cuda_check(d->cuEventCreate(&t->half[i].copied, CU_EVENT_DISABLE_TIMING),
                       "make an event"));
    return ST_OK;
}

enum status transfer_open(CUstream stream, struct transfer **ret)
{
    struct transfer *t = calloc(1, sizeof *t);
    BUG_IF(!t, "no host memory");
    t->stream = stream;
    enum status st = open_parts(t);
    if (st != ST_OK)
        transfer_close(t);
    else
        *ret = t;
    return st;
}

void transfer_close(struct transfer *t)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    if (t->beside) d->cuStreamSynchronize(t->beside);
    for (int i = 0; i < HALVES; i++) {
        if (t->half[i].copied) d->cuEventDestroy(t->half[i].copied);
        if (t->half[i].bytes) d->cuMemFreeHost(t->half[i].bytes);
    }
    if (t->used) d->cuEventDestroy(t->used);
    if (t->beside) d->cuStreamDestroy(t->beside);
    if (t->ring) d->cuMemFreeHost(t->ring);
    if (t->readings) d->cuMemFreeHost(t->readings);
    free(t);
}

/* --- in turn with the kernels ------------------------------------------------------------------ */

/* Before the ring starts again everything in it has been copied. */
enum status transfer_upload(struct transfer *t, void *dst, const void *src, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    for (int64_t done = 0, n; done < size; done += n) {
        if (t->filled == RING_BYTES) TRY(transfer_sync(t));
        n = size - done < RING_BYTES - t->filled ? size - done : RING_BYTES - t->filled;
        char *at = t->ring + t->filled;
        memcpy(at, (const char *)src + done, (size_t)n);
        TRY(cuda_check(
            d->cuMemcpyHtoDAsync((CUdeviceptr)dst + (CUdeviceptr)done, at, (size_t)n, t->stream),
            "take data"));
        t->filled += n;
    }
    return ST_OK;
}

enum status transfer_download(struct transfer *t, void *dst, const void *src, int64_t size)
{
    if (size <= 0) return ST_OK;
    TRY(cuda_check(
        cuda_driver(NULL)->cuMemcpyDtoHAsync(dst, (CUdeviceptr)src, (size_t)size, t->stream),
        "give data"));
    return transfer_sync(t);
}

static char *reading_bytes(const struct transfer *t, int64_t i)
{
    return t->readings + i % READINGS * READING_BYTES;
}

enum status transfer_download_later(struct transfer *t, void *dst, const void *src, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    for (int64_t done = 0, n; done < size; done += n) {
        if (t->begun - t->handed == READINGS) TRY(transfer_sync(t));
        n = size - done < READING_BYTES ? size - done : READING_BYTES;
        TRY(cuda_check(d->cuMemcpyDtoHAsync(reading_bytes(t, t->begun),
                                            (CUdeviceptr)src + (CUdeviceptr)done, (size_t)n,
                                            t->stream),
                       "give data"));
        t->reading[t->begun++ % READINGS] = (struct reading){(char *)dst + done, n};
    }
    return ST_OK;
}

int64_t transfer_downloads(const struct transfer *t)
{
    return t->begun;
}

void transfer_hand_out(struct transfer *t, int64_t downloads)
{
    for (; t->handed < downloads; t->handed++) {
        const struct reading *r = &t->reading[t->handed % READINGS];
        memcpy(r->dst, reading_bytes(t, t->handed), (size_t)r->size);
    }
}

enum status transfer_sync(struct transfer *t)
{
    TRY(cuda_check(cuda_driver(NULL)->cuStreamSynchronize(t->stream), "finish its work"));
    fault_waited();
    transfer_hand_out(t, t->begun);
    t->filled = 0;
    return ST_OK;
}

/* --- beside the kernels ------------------------------------------------------------------------ */

static enum status grow(struct half *h, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    if (h->capacity >= size) return ST_OK;
    if (h->bytes) d->cuMemFreeHost(h->bytes);
    *h = (struct half){.copied = h->copied};
    TRY(cuda_check(d->cuMemAllocHost((void **)&h->bytes, (size_t)size), "pin host memory"));
    h->capacity = size;
    return ST_OK;
}

enum status transfer_stage(struct transfer *t, void *room, const void *src, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    int next = (t->last + 1) % HALVES;
    struct half *h = &t->half[next];
    TRY(cuda_check(d->cuEventSynchronize(h->copied), "take data")); /* of the time before last */
    TRY(grow(h, size));
    memcpy(h->bytes, src, (size_t)size);
    TRY(cuda_check(d->cuStreamWaitEvent(t->beside, t->used, CU_EVENT_WAIT_DEFAULT), "take data"));
    TRY(cuda_check(d->cuMemcpyHtoDAsync((CUdeviceptr)room, h->bytes, (size_t)size, t->beside),
                   "take data"));
    TRY(cuda_check(d->cuEventRecord(h->copied, t->beside), "take data"));
    t->last = next;
    return ST_OK;
}

enum status transfer_unstage(struct transfer *t, void *dst, const void *room, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    TRY(cuda_check(d->cuStreamWaitEvent(t->stream, t->half[t->last].copied, CU_EVENT_WAIT_DEFAULT),
                   "take data"));
    TRY(cuda_check(
        d->cuMemcpyDtoDAsync((CUdeviceptr)dst, (CUdeviceptr)room, (size_t)size, t->stream),
        "take data"));
    return cuda_check(d->cuEventRecord(t->used, t->stream), "take data");
}
