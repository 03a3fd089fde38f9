#include "backend/cuda/pointwise/chain_text.h"

#include "base/str.h"
#include "graph/chain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    const struct kernel_call *call;
    const struct chain *chain;
    struct str *s;
    enum dtype dtype[CHAIN_STEPS];
    bool gives_bf16; /* all results are bf16 */
};

/* The expression of each operator. $a and $b stand for the operands, $c for the constant, $t for
 * the type whose precision suffices, $g for the form of GELU, $k for the number of the step. */
static const char *const expressions[OP_COUNT] = {
    [OP_ADD] = "add_of($a, $b)",
    [OP_SUB] = "sub_of($a, $b)",
    [OP_MUL] = "mul_of($a, $b)",
    [OP_DIV] = "div_of($a, $b)",
    [OP_SCALE] = "scale_of($a, $c)",
    [OP_OFFSET] = "offset_of($a, $c)",
    [OP_AT_MOST] = "at_most_of($a, $c)",
    [OP_EXP] = "exp_of<$t>($a)",
    [OP_LOG] = "log_of($a)",
    [OP_SQRT] = "sqrt_of($a)",
    [OP_RSQRT] = "rsqrt_of($a)",
    [OP_TANH] = "tanh_of<$t>($a)",
    [OP_SIGMOID] = "sigmoid_of<$t>($a)",
    [OP_ERF] = "erf_of($a)",
    [OP_RELU] = "relu_of($a)",
    [OP_WHERE_POSITIVE] = "where_positive_of($a, $b)",
    [OP_WHERE_NOT_POSITIVE] = "where_not_positive_of($a, $b)",
    [OP_ELU] = "elu_of<$t>($a)",
    [OP_ELU_GRAD] = "elu_grad_of($a, $b)",
    [OP_SILU] = "silu_of<$t>($a)",
    [OP_SILU_GRAD] = "silu_grad_of<$t>($a, $b)",
    [OP_CAST] = "$a",
    [OP_GELU] = "gelu_point<$t, $g>($a).y",
    [OP_GELU_GRAD] = "mul_of($a, gelu_point<$t, $g>($b).slope)",
    [OP_DROPOUT] = "mul_of($a, factor$k)",
};

static const char *c_type(enum dtype dtype)
{
    return dtype == DT_BF16 ? "bf16" : dtype == DT_I32 ? "int" : "float";
}

int chain_vector(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in_type[i].dtype == DT_BF16) return CHAIN_BF16_VECTOR;
    for (int i = 0; i < c->n_out; i++)
        if (c->out_type[i].dtype == DT_BF16) return CHAIN_BF16_VECTOR;
    return CHAIN_F32_VECTOR;
}

/* A thread has one vector: on an H200 chains of floats are up to 3 % faster than with four, and
 * chains of two bf16 inputs 10 % faster than with two. A chain of a single bf16 input is 5 % faster
 * with two vectors. The random bytes of a dropout are drawn 16 at a time. */
int chain_per_thread(const struct kernel_call *c)
{
    enum { DRAWN = 16 };
    int vector = chain_vector(c);
    for (int k = 0; k < c->attr->chain->steps; k++)
        if (c->attr->chain->step[k].op == OP_DROPOUT) return DRAWN;
    return vector == CHAIN_BF16_VECTOR && c->n_in == 1 ? 2 * vector : vector;
}

static enum broadcast broadcast_of(const struct kernel_call *c, int i)
{
    return type_broadcast(&c->attr->chain->shape, &c->in_type[i]);
}

static bool is_step(const struct kernel_call *c, int i)
{
    return c->in_type[i].dtype == DT_I32;
}

bool chain_has_period(const struct kernel_call *c, int i)
{
    return !is_step(c, i) &&
           (broadcast_of(c, i) == BROADCAST_ROW || broadcast_of(c, i) == BROADCAST_TRAILING);
}

