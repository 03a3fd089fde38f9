/* cs336-attention and cs336-flash: attention alone over lengths and head sizes. */
#include "suite/suites.h"

#include "base/clock.h"
#include "bench/bench_attention.h"
#include "present/table_cells.h"
#include "suite/parts.h"

#include <stdio.h>
#include <string.h>

enum { HEADS_MOST = 8, TYPES_MOST = 3, SAMPLES = 20 };

/* The parameters of a suite. */
struct attention_suite {
    int64_t batch;
    const char *lengths, *small_lengths, *head_sizes, *small_head_sizes, *dtypes;
    unsigned ways;
    enum attention_variant plain; /* the baseline of speedups */
    int64_t limit;                /* bytes; 0: none */
    double limit_ms, small_limit_ms;
    struct suite_small small[SUITE_SMALLS];
};

static const struct attention_suite
    attention =
        {
            .batch = 8,
            .lengths = "256,1024,4096,8192,16384",
            .small_lengths = "64,256,1024",
            .head_sizes = "16,32,64,128",
            .small_head_sizes = "16,32,64,128",
            .dtypes = "float32",
            .ways = 1u << SLOW_PRIMITIVE | 1u << SLOW_FULL | 1u << FLASH,
            .plain = SLOW_PRIMITIVE,
            .limit_ms = 300e3,
            .small_limit_ms = 25e3,
            .small = {{"block_size", "T 64, 256 and 1024 instead of 256 to 16384"},
                      {"", "25 seconds in total instead of 300"}},
},
    flash = {
        .batch = 1,
        .lengths = "128,256,512,1024,2048,4096,8192,16384,32768,65536",
        .small_lengths = "128,512,2048,8192",
        .head_sizes = "16,32,64,128",
        .small_head_sizes = "16,64",
        .dtypes = "float32,bfloat16",
        .ways = 1u << SLOW_OP | 1u << FLASH,
        .plain = SLOW_OP,
        .limit = 32LL << 30,
        .limit_ms = 300e3,
        .small_limit_ms = 40e3,
        .small = {{"block_size", "T 128 to 8192 instead of 65536"},
                  {"n_embd", "head sizes 16 and 64"},
                  {"", "40 seconds in total instead of 300"}},
};

struct trial {
    const struct attention_suite *suite;
    const struct suite_request *request;
    struct device device;
    int64_t length[ATTENTION_LENGTHS], head_size[HEADS_MOST];
    int lengths, head_sizes;
    enum machine_precision precision[TYPES_MOST];
    int precisions;
    struct attention_cell *cell; /* by type, head size, length and variant */
    double done, all;            /* work, in the unit of weight() */
    int64_t start_ns;
    double limit_ms;
};

/* --- the table -------------------------------------------------------------------------------- */

/* clang-format off */
#define COLUMNS(X) \
    X("dtype", "dtype", "type of q, k, v and the output", TEXT, machine_precision_name(c->precision)) \
    X("d", "d", "columns of the head", NUMBER, true, 0, (double)head_size) \
    X("T", "T", "tokens per sequence", NUMBER, true, 0, (double)c->T) \
    X("attention", "attention", "slow (unfused) at a rung of fusion, or flash", TEXT, attention_variant_name(c->way)) \
    X("forward_ms", "forward ms", "mean", NUMBER, ran, 4, c->forward.mean) \
    X("forward_std", "std", "standard deviation", STD, ran, &c->forward) \
    X("backward_ms", "backward ms", "mean", NUMBER, ran, 4, c->backward.mean) \
    X("backward_std", "std", "standard deviation", STD, ran, &c->backward) \
    X("both_ms", "both ms", "forward and backward, mean", NUMBER, ran, 4, c->both.mean) \
    X("samples", "n", "number of samples", NUMBER, ran, 0, c->both.n) \
    X("times_slow", "x slow", "mean of the first variant / mean, both passes", NUMBER, ran && c != plain && !plain->reason, 3, plain->both.mean / c->both.mean) \
    X("order", "order", "fastest, both passes; the others beside it, by the rule of docs/MEASURING.md", TEXT, attention_order_words(c)) \
    X("kept_bytes", "before backward", "memory in use when the backward pass begins: inputs, outputs and saved values", BYTES, c->bytes, c->kept) \
    X("memory_bytes", "memory", "peak memory of the plan for both passes", BYTES, c->bytes, c->bytes) \
    X("note", "note", "why the cell was not measured", TEXT, c->reason)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static void set_row(struct table_row row, const struct attention_cell *c,
                    const struct attention_cell *plain, int64_t head_size)
{
    bool ran = !c->reason;
    COLUMNS(TABLE_CELL)
}

static void make_table(const struct trial *x, struct sheet *ret, struct arena *a)
{
    int groups = x->precisions * x->head_sizes * x->lengths, row = 0;
    struct sheet_table *s = sheet_add(ret, NULL, columns, COUNT_OF(columns),
                                      groups * __builtin_popcount(x->suite->ways), a);
    for (int g = 0; g < groups; g++)
        for (int way = 0; way < ATTENTION_VARIANTS; way++) {
            const struct attention_cell *c = &x->cell[g * ATTENTION_VARIANTS];
            if (x->suite->ways >> way & 1 && c->T)
                set_row((struct table_row){&s->table, row++, 0, a}, &c[way], &c[x->suite->plain],
                        x->head_size[g / x->lengths % x->head_sizes]);
        }
    s->table.rows = row; /* fewer if the suite was stopped */
    sheet_bars(s, "forward and backward", "both_ms", NULL,
               (const char *[SHEET_LABELS]){"dtype", "attention"});
    s->chart.kind = SHEET_LINES;
    s->chart.x = "T";
    s->chart.panel = "d";
}

