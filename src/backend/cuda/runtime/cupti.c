#include "backend/cuda/runtime/cupti.h"

#include "backend/cuda/runtime/cupti_library.h"
#include "base/arena.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

#ifdef HAVE_CUPTI

/* --- memory for its records ------------------------------------------------------------------- */

/* CUPTI requests buffers and returns them filled on its own threads, without a user pointer. So the
 * buffers are global, and a process has one trace at a time. */
enum { BUFFER_BYTES = 4 << 20, BUFFERS = 64 };
/* The external correlation ids of mark 0 and of replay 0; id 1 is mark -1, no mark. */
enum { MARKS_FROM = 2 };
static const uint64_t REPLAYS_FROM = 1ull << 40;
static struct {
    pthread_mutex_t lock;
    bool on, pushed;
    struct buffer {
        uint8_t *bytes;
        bool lent; /* CUPTI holds it, possibly from one trace to the next */
        size_t filled;
    } buffer[BUFFERS];
    size_t dropped;
    int64_t ahead_ns; /* CUPTI's clock minus ours */
} activity = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct buffer *free_buffer(void)
{
    for (struct buffer *b = activity.buffer; b < activity.buffer + BUFFERS; b++)
        if (!b->lent && !b->filled) return b;
    return NULL;
}

/* If all buffers are lent or filled, CUPTI gets none and counts the records it drops. */
static void CUPTIAPI lend_buffer(uint8_t **bytes, size_t *size, size_t *records)
{
    pthread_mutex_lock(&activity.lock);
    struct buffer *b = free_buffer();
    if (b && !b->bytes) b->bytes = malloc(BUFFER_BYTES);
    *bytes = b ? b->bytes : NULL;
    if (*bytes) b->lent = true;
    *size = *bytes ? BUFFER_BYTES : 0;
    *records = 0; /* as many as fit */
    pthread_mutex_unlock(&activity.lock);
}

static void CUPTIAPI take_back(CUcontext context, uint32_t stream, uint8_t *bytes, size_t,
                               size_t filled)
{
    size_t dropped = 0;
    if (cupti(NULL)->cuptiActivityGetNumDroppedRecords(context, stream, &dropped) != CUPTI_SUCCESS)
        dropped = 0;
    pthread_mutex_lock(&activity.lock);
    activity.dropped += dropped;
    for (struct buffer *b = activity.buffer; bytes && b < activity.buffer + BUFFERS; b++)
        if (b->bytes == bytes) b->lent = false, b->filled = filled;
    pthread_mutex_unlock(&activity.lock);
}

static void free_filled(void)
{
    for (struct buffer *b = activity.buffer; b < activity.buffer + BUFFERS; b++) {
        if (b->lent) continue;
        free(b->bytes);
        *b = (struct buffer){0};
    }
    activity.dropped = 0;
}

/* --- a trace ---------------------------------------------------------------------------------- */

/* External correlation needs records of calls: of the driver API, which we call, and of the runtime
 * API, which libraries call. Kernels come last because the recording of kernels has overhead. */
static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                           CUPTI_ACTIVITY_KIND_DRIVER,
                                           CUPTI_ACTIVITY_KIND_RUNTIME,
                                           CUPTI_ACTIVITY_KIND_MEMSET,
                                           CUPTI_ACTIVITY_KIND_MEMCPY,
                                           CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};

static void disable(int n)
{
    while (n > 0) cupti(NULL)->cuptiActivityDisable(kinds[--n]);
}

/* Measures the offset between the clocks; the shortest of several calls is the most exact. */
static enum status compare_clocks(void)
{
    enum { ATTEMPTS = 8 };
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t its = 0;
        int64_t before = clock_ns();
        TRY(cupti_check(cupti(NULL)->cuptiGetTimestamp(&its), "read its clock"));
        int64_t took = clock_ns() - before;
        if (took >= shortest) continue;
        shortest = took;
        activity.ahead_ns = (int64_t)its - before - took / 2;
    }
    return ST_OK;
}

