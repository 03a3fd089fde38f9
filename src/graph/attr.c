#include "graph/attr.h"

#include "base/str.h"
#include "graph/chain.h"

#include <string.h>

static const char *const storage_names[STORAGE_COUNT] = {
    [STORAGE_INPUT] = "input",     [STORAGE_WEIGHTS] = "weights", [STORAGE_GRADIENTS] = "gradients",
    [STORAGE_MOMENT1] = "moment1", [STORAGE_MOMENT2] = "moment2", [STORAGE_COPY] = "copy",
    [STORAGE_PACKED] = "packed",   [STORAGE_CACHE] = "cache",     [STORAGE_STAGED] = "staged",
    [STORAGE_REDUCED] = "reduced", [STORAGE_RANDOM] = "drawn",    [STORAGE_ARENA] = "arena",
    [STORAGE_AMAX] = "amax",       [STORAGE_UNIT] = "unit",
};

/* The kind of a member of union attr. A member of another type does not compile. */
#define KIND(member) \
    _Generic(((union attr *)0)->member,            \
        bool: ATTR_BOOL,                           \
        int: ATTR_INT,                             \
        int64_t: ATTR_INT64,                       \
        double: ATTR_REAL,                         \
        struct dropout: ATTR_DROPOUT,              \
        int64_t *: ATTR_PARTS,                     \
        const struct chain *: ATTR_CHAIN)
#define AT(name, member)         name, KIND(member), offsetof(union attr, member), NULL, false
#define ALWAYS(name, member)     name, KIND(member), offsetof(union attr, member), NULL, true
#define CHOICE(yes, no, member)  yes, KIND(member), offsetof(union attr, member), no, false
#define WORD(name, kind, member) name, kind, offsetof(union attr, member), NULL, true

/* clang-format off */
const struct attr_field attrs_none[] = {{0}};
const struct attr_field attrs_leaf[] = {{WORD("storage", ATTR_STORAGE, leaf.storage)}, {AT("offset", leaf.offset)}, {0}};
const struct attr_field attrs_constant[] = {{ALWAYS("value", constant.value)}, {0}};
const struct attr_field attrs_column_mask[] = {{ALWAYS("from", column_mask.columns)}, {ALWAYS("value", column_mask.value)}, {0}};
const struct attr_field attrs_matmul[] = {{AT("ta", matmul.ta)}, {AT("tb", matmul.tb)}, {AT("packed", matmul.packed)}, {0}};
const struct attr_field attrs_matmul_gelu[] = {
    {AT("ta", matmul.ta)}, {AT("tb", matmul.tb)}, {AT("packed", matmul.packed)}, {CHOICE("tanh", "erf", matmul.tanh)}, {0}};
const struct attr_field attrs_matmul_scaled[] = {{AT("tb", matmul.tb)}, {AT("fast", matmul.fast)}, {0}};
const struct attr_field attrs_quantize[] = {{WORD("to", ATTR_DTYPE, quantize.to)}, {AT("first", quantize.first)}, {0}};
const struct attr_field attrs_quantize_gelu[] = {
    {WORD("to", ATTR_DTYPE, quantize.to)}, {AT("first", quantize.first)}, {CHOICE("tanh", "erf", quantize.tanh)}, {0}};
const struct attr_field attrs_quantize_norm[] = {
    {WORD("to", ATTR_DTYPE, quantize.to)}, {AT("first", quantize.first)}, {AT("eps", quantize.eps)}, {AT("drop", quantize.drop)}, {0}};
const struct attr_field attrs_linear[] = {{AT("tb", linear.tb)}, {AT("packed", linear.packed)}, {0}};
const struct attr_field attrs_linear_gelu[] = {
    {AT("tb", linear.tb)}, {AT("packed", linear.packed)}, {CHOICE("tanh", "erf", linear.tanh)}, {AT("keep", linear.keep)}, {0}};
