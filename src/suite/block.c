/* attention-block: the kernels of one block of attention, slow and flash. */
#include "report/table_cells.h"
#include "suite/others.h"
#include "suite/profiled.h"

enum { LENGTHS_MOST = 8, TOP = 12, STEPS = 20 };
static const double limit_ms = 20e3, small_limit_ms = 4e3;
static const char words[] = "model=attention_block n_head=1 n_embd=256 batch_size=32 fusion=op";
static const char *const ways[] = {"slow", "flash"};

enum { LENGTH, WAY, PHASE, KERNEL, RUNS, MS, SHARE, MEAN_US, BOUND, FLOOR, NOTE, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [LENGTH] = {"T", "T", "positions", true},
    [WAY] = {"attention", "attention", "slow: its matrices in memory; flash", false},
    [PHASE] = {"phase", "phase", "of the step", false},
    [KERNEL] = {"kernel", "kernel", "operator, shape, row of the table of kernels", false},
    [RUNS] = {"per_step", "calls", "of a step", true},
    [MS] = {"ms_per_step", "ms", "of a step, the mean", true},
    [SHARE] = {"percent", "%", "of the phase, idle time included", true},
    [MEAN_US] = {"mean_us", "avg us", "of one call", true},
    [BOUND] = {"bound", "bound", "what keeps it from being faster", false},
    [FLOOR] = {"times_floor", "x floor", "how many times as long as its floor", true},
    [NOTE] = {"note", "note", "why it was not run", false},
};

struct lines {
    struct sheet_table *table;
    int n, most;
    struct arena *a;
};

static int next_row(struct lines *l, int64_t T, const char *way)
{
    BUG_IF(l->n == l->most, "more than %d rows", l->most);
    table_set(&l->table->table, l->n, LENGTH, 0, (double)T, l->a);
    table_set_text(&l->table->table, l->n, WAY, way);
    return l->n++;
}

static void add_group(struct lines *l, int64_t T, const char *way, enum phase phase,
                      const struct profile_group *g)
{
    struct table *t = &l->table->table;
    int row = next_row(l, T, way);
    table_set_text(t, row, PHASE, phase_name(phase));
    table_set_text(t, row, KERNEL, arena_strdup(l->a, g->name));
    table_set(t, row, MS, 4, g->ms, l->a);
    table_set(t, row, SHARE, 3, 100 * g->share, l->a);
    if (g->family == FAMILY_IDLE) return;
    table_set(t, row, RUNS, 0, g->runs, l->a);
    table_set(t, row, MEAN_US, 4, 1e3 * g->run_ms.mean, l->a);
    if (g->bound) table_set_text(t, row, BOUND, bound_name(g->bound));
    if (g->floor_ms > 0) table_set(t, row, FLOOR, 3, g->work_ms / g->floor_ms, l->a);
}

static void add_phase(struct lines *l, int64_t T, const char *way, const struct profile *p,
                      enum phase phase)
{
    struct arena a = {0};
    struct profile_groups g;
    profile_groups(p, BY_KERNEL, 1u << phase, &g, &a);
    for (int i = 0; i < g.groups; i++)
        if (i < TOP || i + 1 == g.groups) add_group(l, T, way, phase, &g.group[i]);
    arena_release(&a);
}

static enum status add_one(struct lines *l, const struct suite_request *r, int64_t T, int way,
                           bool small)
{
    struct profiled p;
    struct config c;
    const char *more =
        arena_printf(l->a, "block_size=%lld flash=%s", (long long)T, way ? "true" : "false");
    TRY(suite_config(r, words, more, &c, l->a));
    TRY(model_check(&c));
    TRY(profiled_run(&p, r, &c, 0, r->steps ? (int)r->steps : STEPS,
                     small ? small_limit_ms : limit_ms));
    if (p.reason)
        table_set_text(&l->table->table, next_row(l, T, ways[way]), NOTE,
                       arena_strdup(l->a, p.reason));
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD && !p.reason; phase++)
        add_phase(l, T, ways[way], &p.profile, (enum phase)phase);
    profiled_close(&p);
    return ST_OK;
}

enum status suite_run_block(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                            struct arena *a)
{
    static const char *const lists[] = {"block_size", NULL};
    int64_t length[LENGTHS_MOST];
    struct lines l = {.a = a};
    int lengths;
    bool small;
    (void)s;
    TRY(suite_check_lists(r, lists));
    TRY(suite_is_small(r, &small));
    TRY(suite_lengths(r, "block_size", small ? "100,300" : "100,1000", LENGTHS_MOST, length,
                      &lengths, a));
    l.most = lengths * COUNT_OF(ways) * PHASE_UPDATE * (TOP + 1);
    l.table = sheet_add(ret, NULL, columns, COLUMNS, l.most, a);
    for (int i = 0; i < lengths; i++)
        for (int way = 0; way < COUNT_OF(ways); way++) {
            if (r->each)
                r->each(r->user, (double)(i * COUNT_OF(ways) + way) / (lengths * COUNT_OF(ways)),
                        arena_printf(a, "T %lld %s", (long long)length[i], ways[way]));
            TRY(add_one(&l, r, length[i], way, small));
        }
    l.table->table.rows = l.n;
    l.table->chart = (struct sheet_chart){.kind = SHEET_BARS,
                                          .title = "time of a step by kernel",
                                          .label = {"T", "attention", "phase", "kernel"},
                                          .labels = 4,
                                          .y = "ms_per_step"};
    sheet_note(ret,
               "The block of configs/attention_block.conf: one head of 256, batch 32, float32. "
               "Kernels behind the twelve longest of a phase are left out.");
    if (small) suite_say_small(ret, "T 100 and 300 instead of 100 and 1000", a);
    return ST_OK;
}
