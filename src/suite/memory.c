/* cs336-memory: peak memory, saved values and recomputation, computed from plans. */
#include "suite/suites.h"

#include "engine/memory.h"
#include "engine/tune.h"
#include "present/table_cells.h"
#include "suite/parts.h"

#include <string.h>

enum { LENGTHS_MOST = 8, TOP = 5 };
static const char lengths[] = "128,256,512", types[] = "float32,bfloat16", size_of_text[] = "2.7b";
/* Rows of the first table: the extent of the plan, and the part of it whose peak is reported. */
static const struct {
    enum memory_extent extent;
    bool forward; /* only the forward pass */
    const char *name;
} peaks[] = {{EXTENT_INFERENCE, false, "inference"},
             {EXTENT_STEP, true, "forward of a step"},
             {EXTENT_STEP, false, "step"}};

struct looking {
    const struct suite_request *request;
    const struct suite_size *size;
    int sizes;
    int64_t length[LENGTHS_MOST];
    int lengths;
    struct bench_axis type;
    const char *backend;
    struct sheet *sheet;
    int done, all; /* plans */
    struct arena *a;
};

/* A configuration of the table. */
struct point {
    int size, type, length;
    struct config config;
};

static enum status configure(const struct looking *x, struct point *p)
{
    const char *more = arena_printf(x->a, "%s dtype=%s block_size=%lld", x->size[p->size].words,
                                    x->type.value[p->type], (long long)x->length[p->length]);
    TRY(suite_config(x->request, x->size[p->size].file, cs336_words, more, &p->config, x->a));
    return model_check(&p->config);
}

static void show(struct looking *x, const struct point *p)
{
    suite_show(x->request, (double)x->done++ / x->all,
               arena_printf(x->a, "%s %s T %lld", x->size[p->size].name, x->type.value[p->type],
                            (long long)x->length[p->length]));
}

static void name_point(struct table *t, int row, const struct looking *x, const struct point *p)
{
    table_set_text(t, row, 0, x->size[p->size].name);
    table_set_text(t, row, 1, x->type.value[p->type]);
    table_set(t, row, 2, 0, (double)x->length[p->length], x->a);
}

/* clang-format off */
enum { POINT_COLUMNS = 3 };
#define POINT                                                              \
    {"config", "config", "the model", false},                              \
    {"dtype", "dtype", "type of activations and matmuls", false},          \
    {"T", "T", "tokens per sequence", true},
/* clang-format on */

/* --- peaks ------------------------------------------------------------------------------------ */

/* clang-format off */
#define PEAK(X) \
    X("phase", "phase", "inference: the loss, with nothing saved; the forward pass of a step; or the step", TEXT, phase) \
    X("peak_bytes", "peak", "memory in use at the peak", BYTES, m, m->used) \
    X("total_bytes", "allocated", "memory allocated before the first step, with gaps", BYTES, m, course.total) \
    X("weights_bytes", "weights", "weights and their copies, at the peak", BYTES, m, part[MEMORY_WEIGHTS] + part[MEMORY_COPIES]) \
    X("gradients_bytes", "gradients", "gradients at the peak", BYTES, m && part[MEMORY_GRADIENTS], part[MEMORY_GRADIENTS]) \
    X("optimizer_bytes", "AdamW", "moments of AdamW", BYTES, m && part[MEMORY_OPTIMIZER], part[MEMORY_OPTIMIZER]) \
    X("saved_bytes", "saved", "saved for the backward pass, at the peak", BYTES, m && part[MEMORY_SAVED], part[MEMORY_SAVED]) \
    X("at", "where", "the kernel that runs at the peak", TEXT, m ? kernel_at(program, m, row.arena) : NULL) \
    X("residual_bytes", "one (B,T,C)", "a tensor of the residual stream in fp32", BYTES, m, c->data.batch_size * c->model.block_size * c->model.n_embd * (int64_t)sizeof(float)) \
    X("fits", "fits", "whether it fits within --mem-limit", TEXT, m && limit ? course.total <= limit ? "yes" : "no" : NULL) \
    X("note", "note", "why there is no plan", TEXT, why)
/* clang-format on */

static const struct table_column peak_columns[] = {POINT PEAK(TABLE_COLUMN)};

/* The peak of the forward pass. */
static const struct memory_moment *peak_of_forward(const struct memory_course *c,
                                                   const struct program *program)
{
    const struct memory_moment *most = NULL;
    for (int i = 0; i < c->moments; i++) {
        const struct memory_moment *m = &c->moment[i];
        bool forward = program->graph[m->kind].node[m->step].phase == PHASE_FORWARD;
        if (forward && (!most || m->used > most->used)) most = m;
    }
    return most;
}

static const char *kernel_at(const struct program *p, const struct memory_moment *m,
                             struct arena *a)
{
    const struct node *n = &p->graph[m->kind].node[m->step];
    return arena_printf(a, "%s %s", op_def(n->op)->name, n->scope);
}