static bool is_of_calls(CUpti_ActivityKind kind)
{
    return kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME;
}

enum status cupti_begin(bool calls)
{
    static bool registered;
    const char *why;
    int n = 0;
    if (!cupti_available(&why)) return fail(ST_UNSUPPORTED, "%s", why);
    BUG_IF(activity.on, "two traces at once");
    enum status st = ST_OK;
    if (!registered)
        TRY(cupti_check(cupti(NULL)->cuptiActivityRegisterCallbacks(lend_buffer, take_back),
                        "begin"));
    registered = true;
    for (; st == ST_OK && n < COUNT_OF(kinds); n++)
        if (!calls || is_of_calls(kinds[n]))
            st = cupti_check(cupti(NULL)->cuptiActivityEnable(kinds[n]), "begin");
    if (st == ST_OK) st = compare_clocks();
    if (st != ST_OK) {
        disable(n);
        return st;
    }
    cupti(NULL)->cuptiActivityFlushAll(1); /* records left by an earlier trace */
    pthread_mutex_lock(&activity.lock);
    free_filled();
    pthread_mutex_unlock(&activity.lock);
    activity.on = true;
    cupti_mark(-1);
    return ST_OK;
}

/* Replaces the external correlation id. During a trace an id is always set, so a call without an id
 * is a call whose record was lost. */
static void set_id(uint64_t id)
{
    static const CUpti_ExternalCorrelationKind OURS = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    if (!activity.on) return;
    if (activity.pushed) cupti(NULL)->cuptiActivityPopExternalCorrelationId(OURS, NULL);
    activity.pushed =
        cupti(NULL)->cuptiActivityPushExternalCorrelationId(OURS, id) == CUPTI_SUCCESS;
}

void cupti_mark(int mark)
{
    set_id((uint64_t)(mark + MARKS_FROM));
}

void cupti_replay(int replay)
{
    set_id(REPLAYS_FROM + (uint64_t)replay);
}

/* --- records ---------------------------------------------------------------------------------- */

static const char *copy_name(uint8_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        return "copy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        return "copy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        return "copy device to device";
    default:
        return "copy";
    }
}

/* New versions of CUPTI add fields only at the end of a structure, so the structures of every
 * version can be read as the structures of CUDA 11.1. */
static bool read_record(const CUpti_Activity *r, struct trace_record *ret)
{
    switch ((int)r->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
        const CUpti_ActivityKernel5 *k = (const void *)r;
        *ret = (struct trace_record){ACTIVITY_KERNEL,
                                     k->graphNodeId != 0,
                                     k->correlationId,
                                     k->name ? k->name : "?",
                                     (int64_t)k->start,
                                     (int64_t)k->end,
                                     0};
        return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy4 *c = (const void *)r;
        *ret = (struct trace_record){ACTIVITY_COPY,          c->graphNodeId != 0, c->correlationId,
                                     copy_name(c->copyKind), (int64_t)c->start,   (int64_t)c->end,
                                     (int64_t)c->bytes};
        return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const CUpti_ActivityMemset3 *f = (const void *)r;
        *ret = (struct trace_record){ACTIVITY_FILL,    f->graphNodeId != 0, f->correlationId,
                                     "memset",         (int64_t)f->start,   (int64_t)f->end,
                                     (int64_t)f->bytes};
        return true;
    }
    default:
        return false;
    }
}

