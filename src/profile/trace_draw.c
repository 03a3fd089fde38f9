#include "profile/trace_draw.h"

#include <jansson.h>
#include <stdlib.h>

static const double MIB = 1 << 20;

/* --- one event -------------------------------------------------------------------------------- */

static void begin(struct drawing *d, const char *ph, int process, int row, int64_t ns)
{
    struct writer *w = &d->w;
    w->begun = w->s.len;
    /* Negative for what began before the origin. */
    str_printf(&w->s, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f", ph, process, row,
               (double)(ns - d->origin) / 1e3);
}

/* Removes an event that does not fit. */
static void end(struct drawing *d)
{
    struct writer *w = &d->w;
    str_append(&w->s, "}");
    if (w->s.len <= w->limit) {
        w->events++;
        return;
    }
    w->s.len = w->begun;
    w->s.data[w->begun] = '\0';
    w->cut++;
}

/* Begins a slice from `start` to `stop`. */
static void begin_slice(struct drawing *d, int process, int row, int64_t start, int64_t stop)
{
    int64_t ns = stop - start;
    begin(d, "X", process, row, start);
    str_printf(&d->w.s, ",\"dur\":%lld.%03d", (long long)(ns / 1000), (int)(ns % 1000));
}

const char *drawing_quoted(const char *text, struct arena *a)
{
    json_t *j = json_string(text);
    char *words = j ? json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    const char *kept = arena_strdup(a, words ? words : "\"\"");
    free(words);
    json_decref(j);
    return kept;
}

/* --- rows ------------------------------------------------------------------------------------- */

static const char *text_of(const struct profile_row *r, struct arena *a)
{
    const char *text = arena_printf(a, ",\"name\":%s,\"cat\":%s,\"args\":{\"phase\":%s",
                                    drawing_quoted(profile_kernel_name(r, a), a),
                                    drawing_quoted(family_name(r->family), a),
                                    drawing_quoted(phase_name(r->phase), a));
    if (r->device_kernel)
        text =
            arena_printf(a, "%s,\"device kernel\":%s", text, drawing_quoted(r->device_kernel, a));
    if (r->node < 0) return text;
    if (r->range.layer >= 0) text = arena_printf(a, "%s,\"layer\":%d", text, r->range.layer);
    text = arena_printf(
        a, "%s,\"op\":%s,\"scope\":%s,\"node\":\"%s %d\",\"kernel\":%s,\"shape\":%s,\"types\":%s",
        text, drawing_quoted(op_def(r->op)->name, a), drawing_quoted(r->scope, a),
        graph_kind_name(r->kind), r->node, drawing_quoted(r->variant, a),
        drawing_quoted(r->shape, a), drawing_quoted(r->types, a));
    return arena_printf(a, "%s,\"FLOPs\":%.0f,\"bytes\":%.0f,\"floor us\":%.4g,\"bound by\":\"%s\"",
                        text, r->flops, r->bytes, 1e3 * r->floor_ms,
                        r->bound ? bound_name(r->bound) : "unknown");
}

static void describe_rows(struct drawing *d)
{
    const struct profile *p = d->p;
    d->row_of = ARENA_NEW(d->a, int, d->marks.marks);
    d->moment = ARENA_NEW(d->a, int, p->rows);
    d->text = ARENA_NEW(d->a, const char *, p->rows);
    for (int i = 0; i < d->marks.marks; i++) d->row_of[i] = -1;
    for (int i = p->rows - 1; i >= 0; i--) {
        const struct profile_row *r = &p->row[i];
        d->moment[i] = -1;
        d->text[i] = text_of(r, d->a);
        if (r->node >= 0) d->row_of[d->marks.first[r->kind] + r->node] = i;
    }
    for (int i = 0; i < d->course.moments; i++) {
        const struct memory_moment *m = &d->course.moment[i];
        int row = d->row_of[d->marks.first[m->kind] + m->step];
        if (row >= 0) d->moment[row] = i;
    }
    for (int i = 0; i < p->rows; i++) { /* each kernel of a node gets the moment of the node */
        const struct profile_row *r = &p->row[i];
        if (r->node >= 0) d->moment[i] = d->moment[d->row_of[d->marks.first[r->kind] + r->node]];
    }
}

