#include "backend/cuda/runtime/transfer.h"

#include "backend/cuda/runtime/fault.h"
#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

enum { RING_BYTES = 8 << 20, DOWNLOAD_BYTES = 64, DOWNLOADS = 64, HALVES = 2 };

struct download {
    void *dst;
    int64_t size;
};

struct transfer {
    CUstream stream;
    char *ring; /* pinned; holds data until it is uploaded */
    int64_t filled;
    char *pieces; /* pinned: a ring of DOWNLOADS pieces */
    struct download download[DOWNLOADS];
    int64_t begun, handed; /* downloads begun, and copied out */

    CUstream second;
    struct half { /* pinned; holds staged data until it is copied; halves alternate */
        char *bytes;
        int64_t capacity;
        CUevent copied;
    } half[HALVES];
    int last;     /* the half staged last */
    CUevent used; /* unstage has read the staging memory */
};

static enum status open_parts(struct transfer *t)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    const size_t pieces = (size_t)DOWNLOADS * DOWNLOAD_BYTES;
    TRY(cuda_check(d->cuMemAllocHost((void **)&t->ring, RING_BYTES), "pin host memory"));
    TRY(cuda_check(d->cuMemAllocHost((void **)&t->pieces, pieces), "pin host memory"));
    TRY(cuda_check(d->cuStreamCreate(&t->second, CU_STREAM_NON_BLOCKING), "open a stream"));
    TRY(cuda_check(d->cuEventCreate(&t->used, CU_EVENT_DISABLE_TIMING), "create an event"));
    for (int i = 0; i < HALVES; i++)
        TRY(cuda_check(d->cuEventCreate(&t->half[i].copied, CU_EVENT_DISABLE_TIMING),
                       "create an event"));
    return ST_OK;
}

enum status transfer_open(CUstream stream, struct transfer **ret)
{
    struct transfer *t = HEAP_NEW(struct transfer, 1);
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
    if (t->second) d->cuStreamSynchronize(t->second);
    for (int i = 0; i < HALVES; i++) {
        if (t->half[i].copied) d->cuEventDestroy(t->half[i].copied);
        if (t->half[i].bytes) d->cuMemFreeHost(t->half[i].bytes);
    }
    if (t->used) d->cuEventDestroy(t->used);
    if (t->second) d->cuStreamDestroy(t->second);
    if (t->ring) d->cuMemFreeHost(t->ring);
    if (t->pieces) d->cuMemFreeHost(t->pieces);
    free(t);
}

/* --- in order with the kernels ---------------------------------------------------------------- */

/* If the ring is full, waits until everything in the ring has been copied to the device. */
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
            "upload data"));
        t->filled += n;
    }
    return ST_OK;
}

enum status transfer_download(struct transfer *t, void *dst, const void *src, int64_t size)
{
    if (size <= 0) return ST_OK;
    TRY(cuda_check(
        cuda_driver(NULL)->cuMemcpyDtoHAsync(dst, (CUdeviceptr)src, (size_t)size, t->stream),
        "download data"));
    return transfer_sync(t);
}

static char *piece(const struct transfer *t, int64_t i)
{
    return t->pieces + i % DOWNLOADS * DOWNLOAD_BYTES;
}

enum status transfer_download_later(struct transfer *t, void *dst, const void *src, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    for (int64_t done = 0, n; done < size; done += n) {
        if (t->begun - t->handed == DOWNLOADS) TRY(transfer_sync(t));
        n = size - done < DOWNLOAD_BYTES ? size - done : DOWNLOAD_BYTES;
        TRY(cuda_check(d->cuMemcpyDtoHAsync(piece(t, t->begun),
                                            (CUdeviceptr)src + (CUdeviceptr)done, (size_t)n,
                                            t->stream),
                       "download data"));
        t->download[t->begun++ % DOWNLOADS] = (struct download){(char *)dst + done, n};
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
        const struct download *r = &t->download[t->handed % DOWNLOADS];
        memcpy(r->dst, piece(t, t->handed), (size_t)r->size);
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

/* --- concurrently with the kernels ------------------------------------------------------------ */

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

enum status transfer_stage(struct transfer *t, void *staging, const void *src, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    int next = (t->last + 1) % HALVES;
    struct half *h = &t->half[next];
    /* This half was staged the time before last; its copy must be complete. */
    TRY(cuda_check(d->cuEventSynchronize(h->copied), "upload data"));
    TRY(grow(h, size));
    memcpy(h->bytes, src, (size_t)size);
    TRY(cuda_check(d->cuStreamWaitEvent(t->second, t->used, CU_EVENT_WAIT_DEFAULT), "upload data"));
    TRY(cuda_check(d->cuMemcpyHtoDAsync((CUdeviceptr)staging, h->bytes, (size_t)size, t->second),
                   "upload data"));
    TRY(cuda_check(d->cuEventRecord(h->copied, t->second), "upload data"));
    t->last = next;
    return ST_OK;
}

enum status transfer_unstage(struct transfer *t, void *dst, const void *staging, int64_t size)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    TRY(cuda_check(d->cuStreamWaitEvent(t->stream, t->half[t->last].copied, CU_EVENT_WAIT_DEFAULT),
                   "upload data"));
    TRY(cuda_check(
        d->cuMemcpyDtoDAsync((CUdeviceptr)dst, (CUdeviceptr)staging, (size_t)size, t->stream),
        "upload data"));
    return cuda_check(d->cuEventRecord(t->used, t->stream), "upload data");
}
