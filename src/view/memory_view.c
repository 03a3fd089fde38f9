#include "view/memory_view.h"

#include "backend/backend.h"
#include "base/str.h"
#include "engine/facts.h"
#include "engine/fit.h"
#include "engine/optimizer.h"
#include "engine/shards.h"
#include "present/table_cells.h"

#include <jansson.h>
#include <string.h>

static const struct node *node_of(const struct memory_view *v, const struct memory_moment *m)
{
    return &v->program->graph[m->kind].node[m->step];
}

const char *memory_moment_words(const struct memory_view *v, const struct memory_moment *m,
                                struct arena *a)
{
    const struct node *n = node_of(v, m);
    return arena_printf(a, "%s %s", op_def(n->op)->name, n->scope);
}

const char *memory_phase_words(const struct memory_view *v, const struct memory_moment *m,
                               struct arena *a)
{
    const char *phase = phase_name(node_of(v, m)->phase);
    if (m->kind == GRAPH_MICRO_LAST) return arena_printf(a, "%s, the last", phase);
    if (m->kind != GRAPH_MICRO_MORE) return phase;
    return arena_printf(a, "%s, %lld more", phase,
                        (long long)runs_per_step(v->config, GRAPH_MICRO_MORE));
}

/* --- tables ----------------------------------------------------------------------------------- */

/* A kind of columns of these tables alone: "12.5 %", in CSV and JSON the share. */
enum { TABLE_IS_SHARE = true };
#define TABLE_SHARE(bytes, of) set_share(TABLE_AT, bytes, of, row.arena)

static void set_share(struct table *t, int row, int col, int64_t bytes, int64_t of, struct arena *a)
{
    double share = of ? (double)bytes / (double)of : 0;
    *table_at(t, row, col) = (struct table_cell){arena_printf(a, "%.1f %%", 100 * share), share};
}

/* clang-format off */
#define PEAK_PART(X) \
    X("part", "memory at the peak", "what the memory holds", TEXT, name) \
    X("bytes", "bytes", "in use while the kernel of the peak runs", BYTES, true, bytes) \
    X("share", "share", "of all allocated memory", SHARE, bytes, total) \
    X("note", "note", "", TEXT, note)
#define TENSOR(X) \
    X("bytes", "bytes", "", BYTES, true, x->bytes) \
    X("share", "share", "of the bytes of all tensors", SHARE, x->bytes, of) \
    X("part", "part", "what the memory holds", TEXT, memory_part_name(x->part)) \
    X("layer", "layer", "block of the model", NUMBER, x->layer >= 0, 0, x->layer) \
    X("first", "from step", "step of the plan that writes it", NUMBER, temporary || all, 0, x->first) \
    X("last", "to", "the last step that needs it", NUMBER, temporary || all, 0, x->last) \
    X("offset", "at", "offset in the arena", NUMBER, temporary && all, 0, (double)x->offset) \
    X("op", "written by", "", TEXT, *x->op ? x->op : NULL) \
    X("output", "output", "number of the output of its operator", NUMBER, x->output > 0 || (all && *x->op), 0, x->output) \
    X("type", "type", "", TEXT, x->type.rank ? arena_strdup(row.arena, type_text(type, &x->type)) : NULL) \
    X("name", "name", "", TEXT, x->name)
#define VARIANT(X) \
    X("recompute", "recompute", "what the backward pass recomputes", TEXT, config_value_text(&c, "recompute", row.arena)) \
    X("total", "memory", "of the training", BYTES, true, x->total) \
    X("total_ratio", "of none", "share of the memory of recompute=none", SHARE, x->total, none->total) \
    X("saved", "saved for backward", "at its largest", BYTES, true, x->saved) \
    X("flops", "FLOPs/step", "of the plan", SHOWN, true, arena_strdup(row.arena, str_flops(flops, x->flops)), x->flops) \
    X("flops_ratio", "more FLOPs", "compared with recompute=none", SHOWN, true, arena_printf(row.arena, "%.1f %%", 100 * (more - 1)), more) \
    X("batch_size", "largest batch_size", "that fits the limit", NUMBER, v->limit, 0, (double)x->batch)
/* clang-format on */

static void set_part(struct table_row row, const char *name, int64_t bytes, int64_t total,
                     const char *note)
{
    PEAK_PART(TABLE_CELL)
}

static const char *const part_notes[MEMORY_PARTS] = {
    [MEMORY_OPTIMIZER] = "two moments of AdamW",
    [MEMORY_UNUSED] = "part of the arena that the peak does not use",
};