/* `why`: why there is no program; NULL: there is one. */
static void set_peak(struct table_row row, const char *phase, const struct config *c,
                     const struct program *program, bool forward, int64_t limit, const char *why)
{
    struct memory_course course = {0};
    const struct memory_moment *m = NULL;
    if (!why) {
        memory_course(program, &course, row.arena);
        m = forward ? peak_of_forward(&course, program) : &course.moment[course.peak];
    }
    const int64_t *part = m ? m->bytes : NULL;
    PEAK(TABLE_CELL)
}

static enum status add_peak(struct looking *x, struct table *t, int row, const struct point *p,
                            int peak)
{
    struct arena plans = {0};
    struct program program;
    unsigned kinds = memory_kinds(&p->config, peaks[peak].extent);
    show(x, p);
    name_point(t, row, x, p);
    enum status st =
        program_for(&program, &p->config, suite_vocabulary(&p->config, CS336_VOCABULARY), kinds,
                    x->backend, &plans);
    const char *why = st == ST_UNSUPPORTED ? arena_strdup(x->a, fail_message()) : NULL;
    if (why) st = ST_OK;
    if (st == ST_OK)
        set_peak((struct table_row){t, row, POINT_COLUMNS, x->a}, peaks[peak].name, &p->config,
                 &program, peaks[peak].forward, x->request->limit, why);
    arena_release(&plans);
    return st;
}

static enum status add_peaks(struct looking *x)
{
    int rows = x->sizes * x->type.values * x->lengths * COUNT_OF(peaks), row = 0;
    struct sheet_table *t =
        sheet_add(x->sheet, "Peaks", peak_columns, COUNT_OF(peak_columns), rows, x->a);
    struct point p = {0};
    for (p.size = 0; p.size < x->sizes; p.size++)
        for (p.type = 0; p.type < x->type.values; p.type++)
            for (p.length = 0; p.length < x->lengths && !suite_stopped(); p.length++) {
                TRY(configure(x, &p));
                for (int i = 0; i < COUNT_OF(peaks); i++) TRY(add_peak(x, &t->table, row++, &p, i));
            }
    t->table.rows = row;
    sheet_bars(t, "peak of memory", "peak_bytes", NULL,
               (const char *[SHEET_LABELS]){"config", "dtype", "T", "phase"});
    t->chart.unit = SHEET_BYTES;
    return ST_OK;
}

/* --- what a block saves ----------------------------------------------------------------------- */

enum { TENSOR = POINT_COLUMNS, OPERATOR, TYPE, BYTES, SHARE, SAVED_COLUMNS };

static const struct table_column saved_columns[SAVED_COLUMNS] = {
    POINT[TENSOR] = {"tensor", "saved", "the saved tensor", false},
    [OPERATOR] = {"op", "by", "the operator that writes it", false},
    [TYPE] = {"type", "type", "type of the tensor", false},
    [BYTES] = {"bytes", "size", "size of the tensor", true},
    [SHARE] = {"percent", "%", "share of what the block saves", true},
};

/* The largest saved tensors of a block, a line for the others, one for its gradients. */
static void set_saved(struct sheet_table *s, int *row, const struct looking *x,
                      const struct point *p, const struct memory_tensors *saved, int64_t weights)
{
    struct table *t = &s->table;
    int64_t rest = saved->bytes;
    struct arena *a = x->a;
    int top = saved->n < TOP ? saved->n : TOP;
    for (int i = 0; i <= top + 1; i++, ++*row) {
        char type[TYPE_TEXT];
        int64_t bytes = i < top ? saved->tensor[i].bytes : i == top ? rest : weights;
        name_point(t, *row, x, p);
        if (i < top) {
            const struct memory_tensor *m = &saved->tensor[i];
            table_set_text(t, *row, TENSOR, arena_strdup(a, m->name));
            table_set_text(t, *row, OPERATOR, m->op);
            table_set_text(t, *row, TYPE, arena_strdup(a, type_text(type, &m->type)));
            rest -= m->bytes;
        } else {
            table_set_text(t, *row, TENSOR,
                           i == top ? arena_printf(a, "%d more", saved->n - top)
                                    : "(gradients of the block's weights)");
        }
        table_set_bytes(t, *row, BYTES, bytes, a);
        if (i <= top && saved->bytes)
            table_set(t, *row, SHARE, 3, 100.0 * (double)bytes / (double)saved->bytes, a);
    }
}

static int64_t gradients_of(const struct model *m, int layer)
{
    struct arena a = {0};
    const char *prefix = arena_printf(&a, "h.%d.", layer);
    int64_t bytes = 0;
    for (int i = 0; i < m->parameters; i++)
        if (!strncmp(m->parameter[i].name, prefix, strlen(prefix)))
            bytes += type_bytes(&m->parameter[i].type);
    arena_release(&a);
    return bytes;
}

