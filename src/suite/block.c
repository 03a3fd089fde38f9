/* attention-block: the kernels of one attention block, unfused ("slow") and flash. */
#include "bench/bench_cells.h"
#include "present/table_cells.h"
#include "suite/host_lines.h"
#include "suite/joined.h"
#include "suite/kernels.h"
#include "suite/suites.h"

enum { LENGTHS_MOST = 8, TOP = 12, STEPS = 20, LEAST = 3, WARMUP = 3 };
static const double limit_ms = 20e3, small_limit_ms = 4e3;
static const char file[] = "attention_block.conf", words[] = "fusion=op";
static const struct suite_small smaller[SUITE_SMALLS] = {
    {"block_size", "T 100 and 300 instead of 100 and 1000"}};
static const char *const ways[] = {"slow", "flash"};

/* --- totals ----------------------------------------------------------------------------------- */

enum { WAY, LENGTH, FORWARD, BACKWARD, BOTH, IDLE, TIMES, VERDICT, NOTE, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [WAY] = {"attention", "attention", "slow: unfused, with the score matrices in memory; or flash",
             false},
    [LENGTH] = {"T", "T", "tokens per sequence", true},
    [FORWARD] = {"forward_ms", "forward ms", "mean time per step, with idle time", true},
    [BACKWARD] = {"backward_ms", "backward ms", "mean time per step, with idle time", true},
    [BOTH] = {"both_ms", "both ms", "forward and backward", true},
    [IDLE] = {"idle_percent", "idle %", "share of both passes", true},
    [TIMES] = {"times_slow", "x slow",
               "speed relative to slow at this length, both passes, timed in turns", true},
    [VERDICT] = {"verdict", "verdict",
                 "whether it is faster than slow, by the rule of docs/MEASURING.md", false},
    [NOTE] = {"note", "note", "why it was not measured", false},
};

struct blocks {
    const struct suite_request *request;
    bool small;
    struct table *totals;
    struct bench_cell pair[COUNT_OF(ways)]; /* slow and flash of the last length */
    double pair_ms;                         /* of one step of each, profiled */
    struct kernel_lines lines;
    struct joined kernels, ops;
    struct host_lines host, waits;
    struct arena *a;
};

static void set_total(struct blocks *x, int row, const struct profile *p)
{
    enum { FORWARDS = 1u << PHASE_FORWARD, BACKWARDS = 1u << PHASE_BACKWARD };
    struct table *t = x->totals;
    double both = profile_ms(p, FORWARDS | BACKWARDS);
    table_set(t, row, FORWARD, 4, profile_ms(p, FORWARDS), x->a);
    table_set(t, row, BACKWARD, 4, profile_ms(p, BACKWARDS), x->a);
    table_set(t, row, BOTH, 4, both, x->a);
    table_set(t, row, IDLE, 3, 100 * profile_family_ms(p, FORWARDS | BACKWARDS, FAMILY_IDLE) / both,
              x->a);
    x->pair_ms += both;
}

/* Times both passes of slow and flash in turns, without profiling. The last row is flash. */
static enum status time_in_turns(struct blocks *x)
{
    struct bench_options o = {.order = BENCH_ROUNDS, .limit = x->request->limit};
    enum bench_order order;
    int row = x->totals->rows - 1;
    double rounds = (x->small ? small_limit_ms : limit_ms) / x->pair_ms;
    int most = x->request->steps ? (int)x->request->steps : STEPS, steps = most;
    if (rounds < most) steps = rounds < LEAST ? LEAST : (int)rounds;
    for (int way = 0; way < COUNT_OF(ways); way++) {
        x->pair[way].warmup = WARMUP;
        x->pair[way].steps = steps < most ? steps : most;
    }
    TRY(bench_cells_run(&o, x->pair, COUNT_OF(ways), &order, x->a));
    struct judgement j = bench_cells_judge(&x->pair[0], &x->pair[1], BENCH_BOTH, order);
    if (j.verdict.kind) table_set(x->totals, row, TIMES, 3, j.verdict.speed, x->a);
    table_set_text(x->totals, row, VERDICT, judge_name(&j));
    return ST_OK;
}

/* --- one variant at one length ---------------------------------------------------------------- */