/* NCCL's kernels run beside the others, in a row of their own. */
static bool is_collective(const struct drawing *d, int64_t i)
{
    const struct profile_communication *c = d->p->communication;
    const struct profile_row *row = &d->p->row[d->p->record.row[i]];
    return c && c->kernels && row->node >= 0 && row->family == FAMILY_COMMUNICATION;
}

/* Events in one row of a trace must not overlap: an activity goes to the first free row. */
static void choose_lanes(struct drawing *d, int64_t from, int64_t to)
{
    int64_t free_at[2][TRACE_LANES] = {0};
    d->lane = ARENA_NEW(d->a, int, to - from);
    for (int64_t i = from; i < to; i++) {
        const struct activity *x = &d->p->record.activity[i];
        int kind = x->kind != ACTIVITY_KERNEL, lane = 0;
        if (is_collective(d, i)) {
            d->lane[i - from] = TRACE_COMMUNICATION;
            continue;
        }
        while (lane < TRACE_LANES && free_at[kind][lane] > x->start_ns) lane++;
        d->lane[i - from] = lane < TRACE_LANES ? lane + (kind ? TRACE_COPIES : TRACE_KERNELS) : -1;
        if (lane == TRACE_LANES) continue;
        free_at[kind][lane] = x->end_ns;
        if (lane >= d->lanes[kind]) d->lanes[kind] = lane + 1;
    }
    d->lane -= from;
}

/* --- ranges and activities -------------------------------------------------------------------- */

struct range_span { /* one occurrence of a range, open or closed */
    const char *word;
    int64_t start, end, kernels;
    double flops, bytes;
};
struct range_spans {
    struct range_span *all;
    int n, capacity;
    int open[RANGE_DEPTH + 1], depth; /* open spans: the step and those in it */
    int64_t last;                     /* end of the last kernel so far */
};

static void write_span(struct drawing *d, const struct range_span *s, int step)
{
    begin_slice(d, TRACE_DEVICE, TRACE_RANGES, s->start, s->end);
    str_printf(&d->w.s,
               ",\"name\":%s,\"cat\":\"range\",\"args\":{\"step\":%d,\"kernels\":%lld,\"FLOPs\":%."
               "0f,\"bytes\":%.0f}",
               drawing_quoted(s->word, d->a), step, (long long)s->kernels, s->flops, s->bytes);
    end(d);
}

static void open_span(struct drawing *d, struct range_spans *s, const char *word, int64_t start)
{
    ARENA_GROW(d->a, s->all, s->n, s->capacity);
    s->all[s->n] = (struct range_span){.word = word, .start = start};
    s->open[s->depth++] = s->n++;
}

/* A range ends with its last kernel, or where the next range begins, whichever is earlier; but not
 * before it begins: the end of a step is known by the host's clock. */
static void close_spans(struct range_spans *s, int depth, int64_t next)
{
    while (s->depth > depth) {
        struct range_span *x = &s->all[s->open[--s->depth]];
        x->end = max_i64(min_i64(s->last, next), x->start);
    }
}

static void count_kernel(struct range_spans *s, const struct profile_row *row)
{
    for (int k = 0; k < s->depth; k++) {
        struct range_span *x = &s->all[s->open[k]];
        x->kernels++;
        x->flops += row->flops;
        x->bytes += row->bytes;
    }
}

static void write_ranges(struct drawing *d, int step)
{
    const struct profile_record *r = &d->p->record;
    const struct profile_span *span = &r->step[step];
    struct range_spans s = {.last = span->start_ns, .capacity = 64};
    const struct range nowhere = {0}, *now = &nowhere;
    s.all = ARENA_NEW(d->a, struct range_span, s.capacity);
    open_span(d, &s, "step", span->start_ns);
    for (int64_t i = r->begin[step]; i < r->end[step]; i++) {
        const struct activity *x = &r->activity[i];
        const struct profile_row *row = &d->p->row[r->row[i]];
        if (row->node < 0 || is_collective(d, i)) continue;
        int same = range_shared(now, &row->range);
        close_spans(&s, 1 + same, x->start_ns);
        for (int k = same; k < row->range.words; k++)
            open_span(d, &s, row->range.word[k], x->start_ns);
        now = &row->range;
        count_kernel(&s, row);
        if (x->end_ns > s.last) s.last = x->end_ns;
    }
    close_spans(&s, 1, span->end_ns);
    s.all[0].end = span->end_ns;
    for (int i = 0; i < s.n; i++) write_span(d, &s.all[i], step);
}

