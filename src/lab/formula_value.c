/* Evaluates formulas. Derivatives are computed by forward-mode dual numbers. 0 times an infinite
 * slope counts as 0, so the derivative of a constant stays exactly 0. */
#include "base/checked.h"
#include "lab/formula_kinds.h"

#include <math.h>

/* --- functions of one argument ---------------------------------------------------------------- */

static const double SQRT_HALF = 0.70710678118654752440; /* 1 / sqrt(2) */
static const double TWO_BY_SQRT_PI = 1.12837916709551257390;
static const double SQRT_2_BY_PI = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double CUBIC = 0.044715;                      /* of GELU's tanh form */

static double rsqrt_of(double x)
{
    return 1 / sqrt(x);
}

static double relu_of(double x)
{
    return x < 0 ? 0 : x; /* NaN stays NaN */
}

static double gelu_of(double x)
{
    return 0.5 * x * (1 + erf(x * SQRT_HALF));
}

static double gelu_tanh_of(double x)
{
    return 0.5 * x * (1 + tanh(SQRT_2_BY_PI * (x + CUBIC * x * x * x)));
}

static double elu_of(double x)
{
    return x > 0 ? x : expm1(x);
}

static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu_of(double x)
{
    return x * sigmoid_of(x);
}

static double abs_of(double x)
{
    return x > 0 ? x : -x;
}

static double slope_exp(double x, double y)
{
    (void)x;
    return y;
}

static double slope_log(double x, double y)
{
    (void)y;
    return 1 / x;
}

static double slope_sqrt(double x, double y)
{
    (void)x;
    return 0.5 / y;
}

static double slope_rsqrt(double x, double y)
{
    return -0.5 * y / x;
}

static double slope_tanh(double x, double y)
{
    (void)x;
    return 1 - y * y;
}

static double slope_erf(double x, double y)
{
    (void)y;
    return TWO_BY_SQRT_PI * exp(-x * x);
}

static double slope_relu(double x, double y)
{
    (void)y;
    return x > 0;
}

static double slope_gelu(double x, double y)
{
    (void)y;
    return 0.5 * (1 + erf(x * SQRT_HALF)) +
           x * 0.5 * TWO_BY_SQRT_PI * SQRT_HALF * exp(-0.5 * x * x);
}

