#include "view/check_view.h"

#include "backend/kernel.h"
#include "base/str.h"
#include "check/cases.h"
#include "check/check.h"
#include "check/check_rules.h"

#include <string.h>

static struct check_line *line_of(struct check_lines *t, enum op op, const char *variant,
                                  const char *type)
{
    for (int i = 0; i < t->lines; i++) {
        struct check_line *l = &t->line[i];
        if (l->op == op && !strcmp(l->variant, variant) && !strcmp(l->type, type)) return l;
    }
    ARENA_GROW(t->arena, t->line, t->lines, t->capacity);
    t->line[t->lines] = (struct check_line){.op = op, .variant = variant, .type = type};
    return &t->line[t->lines++];
}

static void note(struct check_lines *t, struct check_line *l, const struct check_result *r)
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
    struct check_lines *t = user;
    note(t, line_of(t, r->c->op, r->kernel->variant, dtype_name(r->dtype)), r);
}

/* Checks one rule (gradient or expansion) of one case, if the operator has it. */
static enum status try_rule(struct check_lines *t, int i, bool has, const char *rule,
                            double tolerance, enum status (*check)(int, double *))
{
    struct check_result r = {.c = case_at(i), .tolerance = tolerance};
    if (!has) return ST_OK;
    TRY(check(i, &r.error));
    if (!(r.error <= tolerance))
        r.problem = "differs from the reference by more than the tolerance";
    note(t, line_of(t, r.c->op, rule, "f64"), &r);
    return ST_OK;
}

static enum status check_rules(struct check_lines *t, enum op op)
{
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        const struct op_def *def = op_def(c->op);
        bool has_gradient = def->grad && !c->no_differences && c->op != OP_DETACH;
        if (op != OP_COUNT && c->op != op) continue;
        TRY(try_rule(t, i, has_gradient, "gradient", gradient_tolerance, check_gradient));
        TRY(try_rule(t, i, def->expand, "expansion", expansion_tolerance, check_expansion));
    }
    return ST_OK;
}

/* Adds a failed line for each operator without a tested kernel, except leaves, views, and
 * collectives, which need other ranks. */
static void note_missing(struct check_lines *t, enum op only)
{
    for (int op = 0; op < OP_COUNT; op++) {
        /* PACK is tested together with matmuls, if the library packs. */
        const struct op_def *def = op_def((enum op)op);
        bool seen = op == OP_LEAF || op == OP_PACK || def->flags & OP_VIEW ||
                    def->family == FAMILY_COMMUNICATION;
        for (int i = 0; i < t->lines; i++) seen |= (int)t->line[i].op == op;
        if (seen || (only != OP_COUNT && (int)only != op)) continue;
        struct check_line *l = line_of(t, (enum op)op, "-", "-");
        l->failed = 1;
        l->problem = "has no kernel";
        l->where = "";
    }
}

static void print_text(const struct check_lines *t, struct str *s)
{
    str_printf(s, "%-20s %-10s %-5s %6s %10s %10s  %s\n", "operator", "variant", "type", "tried",
               "error", "allowed", "verdict");
    for (int op = 0; op < OP_COUNT; op++)
        for (int i = 0; i < t->lines; i++) {
            const struct check_line *l = &t->line[i];
            if ((int)l->op != op) continue;
            str_printf(s, "%-20s %-10s %-5s %6d %10.2e %10.0e  ", op_def(l->op)->name, l->variant,
                       l->type, l->tried, l->error, l->tolerance);
            if (l->failed)
                str_printf(s, "FAILED %d: %s (%s)\n", l->failed, l->problem, l->where);
            else
                str_append(s, "ok\n");
        }
}

static void print_json(const struct check_lines *t, struct str *s)
{
    str_append(s, "{\"v\":1,\"rows\":[");
    for (int i = 0; i < t->lines; i++) {
        const struct check_line *l = &t->line[i];
        str_printf(s,
                   "%s{\"op\":\"%s\",\"variant\":\"%s\",\"type\":\"%s\",\"tried\":%d,"
                   "\"failed\":%d,",
                   i ? "," : "", op_def(l->op)->name, l->variant, l->type, l->tried, l->failed);
        if (l->error <= 1e300)
            str_printf(s, "\"error\":%.6g,", l->error); /* JSON has no infinity */
        str_printf(s, "\"allowed\":%g}", l->tolerance);
    }
    str_append(s, "]}\n");
}

void check_lines_print(const struct check_lines *t, bool json, struct str *s)
{
    if (json)
        print_json(t, s);
    else
        print_text(t, s);
}

static enum status try_all(struct check_lines *t, const struct device *d,
                           const struct check_scope *scope, bool kernels_only)
{
    const char *variant = scope->variant;
    void *context;
    struct target target;
    TRY(backend_target(d->backend, d->number, &target));
    TRY(d->backend->open(d->number, &context));
    enum status st = check_kernels(&target, context, scope, note_kernel, t);
    d->backend->close(context);
    TRY(st);
    if (variant && !t->lines)
        return fail(ST_USAGE,
                    "no kernel row %s was tested; `strobe check` without --row lists them",
                    variant);
    if (variant) return ST_OK;
    note_missing(t, scope->op);
    return kernels_only ? ST_OK : check_rules(t, scope->op);
}

enum status check_run(struct check_lines *t, const struct device *d,
                      const struct check_scope *scope, bool kernels_only)
{
    TRY(try_all(t, d, scope, kernels_only));
    for (int i = 0; i < t->lines; i++) t->failed += t->line[i].failed > 0;
    return ST_OK;
}