const struct attr_field attrs_pack[] = {{AT("tb", pack.tb)}, {AT("rows", pack.rows)}, {0}};
const struct attr_field attrs_heads[] = {{AT("heads", heads.heads)}, {AT("parts", heads.parts)}, {AT("kv_heads", heads.kv_heads)}, {0}};
const struct attr_field attrs_split[] = {{AT("columns", split.columns)}, {0}};
const struct attr_field attrs_rope[] = {{AT("heads", rope.heads)}, {AT("back", rope.back)}, {0}};
const struct attr_field attrs_rope_table[] = {{AT("theta", rope.theta)}, {0}};
const struct attr_field attrs_gelu[] = {{CHOICE("tanh", "erf", gelu.tanh)}, {0}};
const struct attr_field attrs_norm[] = {{AT("eps", norm.eps)}, {AT("bias", norm.bias)}, {0}};
const struct attr_field attrs_norm_dropout[] = {{AT("eps", norm.eps)}, {AT("bias", norm.bias)}, {AT("drop", norm.drop)}, {0}};
const struct attr_field attrs_dropout[] = {{AT("drop", drop)}, {0}};
const struct attr_field attrs_table[] = {{AT("rows", table.rows)}, {0}};
const struct attr_field attrs_loss[] = {{AT("vocab", loss.vocab)}, {0}};
const struct attr_field attrs_attention[] = {
    {AT("heads", attention.heads)}, {AT("kv_heads", attention.kv_heads)}, {AT("causal", attention.causal)}, {AT("unscaled", attention.unscaled)},
    {AT("drop", attention.drop)}, {0}};
const struct attr_field attrs_score[] = {{AT("scale", score.scale)}, {AT("causal", score.causal)}, {AT("drop", score.drop)}, {0}};
const struct attr_field attrs_adamw[] = {
    {AT("beta1", adamw.beta1)}, {AT("beta2", adamw.beta2)}, {AT("eps", adamw.eps)}, {AT("weight_decay", adamw.weight_decay)},
    {AT("decay_elements", adamw.decay_elements)}, {0}};
const struct attr_field attrs_sgd[] = {
    {AT("momentum", sgd.momentum)}, {AT("weight_decay", sgd.weight_decay)}, {AT("decay_elements", sgd.decay_elements)}, {0}};
const struct attr_field attrs_group[] = {{ALWAYS("ranks", group.ranks)}, {0}};
const struct attr_field attrs_chain[] = {{AT("steps", chain)}, {0}};
/* clang-format on */

size_t attr_size(enum attr_kind kind)
{
    static const size_t sizes[] = {
        [ATTR_BOOL] = sizeof(bool),
        [ATTR_INT] = sizeof(int),
        [ATTR_INT64] = sizeof(int64_t),
        [ATTR_REAL] = sizeof(double),
        [ATTR_DTYPE] = sizeof(enum dtype),
        [ATTR_STORAGE] = sizeof(enum storage),
        [ATTR_DROPOUT] = sizeof(struct dropout),
        [ATTR_PARTS] = sizeof(int64_t[MAX_PARTS]),
        [ATTR_CHAIN] = sizeof(const struct chain *),
    };
    return sizes[kind];
}

/* --- print ------------------------------------------------------------------------------------ */

static void begin_word(struct str *s, bool *first)
{
    str_append(s, *first ? " [" : " ");
    *first = false;
}

static void print_dropout(const struct dropout *d, struct str *s)
{
    str_printf(s, "%d/256 site %u seed %u%s", d->threshold, d->site, d->seed,
               d->pattern == DROPOUT_ATTENTION ? " of scores" : "");
}

static void print_parts(const int64_t *columns, struct str *s)
{
    for (int i = 0; i < MAX_PARTS && columns[i]; i++)
        str_printf(s, "%s%lld", i ? "+" : "", (long long)columns[i]);
}

static void print_fields(enum op op, const union attr *attr, struct str *s, bool *first);

/* Prints "SCALE value 0.5, ADD, GELU tanh". */
static void print_steps(const struct chain *c, struct str *s)
{
    for (int k = 0; k < c->steps; k++) {
        bool first = false;
        str_printf(s, "%s%s", k ? ", " : "", op_def(c->step[k].op)->name);
        print_fields(c->step[k].op, &c->step[k].attr, s, &first);
    }
}

static bool is_zero(const struct attr_field *f, const void *x)
{
    static const char zero[sizeof(union attr)];
    if (f->kind == ATTR_DROPOUT) return ((const struct dropout *)x)->threshold == 0;
    return memcmp(x, zero, attr_size(f->kind)) == 0;
}

