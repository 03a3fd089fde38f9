#include "trace_check.h"

#include "profile/trace_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 32, COUNTERS = 64, PROCESSES = 4, ROWS = 600 };

static char wrong[512];

#define WRONG(...) return snprintf(wrong, sizeof wrong, __VA_ARGS__), wrong

struct seen {
    struct trace_facts *f;
    bool process[PROCESSES], row[PROCESSES][ROWS]; /* true: it has a name */
    struct {
        const char *name;
        double ts;
    } counter[COUNTERS];
    int counters;
};

static int64_t ns(const json_t *j)
{
    return llround(1e3 * json_number_value(j));
}

static const char *check_metadata(struct seen *s, const json_t *e, int pid, int tid)
{
    const char *name = json_string_value(json_object_get(e, "name"));
    const json_t *args = json_object_get(e, "args");
    bool is_name = !strcmp(name, "process_name") || !strcmp(name, "thread_name");
    if (!is_name && strcmp(name, "process_sort_index") != 0 &&
        strcmp(name, "thread_sort_index") != 0)
        WRONG("metadata %s", name);
    if (is_name && !json_is_string(json_object_get(args, "name"))) WRONG("%s without a name", name);
    if (!is_name && !json_is_integer(json_object_get(args, "sort_index")))
        WRONG("%s without a number", name);
    if (!strcmp(name, "process_name")) s->process[pid] = true;
    if (!strcmp(name, "thread_name")) s->row[pid][tid] = true;
    return NULL;
}

static const char *check_counter(struct seen *s, const json_t *e)
{
    const char *name = json_string_value(json_object_get(e, "name")), *key;
    double ts = json_number_value(json_object_get(e, "ts"));
    json_t *args = json_object_get(e, "args"), *x;
    int i = 0;
    if (!json_object_size(args)) WRONG("counter %s has no values", name);
    json_object_foreach(args, key, x)
        if (!json_is_number(x)) WRONG("counter %s: %s is not a number", name, key);
    while (i < s->counters && strcmp(s->counter[i].name, name) != 0) i++;
    if (i == COUNTERS) WRONG("more than %d counters", COUNTERS);
    if (i == s->counters) s->counter[s->counters++].name = name;
    if (ts < s->counter[i].ts) WRONG("counter %s goes back", name);
    s->counter[i].ts = ts;
    s->f->counts++;
    return NULL;
}

/* One end of an arrow: "s" where it starts, "f" with bp "e" where it ends. */
static const char *check_flow(struct seen *s, const json_t *e, const char *ph, int pid, int tid)
{
    const json_t *id = json_object_get(e, "id");
    const char *name = json_string_value(json_object_get(e, "name"));
    const char *bp = json_string_value(json_object_get(e, "bp"));
    bool ends = !strcmp(ph, "f");
    if (!json_is_integer(id) || json_integer_value(id) < 0) WRONG("%s without an id", name);
    if (!json_is_string(json_object_get(e, "cat"))) WRONG("%s without a category", name);
    if (ends != (bp && !strcmp(bp, "e"))) WRONG("%s: bp", name);
    int64_t at = ns(json_object_get(e, "ts"));
    s->f->flow[s->f->flows++] = (struct trace_flow){e, json_integer_value(id), ends, pid, tid, at};
    return NULL;
}

static const char *check_event(struct seen *s, const json_t *e)
{
    const char *ph = json_string_value(json_object_get(e, "ph")),
               *name = json_string_value(json_object_get(e, "name"));
    const json_t *pid = json_object_get(e, "pid"), *tid = json_object_get(e, "tid"),
                 *ts = json_object_get(e, "ts");
    const json_t *dur = json_object_get(e, "dur");
    if (!ph || !name || !*name) WRONG("an event without ph or name");
    if (!json_is_integer(pid) || !json_is_integer(tid))
        WRONG("%s: pid and tid are whole numbers", name);
    int p = (int)json_integer_value(pid), t = (int)json_integer_value(tid);
    if (p < 0 || p >= PROCESSES || t < 0 || t >= ROWS) WRONG("%s: process %d, row %d", name, p, t);
    if (!json_is_object(json_object_get(e, "args"))) WRONG("%s: no args", name);
    if (!strcmp(ph, "M")) return check_metadata(s, e, p, t);
    if (!json_is_number(ts) || json_number_value(ts) < 0) WRONG("%s: no time", name);
    if (!strcmp(ph, "C")) return check_counter(s, e);
    if (!strcmp(ph, "s") || !strcmp(ph, "f")) return check_flow(s, e, ph, p, t);
    if (strcmp(ph, "X") != 0) WRONG("%s: ph %s", name, ph);
    if (!json_is_number(dur) || json_number_value(dur) < 0) WRONG("%s: no length", name);
    s->f->event[s->f->events++] = (struct trace_event){e, p, t, ns(ts), ns(ts) + ns(dur)};
    return NULL;
}

