#include "profile/trace_file.h"

#include "base/gzip.h"
#include "base/own.h"
#include "profile/trace_draw.h"

#include <unistd.h>

static void name(struct str *s, const char *what, int process, int row, const char *text, int order)
{
    str_printf(
        s, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s_name\",\"args\":{\"name\":%s}}",
        process, row, what, text);
    str_printf(s,
               ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s_sort_index\",\"args\":{\"sort_"
               "index\":%d}}",
               process, row, what, order);
}

static void write_names(const struct drawing *d, struct str *s)
{
    const struct profile *p = d->p;
    const char *machine = p->machine ? p->machine->name : "";
    const char *device = arena_printf(d->a, "device: %s%s%s", p->engine->backend->name,
                                      *machine ? ", " : "", machine);
    static const char *const kinds[2] = {"kernels", "copies and fills"};
    name(s, "process", TRACE_HOST, 0, "\"host\"", TRACE_HOST);
    name(s, "thread", TRACE_HOST, TRACE_DEEDS, "\"thread that launches steps\"", TRACE_DEEDS);
    for (int i = 0; i < d->threads; i++)
        name(s, "thread", TRACE_HOST, TRACE_THREADS + i,
             drawing_quoted(arena_printf(d->a, "CPU thread %d", i), d->a), TRACE_THREADS + i);
    const struct profile_communication *c = p->communication;
    if (c) device = arena_printf(d->a, "rank 0, %s", device);
    name(s, "process", TRACE_DEVICE, 0, drawing_quoted(device, d->a), TRACE_DEVICE);
    name(s, "thread", TRACE_DEVICE, TRACE_RANGES, "\"parts of the model\"", TRACE_RANGES);
    for (int kind = 0; kind < 2; kind++)
        for (int lane = 0; lane < d->lanes[kind]; lane++) {
            int row = lane + (kind ? TRACE_COPIES : TRACE_KERNELS);
            const char *more = lane ? arena_printf(d->a, ", overlapping %d", lane) : "";
            name(s, "thread", TRACE_DEVICE, row,
                 drawing_quoted(arena_printf(d->a, "%s%s", kinds[kind], more), d->a), row);
        }
    for (int r = 0; c && (r < c->seen || r == 0); r++) {
        int process = TRACE_DEVICE + r;
        name(s, "thread", process, TRACE_COMMUNICATION, "\"communication\"", TRACE_COMMUNICATION);
        if (!r) continue;
        name(s, "process", process, 0, drawing_quoted(arena_printf(d->a, "rank %d", r), d->a),
             process);
        name(s, "thread", process, TRACE_KERNELS, "\"kernels\"", TRACE_KERNELS);
    }
}

static const char *summary(const struct trace_said *said, const struct trace_options *o,
                           struct arena *a)
{
    char limit[32];
    const char *left = "";
    str_bytes(limit, (double)o->limit);
    if (said->missing)
        left = arena_printf(a, "; %d more would exceed the limit of %s", said->missing, limit);
    if (said->cut)
        left = arena_printf(
            a,
            "%s; %lld events of the step were left out: they exceed the limit of %s or overlap too "
            "many others",
            left, (long long)said->cut, limit);
    return arena_printf(a, "%d step%s, %lld events%s", said->steps, said->steps == 1 ? "" : "s",
                        (long long)said->events, left);
}

static void join(struct drawing *d, const struct trace_options *o, const char *version,
                 struct str *step, int requested, struct str *ret, struct trace_said *said)
{
    const struct profile *p = d->p;
    str_printf(ret,
               "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":%s,\"times_by\":\"%s\","
               "\"replay\":%s,",
               drawing_quoted(version, d->a), profile_times_name(p->by),
               p->replay ? "true" : "false");
    str_printf(ret, "\"holds\":%s,\"first_step\":%d,\"dropped\":%lld},\n\"traceEvents\":[",
               drawing_quoted(summary(said, o, d->a), d->a), said->first, (long long)p->dropped);
    struct str names = {0};
    write_names(d, &names);
    str_append(ret, str_text(&names) + 1); /* without the first comma */
    str_release(&names);
    for (int i = 0; i < requested; i++) {
        if (step[i].len) str_append_bytes(ret, step[i].data, step[i].len);
        str_release(&step[i]);
    }
    str_append(ret, "\n]}\n");
    said->bytes = ret->len;
}

/* The order of steps: the one nearest to the median, then those after it, then those before it. */
static int next_step(int shown, int first, int requested, int n)
{
    int behind = first + requested - shown;
    return n < behind ? shown + n : shown - 1 - (n - behind);
}

/* The most bytes of the header with names; of a thread's names; of a rank's. */
enum { HEAD = 8192, NAMES = 256, RANK_NAMES = 3 * NAMES };

void trace_text(const struct profile *p, const struct trace_options *o, const char *version,
                struct str *ret, struct trace_said *said)
{
    struct arena a = {0};
    struct drawing d;
    int requested = o->steps < p->steps ? o->steps : p->steps,
        first = p->shown_step - (requested - 1) / 2;
    if (first > p->steps - requested) first = p->steps - requested;
    if (first < 0) first = 0;
    drawing_init(&d, p, first, requested, &a);
    int ranks = p->communication ? p->communication->ranks : 0;
    int64_t head = HEAD + (int64_t)NAMES * d.threads + (int64_t)RANK_NAMES * ranks,
            left = o->limit > head ? o->limit - head : 0;
    struct str *step = ARENA_NEW(&a, struct str, requested);
    *said = (struct trace_said){0};
    for (int n = 0; n < requested; n++) {
        int at = next_step(p->shown_step, first, requested, n);
        drawing_step(&d, at, left);
        if (n && d.w.cut) {
            said->missing = requested - n;
            str_release(&d.w.s);
            break;
        }
        step[at - first] = d.w.s;
        left -= d.w.s.len;
        if (n == 0 || at < said->first) said->first = at;
        said->steps++;
        said->events += d.w.events;
        said->cut += d.w.cut;
    }
    join(&d, o, version, step, requested, ret, said);
    arena_release(&a);
}

enum status trace_write(const struct profile *p, const struct trace_options *o, const char *version,
                        const char *folder, const char **ret_words, struct arena *a)
{
    struct str text = {0}, small = {0}, *kept = gzip_there() ? &small : &text;
    struct trace_said said;
    char bytes[32];
    const char *path = arena_printf(a, "%s/trace.json%s", folder, gzip_there() ? ".gz" : "");
    const char *other = arena_printf(a, "%s/trace.json%s", folder, gzip_there() ? "" : ".gz");
    trace_text(p, o, version, &text, &said);
    if (gzip_there()) gzip_text(&text, &small);
    enum status st = file_make_dirs(folder);
    if (st == ST_OK) st = own_write(path, OWN_TRACE, kept->data, kept->len);
    if (st == ST_OK) own_remove(other, OWN_TRACE);
    *ret_words = arena_printf(
        a, "%s (%s): %s%s", path, str_bytes(bytes, (double)kept->len), summary(&said, o, a),
        gzip_there() ? "" : "; not compressed: this program was built without zlib");
    str_release(&text);
    str_release(&small);
    return st;
}