static bool read_call(const CUpti_Activity *r, struct trace_call *ret)
{
    const CUpti_ActivityExternalCorrelation *e = (const void *)r;
    if (r->kind != CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION ||
        e->externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
        return false;
    bool replays = e->externalId >= REPLAYS_FROM;
    *ret = (struct trace_call){e->correlationId, replays ? -1 : (int)e->externalId - MARKS_FROM,
                               replays ? (int)(e->externalId - REPLAYS_FROM) : NO_REPLAY};
    return true;
}

static bool read_api(const CUpti_Activity *r, struct api_call *ret)
{
    const CUpti_ActivityAPI *c = (const void *)r;
    const char *name = NULL;
    if (!is_of_calls(r->kind)) return false;
    cupti(NULL)->cuptiGetCallbackName(r->kind == CUPTI_ACTIVITY_KIND_DRIVER
                                          ? CUPTI_CB_DOMAIN_DRIVER_API
                                          : CUPTI_CB_DOMAIN_RUNTIME_API,
                                      c->cbid, &name);
    *ret = (struct api_call){name ? name : "?", (int)c->threadId,
                             (int64_t)c->start - activity.ahead_ns,
                             (int64_t)c->end - activity.ahead_ns};
    return c->start && c->end;
}

/* Stores a record or a call in the arrays of `ret`, or only counts it if the arrays are NULL. */
static void keep(const CUpti_Activity *r, struct trace_input *ret, int64_t *untimed)
{
    struct trace_record record;
    struct trace_call call;
    struct api_call api;
    if (read_api(r, &api)) {
        if (ret->api) ret->api[ret->apis] = api;
        ret->apis++;
    } else if (read_call(r, &call)) {
        if (ret->call) ret->call[ret->calls] = call;
        ret->calls++;
    } else if (read_record(r, &record)) {
        if (record.start_ns == 0 || record.end_ns == 0) {
            ++*untimed;
            return;
        }
        record.start_ns -= activity.ahead_ns, record.end_ns -= activity.ahead_ns;
        if (ret->record) ret->record[ret->records] = record;
        ret->records++;
    }
}

/* Reads all filled buffers into `ret` (keep); returns the number of records without times. */
static int64_t read_buffers(struct trace_input *ret)
{
    int64_t untimed = 0;
    ret->records = ret->calls = ret->apis = 0;
    for (const struct buffer *b = activity.buffer; b < activity.buffer + BUFFERS; b++) {
        CUpti_Activity *r = NULL;
        while (b->filled &&
               cupti(NULL)->cuptiActivityGetNextRecord(b->bytes, b->filled, &r) == CUPTI_SUCCESS)
            keep(r, ret, &untimed);
    }
    return untimed;
}

enum status cupti_end(struct trace_input *ret, int64_t *ret_dropped, struct arena *a)
{
    size_t dropped = 0;
    BUG_IF(!activity.on, "no trace to end");
    enum status st = cupti_check(cupti(NULL)->cuptiActivityFlushAll(0), "return its records");
    if (st == ST_OK) st = cupti_check(cupti(NULL)->cuptiActivityFlushAll(1), "return its records");
    if (activity.pushed)
        cupti(NULL)->cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                                           NULL);
    activity.pushed = activity.on = false;
    disable(COUNT_OF(kinds));
    if (st != ST_OK) return st;
    if (cupti(NULL)->cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) != CUPTI_SUCCESS)
        dropped = 0;
    *ret = (struct trace_input){0};
    pthread_mutex_lock(&activity.lock);
    (void)read_buffers(ret);
    ret->record = ARENA_NEW(a, struct trace_record, ret->records);
    ret->call = ARENA_NEW(a, struct trace_call, ret->calls);
    ret->api = ARENA_NEW(a, struct api_call, ret->apis);
    *ret_dropped = read_buffers(ret) + (int64_t)(dropped + activity.dropped);
    free_filled();
    pthread_mutex_unlock(&activity.lock);
    return ST_OK;
}

#else

enum status cupti_begin(bool)
{
    const char *why;
    (void)cupti_available(&why);
    return fail(ST_UNSUPPORTED, "%s", why);
}

void cupti_mark(int) {}

void cupti_replay(int) {}

enum status cupti_end(struct trace_input *, int64_t *, struct arena *)
{
    return fail(ST_UNSUPPORTED, "no trace was begun");
}
#endif