/* Describes the weight copies of the plan; with float8 they include the amax history. */
static const char *copies_note(const struct memory_view *v, struct arena *a)
{
    const int64_t *bytes = v->program->bytes;
    bool mixed = precision_is_mixed(v->config->plan.dtype);
    const char *weights = mixed ? "bf16, packed" : "f32, packed";
    if (bytes[STORAGE_COPY]) weights = "bf16 and packed";
    if (!bytes[STORAGE_PACKED]) weights = "bf16";
    if (!bytes[STORAGE_COPY] && !bytes[STORAGE_PACKED]) return "amax history for float8";
    return arena_printf(a, "weights as matmuls read them: %s%s", weights,
                        bytes[STORAGE_AMAX] ? "; amax history" : "");
}

static struct table parts_table(const struct memory_view *v, struct arena *a)
{
    static const struct table_column columns[] = {PEAK_PART(TABLE_COLUMN)};
    const struct memory_moment *m = &v->course.moment[v->course.peak];
    int64_t total = v->course.total;
    int rows = 1;
    for (int i = 0; i < MEMORY_PARTS; i++) rows += m->bytes[i] > 0;
    struct table t = table_new(columns, COUNT_OF(columns), rows, a);
    struct table_row row = {&t, 0, 0, a};
    for (int i = 0; i < MEMORY_PARTS; i++) {
        if (!m->bytes[i]) continue;
        const char *note = i == MEMORY_COPIES ? copies_note(v, a) : part_notes[i];
        set_part(row, memory_part_name((enum memory_part)i), m->bytes[i], total, note ? note : "");
        table_next_row(&row);
    }
    set_part(row, "total", total, total, "");
    return t;
}

/* `all`: also fill the columns that only JSON prints. */
static void set_tensor(struct table_row row, const struct memory_tensor *x, int64_t of, bool all)
{
    char type[TYPE_TEXT];
    bool temporary = x->offset >= 0;
    TENSOR(TABLE_CELL)
}

static struct table tensors_table(const struct memory_tensors *list, int rows, bool all,
                                  struct arena *a)
{
    static const struct table_column columns[] = {TENSOR(TABLE_COLUMN)};
    struct table t = table_new(columns, COUNT_OF(columns), rows < list->n ? rows : list->n, a);
    for (int i = 0; i < t.rows; i++)
        set_tensor((struct table_row){&t, i, 0, a}, &list->tensor[i], list->bytes, all);
    return t;
}

static void set_variant(struct table_row row, const struct memory_view *v,
                        const struct memory_variant *x)
{
    const struct memory_variant *none = &v->variant[0];
    struct config c = *v->config;
    c.plan.recompute = x->recompute;
    char flops[32];
    double more = x->flops / none->flops;
    VARIANT(TABLE_CELL)
}

static struct table variants_table(const struct memory_view *v, struct arena *a)
{
    static const struct table_column columns[] = {VARIANT(TABLE_COLUMN)};
    struct table t = table_new(columns, COUNT_OF(columns), v->variants, a);
    for (int i = 0; i < t.rows; i++)
        set_variant((struct table_row){&t, i, 0, a}, v, &v->variant[i]);
    return t;
}

enum { TIME_KIND, TIME_STEP, TIME_PHASE, TIME_LAYER, TIME_OP, TIME_NAME, TIME_PARTS };
enum { TIME_USED = TIME_PARTS + MEMORY_PARTS, TIME_COLUMNS };

