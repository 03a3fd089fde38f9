/* An activity that was launched directly gets the mark of its call. Activities of graph replays are
 * in launch order. So are the kernels of NCCL, which run beside the others (trace_replay.beside)
 * and are recognized by their names. If there are as many activities as all replays have together,
 * the activities are assigned to the replays in order; call numbers are not used, because some
 * versions of CUPTI confuse the call numbers of replays. Otherwise activities are missing or
 * unknown: call numbers then separate the replays, and only replays with all their activities are
 * matched. */
#include "backend/cuda/runtime/trace_join.h"

#include "backend/cuda/runtime/kernel_name.h"
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { NO_MARK = -1 };

static int by_number(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_start(const void *a_, const void *b_)
{
    const struct trace_record *a = a_, *b = b_;
    int order = by_number(a->start_ns, b->start_ns);
    return order ? order : by_number(a->end_ns, b->end_ns);
}

static int by_call(const void *a, const void *b)
{
    return by_number(((const struct trace_call *)a)->call, ((const struct trace_call *)b)->call);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Every name of each kind, once. There are few names, so a linear search is enough. */
struct names {
    struct name {
        enum activity_kind kind;
        const char *given, *name, *short_name;
    } * name;
    int names, capacity;
    struct arena *a;
};

static const struct name *name_of(struct names *all, enum activity_kind kind, const char *given)
{
    char text[ACTIVITY_NAME];
    for (int i = 0; i < all->names; i++)
        if (all->name[i].kind == kind &&
            (all->name[i].given == given || !strcmp(all->name[i].name, given)))
            return &all->name[i];
    ARENA_GROW(all->a, all->name, all->names, all->capacity);
    struct name *n = &all->name[all->names++];
    *n = (struct name){.kind = kind, .given = given, .name = arena_strdup(all->a, given)};
    n->short_name = n->name;
    if (kind != ACTIVITY_KERNEL) return n;
    kernel_name_short(given, text);
    n->short_name = arena_strdup(all->a, text);
    return n;
}

/* --- marks ------------------------------------------------------------------------------------ */

/* Counts of the activities that could not be matched, for the message. */
struct misfit {
    int64_t without_call, of_unknown, of_wrong;
    int64_t unknown;       /* replays with unknown marks */
    int64_t wanted, found; /* activities of the first replay that does not match */
};

static const struct trace_call *call_of(const struct trace_input *in, uint32_t call)
{
    const struct trace_call key = {.call = call};
    return in->calls ? bsearch(&key, in->call, (size_t)in->calls, sizeof key, by_call) : NULL;
}

static void match_calls(const struct trace_input *in, struct trace *t, struct misfit *m)
{
    for (int64_t i = 0; i < in->records; i++) {
        if (in->record[i].replayed) continue;
        const struct trace_call *c = call_of(in, in->record[i].call);
        if (c)
            t->activity[i].mark = c->mark;
        else
            m->without_call++;
    }
}

static int64_t next_played(const struct trace_input *in, int64_t i)
{
    while (i < in->records && !in->record[i].replayed) i++;
    return i;
}

/* CUPTI's name may be mangled, and names of NCCL differ in what follows "nccl". */
static bool is_beside(const struct trace_record *r)
{
    return r->kind == ACTIVITY_KERNEL && r->name && strstr(r->name, "nccl");
}

static bool goes_beside(const struct trace_replay *p, int64_t k)
{
    return p->beside && p->beside[k];
}

/* Marks n activities, from index `from` on, as unmatched. */
static void leave(const struct trace_input *in, struct trace *t, int64_t from, int64_t n,
                  int64_t replay)
{
    for (; n > 0; n--, from++) {
        from = next_played(in, from);
        t->activity[from].replay = (int)replay;
        t->activity[from].unmatched = true;
    }
}

/* Assigns the activities of a replay, those beside others from index from[1] on, the rest from
 * from[0] on; sets `from` to the next ones. */
static void assign(const struct trace_input *in, struct trace *t, int64_t from[2], int64_t replay,
                   const struct trace_replay *p)
{
    for (int64_t k = 0; k < p->activities; k++) {
        bool beside = goes_beside(p, k);
        int64_t i = next_played(in, from[beside]);
        while (is_beside(&in->record[i]) != beside) i = next_played(in, i + 1);
        t->activity[i].replay = (int)replay;
        t->activity[i].mark = p->mark[k];
        from[beside] = i + 1;
    }
}

static int64_t count_beside(const struct trace_replay *p)
{
    int64_t n = 0;
    for (int64_t k = 0; k < p->activities; k++) n += goes_beside(p, k);
    return n;
}

/* The number of consecutive replayed activities, from index `from` on, with the same call. */
static int64_t group_from(const struct trace_input *in, int64_t from)
{
    int64_t n = 0;
    uint32_t call = in->record[from].call;
    for (int64_t i = from; i < in->records && in->record[i].call == call;
         i = next_played(in, i + 1))
        n++;
    return n;
}

/* The replay that the call launched; NO_REPLAY: there is no record of it. */
static int64_t replay_of(const struct trace_input *in, uint32_t call)
{
    const struct trace_call *c = call_of(in, call);
    return c && c->replay < in->replays ? c->replay : NO_REPLAY;
}

static int64_t after_group(const struct trace_input *in, int64_t from)
{
    for (int64_t n = group_from(in, from); n > 0; n--) from = next_played(in, from + 1);
    return from;
}

/* True if every replay with known marks has its own call number. If not, two replays may share one.
 */
static bool numbers_are_distinct(const struct trace_input *in)
{
    int64_t known = 0, found = 0, last = NO_REPLAY;
    for (int64_t p = 0; p < in->replays; p++)
        known += in->replay[p].mark && in->replay[p].activities > 0;
    for (int64_t i = next_played(in, 0); i < in->records; i = after_group(in, i)) {
        int64_t replay = replay_of(in, in->record[i].call);
        if (replay == NO_REPLAY) continue;
        if (replay <= last) return false;
        last = replay;
        found += in->replay[replay].mark != NULL;
    }
    return found == known;
}

static void match_group(const struct trace_input *in, struct trace *t, int64_t from,
                        struct misfit *m)
{
    int64_t found = group_from(in, from), replay = replay_of(in, in->record[from].call);
    const struct trace_replay *p = replay == NO_REPLAY ? NULL : &in->replay[replay];
    int64_t beside = 0, both[] = {from, from};
    for (int64_t n = found, i = from; n > 0; n--, i = next_played(in, i + 1))
        beside += is_beside(&in->record[i]);
    bool fits = p && p->mark && p->activities == found && count_beside(p) == beside;
    if (fits)
        assign(in, t, both, replay, p);
    else
        leave(in, t, from, found, replay);
    if (!p) {
        m->without_call += found;
    } else if (!p->mark) {
        m->of_unknown += found;
    } else if (!fits) {
        if (!m->of_wrong) m->wanted = p->activities, m->found = found;
        m->of_wrong += found;
    }
}

static void match_plays(const struct trace_input *in, struct trace *t, struct misfit *m)
{
    int64_t wanted = 0, found = 0, beside = 0, from[2] = {0};
    for (int64_t p = 0; p < in->replays; p++) {
        m->unknown += in->replay[p].mark == NULL;
        wanted += in->replay[p].activities;
        beside += count_beside(&in->replay[p]);
    }
    for (int64_t i = 0; i < in->records; i++) {
        found += in->record[i].replayed;
        beside -= in->record[i].replayed && is_beside(&in->record[i]);
    }
    if (!m->unknown && found == wanted && !beside) {
        for (int64_t p = 0; p < in->replays; p++) assign(in, t, from, p, &in->replay[p]);
    } else if (numbers_are_distinct(in)) {
        for (int64_t i = next_played(in, 0); i < in->records; i = after_group(in, i))
            match_group(in, t, i, m);
    } else {
        leave(in, t, 0, found, NO_REPLAY);
        m->of_wrong = m->found = found;
        m->wanted = wanted;
    }
}

/* --- calls of the API ------------------------------------------------------------------------- */

/* Sorts an outer call before the calls that it makes. */
static int by_outer(const void *a_, const void *b_)
{
    const struct api_call *a = a_, *b = b_;
    int order = by_number(a->start_ns, b->start_ns);
    return order ? order : by_number(b->end_ns, a->end_ns);
}

/* "cuMemAlloc" of "cuMemAlloc_v2"; each name once. */
static const char *without_version(struct names *all, const char *given)
{
    for (int i = 0; i < all->names; i++)
        if (!strcmp(all->name[i].given, given)) return all->name[i].name;
    const char *end = strstr(given, "_v");
    size_t n = end && end[2] >= '0' && end[2] <= '9' ? (size_t)(end - given) : strlen(given);
    ARENA_GROW(all->a, all->name, all->names, all->capacity);
    all->name[all->names] = (struct name){.given = arena_strdup(all->a, given)};
    return all->name[all->names++].name = arena_printf(all->a, "%.*s", (int)n, given);
}

/* A thread that made calls, and the end of its last outer call. */
struct caller {
    int thread;
    int64_t end_ns;
};

/* Runtime calls of libraries make driver calls; only the outer ones are kept. */
static void join_calls(struct trace_input *in, struct trace *ret, struct arena *a)
{
    struct names names = {.a = a};
    struct caller *caller = NULL;
    int callers = 0, capacity = 0;
    if (in->apis) qsort(in->api, (size_t)in->apis, sizeof *in->api, by_outer);
    for (int64_t i = 0; i < in->apis; i++) {
        struct api_call x = in->api[i];
        int k = 0;
        while (k < callers && caller[k].thread != x.thread) k++;
        if (k == callers) {
            ARENA_GROW(a, caller, callers, capacity);
            caller[callers++] = (struct caller){x.thread, INT64_MIN};
        }
        if (x.end_ns <= caller[k].end_ns && x.start_ns < caller[k].end_ns) continue;
        caller[k].end_ns = x.end_ns;
        x.thread = k;
        x.name = without_version(&names, x.name);
        in->api[ret->apis++] = x;
    }
    ret->api = in->api;
}

/* --- together --------------------------------------------------------------------------------- */

static const char *describe(const struct misfit *m, struct arena *a)
{
    if (m->of_wrong && m->found == m->wanted)
        return arena_printf(a,
                            "%lld kernels and copies of replayed graphs could not be attributed: "
                            "those of NCCL were not recognized; use --replay=false",
                            (long long)m->of_wrong);
    if (m->of_wrong)
        return arena_printf(
            a,
            "%lld kernels and copies of replayed graphs could not be attributed: %lld were traced "
            "where %lld were captured",
            (long long)m->of_wrong, (long long)m->found, (long long)m->wanted);
    if (m->unknown)
        return arena_printf(a,
                            "%lld replays are of a graph captured before the trace began: the %lld "
                            "kernels and copies traced of them could not be attributed",
                            (long long)m->unknown, (long long)m->of_unknown);
    if (m->without_call)
        return arena_printf(a,
                            "%lld kernels and copies could not be attributed: there is no record "
                            "of the call that launched them",
                            (long long)m->without_call);
    return NULL;
}

void trace_join(struct trace_input *in, struct trace *ret, struct arena *a)
{
    struct misfit m = {0};
    struct names names = {.a = a};
    *ret = (struct trace){.activity = ARENA_NEW(a, struct activity, in->records),
                          .activities = in->records};
    if (in->records) qsort(in->record, (size_t)in->records, sizeof *in->record, by_start);
    if (in->calls) qsort(in->call, (size_t)in->calls, sizeof *in->call, by_call);
    for (int64_t i = 0; i < in->records; i++) {
        const struct trace_record *r = &in->record[i];
        const struct name *n = name_of(&names, r->kind, r->name);
        ret->activity[i] = (struct activity){.kind = r->kind,
                                             .mark = NO_MARK,
                                             .replay = NO_REPLAY,
                                             .name = n->name,
                                             .short_name = n->short_name,
                                             .start_ns = r->start_ns,
                                             .end_ns = r->end_ns,
                                             .bytes = r->bytes};
    }
    join_calls(in, ret, a);
    match_calls(in, ret, &m);
    match_plays(in, ret, &m);
    ret->unmatched = m.without_call + m.of_unknown + m.of_wrong;
    ret->why = describe(&m, a);
}
