#include "lab/formula_exact.h"

#include "base/rng.h"
#include "check/reference.h"

#include <float.h>
#include <math.h>
#include <string.h>

static enum status make_points(enum dtype dtype, uint32_t sequence, int64_t n, void **ret,
                               double **ret_exact, struct arena *a)
{
    float *x = ARENA_NEW(a, float, n);
    rng_normals(1, RNG_TEST, sequence, 0, n, x);
    *ret = arena_alloc(a, n * dtype_size(dtype));
    *ret_exact = ARENA_NEW(a, double, n);
    TRY(reference_convert(*ret, dtype, x, DT_F32, n));
    return reference_convert(*ret_exact, DT_F64, *ret, dtype, n);
}

/* The format to which a variant rounds every operation. */
static enum number_kind type_of_steps(enum formula_variant v, enum dtype dtype)
{
    return dtype == DT_BF16 && v == FORMULA_SEPARATE ? NUMBER_BF16 : NUMBER_FP32;
}

/* Sets `off` and `judge` of point i for one variant. Output k = 0 is the value, output k > 0 the
 * gradient of tensor k - 1. */
static void bound(const struct formula_rounded *r, double df, int64_t i, int k,
                  enum formula_variant v, struct formula_expected *e)
{
    double rounded = k ? df * r->dual.d : r->dual.x, off = k ? fabs(df) * r->off.d : r->off.x;
    bool finite = isfinite(r->dual.x) && isfinite(rounded) && isfinite(off);
    e->judge[v][i] = finite && r->certain && fabs(e->x[i]) < FLT_MAX;
    e->off[v][i] = off;
}

static void evaluate(const struct formula_options *o, const double *values, double df, int64_t i,
                     int k, struct formula_expected *e)
{
    enum number_kind type[] = {type_of_steps(FORMULA_SEPARATE, o->dtype),
                               type_of_steps(FORMULA_FUSED, o->dtype)};
    struct formula_dual exact = formula_derivative(o->formula, values, k - 1);
    struct formula_rounded r = formula_rounded(o->formula, values, k - 1, type[0]);
    e->x[i] = k ? df * exact.d : exact.x;
    bound(&r, df, i, k, FORMULA_SEPARATE, e);
    if (type[1] != type[0]) r = formula_rounded(o->formula, values, k - 1, type[1]);
    bound(&r, df, i, k, FORMULA_FUSED, e);
}

enum status formula_exact(const struct formula_options *o, const struct formula_uses *uses,
                          int64_t n, struct formula_exact *ret, struct arena *a)
{
    double *x[FORMULA_TENSORS + 1];
    *ret = (struct formula_exact){.points = min_i64(n, FORMULA_POINTS), .dtype = o->dtype};
    for (int i = 0; i <= FORMULA_TENSORS; i++)
        TRY(make_points(o->dtype, (uint32_t)i, ret->points, &ret->in[i], &x[i], a));
    for (int k = 0; k < FORMULA_OUTPUTS; k++) {
        struct formula_expected *e = &ret->out[k];
        if (k && !(uses->slopes >> (k - 1) & 1)) continue;
        e->x = ARENA_NEW(a, double, ret->points);
        for (int v = 0; v < FORMULA_VARIANTS; v++) {
            e->off[v] = ARENA_NEW(a, double, ret->points);
            e->judge[v] = ARENA_NEW(a, unsigned char, ret->points);
        }
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < ret->points; i++) {
            double values[FORMULA_NAMES];
            memcpy(values, o->values, sizeof values);
            for (int t = 0; t < FORMULA_TENSORS; t++) values[t] = x[t][i];
            evaluate(o, values, x[FORMULA_TENSORS][i], i, k, e);
        }
    }
    return ST_OK;
}

struct formula_judged formula_judge(const struct formula_exact *e, int output,
                                    enum formula_variant v, int operators, const double *y,
                                    int64_t n)
{
    static const double FACTOR = 2; /* functions such as exp have larger errors than one rounding */
    const struct formula_expected *x = &e->out[output];
    bool bf16 = e->dtype == DT_BF16;
    double unit = type_of_steps(v, e->dtype) == NUMBER_BF16 ? 0x1p-9 : 0x1p-24;
    double least = bf16 ? 4e-3 : 2e-6; /* for rounding the result and for inexact functions */
    double off = 0, norm = 0, rounding = 0, worst = -1;
    int64_t judged = 0;
    struct formula_judged ret = {0};
    for (int64_t i = 0, p = 0; i < n; i++, p = p + 1 == e->points ? 0 : p + 1) {
        if (!x->judge[v][p]) continue;
        double d = y[i] - x->x[p];
        judged++;
        off += d * d;
        norm += x->x[p] * x->x[p];
        rounding += x->off[v][p] * x->off[v][p];
        if (fabs(d) <= worst) continue; /* NaN is the worst */
        worst = fabs(d);
        if (!isnan(ret.error)) ret.worst = i;
        if (isnan(d)) ret.error = NAN;
    }
    ret.error = off == 0 ? 0 : norm > 0 && isfinite(off) ? sqrt(off / norm) : INFINITY;
    ret.allowed =
        fmax(fmax(least, operators * unit), norm > 0 ? FACTOR * sqrt(rounding / norm) : 0);
    ret.unjudged = 1 - (double)judged / (double)n;
    return ret;
}