struct table memory_view_timeline(const struct memory_view *v, struct arena *a)
{
    static const struct table_column first[TIME_PARTS] = {
        [TIME_KIND] = {"graph", "graph", "", false},  [TIME_STEP] = {"step", "step", "", true},
        [TIME_PHASE] = {"phase", "phase", "", false}, [TIME_LAYER] = {"layer", "layer", "", true},
        [TIME_OP] = {"op", "operator", "", false},    [TIME_NAME] = {"scope", "where", "", false}};
    struct table_column *column = ARENA_NEW(a, struct table_column, TIME_COLUMNS);
    for (int i = 0; i < TIME_PARTS; i++) column[i] = first[i];
    for (int i = 0; i < MEMORY_PARTS; i++)
        column[TIME_PARTS + i] = (struct table_column){
            memory_part_id((enum memory_part)i), memory_part_name((enum memory_part)i), "", true};
    column[TIME_USED] = (struct table_column){"used", "used", "all parts except unused", true};
    struct table t = table_new(column, TIME_COLUMNS, v->course.moments, a);
    for (int i = 0; i < t.rows; i++) {
        const struct memory_moment *m = &v->course.moment[i];
        const struct node *n = node_of(v, m);
        table_set_text(&t, i, TIME_KIND, graph_kind_name(m->kind));
        table_set(&t, i, TIME_STEP, 0, m->step, a);
        table_set_text(&t, i, TIME_PHASE, phase_name(n->phase));
        table_set(&t, i, TIME_LAYER, 0, n->layer, a);
        table_set_text(&t, i, TIME_OP, op_def(n->op)->name);
        table_set_text(&t, i, TIME_NAME, n->scope);
        for (int k = 0; k < MEMORY_PARTS; k++)
            table_set_bytes(&t, i, TIME_PARTS + k, m->bytes[k], a);
        table_set_bytes(&t, i, TIME_USED, m->used, a);
    }
    return t;
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_saved(const struct memory_view *v, const struct table_form *form, struct str *s,
                        struct arena *a)
{
    enum { TOP = 5 };
    char bytes[32], of[32];
    int64_t top = 0, all = v->course.moment[0].bytes[MEMORY_SAVED];
    for (int i = 0; i < v->course.moments; i++)
        if (v->course.moment[i].bytes[MEMORY_SAVED] > all)
            all = v->course.moment[i].bytes[MEMORY_SAVED];
    for (int i = 0; i < v->saved.n && i < TOP; i++) top += v->saved.tensor[i].bytes;
    str_printf(s, "\nblock %d saves %s for backward in %d value%s (the whole model: %s)", v->block,
               str_bytes(bytes, (double)v->saved.bytes), v->saved.n, v->saved.n == 1 ? "" : "s",
               str_bytes(of, (double)all));
    if (v->saved.n > TOP)
        str_printf(s, "; the %d largest are %.1f %% of it", TOP,
                   100.0 * (double)top / (double)v->saved.bytes);
    str_append(s, "\n\n");
    struct table t = tensors_table(&v->saved, TOP, false, a);
    if (t.rows) table_form_print(form, &t, s);
}

/* Says whether the logits of a language model are saved; that depends on how the loss is fused. */
static void print_logits(const struct memory_view *v, struct str *s, struct arena *a)
{
    struct memory_tensors outside;
    bool saved = false;
    if (!v->vocab) return;
    memory_saved(v->program, -1, &outside, a);
    for (int i = 0; i < outside.n; i++) {
        const struct type *t = &outside.tensor[i].type;
        saved |= t->rank > 1 && t->dim[t->rank - 1] >= v->vocab;
    }
    str_printf(s, "\nThe logits are %s. Recomputation does not change that.\n",
               saved ? "saved for backward and counted in that column"
                     : "not saved for backward, because the loss computes their gradient at once: "
                       "they are in memory, but not counted in that column");
}

static const char *device_words(const struct memory_view *v)
{
    const struct backend *b = v->program->target->backend;
    if (!strcmp(b->name, "cuda"))
        return "cuda; the CUDA context, some hundreds of MiB, is not counted";
    return b->host_memory ? "cpu; other memory of the process is not counted" : b->name;
}

static void print_limit(const struct memory_view *v, struct str *s)
{
    char total[32], limit[32];
    str_printf(s, "\n%s of %s: %s", str_bytes(total, (double)v->course.total),
               str_bytes(limit, (double)v->limit),
               v->course.total <= v->limit ? "fits; " : "does not fit; ");
    if (v->batch >= BATCH_SIZE_MOST)
        str_printf(s, "even batch_size = %lld fits, the largest value of the key\n",
                   (long long)v->batch);
    else if (v->batch)
        str_printf(s, "batch_size = %lld is the largest that fits\n", (long long)v->batch);
    else
        str_append(s, "not even batch_size = 1 fits\n");
    if (v->ranks)
        str_printf(s, "%lld ranks with zero=%d are the fewest of which each fits, in %s\n",
                   (long long)v->ranks, fit_zero_stage(v->config),
                   str_bytes(total, (double)v->of_rank));
    else if (v->of_rank)
        str_printf(s, "no number of ranks with zero=%d fits: what they do not share takes %s\n",
                   fit_zero_stage(v->config), str_bytes(total, (double)v->of_rank));
}

static void print_run(const struct memory_view *v, struct str *s)
{
    const struct memory_run *r = &v->run;
    char plan[32], measured[32];
    str_printf(s, "\nmeasured in two steps: predicted %s, ", str_bytes(plan, (double)r->planned));
    if (r->measured < 0) {
        str_append(s, "measured: unknown on this device\n");
        return;
    }
    str_printf(s, "%s %s: %+.2f %%\n", r->host ? "the process grew by" : "the driver reports",
               str_bytes(measured, (double)r->measured),
               100.0 * ((double)r->measured / (double)r->planned - 1));
}

/* What the forecast leaves out if a training of several ranks saves checkpoints. */
static void print_gathering(const struct memory_view *v, struct str *s)
{
    char first[32], others[32];
    struct config other = *v->config;
    int states = optimizer_of(v->config)->states;
    other.ranks.rank = 1;
    if (!shards_state(v->config) || v->extent != EXTENT_STEP) return;
    str_printf(
        s, "checkpoints  rank 0 gathers them in %s more of host memory, each other rank in %s\n",
        str_bytes(first, (double)shard_host_bytes(v->config, &v->program->model, states)),
        str_bytes(others, (double)shard_host_bytes(&other, &v->program->model, states)));
}

/* The tables of memory_view_print, separated by empty lines. */
static void print_csv(const struct memory_view *v, struct str *s, struct arena *a)
{
    struct table parts = parts_table(v, a);
    table_print_csv(&parts, s);
    if (v->rows) {
        struct table t = tensors_table(&v->largest, (int)v->rows, false, a);
        str_append(s, "\n");
        table_print_csv(&t, s);
    }
    if (v->variants) {
        struct table t = variants_table(v, a);
        str_append(s, "\n");
        table_print_csv(&t, s);
    }
}

void memory_view_print(const struct memory_view *v, const struct table_form *form, struct str *s,
                       struct arena *a)
{
    if (form->csv) {
        print_csv(v, s, a);
        return;
    }
    const struct memory_moment *peak = &v->course.moment[v->course.peak];
    char bytes[32];
    struct table parts = parts_table(v, a);
    str_printf(s, "plan         %s\n", v->words);
    str_printf(s, "device       %s\n", device_words(v));
    print_gathering(v, s);
    str_printf(s, "phase        %s\n", memory_extent_name(v->extent));
    str_printf(s, "peak         %s, while %s runs: %s, graph %s, step %d of %d\n\n",
               str_bytes(bytes, (double)peak->used), memory_moment_words(v, peak, a),
               phase_name(node_of(v, peak)->phase), graph_kind_name(peak->kind), peak->step,
               v->program->plan[peak->kind].steps);
    if (form->markdown) str_append(s, "```\n");
    memory_plot_text(v, s);
    str_append(s, form->markdown ? "```\n\n" : "\n");
    table_form_print(form, &parts, s);
    if (v->rows) {
        struct table t = tensors_table(&v->largest, (int)v->rows, false, a);
        str_printf(s, "\nthe largest of the %d tensors at the peak\n\n", v->largest.n);
        table_form_print(form, &t, s);
    }
    if (v->block >= 0) print_saved(v, form, s, a);
    if (v->variants) {
        struct table t = variants_table(v, a);
        str_append(s, "\nmemory and work with recomputation\n\n");
        table_form_print(form, &t, s);
        print_logits(v, s, a);
    }
    if (v->limit) print_limit(v, s);
    if (v->was_run) print_run(v, s);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *peak_json(const struct memory_view *v, struct arena *a)
{
    const struct memory_moment *m = &v->course.moment[v->course.peak];
    const struct node *n = node_of(v, m);
    struct table tensors = tensors_table(&v->largest, v->largest.n, true, a);
    json_t *parts = json_object();
    for (int i = 0; i < MEMORY_UNUSED; i++)
        json_object_set_new(parts, memory_part_id((enum memory_part)i), json_integer(m->bytes[i]));
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:I, s:o, s:o}", "kind", graph_kind_name(m->kind),
                     "step", m->step, "phase", phase_name(n->phase), "op", op_def(n->op)->name,
                     "scope", n->scope, "bytes", (json_int_t)m->used, "parts", parts, "tensors",
                     table_json(&tensors));
}

