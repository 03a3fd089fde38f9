#include "report/changes.h"

#include "base/str.h"
#include "present/table_cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *change_kind_name(enum change_kind kind)
{
    static const char *const names[] = {"vanished", "came", "other kernel", "same kernel"};
    return names[kind];
}

/* --- lines of one profile --------------------------------------------------------------------- */

/* Rows of one place that are instances of one kernel. */
struct unit {
    const char *place;
    const struct profile_row *like;
    const struct profile_file_kernel *kernel;
    double ms, per_step, *chunk;
    bool taken;
};

struct units {
    struct unit *unit;
    int n;
};

/* "block 3" of layer 3 -> "block" */
static int word_length(const char *word, int layer)
{
    char number[16];
    int n = (int)strlen(word), digits = snprintf(number, sizeof number, " %d", layer);
    return layer >= 0 && n > digits && strcmp(word + n - digits, number) == 0 ? n - digits : n;
}

static const char *place_of(const struct profile_row *r, struct arena *a)
{
    const char *text = "";
    for (int i = 0; i < r->range.words; i++)
        text = arena_printf(a, "%s%s%.*s", text, i ? " / " : "",
                            word_length(r->range.word[i], r->range.layer), r->range.word[i]);
    return text;
}

static bool same_place(const struct unit *x, const struct unit *y)
{
    return strcmp(x->place, y->place) == 0;
}

static bool same_kernel(const struct unit *x, const struct unit *y)
{
    return strcmp(x->kernel->name, y->kernel->name) == 0 &&
           str_same(x->like->dtype_name, y->like->dtype_name) &&
           str_same(x->like->peak_of, y->like->peak_of);
}

/* `first`: of the unit's rows. A row without chunks leaves the unit without them. */
static void add_chunks(struct unit *u, const double *ms, int n, bool first, struct arena *a)
{
    if (first && ms) u->chunk = ARENA_NEW(a, double, n);
    for (int i = 0; u->chunk && ms && i < n; i++) u->chunk[i] += ms[i];
    if (!ms) u->chunk = NULL;
}

static struct units units_of(const struct profile_file *p, struct arena *a)
{
    struct units all = {.unit = ARENA_NEW(a, struct unit, p->rows + 1)};
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        struct unit *new = &all.unit[all.n];
        *new = (struct unit){.place = place_of(r, a), .like = r, .kernel = &p->kernel[r->kernel]};
        int at = 0;
        while (at < all.n &&
               !(same_place(&all.unit[at], new) && all.unit[at].kernel == new->kernel))
            at++;
        all.unit[at].ms += r->ms;
        add_chunks(&all.unit[at], r->chunk_ms, p->chunks.n, at == all.n, a);
        if (r->per_step > 0) all.unit[at].per_step += r->per_step;
        if (at == all.n) all.n++;
    }
    return all;
}

/* --- verdicts --------------------------------------------------------------------------------- */

/* A series of the chunks of a profile, `ms` (NULL: unknown), before the judge. */
static struct timed timed_of(const struct profile_file *p, const double *ms, struct arena *a)
{
    const struct profile_file_chunks *c = &p->chunks;
    struct timed_turn *turn = ARENA_NEW(a, struct timed_turn, c->n + 1);
    for (int i = 0; i < c->n; i++) turn[i] = (struct timed_turn){c->of, c->turn[i]};
    double others = p->threads > 0 ? profile_file_busy(p) : NAN; /* a GPU does not mind */
    return (struct timed){ms, ms ? c->n : 0, turn, p->tokens, "token", NULL, others};
}

/* Equal plans are equal work on one device, by one program. */
static const char *plan_of(const struct profile_file *p, struct arena *a)
{
    if (!p->work || !p->commit) return NULL;
    return arena_printf(a, "%s\n%s\n%s\n%s\n%g", p->work, p->commit, p->device ? p->device : "",
                        p->machine ? p->machine : "", p->threads);
}

