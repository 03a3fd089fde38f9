/* strobe check: every kernel row against the reference, every gradient and expansion against
 * arithmetic. */
#include "backend/kernel.h"
#include "base/arena.h"
#include "base/isa.h"
#include "base/opt.h"
#include "cli/command.h"
#include "cli/device.h"
#include "measure/cases.h"
#include "measure/check.h"
#include "measure/check_rules.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* All that was tried of one operator with one variant and one float type. */
struct line {
    enum op op;
    const char *variant, *type;
    int tried, failed;
    double error, tolerance;     /* of the run that came nearest to failing, or failed worst */
    const char *problem, *where; /* NULL while nothing failed; in which case */
};

struct table {
    struct arena *arena;
    struct line *line;
    int lines, capacity;
};

static struct line *line_of(struct table *t, enum op op, const char *variant, const char *type)
{
    for (int i = 0; i < t->lines; i++) {
        struct line *l = &t->line[i];
        if (l->op == op && !strcmp(l->variant, variant) && !strcmp(l->type, type)) return l;
    }
    ARENA_GROW(t->arena, t->line, t->lines, t->capacity);
    t->line[t->lines] = (struct line){.op = op, .variant = variant, .type = type};
    return &t->line[t->lines++];
}

static void note(struct table *t, struct line *l, const struct check_result *r)
{
    bool worst = l->tried == 0 || r->error / r->tolerance > l->error / l->tolerance;
    l->tried++;
    if (worst) l->error = r->error, l->tolerance = r->tolerance;
    if (!r->problem) return;
    l->failed++;
    l->problem = arena_strdup(t->arena, r->problem);
    l->where = r->c->what;
}

static void note_kernel(void *user, const struct check_result *r)
{
    struct table *t = user;
    note(t, line_of(t, r->c->op, r->kernel->variant, dtype_name(r->dtype)), r);
}

/* One rule of one case, if it has such a rule. */
static enum status try_rule(struct table *t, int i, bool has, const char *rule, double tolerance,
                            enum status (*check)(int, double *))
{
    struct check_result r = {.c = case_at(i), .tolerance = tolerance};
    if (!has) return ST_OK;
    TRY(check(i, &r.error));
    if (!(r.error <= tolerance)) r.problem = "is far from what it stands for";
    note(t, line_of(t, r.c->op, rule, "f64"), &r);
    return ST_OK;
}

static enum status check_rules(struct table *t, enum op op)
{
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        const struct op_def *def = op_def(c->op);
        bool slopes = def->grad && !c->no_differences && c->op != OP_DETACH;
        if (op != OP_COUNT && c->op != op) continue;
        TRY(try_rule(t, i, slopes, "gradient", gradient_tolerance, check_gradient));
        TRY(try_rule(t, i, def->expand, "expansion", expansion_tolerance, check_expansion));
    }
    return ST_OK;
}

/* An operator that moves bytes and of which no row was tried. */
static void note_missing(struct table *t, enum op only)
{
    for (int op = 0; op < OP_COUNT; op++) {
        /* PACK is tried with products, where a library packs. */
        bool seen = op == OP_LEAF || op == OP_PACK || op_def((enum op)op)->flags & OP_VIEW;
        for (int i = 0; i < t->lines; i++) seen |= (int)t->line[i].op == op;
        if (seen || (only != OP_COUNT && (int)only != op)) continue;
        struct line *l = line_of(t, (enum op)op, "-", "-");
        l->failed = 1;
        l->problem = "has no kernel";
        l->where = "";
    }
}

static int print_text(const struct table *t)
{
    int failed = 0;
    printf("%-20s %-10s %-5s %6s %10s %10s  %s\n", "operator", "variant", "type", "tried", "error",
           "allowed", "verdict");
    for (int op = 0; op < OP_COUNT; op++)
        for (int i = 0; i < t->lines; i++) {
            const struct line *l = &t->line[i];
            if ((int)l->op != op) continue;
            failed += l->failed > 0;
            printf("%-20s %-10s %-5s %6d %10.2e %10.0e  ", op_def(l->op)->name, l->variant, l->type,
                   l->tried, l->error, l->tolerance);
            if (l->failed)
                printf("FAILED %d: %s (%s)\n", l->failed, l->problem, l->where);
            else
                printf("ok\n");
        }
    return failed;
}

static int print_json(const struct table *t)
{
    int failed = 0;
    printf("{\"v\":1,\"rows\":[");
    for (int i = 0; i < t->lines; i++) {
        const struct line *l = &t->line[i];
        failed += l->failed > 0;
        printf("%s{\"op\":\"%s\",\"variant\":\"%s\",\"type\":\"%s\",\"tried\":%d,\"failed\":%d,",
               i ? "," : "", op_def(l->op)->name, l->variant, l->type, l->tried, l->failed);
        if (l->error <= 1e300) printf("\"error\":%.6g,", l->error); /* JSON has no infinity */
        printf("\"allowed\":%g}", l->tolerance);
    }
    printf("]}\n");
    return failed;
}

static enum status find_op(const char *name, enum op *ret_op)
{
    *ret_op = OP_COUNT;
    if (!name) return ST_OK;
    for (int op = 0; op < OP_COUNT; op++)
        if (strcasecmp(op_def((enum op)op)->name, name) == 0) {
            *ret_op = (enum op)op;
            return ST_OK;
        }
    return fail(ST_USAGE, "there is no operator %s; docs/OPS.md lists them", name);
}

/* Of one variant only its rows: rules are no rows. */
static enum status check_all(struct table *t, const struct device *d, enum op op,
                             const char *variant)
{
    void *context;
    struct target target;
    TRY(backend_target(d->backend, d->number, &target));
    TRY(d->backend->open(d->number, &context));
    enum status st = check_kernels(&target, context, op, variant, note_kernel, t);
    d->backend->close(context);
    TRY(st);
    if (variant && !t->lines)
        return fail(ST_USAGE, "no row %s was tried; strobe check without --row names them",
                    variant);
    if (variant) return ST_OK;
    note_missing(t, op);
    return check_rules(t, op);
}

enum status cmd_check(int argc, char **argv)
{
    const char *name = NULL, *row = NULL, *word = NULL, *isa = "auto";
    bool json = false;
    const struct opt options[] = {
        {"op", OPT_TEXT, &name, "NAME", "only this operator"},
        {"row", OPT_TEXT, &row, "NAME", "only rows of this name, as wgmma"},
        DEVICE_OPTION(&word),
        {"isa", OPT_TEXT, &isa, "SET", "only kernels that need no wider instruction set (auto)"},
        {"json", OPT_FLAG, &json, NULL, "for programs"},
        {0},
    };
    struct arena arena = {0};
    struct table t = {.arena = &arena};
    struct device device;
    enum op op;
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc > 0)
        return fail(ST_USAGE, "%s: check takes options only; see strobe check --help", argv[0]);
    TRY(find_op(name, &op));
    TRY(isa_limit_word(isa));
    TRY(device_of_word(word, &device));
    enum status st = check_all(&t, &device, op, row);
    int failed = 0;
    if (st == ST_OK) failed = json ? print_json(&t) : print_text(&t);
    arena_release(&arena);
    TRY(st);
    if (failed > 0)
        return fail(ST_NUMERIC, "%d of %d rows failed; the table names the case of each", failed,
                    t.lines);
    return ST_OK;
}
