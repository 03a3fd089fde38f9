#include "suite/joined.h"

#include "present/table_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

void joined_init(struct joined *j, enum joined_by by, struct arena *a)
{
    *j = (struct joined){.by = by, .capacity = FIRST_CAPACITY, .a = a};
    j->line = ARENA_NEW(a, struct joined_line, j->capacity);
}

/* All instances of one kernel have one name: that on the device, else operator and kernel row. */
static const char *name_of(enum joined_by by, const struct profile_row *r, struct arena *a)
{
    if (r->node < 0) return arena_strdup(a, profile_kernel_name(r, a));
    if (by == JOINED_OP) return op_def(r->op)->name;
    if (r->device_short) return arena_strdup(a, r->device_short);
    return arena_printf(a, "%s %s", op_def(r->op)->name, r->variant);
}

static struct joined_line *find(struct joined *j, int64_t T, enum phase phase, const char *name,
                                bool idle)
{
    for (int i = 0; i < j->lines; i++) {
        struct joined_line *x = &j->line[i];
        if (x->T == T && x->phase == phase && x->idle == idle && !strcmp(x->name, name)) return x;
    }
    ARENA_GROW(j->a, j->line, j->lines, j->capacity);
    j->line[j->lines] = (struct joined_line){.T = T, .phase = phase, .name = name, .idle = idle};
    return &j->line[j->lines++];
}

static void add(struct joined_line *x, int side, double ms, double calls, double whole)
{
    x->side[side].ms += ms;
    x->side[side].calls += calls;
    if (whole > 0) x->side[side].share += ms / whole;
}

void joined_add(struct joined *j, int side, int64_t T, const struct profile *p)
{
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *r = &p->row[i];
        if (r->phase > PHASE_BACKWARD) continue;
        if (!(r->ms > 0)) continue;
        add(find(j, T, r->phase, name_of(j->by, r, j->a), false), side, r->ms, r->per_step,
            profile_ms(p, 1u << r->phase));
    }
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++)
        add(find(j, T, (enum phase)phase, family_name(FAMILY_IDLE), true), side, p->idle_ms[phase],
            0, profile_ms(p, 1u << phase));
}

static double longest(const struct joined_line *x)
{
    return fmax(x->side[0].ms, x->side[1].ms);
}

static int compare(const void *a, const void *b)
{
    const struct joined_line *x = a, *y = b;
    if (x->T != y->T) return x->T < y->T ? -1 : 1;
    if (x->phase != y->phase) return x->phase < y->phase ? -1 : 1;
    if (x->idle != y->idle) return x->idle ? 1 : -1;
    if (longest(x) != longest(y)) return longest(x) > longest(y) ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* --- the table -------------------------------------------------------------------------------- */

enum { LENGTH, PHASE, NAME, CHANGE, SIDES };
enum { CALLS, MS, PERCENT, OF_SIDE, COLUMNS = SIDES + JOINED_SIDES * OF_SIDE };

static const struct table_column *columns_of(const struct joined *j,
                                             const char *const word[JOINED_SIDES])
{
    struct table_column *c = ARENA_NEW(j->a, struct table_column, COLUMNS);
    c[LENGTH] = (struct table_column){"T", "T", "tokens per sequence", true};
    c[PHASE] = (struct table_column){"phase", "phase", "phase of the step", false};
    c[NAME] = j->by == JOINED_OP
                  ? (struct table_column){"operation", "operation", "operator of the plan", false}
                  : (struct table_column){"kernel", "kernel",
                                          "its name; all instances of it are added up", false};
    c[CHANGE] = (struct table_column){"before_after", "% before → % after",
                                      "share of the phase, idle time included", false};
    for (int side = 0; side < JOINED_SIDES; side++) {
        struct table_column *of = &c[SIDES + side * OF_SIDE];
        const char *w = word[side];
        of[CALLS] = (struct table_column){arena_printf(j->a, "%s_calls", w),
                                          arena_printf(j->a, "%s calls", w), "per step", true};
        of[MS] = (struct table_column){arena_printf(j->a, "%s_ms", w),
                                       arena_printf(j->a, "%s ms", w), "per step", true};
        of[PERCENT] =
            (struct table_column){arena_printf(j->a, "%s_percent", w),
                                  arena_printf(j->a, "%s %%", w), "share of the phase", true};
    }
    return c;
}

/* "61.2", or "-" where there is none. */
static const char *percent(const struct joined_line *x, int side, struct arena *a)
{
    return x->side[side].ms > 0 ? arena_printf(a, "%.1f", 100 * x->side[side].share) : "-";
}

void joined_table(struct joined *j, struct sheet *s, const char *const word[JOINED_SIDES])
{
    static const char *const titles[] = {[JOINED_KERNEL] = "Before and after, by kernel",
                                         [JOINED_OP] = "Before and after, by operation"};
    struct arena *a = j->a;
    qsort(j->line, (size_t)j->lines, sizeof *j->line, compare);
    struct table *t =
        &sheet_add(s, titles[j->by], columns_of(j, word), COLUMNS, j->lines, a)->table;
    for (int row = 0; row < j->lines; row++) {
        const struct joined_line *x = &j->line[row];
        table_set(t, row, LENGTH, 0, (double)x->T, a);
        table_set_text(t, row, PHASE, phase_name(x->phase));
        table_set_text(t, row, NAME, x->name);
        table_set_text(t, row, CHANGE,
                       arena_printf(a, "%s → %s", percent(x, 0, a), percent(x, 1, a)));
        for (int side = 0; side < JOINED_SIDES; side++) {
            int first = SIDES + side * OF_SIDE;
            if (!(x->side[side].ms > 0)) continue;
            if (!x->idle) table_set(t, row, first + CALLS, 3, x->side[side].calls, a);
            table_set(t, row, first + MS, 4, x->side[side].ms, a);
            table_set(t, row, first + PERCENT, 3, 100 * x->side[side].share, a);
        }
    }
}
