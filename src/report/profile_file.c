#include "report/profile_file.h"

#include "base/file.h"
#include "base/load.h"
#include "base/str.h"
#include "base/utf8.h"
#include "present/lenient.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* The names that `strobe profile` uses. The last one stands for unknown names. */
static const char *const families[PROFILE_FILE_FAMILIES] = {
    "matrix products", "attention",  "softmax",          "norms",         "pointwise",    "loss",
    "optimizer",       "embeddings", "copies and casts", "communication", "of no kernel", "idle",
    "other",
};

int profile_file_family(const char *name)
{
    int i = 0;
    while (i < PROFILE_FILE_FAMILIES - 1 && (!name || strcmp(families[i], name) != 0)) i++;
    return i;
}

const char *profile_file_family_name(int family)
{
    return families[family];
}

double profile_file_ms(const struct profile_file *p)
{
    double ms = p->idle_ms;
    for (int i = 0; i < p->kernels; i++) ms += p->kernel[i].ms;
    return ms;
}

double profile_file_floor(const struct profile_file *p)
{
    double ms = 0;
    for (int i = 0; i < p->kernels; i++) ms += p->kernel[i].floor_ms;
    return ms;
}

double profile_file_busy(const struct profile_file *p)
{
    double all = p->processors > 0 ? p->processors : p->threads; /* older files lack the first */
    return p->others > 0 && all > 0 ? fmin(p->others / all, 1) : 0;
}

static const char *digits(double x, int n, struct arena *a)
{
    char text[32];
    return arena_strdup(a, str_number(text, x, n));
}

const char *profile_file_words(const struct profile_file *p, struct arena *a)
{
    bool median = p->threads > 0 && profile_file_busy(p) > LOAD_BUSY && p->step_ms.median > 0;
    double ms = median                ? p->step_ms.median
                : p->step_ms.mean > 0 ? p->step_ms.mean
                                      : profile_file_ms(p);
    double floor = profile_file_floor(p);
    const char *text = arena_printf(a, "%s: a step takes %.3f ms %s", p->name, ms,
                                    median ? "(median)" : "on average");
    if (floor > 0)
        text = arena_printf(a, "%s, its floor is %s ms (%s times as long)", text,
                            digits(floor, 4, a), digits(ms / floor, 3, a));
    text = arena_printf(a, "%s; nothing ran for %.3f ms", text, p->idle_ms);
    if (profile_file_busy(p) > LOAD_BUSY)
        text = arena_printf(a, "%s; other programs kept %s processors busy", text,
                            digits(p->others, 2, a));
    if (p->dropped > 0)
        text = arena_printf(a, "%s; %.0f device activities were dropped", text, p->dropped);
    return arena_printf(a, "%s.", text);
}

enum { NAME_MOST = 48 }; /* bytes of a device kernel name that are shown */

/* --- values ----------------------------------------------------------------------------------- */

static const char *word_of(const json_t *value, struct arena *a)
{
    const char *text = json_string_value(value);
    return text && *text ? lenient_utf8(text, (int64_t)json_string_length(value), a) : NULL;
}

static const char *text_of(const json_t *object, const char *key, struct arena *a)
{
    return word_of(json_object_get(object, key), a);
}