/* The time for the FLOPs and bytes of a row: that of all kernels of its node. */
static double work_us(const struct activity *x, const struct profile_row *row)
{
    return 1e-3 * (double)(x->end_ns - x->start_ns) * (row->ms > 0 ? row->work_ms / row->ms : 1);
}

static void write_activities(struct drawing *d, int step)
{
    const struct profile_record *r = &d->p->record;
    for (int64_t i = r->begin[step]; i < r->end[step]; i++) {
        const struct activity *x = &r->activity[i];
        const struct profile_row *row = &d->p->row[r->row[i]];
        double us = work_us(x, row);
        if (d->lane[i] < 0) {
            d->w.cut++;
            continue;
        }
        begin_slice(d, TRACE_DEVICE, d->lane[i], x->start_ns, x->end_ns);
        str_append(&d->w.s, d->text[r->row[i]]);
        if (row->node < 0) str_printf(&d->w.s, ",\"bytes\":%lld", (long long)x->bytes);
        if (us > 0 && row->flops > 0)
            str_printf(&d->w.s, ",\"TFLOP/s\":%.4g", 1e-6 * row->flops / us);
        if (us > 0 && row->bytes > 0) str_printf(&d->w.s, ",\"GB/s\":%.4g", 1e-3 * row->bytes / us);
        str_append(&d->w.s, "}");
        end(d);
    }
}

static void write_actions(struct drawing *d, int step)
{
    const struct profile_record *r = &d->p->record;
    for (int64_t i = 0; i < r->actions; i++) {
        const struct profile_action *x = &r->action[i];
        int row = x->mark < 0 ? -1 : d->row_of[x->mark];
        if (x->step != step || x->span.end_ns < x->span.start_ns) continue;
        begin_slice(d, TRACE_HOST, TRACE_DEEDS, x->span.start_ns, x->span.end_ns);
        if (x->mark < 0)
            str_printf(&d->w.s, ",\"name\":\"%s\",\"cat\":\"host\",\"args\":{\"step\":%d}",
                       profile_part_name(d->p, x->part), step);
        else
            str_printf(&d->w.s, ",\"name\":%s,\"cat\":\"kernel launch\",\"args\":{\"step\":%d}",
                       row < 0 ? "\"kernel\""
                               : drawing_quoted(profile_kernel_name(&d->p->row[row], d->a), d->a),
                       step);
        end(d);
    }
}

/* The work of each thread, if the host is the device. Regions of a kernel follow one another. */
static void write_threads(struct drawing *d, int step)
{
    const struct profile_record *r = &d->p->record;
    for (int64_t i = 0; i < r->thread_spans; i++) {
        const struct profile_thread_span *x = &r->thread_span[i];
        int row = d->row_of[x->mark];
        if (x->step != step || row < 0) continue;
        begin_slice(d, TRACE_HOST, TRACE_THREADS + x->thread, x->span.start_ns, x->span.end_ns);
        str_printf(&d->w.s, ",\"name\":%s,\"cat\":\"thread\",\"args\":{\"step\":%d%s}",
                   drawing_quoted(profile_kernel_name(&d->p->row[row], d->a), d->a), step,
                   x->unseen ? ",\"threads\":\"of a library, not seen\"" : "");
        end(d);
    }
}

/* --- ranks ------------------------------------------------------------------------------------ */

static void write_kernels(struct drawing *d, int rank, int step)
{
    const struct profile_rank *r = &d->p->communication->rank[rank];
    const struct profile_kernel *x = r->kernel + (int64_t)step * r->kernels;
    for (int i = 0; i < r->kernels; i++, x++) {
        int row = d->row_of[x->mark];
        if (row < 0) continue;
        begin_slice(d, TRACE_DEVICE + rank, TRACE_KERNELS, x->start_ns, x->end_ns);
        str_append(&d->w.s, d->text[row]);
        str_append(&d->w.s, "}");
        end(d);
    }
}

static void write_wait(struct drawing *d, int rank, int64_t from_ns, int64_t to_ns,
                       const char *what)
{
    begin_slice(d, TRACE_DEVICE + rank, TRACE_COMMUNICATION, from_ns, to_ns);
    str_printf(&d->w.s, ",\"name\":\"wait for the %s\",\"cat\":\"communication\",\"args\":{}",
               what);
    end(d);
}