static enum status add_saved(struct looking *x)
{
    struct point p = {.length = x->lengths - 1};
    struct sheet_table *t =
        sheet_add(x->sheet, "What one block saves for the backward pass, at the longest T",
                  saved_columns, SAVED_COLUMNS, x->sizes * x->type.values * (TOP + 2), x->a);
    int row = 0;
    for (p.size = 0; p.size < x->sizes; p.size++)
        for (p.type = 0; p.type < x->type.values && !suite_stopped(); p.type++) {
            struct program program;
            struct memory_tensors saved;
            TRY(configure(x, &p));
            show(x, &p);
            enum status st =
                program_for(&program, &p.config, suite_vocabulary(&p.config, CS336_VOCABULARY),
                            1u << GRAPH_MICRO, x->backend, x->a);
            if (st == ST_UNSUPPORTED) continue; /* the first table has the reason */
            TRY(st);
            int block = (int)model_layers(&p.config.model) / 2;
            memory_saved(&program, block, &saved, x->a);
            set_saved(t, &row, x, &p, &saved, gradients_of(&program.model, block));
        }
    t->table.rows = row;
    return ST_OK;
}

/* --- recomputation ---------------------------------------------------------------------------- */

enum {
    RECOMPUTE = POINT_COLUMNS,
    RECOMPUTE_TOTAL,
    RECOMPUTE_SAVED,
    RECOMPUTE_FLOPS,
    RECOMPUTE_COLUMNS
};

static const struct table_column recompute_columns[RECOMPUTE_COLUMNS] = {
    POINT[RECOMPUTE] = {"recompute", "recompute", "what the backward pass recomputes", false},
    [RECOMPUTE_TOTAL] = {"total_bytes", "allocated", "memory of a training step", true},
    [RECOMPUTE_SAVED] = {"saved_bytes", "saved", "saved for the backward pass, at its largest",
                         true},
    [RECOMPUTE_FLOPS] = {"flops_percent", "FLOPs %", "compared with a step without recomputation",
                         true},
};

static enum status add_again(struct looking *x)
{
    struct point p = {.length = x->lengths - 1};
    int most = x->sizes * x->type.values * MEMORY_VARIANTS, row = 0;
    struct sheet_table *t = sheet_add(x->sheet, "Recomputation, at the longest T",
                                      recompute_columns, RECOMPUTE_COLUMNS, most, x->a);
    for (p.size = 0; p.size < x->sizes; p.size++)
        for (p.type = 0; p.type < x->type.values && !suite_stopped(); p.type++) {
            struct memory_variant v[MEMORY_VARIANTS];
            struct target target;
            const struct tuning *tuning;
            int n;
            TRY(configure(x, &p));
            show(x, &p);
            TRY(tune_target(&p.config, x->backend, &target, &tuning, x->a));
            enum status st = memory_variants(
                &p.config, suite_vocabulary(&p.config, CS336_VOCABULARY),
                memory_kinds(&p.config, EXTENT_STEP), &target, tuning, 0, NULL, NULL, v, &n);
            if (st == ST_UNSUPPORTED) continue;
            TRY(st);
            for (int i = 0; i < n; i++, row++) {
                struct config c = p.config;
                c.plan.recompute = v[i].recompute;
                name_point(&t->table, row, x, &p);
                table_set_text(&t->table, row, RECOMPUTE, config_value_text(&c, "recompute", x->a));
                table_set_bytes(&t->table, row, RECOMPUTE_TOTAL, v[i].total, x->a);
                table_set_bytes(&t->table, row, RECOMPUTE_SAVED, v[i].saved, x->a);
                table_set(&t->table, row, RECOMPUTE_FLOPS, 4, 100 * v[i].flops / v[0].flops, x->a);
            }
        }
    t->table.rows = row;
    return ST_OK;
}

/* --- the suite -------------------------------------------------------------------------------- */

/* Plans need no device: without a GPU and without --device, the plans are for a GPU. */
static enum status find_backend(struct looking *x)
{
    struct config c;
    struct device d;
    TRY(suite_config(x->request, NULL, "", NULL, &c, x->a));
    TRY(suite_device(x->request, &d));
    bool planned = c.plan.device == DEVICE_AUTO && d.backend->host_memory && backend_find("cuda");
    x->backend = planned ? "cuda" : d.backend->name;
    if (planned)
        sheet_note(x->sheet, "There is no GPU here, so the plans are for an H200; plans need no "
                             "device. --device=cpu plans for this processor.");
    return ST_OK;
}

enum status suite_run_memory(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    static const char *const lists[] = {"block_size", "dtype", NULL};
    struct looking x = {.request = r, .sheet = ret, .a = a};
    struct suite_request of_text = *r;
    if (!r->size) of_text.size = size_of_text;
    TRY(suite_check_lists(r, lists));
    TRY(suite_sizes(&of_text, cs336_sizes, &x.size, &x.sizes, a));
    TRY(suite_lengths(r, "block_size", lengths, LENGTHS_MOST, x.length, &x.lengths, a));
    TRY(suite_values(r, "dtype", types, &x.type, a));
    x.all = x.sizes * x.type.values * (x.lengths * COUNT_OF(peaks) + 2);
    TRY(find_backend(&x));
    TRY(add_peaks(&x));
    TRY(suite_check_stopped(ret->table[0].table.rows > 0));
    TRY(add_saved(&x));
    return add_again(&x);
}