/* By the steps without profiling. */
static struct judgement speed_between(const struct profile_file *x, const struct profile_file *y,
                                      struct arena *a)
{
    struct timed first = timed_of(x, x->chunks.plain_ms, a),
                 second = timed_of(y, y->chunks.plain_ms, a);
    first.plan = plan_of(x, a);
    second.plan = plan_of(y, a);
    return judge(&first, &second);
}

/* --- changes between two profiles ------------------------------------------------------------- */

struct finding {
    struct changes *ret;
    int capacity;
    struct arena *a;
};

static void add_change(struct finding *f, struct change c)
{
    ARENA_GROW(f->a, f->ret->change, f->ret->n, f->capacity);
    f->ret->change[f->ret->n++] = c;
}

static struct change_side side_of(const struct unit *u)
{
    return (struct change_side){u->kernel->name, u->ms, u->per_step, u->chunk};
}

static void find_kept(struct finding *f, struct units *before, struct units *after)
{
    for (int i = 0; i < before->n; i++)
        for (int k = 0; k < after->n; k++) {
            struct unit *x = &before->unit[i], *y = &after->unit[k];
            if (x->taken || y->taken || !same_place(x, y) || !same_kernel(x, y)) continue;
            x->taken = y->taken = true;
            struct change c = {CHANGE_KEPT, x->place, x->like->family, side_of(x), side_of(y), {0}};
            add_change(f, c);
        }
}

/* Takes all remaining units of a place and family, added up to one side. */
static struct change_side take_rest(struct units *all, const struct unit *like, int chunks,
                                    struct arena *a)
{
    struct change_side side = {0};
    struct unit sum = {0};
    const struct unit *longest = NULL;
    int n = 0;
    for (int i = 0; i < all->n; i++) {
        struct unit *u = &all->unit[i];
        if (u->taken || !same_place(u, like) || u->like->family != like->like->family) continue;
        u->taken = true;
        side.ms += u->ms;
        add_chunks(&sum, u->chunk, chunks, n == 0, a);
        side.per_step += u->per_step;
        if (!longest || u->ms > longest->ms) longest = u;
        n++;
    }
    side.chunk = sum.chunk;
    if (longest)
        side.kernel = n > 1 ? arena_printf(a, "%s and %d more", longest->kernel->name, n - 1)
                            : longest->kernel->name;
    return side;
}

static bool has_rest(const struct units *all, const struct unit *like)
{
    for (const struct unit *u = all->unit; u < all->unit + all->n; u++)
        if (!u->taken && same_place(u, like) && u->like->family == like->like->family) return true;
    return false;
}

static void find_replaced(struct finding *f, struct units *before, struct units *after)
{
    for (int i = 0; i < before->n; i++) {
        const struct unit like = before->unit[i];
        if (like.taken || !has_rest(after, &like)) continue;
        struct change c = {CHANGE_REPLACED, like.place, like.like->family, {0}, {0}, {0}};
        c.before = take_rest(before, &like, f->ret->before->chunks.n, f->a);
        c.after = take_rest(after, &like, f->ret->after->chunks.n, f->a);
        add_change(f, c);
    }
}

static void find_alone(struct finding *f, const struct units *all, enum change_kind kind)
{
    for (int i = 0; i < all->n; i++) {
        const struct unit *u = &all->unit[i];
        if (u->taken) continue;
        struct change c = {kind, u->place, u->like->family, {0}, {0}, {0}};
        *(kind == CHANGE_VANISHED ? &c.before : &c.after) = side_of(u);
        add_change(f, c);
    }
}

/* Step time outside rows and idle time: device activity that was dropped. */
static double rest_of(const struct profile_file *p, double *ret_step)
{
    double sum = p->idle_ms;
    for (int i = 0; i < p->rows; i++) sum += p->row[i].ms;
    *ret_step = p->step_ms.mean > 0 ? p->step_ms.mean : sum;
    return *ret_step - sum;
}

static void add_times(struct finding *f, const char *place, const char *family, double before,
                      double after, const double *chunks_before, const double *chunks_after)
{
    struct change c = {CHANGE_KEPT, place, profile_file_family(family), {0}, {0}, {0}};
    c.before = (struct change_side){place, before, 0, chunks_before};
    c.after = (struct change_side){place, after, 0, chunks_after};
    add_change(f, c);
}