static int in_order(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;
    if (x->pid != y->pid) return x->pid - y->pid;
    if (x->tid != y->tid) return x->tid - y->tid;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return x < y ? -1 : 1;
}

/* In a row, each event ends before the next begins, or contains it; events of kernels and copies
 * are not nested. */
static const char *check_nesting(struct trace_facts *f)
{
    const struct trace_event *open[DEPTH];
    int depth = 0;
    for (int i = 0; i < f->events; i++) {
        const struct trace_event *e = &f->event[i];
        if (i && (e->pid != e[-1].pid || e->tid != e[-1].tid)) depth = 0;
        while (depth && open[depth - 1]->end <= e->start) depth--;
        if (depth && open[depth - 1]->end < e->end)
            WRONG("%s at %lld ns overlaps %s", trace_name(e), (long long)e->start,
                  trace_name(open[depth - 1]));
        if (depth && e->pid == TRACE_DEVICE && e->tid >= TRACE_KERNELS)
            WRONG("%s is in %s", trace_name(e), trace_name(open[depth - 1]));
        if (depth == DEPTH) WRONG("deeper than %d", DEPTH);
        open[depth++] = e;
        if (depth > f->deepest) f->deepest = depth;
    }
    return NULL;
}

const struct trace_event *trace_at(const struct trace_facts *f, int pid, int tid, int64_t at)
{
    const struct trace_event *found = NULL;
    for (int i = 0; i < f->events; i++) { /* outer before inner */
        const struct trace_event *e = &f->event[i];
        if (e->pid == pid && e->tid == tid && e->start <= at && at <= e->end) found = e;
    }
    return found;
}

/* Each arrow has one start and then one end with the same number, name and category, and both are
 * in a slice of their row, as a viewer needs them (Chrome's format, "Flow events"). */
static const char *check_flows(const struct trace_facts *f)
{
    for (int i = 0; i < f->flows; i++) {
        const struct trace_flow *x = &f->flow[i], *other = NULL;
        int same = 0;
        for (int k = 0; k < f->flows; k++) {
            if (f->flow[k].id != x->id) continue;
            same++;
            if (f->flow[k].ends != x->ends) other = &f->flow[k];
        }
        if (same != 2 || !other) WRONG("arrow %lld has %d ends", (long long)x->id, same);
        if (x->ends && x->at < other->at) WRONG("arrow %lld ends first", (long long)x->id);
        for (int k = 0; k < 2; k++) {
            const char *key = k ? "cat" : "name";
            if (!json_equal(json_object_get(x->event, key), json_object_get(other->event, key)))
                WRONG("arrow %lld: another %s at its other end", (long long)x->id, key);
        }
        if (!trace_at(f, x->pid, x->tid, x->at))
            WRONG("arrow %lld is in no slice", (long long)x->id);
    }
    return NULL;
}

const char *trace_check(const char *text, size_t n, struct trace_facts *ret)
{
    struct seen s = {.f = ret};
    json_error_t error;
    json_t *e;
    size_t i;
    *ret = (struct trace_facts){.trace = json_loadb(text, n, 0, &error)};
    if (!ret->trace) WRONG("no JSON: line %d: %s", error.line, error.text);
    const json_t *all = json_object_get(ret->trace, "traceEvents");
    const char *unit = json_string_value(json_object_get(ret->trace, "displayTimeUnit"));
    if (!json_is_array(all)) WRONG("no traceEvents");
    if (!unit || (strcmp(unit, "ms") != 0 && strcmp(unit, "ns") != 0)) WRONG("displayTimeUnit");
    ret->event = calloc(json_array_size(all) + 1, sizeof *ret->event);
    ret->flow = calloc(json_array_size(all) + 1, sizeof *ret->flow);
    json_array_foreach(all, i, e) {
        const char *why = check_event(&s, e);
        if (why) return why;
    }
    for (int k = 0; k < ret->events; k++)
        if (!s.process[ret->event[k].pid] || !s.row[ret->event[k].pid][ret->event[k].tid])
            WRONG("%s is in a row without a name", trace_name(&ret->event[k]));
    qsort(ret->event, (size_t)ret->events, sizeof *ret->event, in_order);
    const char *why = check_nesting(ret);
    return why ? why : check_flows(ret);
}

void trace_forget(struct trace_facts *f)
{
    free(f->event);
    free(f->flow);
    json_decref(f->trace);
    *f = (struct trace_facts){0};
}

const json_t *trace_arg(const struct trace_event *e, const char *name)
{
    return json_object_get(json_object_get(e->event, "args"), name);
}

const char *trace_name(const struct trace_event *e)
{
    return json_string_value(json_object_get(e->event, "name"));
}