static enum status add_one(struct blocks *x, int64_t T, int way)
{
    struct profiled p;
    struct config c;
    const struct suite_request *r = x->request;
    int row = x->totals->rows++;
    const char *more =
        arena_printf(x->a, "block_size=%lld flash=%s", (long long)T, way ? "true" : "false");
    TRY(suite_config(r, file, words, more, &c, x->a));
    c.model.block_size = T;
    TRY(model_check(&c));
    if (!way) x->pair_ms = 0;
    x->pair[way] = (struct bench_cell){.config = c, .lines = 1u << BENCH_BOTH};
    table_set_text(x->totals, row, WAY, ways[way]);
    table_set(x->totals, row, LENGTH, 0, (double)T, x->a);
    TRY(profiled_run(&p, r, &c, 0, r->steps ? (int)r->steps : STEPS,
                     x->small ? small_limit_ms : limit_ms, true));
    x->pair[way].reason = p.reason ? arena_strdup(x->a, p.reason) : NULL;
    if (p.reason)
        table_set_text(x->totals, row, NOTE, x->pair[way].reason);
    else
        set_total(x, row, &p.profile);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD && !p.reason; phase++)
        kernel_lines_add(&x->lines, ways[way], T, phase_name((enum phase)phase), 1u << phase,
                         &p.profile);
    if (!p.reason) {
        joined_add(&x->kernels, way, T, &p.profile);
        joined_add(&x->ops, way, T, &p.profile);
        host_lines_add(&x->host, ways[way], T, &p.profile);
        host_waits_add(&x->waits, ways[way], T, &p.profile);
    }
    profiled_close(&p);
    bool pair = way && !x->pair[0].reason && !x->pair[1].reason && !suite_stopped();
    return pair ? time_in_turns(x) : ST_OK;
}

/* Adds a note about the block with the keys of the request. */
static enum status say_block(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    struct config c;
    TRY(suite_config(r, file, words, NULL, &c, a));
    int64_t heads = c.model.n_head;
    sheet_note(ret, arena_printf(a,
                                 "The block of configs/attention_block.conf: %lld head%s of size "
                                 "%lld, batch %lld, %s. Only the %d longest kernels of a phase are "
                                 "listed.",
                                 (long long)heads, heads == 1 ? "" : "s",
                                 (long long)(c.model.n_embd / heads), (long long)c.data.batch_size,
                                 config_value_text(&c, "dtype", a), TOP));
    return ST_OK;
}

static void open_tables(struct blocks *x, struct sheet *ret, int lengths)
{
    struct sheet_table *t = sheet_add(ret, NULL, columns, COLUMNS, lengths * COUNT_OF(ways), x->a);
    t->table.rows = 0; /* grows as rows are added */
    sheet_bars(t, "forward and backward", "both_ms", NULL,
               (const char *[SHEET_LABELS]){"attention", "T"});
    x->totals = &t->table;
    kernel_lines_open(&x->lines, ret, "The longest kernels of each phase", &columns[WAY],
                      lengths * COUNT_OF(ways) * 2, TOP, x->a);
}

enum status suite_run_block(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    static const char *const lists[] = {"block_size", NULL};
    int64_t length[LENGTHS_MOST];
    struct blocks x = {.request = r, .host = {.a = a}, .waits = {.a = a}, .a = a};
    int lengths;
    TRY(suite_check_lists(r, lists));
    TRY(suite_is_small(r, &x.small));
    TRY(suite_lengths(r, "block_size", x.small ? "100,300" : "100,1000", LENGTHS_MOST, length,
                      &lengths, a));
    open_tables(&x, ret, lengths);
    joined_init(&x.kernels, JOINED_KERNEL, a);
    joined_init(&x.ops, JOINED_OP, a);
    for (int i = 0; i < lengths; i++)
        for (int way = 0; way < COUNT_OF(ways) && !suite_stopped(); way++) {
            suite_show(r, (double)(i * COUNT_OF(ways) + way) / (lengths * COUNT_OF(ways)),
                       arena_printf(a, "T %lld %s", (long long)length[i], ways[way]));
            TRY(add_one(&x, length[i], way));
        }
    kernel_lines_close(&x.lines);
    TRY(suite_check_stopped(x.lines.n > 0));
    joined_table(&x.kernels, ret, ways);
    joined_table(&x.ops, ret, ways);
    host_lines_table(&x.host, ret);
    host_waits_table(&x.waits, ret);
    if (x.small) suite_say_small(ret, r, smaller, a);
    return say_block(r, ret, a);
}
