#include "suite/softmax.h"

#include "plan/plan.h"
#include "present/table_cells.h"

#include <string.h>

const char *const softmax_rung[SOFTMAX_RUNGS] = {"primitive", "op", "full"};

/* clang-format off */
#define COLUMN_LIST(X) \
    X(CONFIG, "config", "config", "the model", false) \
    X(LENGTH, "T", "T", "tokens per sequence", true) \
    X(RUNG, "fusion", "fusion", "rung of fusion", false) \
    X(MATMULS_MS, "products_ms", "matmuls ms", \
      "scores and the weighted sum, forward, of all blocks", true) \
    X(SOFTMAX_MS, "softmax_ms", "softmax ms", \
      "softmax with mask, scale and dropout, forward, of all blocks", true) \
    X(TIMES, "softmax_over_products", "softmax / matmuls", "by time", true) \
    X(VERDICT, "verdict", "verdict", \
      "whether softmax is faster than the matmuls, by the rule of docs/MEASURING.md", false) \
    X(MATMULS_FLOPS, "products_gflop", "matmuls GFLOP", "FLOPs of the plan", true) \
    X(SOFTMAX_FLOPS, "softmax_gflop", "softmax GFLOP", "FLOPs of the plan", true) \
    X(FLOPS_TIMES, "softmax_over_products_flops", "by FLOPs", "softmax / matmuls", true) \
    X(MATMULS_READ, "products_read_bytes", "matmuls read", "bytes of the plan", true) \
    X(MATMULS_WRITTEN, "products_written_bytes", "matmuls written", "bytes of the plan", true) \
    X(SOFTMAX_READ, "softmax_read_bytes", "softmax read", "bytes of the plan", true) \
    X(SOFTMAX_WRITTEN, "softmax_written_bytes", "softmax written", "bytes of the plan", true) \
    X(PASSES, "softmax_passes", "passes over T x T", \
      "bytes that softmax reads and writes / bytes of the matrices of scores", true) \
    X(NOTE, "note", "note", "why it was not measured", false)
/* clang-format on */

enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

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
    l->table = sheet_add(s, "Inside attention, forward", columns, COLUMNS, rows, a);
}

static void set_pair(struct table *t, int row, const struct softmax_pair *x, struct arena *a)
{
    const struct softmax_side *m = &x->matmuls, *s = &x->softmax;
    table_set(t, row, MATMULS_MS, 4, m->ms, a);
    table_set(t, row, SOFTMAX_MS, 4, s->ms, a);
    table_set(t, row, TIMES, 3, s->ms / m->ms, a);
    table_set_text(t, row, VERDICT, verdict_name(x->verdict.kind));
    table_set(t, row, MATMULS_FLOPS, 4, m->flops * 1e-9, a);
    table_set(t, row, SOFTMAX_FLOPS, 4, s->flops * 1e-9, a);
    table_set(t, row, FLOPS_TIMES, 3, s->flops / m->flops, a);
    table_set_bytes(t, row, MATMULS_READ, (int64_t)m->read, a);
    table_set_bytes(t, row, MATMULS_WRITTEN, (int64_t)m->written, a);
    table_set_bytes(t, row, SOFTMAX_READ, (int64_t)s->read, a);
    table_set_bytes(t, row, SOFTMAX_WRITTEN, (int64_t)s->written, a);
    if (x->matrix > 0) table_set(t, row, PASSES, 3, (s->read + s->written) / x->matrix, a);
}

void softmax_add(struct softmax_lines *l, const char *size, int64_t T, const char *rung,
                 const struct profile *p, const char *reason)
{
    struct softmax_pair x;
    struct table *t = &l->table->table;
    if (!reason && !softmax_pair_of(p, &x)) return; /* flash attention */
    int row = l->n++;
    table_set_text(t, row, CONFIG, size);
    table_set(t, row, LENGTH, 0, (double)T, l->a);
    table_set_text(t, row, RUNG, rung);
    if (reason)
        table_set_text(t, row, NOTE, reason);
    else
        set_pair(t, row, &x, l->a);
}

/* The cells of a column in the last rows, those of the longest T: "2.71, 1.3 and 0.9". */
static const char *list(const struct softmax_lines *l, int from, int column)
{
    const char *words = "";
    for (int row = from; row < l->n; row++) {
        const char *between = row == from ? "" : row + 1 == l->n ? " and " : ", ";
        words = arena_printf(l->a, "%s%s%s", words, between,
                             table_at(&l->table->table, row, column)->text);
    }
    return words;
}

void softmax_end(struct softmax_lines *l)
{
    const struct table *t = &l->table->table;
    int from = l->n;
    while (from > l->first && table_at(t, from - 1, TIMES)->text &&
           table_at(t, from - 1, LENGTH)->number == table_at(t, l->n - 1, LENGTH)->number)
        from--;
    l->first = l->n;
    if (from == l->n) return;
    sheet_note(l->sheet,
               arena_printf(l->a,
                            "%s, T %s: softmax takes %s times as long as its matmuls at %s, for %s "
                            "of their FLOPs: it reads and writes %s times the T x T scores and "
                            "computes little with each number, so memory decides.",
                            table_at(t, from, CONFIG)->text, table_at(t, from, LENGTH)->text,
                            list(l, from, TIMES), list(l, from, RUNG), list(l, from, FLOPS_TIMES),
                            list(l, from, PASSES)));
}

void softmax_close(struct softmax_lines *l)
{
    l->table->table.rows = l->n;
}