/* From when a collective is started, or the one before is done, until it is done. */
static void write_collectives(struct drawing *d, int rank, int step)
{
    const struct profile_communication *all = d->p->communication;
    const struct collective_record *x =
        all->rank[rank].collective + (int64_t)step * all->collectives;
    int64_t free_ns = 0;
    for (int i = 0; i < all->collectives; free_ns = x->done_ns, i++, x++) {
        const struct profile_collective *c = &all->collective[i];
        write_wait(d, rank, max_i64(free_ns, x->posted_ns), x->begun_ns, "thread");
        write_wait(d, rank, x->begun_ns, x->met_ns, "slowest rank");
        begin_slice(d, TRACE_DEVICE + rank, TRACE_COMMUNICATION, x->met_ns, x->done_ns);
        str_printf(&d->w.s,
                   ",\"name\":%s,\"cat\":\"communication\",\"args\":{\"step\":%d,\"bytes\":%lld,"
                   "\"bytes sent\":%.0f}",
                   drawing_quoted(arena_printf(d->a, "%s %s", op_def(c->op)->name, c->name), d->a),
                   step, (long long)c->bytes, c->link_bytes);
        end(d);
    }
}

static void write_ranks(struct drawing *d, int step)
{
    for (int r = 0; d->p->communication && r < d->p->communication->seen; r++) {
        write_kernels(d, r, step);
        write_collectives(d, r, step);
    }
}

/* --- arrows ----------------------------------------------------------------------------------- */

/* An arrow from a launch to what it launched: a pair of flow events, which viewers bind to the
 * slices that they are in. Either both fit, or none is written. */
static void write_arrow(struct drawing *d, int64_t from_ns, int lane, int64_t to_ns)
{
    static const char *const ends[] = {"s", "f"};
    struct writer *w = &d->w;
    int64_t before = w->s.len;
    for (int i = 0; i < 2; i++) {
        begin(d, ends[i], i ? TRACE_DEVICE : TRACE_HOST, i ? lane : TRACE_DEEDS,
              i ? to_ns : from_ns);
        str_printf(&w->s, ",\"name\":\"launch\",\"cat\":\"launch\",\"id\":%lld%s,\"args\":{}}",
                   (long long)d->arrows, i ? ",\"bp\":\"e\"" : "");
    }
    if (w->s.len <= w->limit) {
        w->events += 2;
        d->arrows++;
        return;
    }
    w->s.len = before;
    w->s.data[before] = '\0';
    w->cut += 2;
}

/* The first activity from *from on that has the mark (-1: any) and did not begin before its launch;
 * -1: there is none. *from becomes the next one. */
static int64_t launched_by(const struct drawing *d, int step, int mark, int64_t launch_ns,
                           int64_t *from)
{
    const struct profile_record *r = &d->p->record;
    for (int64_t i = *from; i < r->end[step]; i++) {
        if (is_collective(d, i)) continue; /* they may start after kernels that follow them */
        const struct activity *x = &r->activity[i];
        if (x->kind != ACTIVITY_KERNEL || x->start_ns < launch_ns) continue;
        if (mark >= 0 && x->mark != mark) continue;
        *from = i + 1;
        return i;
    }
    return -1;
}

/* From each launch to its first kernel; a replayed graph is one launch, of its first kernel. Where
 * slices were cut, arrows would end nowhere. */
static void write_arrows(struct drawing *d, int step)
{
    const struct profile_record *r = &d->p->record;
    int64_t from = r->begin[step];
    bool each = false;
    if (d->p->engine->backend->host_memory || d->w.cut) return;
    for (int64_t i = 0; i < r->actions; i++)
        each |= r->action[i].step == step && r->action[i].mark >= 0;
    for (int64_t i = 0; i < r->actions; i++) {
        const struct profile_action *x = &r->action[i];
        bool launches = x->part == RANDOM_STEP_STARTS && (x->mark >= 0) == each;
        if (x->step != step || !launches || x->span.end_ns < x->span.start_ns) continue;
        int64_t at = launched_by(d, step, x->mark, x->span.start_ns, &from);
        if (at >= 0 && d->lane[at] >= 0)
            write_arrow(d, x->span.start_ns, d->lane[at], r->activity[at].start_ns);
    }
}