static json_t *saved_json(const struct memory_view *v, struct arena *a)
{
    struct table t = tensors_table(&v->saved, v->saved.n, true, a);
    if (v->block < 0) return json_null();
    return json_pack("{s:i, s:I, s:o}", "layer", v->block, "bytes", (json_int_t)v->saved.bytes,
                     "tensors", table_json(&t));
}

static json_t *limit_json(const struct memory_view *v)
{
    if (!v->limit) return json_null();
    return json_pack("{s:I, s:b, s:I, s:I}", "bytes", (json_int_t)v->limit, "fits",
                     v->course.total <= v->limit, "batch_size", (json_int_t)v->batch, "ranks",
                     (json_int_t)v->ranks);
}

static json_t *run_json(const struct memory_view *v)
{
    if (!v->was_run) return json_null();
    return json_pack("{s:I, s:o, s:s}", "predicted", (json_int_t)v->run.planned, "measured",
                     v->run.measured < 0 ? json_null() : json_integer(v->run.measured), "by",
                     v->run.host ? "process" : "driver");
}

struct json_t *memory_view_json(const struct memory_view *v, struct arena *a)
{
    struct facts f = facts_of(v->program);
    struct table timeline = memory_view_timeline(v, a), variants = variants_table(v, a);
    return json_pack("{s:i, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "v", 1,
                     "vocabulary", (json_int_t)v->vocab, "device",
                     v->program->target->backend->name, "phase", memory_extent_name(v->extent),
                     "memory", record_json(facts_memory_record, &f), "peak", peak_json(v, a),
                     "block", saved_json(v, a), "recompute", table_json(&variants), "limit",
                     limit_json(v), "measured", run_json(v), "timeline", table_json(&timeline));
}