static double number_at(const json_t *array, int i)
{
    const json_t *value = json_array_get(array, (size_t)i);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* `x` if it is an integer in [0, end), otherwise -1. */
static int index_of(double x, int end)
{
    return x >= 0 && x < end && x == floor(x) ? (int)x : -1;
}

static struct profile_file_times times_of(const json_t *object, const char *key)
{
    const json_t *t = json_object_get(object, key);
    return (struct profile_file_times){
        .n = lenient_number(t, "n"),
        .median = lenient_number(t, "median"),
        .mean = lenient_number(t, "mean"),
        .std = lenient_number(t, "std"),
        .min = lenient_number(t, "min"),
        .max = lenient_number(t, "max"),
    };
}

static double or_zero(double x)
{
    return isfinite(x) ? x : 0;
}

/* --- rows and kernels ------------------------------------------------------------------------- */

/* `n` numbers; NULL: the list has another length. */
static double *read_series(const json_t *list, int n, struct arena *a)
{
    if (!json_is_array(list) || json_array_size(list) != (size_t)n) return NULL;
    double *x = ARENA_NEW(a, double, n);
    for (int i = 0; i < n; i++) x[i] = number_at(list, i);
    return x;
}

static void read_chunks(struct profile_file_chunks *c, const json_t *j, struct arena *a)
{
    enum { CHUNKS_MOST = 96 };
    size_t n = json_array_size(json_object_get(j, "turn"));
    if (n > CHUNKS_MOST) return;
    c->turn = read_series(json_object_get(j, "turn"), (int)n, a);
    c->plain_ms = read_series(json_object_get(j, "plain_ms"), (int)n, a);
    c->step_ms = read_series(json_object_get(j, "step_ms"), (int)n, a);
    c->idle_ms = read_series(json_object_get(j, "idle_ms"), (int)n, a);
    c->of = lenient_number(j, "of");
    if (c->turn && c->plain_ms && c->step_ms && c->idle_ms) c->n = (int)n;
}

static struct profile_file_launch launch_of(const json_t *j, struct arena *a)
{
    return (struct profile_file_launch){
        .blocks = lenient_number(j, "blocks"),
        .threads = lenient_number(j, "threads"),
        .registers = lenient_number(j, "registers"),
        .static_bytes = lenient_number(j, "static_bytes"),
        .dynamic_bytes = lenient_number(j, "dynamic_bytes"),
        .sm_blocks = lenient_number(j, "sm_blocks"),
        .sm_warps = lenient_number(j, "sm_warps"),
        .sm_warps_most = lenient_number(j, "sm_warps_most"),
        .limit = text_of(j, "limit", a),
        .waves = lenient_number(j, "waves"),
        .tail = lenient_number(j, "tail"),
    };
}

static void read_row(struct profile_file_row *r, const json_t *j, int chunks, struct arena *a)
{
    enum { LAYERS_MOST = 1 << 20 };
    *r = (struct profile_file_row){
        .op = text_of(j, "op", a),
        .dtype = text_of(j, "dtype", a),
        .peak_of = text_of(j, "peak_of", a),
        .shape = text_of(j, "shape", a),
        .types = text_of(j, "types", a),
        .phase = text_of(j, "phase", a),
        .scope = text_of(j, "scope", a),
        .variant = text_of(j, "kernel", a),
        .device_kernel = text_of(j, "device_kernel", a),
        .bound = text_of(j, "bound", a),
        .family = profile_file_family(json_string_value(json_object_get(j, "family"))),
        .layer = index_of(lenient_number(j, "layer"), LAYERS_MOST),
        .flops = lenient_number(j, "flops"),
        .bytes = lenient_number(j, "bytes"),
        .floor_ms = lenient_number(j, "floor_ms"),
        .per_step = lenient_number(j, "per_step"),
        .ms = or_zero(lenient_number(j, "ms_per_step")),
        .run_ms = times_of(j, "run_ms"),
        .std = lenient_number(j, "std_per_step"),
        .work_ms = lenient_number(j, "work_ms_per_step"),
    };
    const json_t *counters = json_object_get(j, "counters");
    r->dram_read = lenient_number(counters, "dram_read");
    r->dram_written = lenient_number(counters, "dram_written");
    r->dram_of_node = lenient_number(counters, "dram_of_node");
    r->tensor_active = lenient_number(counters, "tensor_active");
    r->sm_active = lenient_number(counters, "sm_active");
    r->dram_busy = lenient_number(counters, "dram_busy");
    r->launch = launch_of(json_object_get(j, "launch"), a);
    if (chunks) r->chunk_ms = read_series(json_object_get(j, "chunk_ms"), chunks, a);
    if (isnan(r->work_ms)) r->work_ms = r->ms; /* older files */
    const json_t *range = json_object_get(j, "range"), *word;
    size_t i;
    json_array_foreach(range, i, word) {
        const char *text = word_of(word, a);
        if (text && r->words < PROFILE_FILE_DEPTH) r->word[r->words++] = text;
    }
    if (!r->words) r->word[r->words++] = r->phase ? r->phase : "step";
}

static bool same_kernel(const struct profile_file_row *x, const struct profile_file_row *y)
{
    return str_same(x->op, y->op) && str_same(x->shape, y->shape) && str_same(x->dtype, y->dtype) &&
           str_same(x->peak_of, y->peak_of) && str_same(x->variant, y->variant) &&
           str_same(x->device_kernel, y->device_kernel);
}

static void name_kernel(struct profile_file_kernel *k, const struct profile_file_row *r,
                        struct arena *a)
{
    const char *variant = r->variant ? r->variant : "unnamed";
    if (!r->op) {
        k->label = variant;
        k->name = arena_printf(a, "%s (%s)", variant, families[r->family]);
        return;
    }
    k->label = r->shape ? arena_printf(a, "%s %s", r->op, r->shape) : r->op;
    if (r->device_kernel) variant = r->device_kernel;
    k->name = arena_printf(a, "%s %.*s", k->label, utf8_fit(variant, NAME_MOST), variant);
}

static void join_kernels(struct profile_file *p, struct arena *a)
{
    p->kernel = ARENA_NEW(a, struct profile_file_kernel, p->rows + 1);
    for (int i = 0; i < p->rows; i++) {
        struct profile_file_row *r = &p->row[i];
        while (r->kernel < p->kernels && !same_kernel(&p->row[p->kernel[r->kernel].row], r))
            r->kernel++;
        struct profile_file_kernel *k = &p->kernel[r->kernel];
        if (r->kernel == p->kernels) {
            k->row = i;
            name_kernel(k, r, a);
            p->kernels++;
        }
        double runs = or_zero(r->per_step);
        k->per_step += runs;
        k->ms += r->ms;
        k->work_ms += r->work_ms;
        k->flops += runs * or_zero(r->flops);
        k->bytes += runs * or_zero(r->bytes);
        k->floor_ms += runs * or_zero(r->floor_ms);
    }
}

static void read_rows(struct profile_file *p, const json_t *rows, struct arena *a)
{
    p->row = ARENA_NEW(a, struct profile_file_row, (int64_t)json_array_size(rows) + 1);
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) {
        read_row(&p->row[p->rows++], row, p->chunks.n, a);
    }
    join_kernels(p, a);
}