static int largest_first(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    double dx = fabs(x->after.ms - x->before.ms), dy = fabs(y->after.ms - y->before.ms);
    return (dx < dy) - (dx > dy);
}

/* Verdicts of the largest changes: those that can be looked at. */
static void judge_all(struct finding *f)
{
    enum { JUDGED_MOST = 256 };
    struct changes *all = f->ret;
    for (int i = 0; i < all->n && i < JUDGED_MOST; i++) {
        struct change *c = &all->change[i];
        struct timed before = timed_of(all->before, c->before.chunk, f->a),
                     after = timed_of(all->after, c->after.chunk, f->a);
        if (strncmp(c->place, "update", 6) == 0) before.work = after.work = 1; /* of any batch */
        if (all->speed.how != JUDGED_SAME_PLAN) c->verdict = judge(&before, &after).verdict;
    }
}

void changes_find(const struct profile_file *before, const struct profile_file *after,
                  struct arena *a, struct changes *ret_changes)
{
    *ret_changes = (struct changes){.before = before, .after = after};
    struct finding f = {.ret = ret_changes, .a = a};
    ret_changes->speed = speed_between(before, after, a);
    struct units x = units_of(before, a), y = units_of(after, a);
    find_kept(&f, &x, &y);
    find_replaced(&f, &x, &y);
    find_alone(&f, &x, CHANGE_VANISHED);
    find_alone(&f, &y, CHANGE_CAME);
    add_times(&f, "idle", "idle", before->idle_ms, after->idle_ms, before->chunks.idle_ms,
              after->chunks.idle_ms);
    double rest_before = rest_of(before, &ret_changes->before_ms);
    double rest_after = rest_of(after, &ret_changes->after_ms);
    /* Files have seven digits; smaller differences are rounding errors. */
    if (fabs(rest_before) > 1e-5 * ret_changes->before_ms ||
        fabs(rest_after) > 1e-5 * ret_changes->after_ms)
        add_times(&f, "in no row", NULL, rest_before, rest_after, NULL, NULL);
    for (int i = 0; i < ret_changes->n; i++) {
        const struct change *c = &ret_changes->change[i];
        ret_changes->kind_ms[c->kind] += c->after.ms - c->before.ms;
        ret_changes->kind_n[c->kind]++;
    }
    qsort(ret_changes->change, (size_t)ret_changes->n, sizeof *ret_changes->change, largest_first);
    judge_all(&f);
}

/* --- in words --------------------------------------------------------------------------------- */

static const char *noise_words(const struct changes *c, struct arena *a)
{
    int n = 0;
    for (const struct change *x = c->change; x < c->change + c->n; x++)
        n += x->verdict.kind == VERDICT_UNCERTAIN || x->verdict.kind == VERDICT_SAME;
    return n ? arena_printf(a, " %d of %d lines are not known to differ.", n, c->n) : "";
}

static const char *memory_words(const struct changes *c, struct arena *a)
{
    char before[32], after[32];
    double x = c->before->memory.total, y = c->after->memory.total;
    if (!(x > 0 && y > 0)) return "";
    return arena_printf(a, " Planned memory: %s, before %s (%+.1f %%).", str_bytes(after, y),
                        str_bytes(before, x), 100 * (y / x - 1));
}