/* Writes the fewest digits that identify the float; nine digits always identify it. */
static void write_number(struct str *s, double x)
{
    char digits[32] = "";
    if (isnan(x)) {
        str_append(s, "__int_as_float(0x7fffffff)");
    } else if (isinf((float)x)) {
        str_append(s, x < 0 ? "-INFINITY_F" : "INFINITY_F");
    } else {
        for (int n = 1; n <= 9 && strtof(digits, NULL) != (float)x; n++)
            snprintf(digits, sizeof digits, "%.*g", n, x);
        if (!*digits) snprintf(digits, sizeof digits, "%g", x); /* +0 or -0 */
        str_printf(s, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
    }
}

static void write_operand(const struct text *t, int k, int which)
{
    const struct chain_operand *o = &t->chain->step[k].operand[which];
    if (o->from == CHAIN_CONSTANT) {
        bool is_bf16 = t->dtype[k] == DT_BF16;
        str_append(t->s, is_bf16 ? "rounded<bf16>(" : "");
        write_number(t->s, o->constant);
        str_append(t->s, is_bf16 ? ")" : "");
    } else {
        str_printf(t->s, "%c%d", o->from == CHAIN_INPUT ? 'x' : 'r', o->index);
    }
}

/* Writes a line such as "    const float r2 = rounded<bf16>(add_of(r1, x3));". */
static void write_step(const struct text *t, int k)
{
    const struct chain_step *step = &t->chain->step[k];
    bool is_bf16 = t->dtype[k] == DT_BF16;
    str_printf(t->s, "    const float r%d = %s", k, is_bf16 ? "rounded<bf16>(" : "");
    for (const char *at = expressions[step->op]; *at; at++) {
        if (*at != '$') {
            str_append_bytes(t->s, at, 1);
            continue;
        }
        at++;
        if (*at == 'a' || *at == 'b') write_operand(t, k, *at - 'a');
        if (*at == 'c') write_number(t->s, step->attr.constant.value);
        if (*at == 't') str_append(t->s, c_type(t->gives_bf16 ? DT_BF16 : t->dtype[k]));
        if (*at == 'g') str_append(t->s, step->attr.gelu.tanh ? "true" : "false");
        if (*at == 'k') str_printf(t->s, "%d", k);
    }
    str_append(t->s, is_bf16 ? ");\n" : ";\n");
}

static void comma(const struct text *t, bool *first)
{
    if (!*first) str_append(t->s, ", ");
    *first = false;
}

/* Writes the function that computes all steps of one element. */
static void write_function(const struct text *t)
{
    bool first = true;
    str_append(t->s, "struct results {\n    float ");
    for (int i = 0; i < t->chain->outputs; i++) {
        comma(t, &first);
        str_printf(t->s, "y%d", i);
    }
    str_append(t->s, ";\n};\n\nDEVICE results chain_of(");
    first = true;
    for (int i = 0; i < t->call->n_in; i++) {
        if (is_step(t->call, i)) continue;
        comma(t, &first);
        str_printf(t->s, "float x%d", i);
    }
    for (int k = 0; k < t->chain->steps; k++)
        if (t->chain->step[k].op == OP_DROPOUT) str_printf(t->s, ", float factor%d", k);
    str_append(t->s, ")\n{\n");
    for (int k = 0; k < t->chain->steps; k++) write_step(t, k);
    str_append(t->s, "    return {");
    for (int i = 0; i < t->chain->outputs; i++)
        str_printf(t->s, "%sr%d", i ? ", " : "", t->chain->output[i]);
    str_append(t->s, "};\n}\n\n");
}

static void write_parameters(const struct text *t)
{
    const struct kernel_call *c = t->call;
    bool one = type_elements(&t->chain->shape) == 1, first = true;
    str_printf(t->s, "KERNEL(%s) chain(", one ? "1" : "THREADS");
    for (int i = 0; i < c->n_in; i++) {
        comma(t, &first);
        str_printf(t->s, "const %s *in%d", c_type(c->in_type[i].dtype), i);
        if (chain_has_period(c, i)) str_printf(t->s, ", int period%d", i);
    }
    for (int k = 0; k < t->chain->steps; k++)
        if (t->chain->step[k].op == OP_DROPOUT)
            str_printf(t->s, ", u32 seed%d, u32 site%d, int threshold%d", k, k, k);
    for (int i = 0; i < c->n_out; i++)
        str_printf(t->s, ", %s *out%d", c_type(c->out_type[i].dtype), i);
    str_append(t->s, one ? ")\n{\n" : ", i64 n)\n{\n");
}

/* Writes an expression such as "per_row::of<N>(in1, i, period1)". `what` is "of<N>" (a vector) or
 * "at" (one element). */
static void write_load(const struct text *t, int i, const char *what, const char *at)
{
    static const char *const names[] = {"same", "scalar", "per_row", "trailing"};
    str_printf(t->s, "%s::%s(in%d, %s, ", names[broadcast_of(t->call, i)], what, i, at);
    if (chain_has_period(t->call, i))
        str_printf(t->s, "period%d)", i);
    else
        str_append(t->s, "1)");
}

/* Writes the computation of the element whose index is the expression `at`. */
static void write_single(const struct text *t, const char *at, const char *indent)
{
    const struct kernel_call *c = t->call;
    bool first = true;
    str_printf(t->s, "%sconst results r = chain_of(", indent);
    for (int i = 0; i < c->n_in; i++) {
        if (is_step(c, i)) continue;
        comma(t, &first);
        write_load(t, i, "at", at);
    }
    for (int k = 0; k < t->chain->steps; k++)
        if (t->chain->step[k].op == OP_DROPOUT)
            str_printf(t->s, ", keep_factor_at(%s, seed%d, site%d, (u32)*in%d, threshold%d)", at, k,
                       k, t->chain->step[k].operand[1].index, k);
    str_append(t->s, ");\n");
    for (int i = 0; i < c->n_out; i++)
        str_printf(t->s, "%sout%d[%s] = to<%s>(r.y%d);\n", indent, i, at,
                   c_type(c->out_type[i].dtype), i);
}

static const char loop[] = "#pragma unroll\n"
                           "        for (int j = 0; j < TOGETHER; j++) {\n"
                           "            const i64 i = first + (k + j) * STEP;\n"
                           "            if (i + N > n) continue;\n";

/* Writes the loop over the vectors of one thread. In each round, TOGETHER vectors of each input are
 * loaded before a result is stored. */
static void write_vectors(const struct text *t)
{
    const struct kernel_call *c = t->call;
    bool first = true;
    str_append(t->s, "#pragma unroll\n    for (int k = 0; k < TIMES; k += TOGETHER) {\n"
                     "        floats<N> ");
    for (int i = 0; i < c->n_in; i++) {
        if (is_step(c, i)) continue;
        comma(t, &first);
        str_printf(t->s, "x%d[TOGETHER]", i);
    }
    str_printf(t->s, ";\n%s", loop);
    for (int i = 0; i < c->n_in; i++) {
        if (is_step(c, i)) continue;
        str_printf(t->s, "            x%d[j] = ", i);
        write_load(t, i, "of<N>", "i");
        str_append(t->s, ";\n");
    }
    str_printf(t->s, "        }\n%s            floats<N> ", loop);
    for (int i = 0; i < c->n_out; i++) str_printf(t->s, "%sy%d", i ? ", " : "", i);
    str_append(t->s, ";\n#pragma unroll\n            for (int e = 0; e < N; e++) {\n"
                     "                const results r = chain_of(");
    first = true;
    for (int i = 0; i < c->n_in; i++) {
        if (is_step(c, i)) continue;
        comma(t, &first);
        str_printf(t->s, "x%d[j][e]", i);
    }
    for (int k = 0; k < t->chain->steps; k++)
        if (t->chain->step[k].op == OP_DROPOUT)
            str_printf(t->s, ", keep_factor(random%d, k + j, e, threshold%d)", k, k);
    str_append(t->s, ");\n");
    for (int i = 0; i < c->n_out; i++) str_printf(t->s, "                y%d[e] = r.y%d;\n", i, i);
    str_append(t->s, "            }\n");
    for (int i = 0; i < c->n_out; i++)
        str_printf(t->s, "            store<N>(out%d + i, y%d);\n", i, i);
    str_append(t->s, "        }\n    }\n");
}

static void write_kernel(const struct text *t)
{
    write_parameters(t);
    if (type_elements(&t->chain->shape) == 1) {
        write_single(t, "0", "    ");
        str_append(t->s, "}\n");
        return;
    }
    str_append(t->s,
               "    const i64 first = first_element<N, TIMES>(), tail = tail_element<N>(n);\n");
    for (int k = 0; k < t->chain->steps; k++)
        if (t->chain->step[k].op == OP_DROPOUT)
            str_printf(t->s,
                       "    const random_bytes<N, TIMES> random%d = "
                       "random_elements<N, TIMES>(first, seed%d, site%d, (u32)*in%d);\n",
                       k, k, k, t->chain->step[k].operand[1].index);
    write_vectors(t);
    str_append(t->s, "    if (tail < n) {\n");
    write_single(t, "tail", "        ");
    str_append(t->s, "    }\n}\n");
}

/* The number of vectors of each input that a thread loads together: so few that registers easily
 * hold them. */
static int together(const struct kernel_call *c, int vector)
{
    enum { HELD = 48 };
    int times = chain_per_thread(c) / vector;
    while (times > 1 && times * vector * c->n_in > HELD) times /= 2;
    return times;
}

static bool has_gelu(const struct chain *c)
{
    for (int k = 0; k < c->steps; k++)
        if (c->step[k].op == OP_GELU || c->step[k].op == OP_GELU_GRAD) return true;
    return false;
}

void chain_write(const struct kernel_call *c, struct str *s)
{
    struct text t = {.call = c, .chain = c->attr->chain, .s = s, .gives_bf16 = true};
    int vector = chain_vector(c);
    for (int i = 0; i < c->n_out; i++) t.gives_bf16 &= c->out_type[i].dtype == DT_BF16;
    chain_dtypes(t.chain, c->in_type, t.dtype);
    str_append(s, "/* ");
    for (int k = 0; k < t.chain->steps; k++)
        str_printf(s, "%s%s", k ? ", " : "", op_def(t.chain->step[k].op)->name);
    str_append(s, ": applied in this order to each element. */\n"
                  "#include \"arithmetic.cuh\"\n");
    str_append(s, has_gelu(t.chain) ? "#include \"gelu.cuh\"\n\n" : "\n");
    if (type_elements(&t.chain->shape) > 1)
        str_printf(s, "enum { N = %d, STEP = THREADS * N, TIMES = %d, TOGETHER = %d };\n\n", vector,
                   chain_per_thread(c) / vector, together(c, vector));
    write_function(&t);
    write_kernel(&t);
}