/* --- the step --------------------------------------------------------------------------------- */

static void read_timeline(struct profile_file *p, const json_t *timeline, struct arena *a)
{
    const json_t *moments = json_object_get(timeline, "moments"), *m;
    p->moment = ARENA_NEW(a, struct profile_file_moment, (int64_t)json_array_size(moments) + 1);
    size_t i;
    json_array_foreach(moments, i, m) {
        int row = index_of(number_at(m, 0), p->rows);
        int lane = index_of(number_at(m, 3), PROFILE_FILE_LANES);
        double start = number_at(m, 1), end = number_at(m, 2);
        if (row < 0 || lane < 0 || !(start <= end)) continue;
        p->moment[p->moments++] = (struct profile_file_moment){row, lane, start, end};
    }
}

/* Readable names of memory parts. */
static const char *part_name(const char *id)
{
    static const char *const names[][2] = {
        {"optimizer", "optimizer state"},     {"copies", "copies of weights"},
        {"saved", "saved for backward"},      {"forward", "forward temporaries"},
        {"backward", "backward temporaries"}, {"update", "update temporaries"},
    };
    for (int i = 0; i < COUNT_OF(names); i++)
        if (strcmp(names[i][0], id) == 0) return names[i][1];
    return id;
}

static void read_memory(struct profile_file *p, const json_t *memory, struct arena *a)
{
    struct profile_file_memory *m = &p->memory;
    const json_t *parts = json_object_get(memory, "parts"), *one;
    const json_t *moments = json_object_get(memory, "moments");
    size_t i;
    json_array_foreach(parts, i, one) {
        const char *id = word_of(one, a);
        if (m->parts == PROFILE_FILE_PARTS || !id) break;
        m->part[m->parts++] = (struct profile_file_part){id, part_name(id)};
    }
    m->column = ARENA_NEW(a, struct profile_file_column, (int64_t)json_array_size(moments) + 1);
    double *start = ARENA_NEW(a, double, p->rows + 1); /* the first in the timeline */
    for (int k = 0; k < p->rows; k++) start[k] = NAN;
    for (int k = p->moments; k-- > 0;) start[p->moment[k].row] = p->moment[k].start_us;
    json_array_foreach(moments, i, one) {
        struct profile_file_column *c = &m->column[m->columns++];
        c->row = index_of(number_at(one, 0), p->rows);
        c->time_us = NAN;
        if (c->row >= 0) c->time_us = start[c->row];
        for (int k = 0; k < m->parts; k++) c->bytes[k] = or_zero(number_at(one, 1 + k));
    }
    m->peak = index_of(lenient_number(memory, "peak"), m->columns);
    m->total = lenient_number(memory, "total_bytes");
}

static void read_answers(struct profile_file *p, const json_t *words, struct arena *a)
{
    p->answer = ARENA_NEW(a, struct profile_file_answer, (int64_t)json_array_size(words) + 1);
    size_t i;
    const json_t *one;
    json_array_foreach(words, i, one) {
        const char *about = text_of(one, "about", a), *text = text_of(one, "text", a);
        if (about && text) p->answer[p->answers++] = (struct profile_file_answer){about, text};
    }
}

