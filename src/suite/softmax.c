#include "suite/softmax.h"

#include "plan/plan.h"
#include "present/table_cells.h"

#include <string.h>

const char *const softmax_rung[SOFTMAX_RUNGS] = {"primitive", "op", "full"};

/* clang-format off */
#define COLUMNS(X) \
    X("config", "config", "the model", TEXT, size) \
    X("T", "T", "tokens per sequence", NUMBER, true, 0, (double)T) \
    X("fusion", "fusion", "rung of fusion", TEXT, rung) \
    X("products_ms", "matmuls ms", "scores and the weighted sum, forward, of all blocks", NUMBER, x, 4, m->ms) \
    X("softmax_ms", "softmax ms", "softmax with mask, scale and dropout, forward, of all blocks", NUMBER, x, 4, s->ms) \
    X("softmax_over_products", "softmax / matmuls", "by time", NUMBER, x, 3, s->ms / m->ms) \
    X("verdict", "verdict", "whether softmax is faster than the matmuls, by the rule of docs/MEASURING.md", TEXT, x ? verdict_name(x->verdict.kind) : NULL) \
    X("products_gflop", "matmuls GFLOP", "FLOPs of the plan", NUMBER, x, 4, m->flops * 1e-9) \
    X("softmax_gflop", "softmax GFLOP", "FLOPs of the plan", NUMBER, x, 4, s->flops * 1e-9) \
    X("softmax_over_products_flops", "by FLOPs", "softmax / matmuls", NUMBER, x, 3, s->flops / m->flops) \
    X("products_read_bytes", "matmuls read", "bytes of the plan", BYTES, x, (int64_t)m->read) \
    X("products_written_bytes", "matmuls written", "bytes of the plan", BYTES, x, (int64_t)m->written) \
    X("softmax_read_bytes", "softmax read", "bytes of the plan", BYTES, x, (int64_t)s->read) \
    X("softmax_written_bytes", "softmax written", "bytes of the plan", BYTES, x, (int64_t)s->written) \
    X("softmax_passes", "passes over T x T", "bytes that softmax reads and writes / bytes of the matrices of scores", NUMBER, x && x->matrix > 0, 3, (s->read + s->written) / x->matrix) \
    X("note", "note", "why it was not measured", TEXT, reason)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

/* Bytes of a row's outputs. The plan counts bytes read and written as one number. */
static double written_by(const struct profile *p, const struct profile_row *r)
{
    const struct step *s = &p->engine->program.plan[r->kind].step[r->node];
    double bytes = 0;
    for (int i = 0; i < s->call.n_out; i++) bytes += (double)type_bytes(&s->call.out_type[i]);
    return bytes < r->bytes ? bytes : r->bytes;
}

bool softmax_pair_of(const struct profile *p, struct softmax_pair *ret)
{
    struct arena scratch = {0};
    double *matmuls_ms = ARENA_NEW(&scratch, double, p->steps);
    double *softmax_ms = ARENA_NEW(&scratch, double, p->steps);
    *ret = (struct softmax_pair){0};
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        bool scores = range_has(&r->range, "scores");
        bool inner = scores || range_has(&r->range, "weighted sum");
        if (r->phase != PHASE_FORWARD || r->node < 0) continue;
        if (!inner && !range_has(&r->range, "softmax")) continue;
        bool matmul = r->family == FAMILY_MATMUL;
        struct softmax_side *to = matmul ? &ret->matmuls : &ret->softmax;
        double runs = r->per_step, written = runs * written_by(p, r);
        to->ms += r->ms;
        to->flops += runs * r->flops;
        to->written += written;
        to->read += runs * r->bytes - written;
        if (matmul && scores) ret->matrix += written;
        double *ms = matmul ? matmuls_ms : softmax_ms;
        for (int k = 0; k < p->steps; k++) ms[k] += r->step_ms[k];
    }
    const struct timed_turn *turn = timed_rounds(p->steps, &scratch);
    struct timed matmuls = {.ms = matmuls_ms, .n = p->steps, .turn = turn, .work = 1},
                 softmax = {.ms = softmax_ms, .n = p->steps, .turn = turn, .work = 1};
    ret->verdict = judge(&matmuls, &softmax).verdict;
    arena_release(&scratch);
    return ret->matmuls.ms > 0 && ret->softmax.ms > 0;
}

void softmax_open(struct softmax_lines *l, struct sheet *s, int rows, struct arena *a)
{
    *l = (struct softmax_lines){.sheet = s, .a = a};
    l->table = sheet_add(s, "Inside attention, forward", columns, COUNT_OF(columns), rows, a);
}

/* `x`: NULL if there is a reason why it was not measured. */
static void set_row(struct table_row row, const char *size, int64_t T, const char *rung,
                    const struct softmax_pair *x, const char *reason)
{
    const struct softmax_side *m = x ? &x->matmuls : NULL, *s = x ? &x->softmax : NULL;
    COLUMNS(TABLE_CELL)
}

void softmax_add(struct softmax_lines *l, const char *size, int64_t T, const char *rung,
                 const struct profile *p, const char *reason)
{
    struct softmax_pair x;
    if (!reason && !softmax_pair_of(p, &x)) return; /* flash attention */
    set_row((struct table_row){&l->table->table, l->n++, 0, l->a}, size, T, rung,
            reason ? NULL : &x, reason);
}

/* The cells of a column in the last rows, those of the longest T: "2.71, 1.3 and 0.9". */
static const char *list(const struct softmax_lines *l, int from, const char *id)
{
    const struct table *t = &l->table->table;
    const char *words = "";
    for (int row = from; row < l->n; row++) {
        const char *between = row == from ? "" : row + 1 == l->n ? " and " : ", ";
        words = arena_printf(l->a, "%s%s%s", words, between, table_text_of(t, row, id));
    }
    return words;
}

void softmax_end(struct softmax_lines *l)
{
    const struct table *t = &l->table->table;
    int from = l->n;
    while (from > l->first && *table_text_of(t, from - 1, "softmax_over_products") &&
           !strcmp(table_text_of(t, from - 1, "T"), table_text_of(t, l->n - 1, "T")))
        from--;
    l->first = l->n;
    if (from == l->n) return;
    sheet_note(l->sheet,
               arena_printf(l->a,
                            "%s, T %s: softmax takes %s times as long as its matmuls at %s, for %s "
                            "of their FLOPs: it reads and writes %s times the T x T scores and "
                            "computes little with each number, so memory decides.",
                            table_text_of(t, from, "config"), table_text_of(t, from, "T"),
                            list(l, from, "softmax_over_products"), list(l, from, "fusion"),
                            list(l, from, "softmax_over_products_flops"),
                            list(l, from, "softmax_passes")));
}

void softmax_close(struct softmax_lines *l)
{
    l->table->table.rows = l->n;
}
