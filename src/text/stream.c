#include "text/stream.h"

#include "base/heap.h"
#include "base/interrupt.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum state { FREE, BUSY, DONE };

/* A slot for one unit: the buffer for its text, and its result. */
struct place {
    enum state state;
    enum status status;
    struct failure why;
    char *text;
    int64_t capacity;
    struct stream_unit unit;
};

struct running {
    const struct stream *s;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct place *place;
    int64_t places;
    int64_t taken, passed; /* numbers of units */
    bool reading, passing; /* a thread reads, a thread passes results on */
    bool ended;            /* no further unit will be taken */
    enum status status;
    struct failure why;
    /* The bytes that were read after the last cut. Only the reading thread uses this member and the
     * next one. */
    struct str rest;
    bool part_ended;
};

static void ensure_capacity(struct place *p, int64_t bytes)
{
    if (p->capacity >= bytes) return;
    p->capacity = bytes;
    p->text = heap_resize(p->text, bytes + STREAM_PADDING);
}

/* Reads until there are `want` bytes or the part ends. */
static enum status read_to(struct running *r, struct place *p, int64_t want, int64_t *bytes)
{
    ensure_capacity(p, want);
    while (*bytes < want && !r->part_ended) {
        int64_t n;
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        TRY(r->s->read(r->s->user, p->text + *bytes, want - *bytes, &n));
        *bytes += n;
        r->part_ended = n == 0;
    }
    return ST_OK;
}

static enum status find_cut(struct running *r, struct place *p, int64_t *bytes, int64_t *cut)
{
    struct stream_unit *u = &p->unit;
    for (int64_t want = max_i64(STREAM_UNIT, *bytes);; want *= 2) {
        if (want > STREAM_UNIT_MOST)
            return fail(ST_UNSUPPORTED, "%s has %d MiB without a place to cut", r->s->name,
                        STREAM_UNIT_MOST >> 20);
        TRY(read_to(r, p, want, bytes));
        u->ends = r->part_ended;
        *cut = r->s->cut(r->s->user, p->text, *bytes, u);
        if (*cut > 0) break;
        if (!r->part_ended) continue;
        *cut = *bytes;
        break;
    }
    u->ends = r->part_ended && *cut == *bytes;
    return ST_OK;
}

/* Reads the next unit into `p`. *ret_last is true if this is the last unit. An empty part is an
 * empty unit. */
static enum status read_unit(struct running *r, struct place *p, bool *ret_last)
{
    int64_t bytes = r->rest.len, cut = 0;
    bool more = false;
    ensure_capacity(p, bytes);
    if (bytes) memcpy(p->text, r->rest.data, (size_t)bytes);
    r->rest.len = 0;
    for (int i = 0; i < STREAM_OUTPUTS; i++) p->unit.made[i].len = 0;
    TRY(find_cut(r, p, &bytes, &cut));
    str_append_bytes(&r->rest, p->text + cut, bytes - cut);
    memset(p->text + cut, 0, STREAM_PADDING);
    p->unit.text = p->text;
    p->unit.bytes = cut;
    if (!p->unit.ends) return ST_OK;
    if (r->s->more) TRY(r->s->more(r->s->user, &more));
    r->part_ended = false;
    *ret_last = !more;
    return ST_OK;
}

/* Ends the run. Keeps the first failure. The caller holds the lock. */
static void end(struct running *r, enum status st, const struct failure *why)
{
    r->ended = true;
    if (st == ST_OK || r->status != ST_OK) return;
    r->status = st;
    r->why = *why;
}

/* Takes and reads the next unit; NULL: there is none. The caller holds the lock. */
static struct place *take(struct running *r)
{
    struct place *p;
    for (;;) {
        p = &r->place[r->taken % r->places];
        if (r->ended) return NULL;
        if (!r->reading && p->state == FREE) break;
        pthread_cond_wait(&r->changed, &r->lock);
    }
    r->reading = true;
    p->state = BUSY;
    pthread_mutex_unlock(&r->lock);
    bool last = false;
    p->status = read_unit(r, p, &last);
    if (p->status != ST_OK) fail_keep(&p->why);
    pthread_mutex_lock(&r->lock);
    r->reading = false;
    if (last || p->status != ST_OK) r->ended = true;
    r->taken++;
    pthread_cond_broadcast(&r->changed);
    return p;
}

/* Passes on all finished units that are next in order. The caller holds the lock. */
static void pass_on(struct running *r)
{
    struct place *p = &r->place[r->passed % r->places];
    while (!r->passing && r->passed < r->taken && p->state == DONE) {
        r->passing = true;
        if (r->status == ST_OK && p->status != ST_OK) end(r, p->status, &p->why);
        if (r->status == ST_OK) {
            pthread_mutex_unlock(&r->lock);
            struct failure why;
            enum status st = r->s->pass(r->s->user, &p->unit);
            if (st != ST_OK) fail_keep(&why);
            pthread_mutex_lock(&r->lock);
            if (st != ST_OK) end(r, st, &why);
        }
        p->state = FREE;
        r->passing = false;
        p = &r->place[++r->passed % r->places];
        pthread_cond_broadcast(&r->changed);
    }
}

static void *work(void *user)
{
    struct running *r = user;
    void *worker = r->s->open ? r->s->open(r->s->user) : NULL;
    pthread_mutex_lock(&r->lock);
    for (struct place *p; (p = take(r));) {
        pthread_mutex_unlock(&r->lock);
        if (p->status == ST_OK) {
            p->status = r->s->work(r->s->user, worker, &p->unit);
            if (p->status != ST_OK) fail_keep(&p->why);
        }
        pthread_mutex_lock(&r->lock);
        p->state = DONE;
        pass_on(r);
    }
    pthread_mutex_unlock(&r->lock);
    if (r->s->close) r->s->close(worker);
    return NULL;
}

enum status stream_run(const struct stream *s)
{
    enum { THREADS_MOST = 1024 };
    pthread_t thread[THREADS_MOST];
    int64_t threads = max_i64(1, min_i64(s->threads, THREADS_MOST)), started = 0;
    struct running r = {.s = s, .places = 2 * threads};
    r.place = HEAP_NEW(struct place, r.places);
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.changed, NULL);
    /* The calling thread works, too; if no other thread can be started, it does all the work. */
    while (started < threads - 1 && !pthread_create(&thread[started], NULL, work, &r)) started++;
    work(&r);
    for (int64_t i = 0; i < started; i++) pthread_join(thread[i], NULL);
    for (int64_t i = 0; i < r.places; i++) {
        free(r.place[i].text);
        for (int k = 0; k < STREAM_OUTPUTS; k++) str_release(&r.place[i].unit.made[k]);
    }
    free(r.place);
    str_release(&r.rest);
    pthread_cond_destroy(&r.changed);
    pthread_mutex_destroy(&r.lock);
    if (r.status != ST_OK) fail_restore(&r.why);
    return r.status;
}