static void read_phases(struct profile_file *p, const json_t *file, struct arena *a)
{
    json_t *phases = json_object_get(file, "phase_ms"), *value;
    const json_t *idle = json_object_get(json_object_get(file, "idle"), "phases");
    const char *name;
    json_object_foreach(phases, name, value) {
        if (p->phases == PROFILE_FILE_PHASES || !json_is_number(value)) continue;
        p->phase[p->phases++] = (struct profile_file_phase){
            arena_strdup(a, name), json_number_value(value), or_zero(lenient_number(idle, name))};
    }
}

/* --- ceilings --------------------------------------------------------------------------------- */

static void read_matmuls(struct profile_file *p, const json_t *products, struct arena *a)
{
    size_t i;
    const json_t *one;
    json_array_foreach(products, i, one) {
        const char *name = text_of(one, "dtype", a);
        double rate = lenient_number(one, "flops_per_s");
        if (name && rate > 0 && p->products < PROFILE_FILE_PEAKS)
            p->product[p->products++] = (struct profile_file_peak){name, rate};
    }
}

static void read_copies(struct ceilings *m, const json_t *copies)
{
    const json_t *one;
    size_t i;
    json_array_foreach(copies, i, one) {
        double bytes = lenient_number(one, "bytes_per_thread");
        double rate = lenient_number(one, "bytes_per_s");
        double last = m->copies ? m->copy_bytes[m->copies - 1] : 0;
        if (!(bytes > last && rate > 0) || m->copies == CEILINGS_COPIES) continue;
        m->copy_bytes[m->copies] = bytes;
        m->copy_rate[m->copies++] = rate;
    }
}

/* The largest copy that fits in L2, the largest copy of all, and on a CPU the fastest one, because
 * a CPU's lower bounds use the bandwidth of a copy of the same size. */
void profile_file_name_copies(struct profile_file *p)
{
    const struct ceilings *m = &p->of.ceilings;
    double in_cache = NAN, large = NAN, fastest = 0;
    p->copies = 0;
    for (int i = 0; i < m->copies; i++) {
        if (m->copy_bytes[i] <= p->of.cache_bytes / 2) in_cache = m->copy_rate[i];
        large = m->copy_rate[i];
        fastest = fmax(fastest, large);
    }
    if (large > 0) p->copy[p->copies++] = (struct profile_file_peak){"memory", large};
    if (in_cache > large) p->copy[p->copies++] = (struct profile_file_peak){"L2", in_cache};
    if (!m->gpu && in_cache > large && fastest > in_cache)
        p->copy[p->copies++] = (struct profile_file_peak){"fastest copy", fastest};
}

static void read_machine(struct profile_file *p, const json_t *machine, struct arena *a)
{
    if (!json_is_object(machine)) return;
    p->machine = text_of(machine, "gpu", a);
    p->of.ceilings.gpu = json_object_get(machine, "gpu") != NULL;
    if (!p->machine) p->machine = text_of(machine, "cpu", a);
    p->machine_date = text_of(machine, "date", a);
    p->of.name = p->machine;
    p->of.isa = text_of(machine, "isa", a);
    p->of.library = text_of(machine, "library", a);
    p->of.ceilings.threads = lenient_number(machine, "threads");
    p->of.cache_bytes = lenient_number(machine, "l2_bytes");
    read_copies(&p->of.ceilings, json_object_get(machine, "copies"));
    read_matmuls(p, json_object_get(machine, "products"), a);
    profile_file_name_copies(p);
}

/* --- the file --------------------------------------------------------------------------------- */

/* Describes the size of the model, so that profiles of different models are recognised. */
static const char *model_of(const json_t *j, struct arena *a)
{
    static const char *const keys[][2] = {{"n_layer", "layers"},
                                          {"n_head", "heads"},
                                          {"n_embd", "channels"},
                                          {"block_size", "tokens of context"}};
    const json_t *config = json_object_get(j, "config"), *plan = json_object_get(j, "plan");
    double parameters = lenient_number(plan, "parameters");
    const char *text = "";
    for (int i = 0; i < COUNT_OF(keys); i++) {
        double x = lenient_number(config, keys[i][0]);
        if (x > 0) text = arena_printf(a, "%s%s%.0f %s", text, *text ? ", " : "", x, keys[i][1]);
    }
    char count[32];
    if (parameters > 0 && lenient_is_count(parameters))
        text = arena_printf(a, "%s%s%s parameters", text, *text ? ", " : "",
                            str_thousands(count, (int64_t)parameters));
    return *text ? text : NULL;
}