static void print_value(const struct attr_field *f, const void *x, struct str *s)
{
    switch (f->kind) {
    case ATTR_BOOL:
        str_append(s, *(const bool *)x ? f->name : f->otherwise);
        return;
    case ATTR_DTYPE:
        str_append(s, dtype_name(*(const enum dtype *)x));
        return;
    case ATTR_STORAGE:
        str_append(s, storage_names[*(const enum storage *)x]);
        return;
    case ATTR_CHAIN:
        str_printf(s, "%s ", f->name);
        print_steps(*(const struct chain *const *)x, s);
        return;
    case ATTR_INT:
        str_printf(s, "%s %d", f->name, *(const int *)x);
        return;
    case ATTR_INT64:
        str_printf(s, "%s %lld", f->name, (long long)*(const int64_t *)x);
        return;
    case ATTR_REAL:
        str_printf(s, "%s %.6g", f->name, *(const double *)x);
        return;
    case ATTR_DROPOUT:
        str_printf(s, "%s ", f->name);
        print_dropout(x, s);
        return;
    case ATTR_PARTS:
        str_printf(s, "%s ", f->name);
        print_parts(x, s);
        return;
    }
}

static void print_fields(enum op op, const union attr *attr, struct str *s, bool *first)
{
    for (const struct attr_field *f = op_def(op)->attrs; f->name; f++) {
        const void *x = (const char *)attr + f->offset;
        if (!f->always && !f->otherwise && is_zero(f, x)) continue;
        begin_word(s, first);
        print_value(f, x, s);
    }
}

void attr_print(enum op op, const union attr *attr, const struct numerics *n, struct str *s)
{
    const struct {
        bool is;
        const char *word;
    } words[] = {{n->tf32, "tf32"}, {n->deterministic, "deterministic"}, {n->portable, "portable"}};
    bool first = true;
    print_fields(op, attr, s, &first);
    for (int i = 0; i < COUNT_OF(words); i++) {
        if (!words[i].is) continue;
        begin_word(s, &first);
        str_append(s, words[i].word);
    }
    if (!first) str_append(s, "]");
}

/* --- compare ---------------------------------------------------------------------------------- */

static bool same_dropout(const struct dropout *a, const struct dropout *b, bool sites)
{
    return a->pattern == b->pattern && a->threshold == b->threshold && a->seed == b->seed &&
           (!sites || a->site == b->site);
}

static bool same_operand(const struct chain_operand *a, const struct chain_operand *b)
{
    return a->from == b->from && a->index == b->index && a->constant == b->constant;
}

static bool same_step(const struct chain_step *a, const struct chain_step *b, bool sites)
{
    return a->op == b->op && a->to == b->to && same_operand(&a->operand[0], &b->operand[0]) &&
           same_operand(&a->operand[1], &b->operand[1]) &&
           attr_same(a->op, &a->attr, &b->attr, sites);
}

static bool same_chain(const struct chain *a, const struct chain *b, bool sites)
{
    if (a->steps != b->steps || a->outputs != b->outputs) return false;
    if (!type_same_shape(&a->shape, &b->shape)) return false;
    for (int k = 0; k < a->steps; k++)
        if (!same_step(&a->step[k], &b->step[k], sites)) return false;
    for (int i = 0; i < a->outputs; i++)
        if (a->output[i] != b->output[i]) return false;
    return true;
}

bool attr_same(enum op op, const union attr *a, const union attr *b, bool sites)
{
    for (const struct attr_field *f = op_def(op)->attrs; f->name; f++) {
        const void *x = (const char *)a + f->offset, *y = (const char *)b + f->offset;
        bool equal = f->kind == ATTR_DROPOUT ? same_dropout(x, y, sites)
                     : f->kind == ATTR_CHAIN ? same_chain(a->chain, b->chain, sites)
                                             : !memcmp(x, y, attr_size(f->kind));
        if (!equal) return false;
    }
    return true;
}

bool numerics_same(const struct numerics *a, const struct numerics *b)
{
    return a->tf32 == b->tf32 && a->deterministic == b->deterministic && a->portable == b->portable;
}
