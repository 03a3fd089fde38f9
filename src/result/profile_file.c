#include "result/profile_file.h"

#include "base/file.h"
#include "base/lenient.h"
#include "base/load.h"
#include "base/record.h"
#include "base/str.h"
#include "base/utf8.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* The names that `strobe profile` uses. The last one stands for unknown names. */
static const char *const families[PROFILE_FILE_FAMILIES] = {
    "matrix products", "attention",          "softmax",
    "norms",           "pointwise",          "loss",
    "optimizer",       "embeddings",         "copies and casts",
    "communication",   "inputs and results", "idle",
    "other",
};

int profile_file_family(const char *name)
{
    int i = 0;
    if (name && !strcmp(name, "of no kernel")) name = "inputs and results"; /* old name */
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

/* --- fields ----------------------------------------------------------------------------------- */

/* clang-format off */
#define S struct stats
RECORD(times, F(INT, "n", n), T("median", median), T("mean", mean), T("std", std),
       T("min", min), T("max", max), T("p95", p95));
#undef S

#define S struct profile_file_launch
RECORD(launch, F(WHOLE, "blocks", blocks), F(WHOLE, "threads", threads),
       F(WHOLE, "registers", registers), F(WHOLE, "static_bytes", static_bytes),
       F(WHOLE, "dynamic_bytes", dynamic_bytes), F(WHOLE, "sm_blocks", sm_blocks),
       F(WHOLE, "sm_warps", sm_warps), F(WHOLE, "sm_warps_most", sm_warps_most),
       F(TEXT, "limit", limit), T("waves", waves), T("tail", tail));
#undef S

#define SHARE(KIND, share, ...) KIND(#share, share),
#define S struct profile_row
RECORD(threads, T("busy_ms", busy_ms), T("busiest_ms", busiest_ms));
RECORD(counters, F(WHOLE, "dram_read", dram_read), F(WHOLE, "dram_written", dram_written),
       F(WHOLE, "dram_of_node", dram_of_node), COUNTER_SHARES(SHARE, T));
RECORD(row, F(TEXT, "plan", plan), F(INDEX, "node", node), F(TEXT, "op", op_name),
       F(TEXT, "dtype", dtype_name), F(TEXT, "peak_of", peak_of), F(TEXT, "shape", shape),
       F(TEXT, "types", types), F(TEXT, "phase", phase_name), F(INDEX, "layer", range.layer),
       F(TEXT, "scope", scope), F(TEXTS, "range", range.word, N(range.words), .most = RANGE_DEPTH), F(TEXT, "family", family_name),
       F(TEXT, "kernel", variant), F(TEXT, "device_kernel", device_kernel),
       F(WHOLE, "flops", flops), F(WHOLE, "bytes", bytes), T("floor_ms", floor_ms),
       F(TEXT, "bound", bound_name), T("per_step", per_step), T("ms_per_step", ms),
       T("std_per_step", std), F(SERIES, "chunk_ms", chunk_ms, N(chunks), .digits = 7),
       T("work_ms_per_step", work_ms), T("hidden_ms_per_step", hidden_ms),
       F(ONE, "run_ms", run_ms, .of = &times_record), PART("threads", threads),
       PART("counters", counters), F(ONE, "launch", launch, .of = &launch_record));
#undef S

#define S struct profile_moment
TUPLE(moment, F(INT, "row", row), T("start_us", start_us), T("end_us", end_us),
      F(INT, "lane", lane));
#undef S

#define S struct profile_file_column
TUPLE(column, F(INT, "row", row), F(WHOLES, "bytes", bytes, N(parts)));
#undef S

#define S struct profile_word
RECORD(answer, F(TEXT, "about", about), F(TEXT, "text", text));
#undef S

#define S struct profile_file_peak
RECORD(product, F(TEXT, "dtype", name), F(REAL, "flops_per_s", rate));
#undef S

#define S struct profile_file_copy
RECORD(copy, F(WHOLE, "bytes_per_thread", bytes), F(REAL, "bytes_per_s", rate));
#undef S

/* The file has more of the configuration, the plan and the machine. */
#define S struct profile_file
RECORD(config, F(WHOLE, "n_layer", layers), F(WHOLE, "n_head", heads), F(WHOLE, "n_embd", channels),
       F(WHOLE, "block_size", context));
RECORD(plan, F(WHOLE, "parameters", parameters), F(WHOLE, "tokens_per_step", tokens),
       F(TEXT, "plan_sha256", work));
RECORD(machine, F(TEXT, "cpu", of.cpu), F(TEXT, "gpu", of.gpu), F(TEXT, "isa", of.isa),
       F(TEXT, "library", of.library), F(WHOLE, "threads", of.ceilings.threads),
       F(TEXT, "date", of.date), F(WHOLE, "l2_bytes", of.cache_bytes),
       F(LIST, "products", product, N(products), .of = &product_record),
       F(LIST, "copies", of.copy, N(of.copies), .of = &copy_record));
RECORD(chunks, F(WHOLE, "of", chunks.of), F(WHOLES, "turn", chunks.turn, N(chunks.n)),
       F(SERIES, "plain_ms", chunks.plain_ms, N(chunks.plain_n), .digits = 7),
       F(SERIES, "step_ms", chunks.step_ms, N(chunks.step_n), .digits = 7),
       F(SERIES, "idle_ms", chunks.idle_ms, N(chunks.idle_n), .digits = 7));
RECORD(idle, F(WHOLE, "gaps_per_step", gaps), F(REAL, "ms_per_step", idle_ms),
       F(FIGURES, "phases", phase_idle_ms, N(phase_idle_n), .digits = 7),
       F(ONE, "step_ms", idle_step_ms, .of = &times_record));
RECORD(timeline, F(INT, "step", shown), F(TEXT, "fields", moment_fields),
       F(LIST, "moments", moment, N(moments), .of = &moment_record));
RECORD(memory, F(WHOLE, "total_bytes", memory.total), F(INT, "peak", memory.peak),
       F(TEXTS, "parts", memory.part, N(memory.parts)),
       F(LIST, "moments", memory.column, N(memory.columns), .of = &column_record));
RECORD(file, F(WHOLE, "v", v), F(TEXT, "version", version), F(TEXT, "date", date),
       F(TEXT, "device", device), PART("config", config), PART("plan", plan),
       PART("machine", machine), F(WHOLE, "threads", threads), F(TEXT, "commit", commit),
       F(TEXT, "command", command), F(TEXT, "times_by", times_by), F(TEXT, "times_why", times_why),
       F(TEXT, "traced_by", traced_by), F(FLAG, "replay", replay), F(WHOLE, "warmup", warmup),
       F(WHOLE, "steps", steps), F(ONE, "step_ms", step_ms, .of = &times_record),
       F(ONE, "plain_step_ms", plain_step_ms, .of = &times_record), PART("chunks", chunks),
       T("overhead", overhead), F(SERIES, "overhead_half", overhead_half, N(halves), .digits = 7),
       T("host_ms_per_step", host_ms), T("others_busy", others), F(WHOLE, "processors", processors),
       F(WHOLE, "dropped", dropped), F(WHOLE, "unmatched", unmatched),
       F(TEXT, "dropped_why", dropped_why), F(WHOLE, "counted", counted),
       F(TEXT, "counters_why", counters_why),
       F(FIGURES, "phase_ms", phase_ms, N(phase_n), .digits = 7), PART("idle", idle),
       F(LIST, "words", answer, N(answers), .of = &answer_record),
       F(LIST, "rows", row, N(rows), .of = &row_record), PART("timeline", timeline),
       PART("memory", memory));
#undef S
/* clang-format on */

const struct record *const profile_file_record = &file_record, *const profile_row_record =
                                                                   &row_record;

/* --- rows and kernels ------------------------------------------------------------------------- */

static double or_zero(double x)
{
    return isfinite(x) ? x : 0;
}

static void check_row(struct profile_row *r, int chunks)
{
    r->family = profile_file_family(r->family_name);
    r->ms = or_zero(r->ms);
    if (r->chunks != chunks || !chunks) r->chunk_ms = NULL;
    if (isnan(r->work_ms)) r->work_ms = r->ms; /* older files */
    if (!r->range.words) r->range.word[r->range.words++] = r->phase_name ? r->phase_name : "step";
}

bool profile_row_same(const struct profile_row *x, const struct profile_row *y)
{
    return str_same(x->op_name, y->op_name) && str_same(x->shape, y->shape) &&
           str_same(x->dtype_name, y->dtype_name) && str_same(x->peak_of, y->peak_of) &&
           str_same(x->variant, y->variant) && str_same(x->device_kernel, y->device_kernel);
}

static void name_kernel(struct profile_file_kernel *k, const struct profile_row *r, struct arena *a)
{
    const char *variant = r->variant ? r->variant : "unnamed";
    if (!r->op_name) {
        k->label = variant;
        k->name = arena_printf(a, "%s (%s)", variant, families[r->family]);
        return;
    }
    k->label = r->shape ? arena_printf(a, "%s %s", r->op_name, r->shape) : r->op_name;
    if (r->device_kernel) variant = r->device_kernel;
    k->name = arena_printf(a, "%s %.*s", k->label, utf8_fit(variant, NAME_MOST), variant);
}

static void join_kernels(struct profile_file *p, struct arena *a)
{
    p->kernel = ARENA_NEW(a, struct profile_file_kernel, p->rows + 1);
    for (int i = 0; i < p->rows; i++) {
        struct profile_row *r = &p->row[i];
        while (r->kernel < p->kernels && !profile_row_same(&p->row[p->kernel[r->kernel].row], r))
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

/* --- what is valid ---------------------------------------------------------------------------- */

/* Keeps the elements that `is_valid` accepts. */
#define KEEP(list, n, is_valid)                       \
    do {                                              \
        int kept = 0;                                 \
        for (int i = 0; i < (n); i++)                 \
            if (is_valid) (list)[kept++] = (list)[i]; \
        (n) = kept;                                   \
    } while (0)

static bool is_moment(const struct profile_file *p, const struct profile_moment *m)
{
    return m->row >= 0 && m->row < p->rows && m->lane >= 0 && m->lane < PROFILE_FILE_LANES &&
           m->start_us <= m->end_us;
}

static void check_memory(struct profile_file *p, struct arena *a)
{
    struct profile_file_memory *m = &p->memory;
    if (m->parts > PROFILE_FILE_PARTS) m->parts = PROFILE_FILE_PARTS;
    for (struct profile_file_column *c = m->column; c < m->column + m->columns; c++) {
        double *bytes = ARENA_NEW(a, double, PROFILE_FILE_PARTS);
        for (int k = 0; k < m->parts && k < c->parts; k++) bytes[k] = or_zero(c->bytes[k]);
        c->bytes = bytes;
        c->parts = m->parts;
        if (c->row >= p->rows) c->row = -1;
    }
    if (m->peak >= m->columns) m->peak = -1;
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

static void check_machine(struct profile_file *p)
{
    struct profile_file_machine *m = &p->of;
    struct ceilings *c = &m->ceilings;
    p->machine = m->gpu ? m->gpu : m->cpu;
    p->machine_date = m->date;
    c->gpu = m->gpu != NULL;
    for (int i = 0; i < m->copies && c->copies < CEILINGS_COPIES; i++) {
        double last = c->copies ? c->copy_bytes[c->copies - 1] : 0;
        if (!(m->copy[i].bytes > last && m->copy[i].rate > 0)) continue;
        c->copy_bytes[c->copies] = m->copy[i].bytes;
        c->copy_rate[c->copies++] = m->copy[i].rate;
    }
    KEEP(p->product, p->products, p->product[i].name && p->product[i].rate > 0);
    if (p->products > PROFILE_FILE_PEAKS) p->products = PROFILE_FILE_PEAKS;
    profile_file_name_copies(p);
}

/* --- the file --------------------------------------------------------------------------------- */

/* Describes the size of the model, so that profiles of different models are recognized. */
static const char *model_of(const struct profile_file *p, struct arena *a)
{
    static const char *const words[] = {"layers", "heads", "channels", "tokens of context"};
    const double x[] = {p->layers, p->heads, p->channels, p->context};
    const char *text = "";
    for (int i = 0; i < COUNT_OF(words); i++)
        if (x[i] > 0)
            text = arena_printf(a, "%s%s%.0f %s", text, *text ? ", " : "", x[i], words[i]);
    char count[32];
    if (p->parameters > 0 && lenient_is_count(p->parameters))
        text = arena_printf(a, "%s%s%s parameters", text, *text ? ", " : "",
                            str_thousands(count, (int64_t)p->parameters));
    return *text ? text : NULL;
}

/* More would be no step; comparing them with each other takes a minute. */
enum { ROWS_MOST = 1 << 16, CHUNKS_MOST = 96 };

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
        struct profile_file_chunks *c = &p.chunks;
        record_take(profile_file_record, j, &p, a);
        p.name = lenient_utf8(name, (int64_t)strlen(name), a);
        p.path = lenient_utf8(path, (int64_t)strlen(path), a);
        p.model = model_of(&p, a);
        p.idle_ms = or_zero(p.idle_ms);
        if (c->n > CHUNKS_MOST || c->plain_n != c->n || c->step_n != c->n || c->idle_n != c->n)
            c->n = 0;
        for (int i = 0; i < p.rows; i++) check_row(&p.row[i], c->n);
        join_kernels(&p, a);
        check_machine(&p);
        KEEP(p.moment, p.moments, is_moment(&p, &p.moment[i]));
        KEEP(p.answer, p.answers, p.answer[i].about && p.answer[i].text);
        check_memory(&p, a);
        *ret_profile = p;
    }
    json_decref(j);
    return st;
}