const char *changes_words(const struct changes *c, struct arena *a)
{
    double less = c->before_ms - c->after_ms;
    const char *text =
        arena_printf(a, "A step of %s takes %.3f ms, %.3f ms %s than one of %s", c->after->name,
                     c->after_ms, fabs(less), less >= 0 ? "less" : "more", c->before->name);
    double tokens = c->after->tokens, before_tokens = c->before->tokens;
    if (tokens > 0 && before_tokens > 0 && tokens != before_tokens)
        text = arena_printf(a, "%s, for %.0f tokens instead of %.0f (%.4g ms a token, before %.4g)",
                            text, tokens, before_tokens, c->after_ms / tokens,
                            c->before_ms / before_tokens);
    const char *before = ": ";
    for (int kind = 0; kind < CHANGE_KINDS; kind++) {
        if (!c->kind_n[kind]) continue;
        static const char *const words[CHANGE_KINDS] = {
            "kernels that vanished", "kernels that came", "other kernels in the same places",
            "the same kernels and idle time"};
        text = arena_printf(a, "%s%s%s %+.3f ms", text, before, words[kind], c->kind_ms[kind]);
        before = ", ";
    }
    const char *speed = judge_words(&c->speed, c->before->name, a);
    if (speed)
        speed = arena_printf(a, " By its steps without profiling %s %s.", c->after->name, speed);
    else if (!c->before->chunks.n || !c->after->chunks.n)
        speed = arena_printf(a,
                             " There is no verdict about speed, because %s has no times of chunks, "
                             "as older programs write it: profile it again.",
                             (c->before->chunks.n ? c->after : c->before)->name);
    const char *ceilings = c->before->raised || c->after->raised
                               ? " Floors and shares are by the best ceilings of these profiles, "
                                 "since one can only be measured too low."
                               : "";
    return arena_printf(a, "%s.%s%s%s%s", text, speed ? speed : "", noise_words(c, a),
                        memory_words(c, a), ceilings);
}

static const struct table_column columns[] = {
    {"change", "change", "kind of change", false},
    {"place", "where", "part of the model, over all its blocks", false},
    {"ms_before", "ms before", "milliseconds per step before", true},
    {"ms_after", "ms after", "milliseconds per step after", true},
    {"ms_difference", "difference", "after minus before", true},
    {"verdict", "verdict",
     "faster, slower, same or cannot tell, per token, in the update per step, by the rule of "
     "MEASURING.md",
     false},
    {"kernel", "kernel", "the kernel after, or before if it vanished", false},
};

/* Fewer decimals for long steps, where thousandths of a millisecond mean nothing. */
static int decimals_of(const struct changes *c)
{
    double most = fmax(c->before_ms, c->after_ms);
    return most < 100 ? 3 : most < 1000 ? 2 : most < 10000 ? 1 : 0;
}

static void set_row(struct table *t, int row, const char *kind, const char *place,
                    const struct change_side *before, const struct change_side *after,
                    const char *kernel, int decimals, struct arena *a)
{
    table_set_text(t, row, 0, kind);
    table_set_text(t, row, 1, place);
    double x = before->ms, y = after->ms;
    if (before->kernel) table_set_as(t, row, 2, x, arena_printf(a, "%.*f", decimals, x));
    if (after->kernel) table_set_as(t, row, 3, y, arena_printf(a, "%.*f", decimals, y));
    table_set_as(t, row, 4, y - x, arena_printf(a, "%+.*f", decimals, y - x));
    table_set_text(t, row, 6, kernel);
}

struct table changes_table(const struct changes *c, int most, struct arena *a)
{
    int decimals = decimals_of(c), shown = most && most < c->n ? most : c->n;
    int rows = shown + (shown < c->n) + 1;
    struct table t = table_new(columns, COUNT_OF(columns), rows, a);
    struct change_side before = {.kernel = "rest"}, after = {.kernel = "rest"};
    for (int i = 0; i < c->n; i++) {
        const struct change *x = &c->change[i];
        if (i < shown) {
            set_row(&t, i, change_kind_name(x->kind), x->place, &x->before, &x->after,
                    x->after.kernel ? x->after.kernel : x->before.kernel, decimals, a);
            if (x->verdict.kind) table_at(&t, i, 5)->text = verdict_name(x->verdict.kind);
            continue;
        }
        before.ms += x->before.ms;
        after.ms += x->after.ms;
    }
    if (shown < c->n)
        set_row(&t, shown, "", arena_printf(a, "%d others", c->n - shown), &before, &after, NULL,
                decimals, a);
    struct change_side all[2] = {{.kernel = "step", .ms = c->before_ms},
                                 {.kernel = "step", .ms = c->after_ms}};
    set_row(&t, rows - 1, "", "step", &all[0], &all[1], NULL, decimals, a);
    return t;
}