/* --- the measurement -------------------------------------------------------------------------- */

static void show(void *user, double done, double all, const struct attention_cell *c)
{
    const struct trial *x = user;
    char words[64];
    (void)done, (void)all;
    snprintf(words, sizeof words, "%s, T %lld", machine_precision_name(c->precision),
             (long long)c->T);
    suite_show(x->request, x->done / x->all, words);
}

/* Weight of a length, by which the remaining time is shared. */
static double weight(const struct trial *x, int64_t T)
{
    return (double)T + (double)x->length[x->lengths - 1] / 8;
}

static enum status run_one(struct trial *x, int precision, int head, int length, struct arena *a)
{
    const struct suite_request *r = x->request;
    int64_t T = x->length[length], room = suite_free_memory(r, &x->device, x->suite->limit);
    double left = x->limit_ms - clock_ms(x->start_ns, clock_ns()), work = weight(x, T);
    int at = (precision * x->head_sizes + head) * x->lengths + length, cells;
    struct attention_options o = {.device = x->device, .causal = {true}, .length = {T}};
    struct attention_cell *cell;
    o.heads = o.head_sizes = o.masks = o.lengths = o.precisions = 1;
    o.head_size[0] = x->head_size[head];
    o.precision[0] = x->precision[precision];
    o.tokens = x->suite->batch * T;
    o.ways = x->suite->ways;
    o.samples = r->steps ? (int)r->steps : SAMPLES;
    o.limit_ms = left > 0 ? left * work / (x->all - x->done) : 0;
    o.all_ms = x->limit_ms;
    o.before = length ? &x->cell[(at - 1) * ATTENTION_VARIANTS] : NULL;
    o.memory_limit = room;
    o.limited = r->limit || x->suite->limit;
    o.each = show;
    o.user = x;
    enum status st = bench_attention_run(&o, &cell, &cells, a);
    if (st == ST_INTERRUPTED) return ST_OK;
    TRY(st);
    memcpy(&x->cell[at * ATTENTION_VARIANTS], cell, ATTENTION_VARIANTS * sizeof *cell);
    x->done += work;
    return ST_OK;
}

static enum status read_types(struct trial *x, const char *words, struct arena *a)
{
    struct bench_axis v;
    TRY(suite_values(x->request, "dtype", words, &v, a));
    for (int i = 0; i < v.values; i++) {
        struct config c;
        config_init(&c);
        TRY(config_set(&c, arena_printf(a, "dtype=%s", v.value[i]), a));
        if (c.plan.dtype == PRECISION_FLOAT8)
            return fail(ST_USAGE, "attention has no float8 matmuls; use bfloat16");
        x->precision[x->precisions++] =
            machine_precision(c.plan.dtype == PRECISION_BFLOAT16 ? DT_BF16 : DT_F32,
                              c.plan.dtype == PRECISION_TFLOAT32);
    }
    return ST_OK;
}

static enum status run(const struct attention_suite *s, const struct suite_request *r,
                       struct sheet *ret, struct arena *a)
{
    static const char *const lists[] = {"block_size", "dtype", "n_embd", NULL};
    struct trial x = {.suite = s, .request = r, .start_ns = clock_ns()};
    bool small;
    TRY(suite_check_lists(r, lists));
    TRY(suite_is_small(r, &small));
    TRY(suite_device(r, &x.device));
    TRY(suite_lengths(r, "block_size", small ? s->small_lengths : s->lengths, ATTENTION_LENGTHS,
                      x.length, &x.lengths, a));
    TRY(suite_lengths(r, "n_embd", small ? s->small_head_sizes : s->head_sizes, HEADS_MOST,
                      x.head_size, &x.head_sizes, a));
    TRY(read_types(&x, s->dtypes, a));
    x.limit_ms = small ? s->small_limit_ms : s->limit_ms;
    x.cell = ARENA_NEW(a, struct attention_cell,
                       x.precisions * x.head_sizes * x.lengths * ATTENTION_VARIANTS);
    for (int i = 0; i < x.lengths; i++)
        x.all += x.precisions * x.head_sizes * weight(&x, x.length[i]);
    for (int i = 0; i < x.lengths; i++)
        for (int p = 0; p < x.precisions; p++)
            for (int h = 0; h < x.head_sizes && !suite_stopped(); h++) TRY(run_one(&x, p, h, i, a));
    TRY(suite_check_stopped(x.done > 0));
    make_table(&x, ret, a);
    sheet_note(ret,
               "Causal; packed q, k, v of one head. Forward and backward are timed separately; "
               "slow cells have fewer samples.");
    if (s->limit && !r->limit)
        sheet_note(ret,
                   "Limited to the memory of a 32 GiB card; change it with --mem-limit=140GiB.");
    if (small) suite_say_small(ret, r, s->small, a);
    return ST_OK;
}

enum status suite_run_attention(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    return run(&attention, r, ret, a);
}

enum status suite_run_flash(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    return run(&flash, r, ret, a);
}
