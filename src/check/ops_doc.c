#include "check/ops_doc.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/str.h"
#include "check/cases.h"
#include "graph/attr.h"

#include <string.h>

static const char head[] =
    "# Operators\n"
    "\n"
    "Written by `make docs` from `src/graph/op_list.h`, the CPU's tables of kernels and the list "
    "of\n"
    "cases; do not edit. What each operator means stands over its rules in `src/graph/op_*.c`, "
    "and\n"
    "in plain loops in `src/backend/cpu/ref/`.\n"
    "\n"
    "- *gradient*: it can be differentiated; without one, asking for it is an error.\n"
    "- *expansion*: it is defined by smaller operators, and tested against them.\n"
    "- *flags*: `view`: the output is the input's bytes. `in place`: the output may take the "
    "place\n"
    "  of input 0 (or of 0 or 1). `writes n`: the first n outputs are inputs, written in place.\n"
    "- *CPU kernels*: best first; which of them fits is decided by types, shapes and the machine.\n"
    "- *family*: what a profile counts it as; `by place`: what the layer around it is.\n"
    "- *precision*: the type it works in under mixed precision: `f32`; `bf16`; `as input`; "
    "`wider`:\n"
    "  the wider type of two operands; `rows`: bf16 at `fusion=full`, f32 below it. Inputs named\n"
    "  behind it stay f32. Empty: `fuse` makes it of operators whose types are chosen already.\n"
    "- *attributes*: what `strobe graph` prints of it. Of operators with *numerics* it prints\n"
    "  `tf32`, `deterministic` and `portable`, too.\n"
    "- *cases*: how many nodes each kernel, the gradient and the expansion are tried on\n"
    "  (`strobe check`).\n";

static const struct {
    const char *title, *text;
} levels[] = {
    [LEVEL_PRIMITIVE] = {"Primitive", "One arithmetic step; every backend has these."},
    [LEVEL_LAYER] = {"Layer", "One operation of a layer, as an eager framework runs it."},
    [LEVEL_FUSED] = {"Fused", "Across operations, as a compiler would; made by the pass `fuse`."},
};

static void print_arity(const struct op_def *def, struct str *s)
{
    str_printf(s, "%d", def->least_in);
    if (def->most_in > def->least_in) str_printf(s, "-%d", def->most_in);
}

static void print_flags(enum op op, struct str *s)
{
    unsigned flags = op_def(op)->flags;
    if (flags & OP_VIEW) str_append(s, "view");
    if (flags & OP_INPLACE) str_append(s, flags & OP_INPLACE_1 ? "in place 0, 1" : "in place");
    if (op_writes(op)) str_printf(s, "writes %d", op_writes(op));
    if (flags & OP_NUMERICS) str_append(s, "numerics");
}

/* Fused operators are made after the types were chosen, but for those that models are written with. */
static void print_precision(const struct op_def *def, struct str *s)
{
    static const char *const words[] = {[POLICY_F32] = "f32",
                                        [POLICY_BF16] = "bf16",
                                        [POLICY_AS_INPUT] = "as input",
                                        [POLICY_WIDER] = "wider",
                                        [POLICY_ROWS] = "rows"};
    if (def->level == LEVEL_FUSED && def->policy == POLICY_F32) return;
    str_append(s, words[def->policy]);
    for (int i = 0; i < MAX_IN; i++)
        if (def->f32_inputs >> i & 1) str_printf(s, ", input %d", i);
}

static void print_attributes(const struct op_def *def, struct str *s)
{
    for (const struct attr_field *f = def->attrs; f->name; f++) {
        str_printf(s, "%s%s", f == def->attrs ? "" : ", ", f->name);
        if (f->otherwise) str_printf(s, " or %s", f->otherwise);
    }
}

/* Row i of the CPU if it is of `op` and no earlier row of `op` is of the same variant. */
static const char *new_variant(enum op op, int i)
{
    const struct backend *cpu = backend_find("cpu");
    const struct kernel *k = cpu->kernels.row(i);
    if (k->op != op) return NULL;
    for (int before = 0; before < i; before++) {
        const struct kernel *other = cpu->kernels.row(before);
        if (other->op == op && strcmp(other->variant, k->variant) == 0) return NULL;
    }
    return k->variant;
}

static void print_variants(enum op op, struct str *s)
{
    const char *separator = "";
    for (int i = 0; backend_find("cpu")->kernels.row(i); i++) {
        const char *variant = new_variant(op, i);
        if (!variant) continue;
        str_printf(s, "%s%s", separator, variant);
        separator = ", ";
    }
}

static int count_cases(enum op op)
{
    const struct op_case *c;
    int n = 0;
    for (int i = 0; (c = case_at(i)); i++) n += c->op == op;
    return n;
}

static void print_row(enum op op, struct str *s)
{
    const struct op_def *def = op_def(op);
    str_printf(s, "| %s | ", def->name);
    print_arity(def, s);
    str_printf(s, " | %s | ", family_name(def->family));
    print_precision(def, s);
    str_append(s, " | ");
    print_attributes(def, s);
    str_printf(s, " | %s | %s | ", def->grad ? "yes" : "", def->expand ? "yes" : "");
    print_flags(op, s);
    str_append(s, " | ");
    print_variants(op, s);
    str_printf(s, " | %d |\n", count_cases(op));
}

void ops_doc_print(struct str *s)
{
    str_append(s, head);
    for (int level = 0; level < COUNT_OF(levels); level++) {
        str_printf(s, "\n## %s\n\n%s\n\n", levels[level].title, levels[level].text);
        str_append(s, "| operator | inputs | family | precision | attributes | gradient | "
                      "expansion | flags | CPU "
                      "kernels | cases |\n"
                      "|---|---|---|---|---|---|---|---|---|---|\n");
        for (int op = 0; op < OP_COUNT; op++)
            if ((int)op_def((enum op)op)->level == level) print_row((enum op)op, s);
    }
}
