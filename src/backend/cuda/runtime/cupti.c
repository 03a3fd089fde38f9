#include "backend/cuda/runtime/cupti.h"

#include "backend/cuda/runtime/cupti_library.h"
#include "base/arena.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

#ifdef HAVE_CUPTI

/* --- memory for its records -------------------------------------------------------------------- */

/* It asks for room and gives it back filled, on threads of its own, and hands over nothing of the caller's: so this is of the
 * process, which has one trace at a time. */
enum { BUFFER_BYTES = 4 << 20, BUFFERS = 64 };
/* The numbers that are pushed for mark 0 and for play 0; 1 is nobody's. */
enum { MARKS_FROM = 2 };
static const uint64_t PLAYS_FROM = 1ull << 40;
static struct {
    pthread_mutex_t lock;
    bool on, pushed;
    struct buffer {
        uint8_t *bytes;
        bool given; /* CUPTI has it, be it from one trace to the next */
        size_t filled;
    } buffer[BUFFERS];
    size_t dropped;
    int64_t ahead_ns; /* its clock of ours */
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct buffer *free_buffer(void)
{
    for (struct buffer *b = notes.buffer; b < notes.buffer + BUFFERS; b++)
        if (!b->given && !b->filled) return b;
    return NULL;
}

/* Where all are given or filled it gets none, and counts what it drops. */
static void CUPTIAPI give_room(uint8_t **bytes, size_t *size, size_t *records)
{
    pthread_mutex_lock(&notes.lock);
    struct buffer *b = free_buffer();
    if (b && !b->bytes) b->bytes = malloc(BUFFER_BYTES);
    *bytes = b ? b->bytes : NULL;
    if (*bytes) b->given = true;
    *size = *bytes ? BUFFER_BYTES : 0;
    *records = 0; /* as many as there is room for */
    pthread_mutex_unlock(&notes.lock);
}

static void CUPTIAPI take_filled(CUcontext context, uint32_t stream, uint8_t *bytes, size_t size,
                                 size_t filled)
{
    (void)size;
    size_t dropped = 0;
    if (cupti(NULL)->cuptiActivityGetNumDroppedRecords(context, stream, &dropped) != CUPTI_SUCCESS)
        dropped = 0;
    pthread_mutex_lock(&notes.lock);
    notes.dropped += dropped;
    for (struct buffer *b = notes.buffer; bytes && b < notes.buffer + BUFFERS; b++)
        if (b->bytes == bytes) b->given = false, b->filled = filled;
    pthread_mutex_unlock(&notes.lock);
}

static void forget_filled(void)
{
    for (struct buffer *b = notes.buffer; b < notes.buffer + BUFFERS; b++) {
        if (b->given) continue;
        free(b->bytes);
        *b = (struct buffer){0};
    }
    notes.dropped = 0;
}

/* --- a trace ----------------------------------------------------------------------------------- */

/* External correlation needs records of calls: of the driver's, which we make, and of the runtime's, which libraries make.
 * Kernels come last: what it costs begins with them. */
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

/* The two clocks differ by what they show at the same moment; the shortest look is the best. */
static enum status compare_clocks(void)
{
    enum { LOOKS = 8 };
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < LOOKS; i++) {
        uint64_t its = 0;
        int64_t before = clock_ns();
        TRY(cupti_check(cupti(NULL)->cuptiGetTimestamp(&its), "tell its time"));
        int64_t took = clock_ns() - before;
        if (took >= shortest) continue;
        shortest = took;
        notes.ahead_ns = (int64_t)its - before - took / 2;
    }
    return ST_OK;
}

enum status cupti_begin(void)
{
    static bool registered;
    const char *why;
    int n = 0;
    if (!cupti_there(&why)) return fail(ST_UNSUPPORTED, "%s", why);
    BUG_IF(notes.on, "two traces at once");
    enum status st = ST_OK;
    if (!registered)
        TRY(cupti_check(cupti(NULL)->cuptiActivityRegisterCallbacks(give_room, take_filled),
                        "begin"));
    registered = true;
    for (; st == ST_OK && n < COUNT_OF(kinds); n++)
        st = cupti_check(cupti(NULL)->cuptiActivityEnable(kinds[n]), "begin");
    if (st == ST_OK) st = compare_clocks();
    if (st != ST_OK) {
        disable(n);
        return st;
    }
    cupti(NULL)->cuptiActivityFlushAll(1); /* what an earlier trace may have left */
    pthread_mutex_lock(&notes.lock);
    forget_filled();
    pthread_mutex_unlock(&notes.lock);
    notes.on = true;
    cupti_mark(-1);
    return ST_OK;
}