/* --- counters --------------------------------------------------------------------------------- */

static void count(struct drawing *d, struct counter *c, const char *unit, int64_t ns, double x)
{
    if (c->any && c->now == x) return;
    c->any = true;
    c->now = x;
    begin(d, "C", TRACE_DEVICE, 0, ns);
    str_printf(&d->w.s, ",\"name\":\"%s\",\"args\":{\"%s\":%.6g}", c->name, unit, x);
    end(d);
}

static void count_memory(struct drawing *d, int row, int64_t ns)
{
    const struct memory_moment *m =
        row < 0 || d->moment[row] < 0 ? NULL : &d->course.moment[d->moment[row]];
    if (!m) return;
    count(d, &d->memory[MEMORY_PARTS], "MiB", ns, (double)m->used / MIB);
    for (int part = 0; part < MEMORY_PARTS; part++)
        if (d->memory[part].any || m->bytes[part])
            count(d, &d->memory[part], "MiB", ns, (double)m->bytes[part] / MIB);
}

static void count_rates(struct drawing *d, int64_t ns, double bytes, double flops)
{
    count(d, &d->rate[RATE_BYTES], "GB/s", ns, bytes);
    count(d, &d->rate[RATE_FLOPS], "TFLOP/s", ns, flops);
}

static void start_counters(struct drawing *d)
{
    for (int part = 0; part < MEMORY_PARTS; part++)
        d->memory[part] = (struct counter){
            .name = arena_printf(d->a, "memory: %s", memory_part_name((enum memory_part)part))};
    d->memory[MEMORY_PARTS] = (struct counter){.name = "memory in use"};
    d->rate[RATE_BYTES] = (struct counter){.name = "achieved bandwidth"};
    d->rate[RATE_FLOPS] = (struct counter){.name = "achieved arithmetic"};
}

/* Rates of the first row of kernels, without overlapping rows; 0 between kernels. */
static void write_counters(struct drawing *d, int step)
{
    const struct profile_record *r = &d->p->record;
    int64_t busy = r->step[step].start_ns;
    start_counters(d);
    for (int64_t i = r->begin[step]; i < r->end[step]; i++) {
        const struct activity *x = &r->activity[i];
        const struct profile_row *row = &d->p->row[r->row[i]];
        struct cost cost = {row->flops, row->bytes};
        double us = work_us(x, row), of = us > 0 ? 1 / us : 0;
        if (d->lane[i] != TRACE_KERNELS) continue;
        if (x->start_ns > busy) count_rates(d, busy, 0, 0);
        count_rates(d, x->start_ns, 1e-3 * cost.bytes * of, 1e-6 * cost.flops * of);
        count_memory(d, r->row[i], x->start_ns);
        busy = x->end_ns;
    }
    count_rates(d, busy, 0, 0);
}

/* --- a step ----------------------------------------------------------------------------------- */

static void find_origin(struct drawing *d, int first, int asked)
{
    const struct profile_record *r = &d->p->record;
    d->origin = r->step[first].start_ns;
    for (int64_t i = 0; i < r->actions; i++) {
        const struct profile_action *x = &r->action[i];
        if (x->step >= first && x->step < first + asked && x->span.start_ns < d->origin)
            d->origin = x->span.start_ns;
    }
}

void drawing_init(struct drawing *d, const struct profile *p, int first, int steps, struct arena *a)
{
    *d = (struct drawing){.p = p, .marks = marks_of(p->engine), .a = a};
    memory_course(&p->engine->program, &d->course, a);
    describe_rows(d);
    choose_lanes(d, p->record.begin[first], p->record.end[first + steps - 1]);
    find_origin(d, first, steps);
    for (int64_t i = 0; i < p->record.thread_spans; i++)
        if (p->record.thread_span[i].thread >= d->threads)
            d->threads = p->record.thread_span[i].thread + 1;
}

void drawing_step(struct drawing *d, int step, int64_t limit)
{
    d->w = (struct writer){.limit = limit};
    write_ranges(d, step);
    write_activities(d, step);
    write_ranks(d, step);
    write_actions(d, step);
    write_threads(d, step);
    write_arrows(d, step);
    write_counters(d, step);
}