static void read_head(struct profile_file *p, const json_t *j, struct arena *a)
{
    p->command = text_of(j, "command", a);
    p->commit = text_of(j, "commit", a);
    p->work = text_of(json_object_get(j, "plan"), "plan_sha256", a);
    p->tokens = lenient_number(json_object_get(j, "plan"), "tokens_per_step");
    read_chunks(&p->chunks, json_object_get(j, "chunks"), a);
    p->model = model_of(j, a);
    p->device = text_of(j, "device", a);
    p->version = text_of(j, "version", a);
    p->date = text_of(j, "date", a);
    p->times_by = text_of(j, "times_by", a);
    p->times_why = text_of(j, "times_why", a);
    p->replay = json_is_true(json_object_get(j, "replay"));
    p->threads = lenient_number(j, "threads");
    p->warmup = lenient_number(j, "warmup");
    p->steps = lenient_number(j, "steps");
    p->overhead = lenient_number(j, "overhead");
    p->host_ms = lenient_number(j, "host_ms_per_step");
    p->dropped = lenient_number(j, "dropped");
    p->unmatched = lenient_number(j, "unmatched");
    p->dropped_why = text_of(j, "dropped_why", a);
    p->traced_by = text_of(j, "traced_by", a);
    p->step_ms = times_of(j, "step_ms");
    p->plain_ms = times_of(j, "plain_step_ms").median;
    const json_t *idle = json_object_get(j, "idle");
    p->idle_ms = or_zero(lenient_number(idle, "ms_per_step"));
    p->gaps = lenient_number(idle, "gaps_per_step");
    p->idle_std = times_of(idle, "step_ms").std;
    p->others = lenient_number(j, "others_busy");
    p->processors = lenient_number(j, "processors");
}

/* More would be no step; comparing them with each other takes a minute. */
enum { ROWS_MOST = 1 << 16 };

static enum status check(const char *path, const json_t *j, const char *data, int64_t size)
{
    const json_t *version = json_object_get(j, "v");
    int64_t at = 0;
    while (at < size && strchr(" \t\r\n", data[at])) at++;
    if (!j && at < size && data[at] == '{') {
        json_error_t why;
        json_decref(json_loadb(data, (size_t)size, 0, &why));
        return fail(ST_FORMAT, "%s is not valid JSON (line %d); it may be truncated", path,
                    why.line);
    }
    if (!j || !json_is_array(json_object_get(j, "rows")))
        return fail(ST_FORMAT,
                    "%s is not a profile or another result: name a run directory, or a file that "
                    "`strobe profile CONFIG` or the --save of another command wrote",
                    path);
    if (json_array_size(json_object_get(j, "rows")) > ROWS_MOST)
        return fail(ST_FORMAT,
                    "%s has %zu rows, more than any step has (%d): profile the step again", path,
                    json_array_size(json_object_get(j, "rows")), ROWS_MOST);
    if (json_is_integer(version) && json_integer_value(version) == PROFILE_FILE_VERSION)
        return ST_OK;
    return fail(ST_FORMAT,
                "%s is a profile of version %lld, but this program reads version %d: report on it "
                "with the strobe that wrote it",
                path, (long long)json_integer_value(version), PROFILE_FILE_VERSION);
}

enum status profile_file_read(const char *path, const char *name, struct arena *a,
                              struct profile_file *ret_profile)
{
    char *data;
    int64_t size;
    TRY(file_read(path, a, &data, &size));
    json_t *j = lenient_object(data, size);
    enum status st = check(path, j, data, size);
    if (st == ST_OK) {
        struct profile_file p = {.run = -1};
        p.name = lenient_utf8(name, (int64_t)strlen(name), a);
        p.path = lenient_utf8(path, (int64_t)strlen(path), a);
        read_head(&p, j, a);
        read_phases(&p, j, a);
        read_machine(&p, json_object_get(j, "machine"), a);
        read_rows(&p, json_object_get(j, "rows"), a);
        read_timeline(&p, json_object_get(j, "timeline"), a);
        read_memory(&p, json_object_get(j, "memory"), a);
        read_answers(&p, json_object_get(j, "words"), a);
        *ret_profile = p;
    }
    json_decref(j);
    return st;
}