static double slope_gelu_tanh(double x, double y)
{
    (void)y;
    double t = tanh(SQRT_2_BY_PI * (x + CUBIC * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SQRT_2_BY_PI * (1 + 3 * CUBIC * x * x);
}

static double slope_elu(double x, double y)
{
    return x > 0 ? 1 : y + 1;
}

static double slope_sigmoid(double x, double y)
{
    (void)x;
    return y * (1 - y);
}

static double slope_silu(double x, double y)
{
    double s = sigmoid_of(x);
    return s + y * (1 - s);
}

static double slope_abs(double x, double y)
{
    (void)y;
    return x > 0 ? 1 : -1;
}

const struct formula_function formula_kinds[FORMULA_KINDS] = {
    [FORMULA_NUMBER] = {"number", 0, NULL, NULL},
    [FORMULA_NAME] = {"name", 0, NULL, NULL},
    [FORMULA_NEGATE] = {"-", 1, NULL, NULL},
    [FORMULA_ADD] = {"+", 2, NULL, NULL},
    [FORMULA_SUB] = {"-", 2, NULL, NULL},
    [FORMULA_MUL] = {"*", 2, NULL, NULL},
    [FORMULA_DIV] = {"/", 2, NULL, NULL},
    [FORMULA_LESS] = {"<", 2, NULL, NULL},
    [FORMULA_LESS_EQUAL] = {"<=", 2, NULL, NULL},
    [FORMULA_GREATER] = {">", 2, NULL, NULL},
    [FORMULA_GREATER_EQUAL] = {">=", 2, NULL, NULL},
    [FORMULA_EXP] = {"exp", 1, exp, slope_exp},
    [FORMULA_LOG] = {"log", 1, log, slope_log},
    [FORMULA_SQRT] = {"sqrt", 1, sqrt, slope_sqrt},
    [FORMULA_RSQRT] = {"rsqrt", 1, rsqrt_of, slope_rsqrt},
    [FORMULA_TANH] = {"tanh", 1, tanh, slope_tanh},
    [FORMULA_ERF] = {"erf", 1, erf, slope_erf},
    [FORMULA_RELU] = {"relu", 1, relu_of, slope_relu},
    [FORMULA_GELU] = {"gelu", 1, gelu_of, slope_gelu},
    [FORMULA_GELU_TANH] = {"gelu_tanh", 1, gelu_tanh_of, slope_gelu_tanh},
    [FORMULA_ELU] = {"elu", 1, elu_of, slope_elu},
    [FORMULA_SILU] = {"silu", 1, silu_of, slope_silu},
    [FORMULA_SIGMOID] = {"sigmoid", 1, sigmoid_of, slope_sigmoid},
    [FORMULA_ABS] = {"abs", 1, abs_of, slope_abs},
    [FORMULA_MIN] = {"min", 2, NULL, NULL},
    [FORMULA_MAX] = {"max", 2, NULL, NULL},
    [FORMULA_POW] = {"pow", 2, NULL, NULL},
    [FORMULA_WHERE] = {"where", 3, NULL, NULL},
};

const char *formula_kind_name(enum formula_kind k)
{
    return formula_kinds[k].name;
}

/* --- in double -------------------------------------------------------------------------------- */

/* The chain rule: a derivative times a slope, where 0 times infinity is 0. */
static double along(double d, double slope)
{
    return d == 0 ? 0 : d * slope;
}

static struct formula_dual power(struct formula_dual a, struct formula_dual b)
{
    double x = pow(a.x, b.x);
    return (struct formula_dual){x, along(a.d, b.x == 0 ? 0 : b.x * pow(a.x, b.x - 1)) +
                                        along(b.d, x == 0 ? 0 : x * log(a.x))};
}

static struct formula_dual dual_of(const struct formula_node *n, const struct formula_dual *all)
{
    struct formula_dual a = n->args > 0 ? all[n->arg[0]] : (struct formula_dual){0};
    struct formula_dual b = n->args > 1 ? all[n->arg[1]] : (struct formula_dual){0};
    const struct formula_function *f = &formula_kinds[n->kind];
    switch (n->kind) {
    case FORMULA_NUMBER:
        return (struct formula_dual){n->number, 0};
    case FORMULA_NEGATE:
        return (struct formula_dual){-a.x, -a.d};
    case FORMULA_ADD:
        return (struct formula_dual){a.x + b.x, a.d + b.d};
    case FORMULA_SUB:
        return (struct formula_dual){a.x - b.x, a.d - b.d};
    case FORMULA_MUL:
        return (struct formula_dual){a.x * b.x, along(a.d, b.x) + along(b.d, a.x)};
    case FORMULA_DIV:
        return (struct formula_dual){a.x / b.x, along(a.d, 1 / b.x) - along(b.d, a.x / b.x / b.x)};
    case FORMULA_LESS:
        return (struct formula_dual){a.x < b.x, 0};
    case FORMULA_LESS_EQUAL:
        return (struct formula_dual){!(b.x < a.x), 0};
    case FORMULA_GREATER:
        return (struct formula_dual){b.x < a.x, 0};
    case FORMULA_GREATER_EQUAL:
        return (struct formula_dual){!(a.x < b.x), 0};
    case FORMULA_MIN:
        return a.x < b.x ? a : b;
    case FORMULA_MAX:
        return a.x < b.x ? b : a;
    case FORMULA_POW:
        return power(a, b);
    case FORMULA_WHERE:
        return a.x > 0 ? b : all[n->arg[2]];
    default:
        BUG_IF(!f->of, "formula: %s has no value", f->name);
        double y = f->of(a.x);
        return (struct formula_dual){y, along(a.d, f->slope(a.x, y))};
    }
}

static struct formula_dual node_of(const struct formula_node *n, const double *values, int name,
                                   const struct formula_dual *all)
{
    if (n->kind != FORMULA_NAME) return dual_of(n, all);
    return (struct formula_dual){values[n->name], n->name == name};
}

/* Evaluates all nodes. */
static void evaluate(const struct formula *f, const double *values, int name,
                     struct formula_dual *ret)
{
    for (int i = 0; i < f->nodes; i++) ret[i] = node_of(&f->node[i], values, name, ret);
}

struct formula_dual formula_derivative(const struct formula *f, const double *values, int name)
{
    struct formula_dual all[FORMULA_BYTES];
    evaluate(f, values, name, all);
    return all[f->nodes - 1];
}

double formula_value(const struct formula *f, const double *values)
{
    return formula_derivative(f, values, -1).x;
}

void formula_values(const struct formula *f, const double *values, double *ret)
{
    struct formula_dual all[FORMULA_BYTES];
    evaluate(f, values, -1, all);
    for (int i = 0; i < f->nodes; i++) ret[i] = all[i].x;
}

/* --- with rounding ---------------------------------------------------------------------------- */

/* Like number_round, but faster for fp32. */
static double rounded(enum number_kind to, double x)
{
    return to == NUMBER_FP32 ? (double)(float)x : number_round(to, x);
}

/* The partial derivative of node `n` by operand k, after `by` is added to operand `moved`. */
static double slope_in(const struct formula_node *n, int k, int moved, double by,
                       const struct formula_dual *all)
{
    struct formula_node one = *n;
    struct formula_dual operand[FORMULA_ARGS];
    for (int i = 0; i < n->args; i++) {
        one.arg[i] = i;
        operand[i] = (struct formula_dual){all[n->arg[i]].x + (i == moved ? by : 0), i == k};
    }
    return dual_of(&one, operand).d;
}

/* error * by, where 0 times infinity is 0. */
static double amplified(double error, double by)
{
    return error == 0 || by == 0 ? 0 : error * by;
}

/* A bound of the error of node `n` due to errors of its operands. The error of the derivative also
 * depends on how much the slopes change. */
static struct formula_dual off_of(const struct formula_node *n, const struct formula_dual *all,
                                  const struct formula_dual *off, double unit)
{
    struct formula_dual ret = {0};
    for (int k = 0; k < n->args; k++) {
        double slope = slope_in(n, k, k, 0, all), change = unit * fabs(slope);
        for (int i = 0; i < n->args; i++)
            if (off[n->arg[i]].x > 0)
                change += fabs(slope_in(n, k, i, off[n->arg[i]].x, all) - slope);
        ret.x += amplified(off[n->arg[k]].x, fabs(slope));
        ret.d +=
            amplified(off[n->arg[k]].d, fabs(slope)) + amplified(fabs(all[n->arg[k]].d), change);
    }
    return ret;
}

/* Whether errors of the operands may change which side of a comparison or kink node `n` takes. */
static bool is_close(const struct formula_node *n, const struct formula_dual *all,
                     const struct formula_dual *off)
{
    static const double FACTOR = 4;
    enum formula_kind k = n->kind;
    bool of_two =
        (k >= FORMULA_LESS && k <= FORMULA_GREATER_EQUAL) || k == FORMULA_MIN || k == FORMULA_MAX;
    bool of_one = k == FORMULA_RELU || k == FORMULA_ELU || k == FORMULA_ABS || k == FORMULA_WHERE;
    if (!of_one && !of_two) return false;
    double gap = all[n->arg[0]].x, by = off[n->arg[0]].x;
    if (of_two) gap -= all[n->arg[1]].x, by += off[n->arg[1]].x;
    return by > 0 && !(fabs(gap) > FACTOR * by);
}

struct formula_rounded formula_rounded(const struct formula *f, const double *values, int name,
                                       enum number_kind to)
{
    struct formula_dual all[FORMULA_BYTES], off[FORMULA_BYTES];
    double unit = to == NUMBER_BF16 ? 0x1p-8 : 0x1p-23;
    struct formula_rounded ret = {.certain = true};
    for (int i = 0; i < f->nodes; i++) {
        const struct formula_node *n = &f->node[i];
        struct formula_dual exact = node_of(n, values, name, all);
        all[i] = (struct formula_dual){rounded(to, exact.x), rounded(to, exact.d)};
        off[i] = off_of(n, all, off, unit);
        off[i].x += n->args ? unit * fabs(exact.x) : fabs(exact.x - all[i].x);
        if (is_close(n, all, off)) ret.certain = false;
    }
    ret.dual = all[f->nodes - 1];
    ret.off = off[f->nodes - 1];
    return ret;
}

/* --- in integers ------------------------------------------------------------------------------ */

/* The integer value of a node. If `why` is not NULL, there is no value, and `why` explains what is
 * wrong with node `at`. */
struct integer {
    int64_t x;
    const char *why;
    int at;
};

static bool divide(int64_t a, int64_t b, int64_t *ret)
{
    if (b == -1) return !__builtin_sub_overflow(INT64_C(0), a, ret);
    *ret = a / b;
    return true;
}

static struct integer integer_of(const struct formula_node *n, int at, const struct integer *all)
{
    static const char TOO_LARGE[] = "the result does not fit into 64 bits";
    struct integer a = n->args > 0 ? all[n->arg[0]] : (struct integer){0}, b = {0},
                   ret = {.at = at};
    if (n->kind == FORMULA_WHERE && !a.why) return all[n->arg[a.x > 0 ? 1 : 2]];
    for (int i = 0; i < n->args; i++)
        if (all[n->arg[i]].why) return all[n->arg[i]];
    if (n->args > 1) b = all[n->arg[1]];
    bool fits = true;
    switch (n->kind) {
    case FORMULA_NUMBER:
        ret.x = n->integer;
        if (!n->is_integer) ret.why = "the number must be an integer of 64 bits here";
        break;
    case FORMULA_NEGATE:
        fits = divide(a.x, -1, &ret.x);
        break;
    case FORMULA_ADD:
        fits = checked_add(a.x, b.x, &ret.x);
        break;
    case FORMULA_SUB:
        fits = !__builtin_sub_overflow(a.x, b.x, &ret.x);
        break;
    case FORMULA_MUL:
        fits = checked_mul(a.x, b.x, &ret.x);
        break;
    case FORMULA_DIV:
        if (b.x)
            fits = divide(a.x, b.x, &ret.x);
        else
            ret.why = "the divisor is 0";
        break;
    case FORMULA_LESS:
        ret.x = a.x < b.x;
        break;
    case FORMULA_LESS_EQUAL:
        ret.x = a.x <= b.x;
        break;
    case FORMULA_GREATER:
        ret.x = a.x > b.x;
        break;
    case FORMULA_GREATER_EQUAL:
        ret.x = a.x >= b.x;
        break;
    case FORMULA_ABS:
        fits = a.x >= 0 || divide(a.x, -1, &ret.x);
        if (a.x >= 0) ret.x = a.x;
        break;
    case FORMULA_MIN:
        ret.x = min_i64(a.x, b.x);
        break;
    case FORMULA_MAX:
        ret.x = max_i64(a.x, b.x);
        break;
    default:
        ret.why = "this function has no value in integers; min, max, abs and where have one";
    }
    if (!fits) ret.why = TOO_LARGE;
    return ret;
}

enum status formula_integer(const struct formula *f, const int64_t *values, int64_t *ret)
{
    struct integer all[FORMULA_BYTES];
    for (int i = 0; i < f->nodes; i++) {
        const struct formula_node *n = &f->node[i];
        all[i] = (struct integer){0};
        if (n->kind == FORMULA_NAME)
            all[i].x = values[n->name];
        else
            all[i] = integer_of(n, i, all);
    }
    const struct integer *last = &all[f->nodes - 1];
    if (last->why) return formula_fail(f->text, f->node[last->at].at, "%s", last->why);
    *ret = last->x;
    return ST_OK;
}