/* A number takes the place of the one before. There always is one: a call without is one whose record is lost. */
static void push(uint64_t number)
{
    static const CUpti_ExternalCorrelationKind OURS = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    if (!notes.on) return;
    if (notes.pushed) cupti(NULL)->cuptiActivityPopExternalCorrelationId(OURS, NULL);
    notes.pushed =
        cupti(NULL)->cuptiActivityPushExternalCorrelationId(OURS, number) == CUPTI_SUCCESS;
}

void cupti_mark(int mark)
{
    push((uint64_t)(mark + MARKS_FROM));
}

void cupti_play(int play)
{
    push(PLAYS_FROM + (uint64_t)play);
}

/* --- records ----------------------------------------------------------------------------------- */

static const char *copy_words(uint8_t kind)
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

/* Structures grow at their ends from version to version: those of CUDA 11.1 are the beginning of all since. */
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
        *ret = (struct trace_record){ACTIVITY_COPY,           c->graphNodeId != 0, c->correlationId,
                                     copy_words(c->copyKind), (int64_t)c->start,   (int64_t)c->end,
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
    bool plays = e->externalId >= PLAYS_FROM;
    *ret = (struct trace_call){e->correlationId, plays ? -1 : (int)e->externalId - MARKS_FROM,
                               plays ? (int)(e->externalId - PLAYS_FROM) : NO_PLAY};
    return true;
}

/* Where there is no room yet they are counted. */
static void keep(const CUpti_Activity *r, struct trace_input *ret, int64_t *untimed)
{
    struct trace_record record;
    struct trace_call call;
    if (read_call(r, &call)) {
        if (ret->call) ret->call[ret->calls] = call;
        ret->calls++;
    } else if (read_record(r, &record)) {
        if (record.start_ns == 0 || record.end_ns == 0) {
            ++*untimed;
            return;
        }
        record.start_ns -= notes.ahead_ns, record.end_ns -= notes.ahead_ns;
        if (ret->record) ret->record[ret->records] = record;
        ret->records++;
    }
}

/* Returns those without times. */
static int64_t read_buffers(struct trace_input *ret)
{
    int64_t untimed = 0;
    ret->records = ret->calls = 0;
    for (const struct buffer *b = notes.buffer; b < notes.buffer + BUFFERS; b++) {
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
    BUG_IF(!notes.on, "no trace to end");
    enum status st = cupti_check(cupti(NULL)->cuptiActivityFlushAll(0), "hand out what it noted");
    if (st == ST_OK)
        st = cupti_check(cupti(NULL)->cuptiActivityFlushAll(1), "hand out what it noted");
    if (notes.pushed)
        cupti(NULL)->cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                                           NULL);
    notes.pushed = notes.on = false;
    disable(COUNT_OF(kinds));
    if (st != ST_OK) return st;
    if (cupti(NULL)->cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) != CUPTI_SUCCESS)
        dropped = 0;
    *ret = (struct trace_input){0};
    pthread_mutex_lock(&notes.lock);
    (void)read_buffers(ret);
    ret->record = ARENA_NEW(a, struct trace_record, ret->records);
    ret->call = ARENA_NEW(a, struct trace_call, ret->calls);
    *ret_dropped = read_buffers(ret) + (int64_t)(dropped + notes.dropped);
    forget_filled();
    pthread_mutex_unlock(&notes.lock);
    return ST_OK;
}

#else

enum status cupti_begin(void)
{
    const char *why;
    (void)cupti_there(&why);
    return fail(ST_UNSUPPORTED, "%s", why);
}

void cupti_mark(int mark)
{
    (void)mark;
}

void cupti_play(int play)
{
    (void)play;
}

enum status cupti_end(struct trace_input *ret, int64_t *ret_dropped, struct arena *a)
{
    (void)ret, (void)ret_dropped, (void)a;
    return fail(ST_UNSUPPORTED, "no trace was begun");
}
#endif
