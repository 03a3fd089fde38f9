/* norm.h - the reference: LayerNorm and RMSNorm. Included by ref_f32.c and ref_f64.c. */
#ifndef BACKEND_CPU_REF_NORM_H
#define BACKEND_CPU_REF_NORM_H

#include "backend/cpu/ref/ref.h"

/* y = (x - mean) rstd w + bias over the rows of x (N,C); the mean of an RMSNorm is 0. The arguments
 * `w` and `y` are indices: c->in[w] is the weight (C), followed by the bias (C) if there is one;
 * c->out[y] is the result (N,C), followed by mean (N), which only a LayerNorm has, and rstd (N). */
static enum status normalize(const struct kernel_call *c, const real *x, int w, int y)
{
    bool centred = c->n_out == y + 3; /* LayerNorm; RMSNorm has no mean */
    const real *weight = c->in[w], *bias = c->n_in > w + 1 ? c->in[w + 1] : NULL;
    real *out = c->out[y], *means = centred ? c->out[y + 1] : NULL, *rstds = c->out[c->n_out - 1];
    int64_t C = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++, x += C, out += C) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < C; i++) sum += (double)x[i];
        double mean = centred ? sum / (double)C : 0;
        for (int64_t i = 0; i < C; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        double rstd = 1 / sqrt(squares / (double)C + c->attr->norm.eps);
        for (int64_t i = 0; i < C; i++) {
            double normalized = ((double)x[i] - mean) * rstd * (double)weight[i];
            out[i] = (real)(bias ? normalized + (double)bias[i] : normalized);
        }
        if (centred) means[row] = (real)mean;
        rstds[row] = (real)rstd;
    }
    return ST_OK;
}

/* x (...,C), w (C), [bias (C)] -> y (...,C), mean (...,1), rstd (...,1); an RMSNorm has no mean */
static enum status run_norm(const struct kernel_call *c)
{
    return normalize(c, c->in[0], 1, 0);
}

/* a, b (...,C), step, w (C), [bias (C)] -> s = a + dropout(b), and y, mean, rstd of s */
static enum status run_add_layernorm(const struct kernel_call *c)
{
    const real *a = c->in[0], *b = c->in[1];
    const int32_t *step = c->in[2];
    real *s = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++)
        s[i] = (real)((double)a[i] +
                      (double)b[i] * keep_element(&c->attr->norm.drop, step, &c->in_type[1], i));
    return normalize(c, s, 3, 1);
}

/* a, b (...,C), w (C) -> s = a + b, and y, rstd of s */
static enum status run_add_rmsnorm(const struct kernel_call *c)
{
    const real *a = c->in[0], *b = c->in[1];
    real *s = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++)
        s[i] = (real)((double)a[i] + (double)b[i]);
    return normalize(c, s, 2, 1);
}

struct norm_grad {
    const real *residual;       /* (N,C), added to dx, or NULL */
    const real *dy, *x;         /* (N,C) */
    const real *w;              /* (C) */
    const real *mean;           /* (N); NULL: the mean is 0 */
    const real *rstd;           /* (N) */
    real *dx;                   /* (N,C); may be dy or residual */
    real *dw, *dbias;           /* (C); dbias may be NULL */
    double *dw_sum, *dbias_sum; /* (C): scratch */
    int64_t N, C;
};

/* With h = (x - mean) rstd and g = dy w:  dx = rstd (g - avg(g) - h avg(g h)),  dw = sum of dy h,
 * dbias = sum of dy. RMSNorm has no mean, so avg(g) is not subtracted. */
static void normalize_grad(const struct norm_grad *n)
{
    int64_t C = n->C;
    for (int64_t i = 0; i < C; i++) n->dw_sum[i] = n->dbias_sum[i] = 0;
    for (int64_t row = 0; row < n->N; row++) {
        const real *dy = n->dy + row * C, *x = n->x + row * C;
        double mean = n->mean ? (double)n->mean[row] : 0, rstd = (double)n->rstd[row];
        double g_sum = 0, gh_sum = 0;
        for (int64_t i = 0; i < C; i++) {
            double h = ((double)x[i] - mean) * rstd, g = (double)dy[i] * (double)n->w[i];
            if (n->mean) g_sum += g;
            gh_sum += g * h;
            n->dw_sum[i] += (double)dy[i] * h;
            n->dbias_sum[i] += (double)dy[i];
        }
        for (int64_t i = 0; i < C; i++) {
            double h = ((double)x[i] - mean) * rstd, g = (double)dy[i] * (double)n->w[i];
            double dx = rstd * (g - g_sum / (double)C - h * gh_sum / (double)C);
            n->dx[row * C + i] = (real)(n->residual ? dx + (double)n->residual[row * C + i] : dx);
        }
    }
    for (int64_t i = 0; i < C; i++) n->dw[i] = (real)n->dw_sum[i];
    for (int64_t i = 0; n->dbias && i < C; i++) n->dbias[i] = (real)n->dbias_sum[i];
}

static int64_t scratch_grad(const struct kernel *, const struct kernel_call *c)
{
    return 2 * type_columns(&c->in_type[0]) * (int64_t)sizeof(double);
}

/* [residual,] dy, x (...,C), w (C), [mean,] rstd (...,1) -> dx (...,C), dw (C), [dbias (C)]. An
 * RMSNorm has no mean. The argument `dw` is an index: c->out[dw] is the gradient of w. */
static enum status norm_grad(const struct kernel_call *c, bool add, bool centred, int dw)
{
    int64_t C = type_columns(&c->in_type[0]);
    struct norm_grad n = {.residual = add ? c->in[0] : NULL, .dx = c->out[0], .dw = c->out[dw]};
    n.dy = c->in[add + 0], n.x = c->in[add + 1], n.w = c->in[add + 2];
    n.mean = centred ? c->in[add + 3] : NULL, n.rstd = c->in[add + 3 + centred];
    n.dbias = centred && c->attr->norm.bias ? c->out[dw + 1] : NULL;
    n.dw_sum = c->scratch, n.dbias_sum = (double *)c->scratch + C;
    n.N = type_rows(&c->in_type[0]), n.C = C;
    normalize_grad(&n);
    return ST_OK;
}

static enum status run_layernorm_grad(const struct kernel_call *c)
{
    return norm_grad(c, c->n_in == 6, true, 1);
}

static enum status run_rmsnorm_grad(const struct kernel_call *c)
{
    return norm_grad(c, c->n_in == 5, false, 1);
}

/* inputs of LAYERNORM_GRAD_ADD, step -> dx, dropout(dx), dw, [dbias] */
static enum status run_layernorm_grad_drop(const struct kernel_call *c)
{
    const int32_t *step = c->in[6];
    const real *dx = c->out[0];
    real *dropped = c->out[1];
    TRY(norm_grad(c, true, true, 2));
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++)
        dropped[i] =
            (real)((double)dx[i] * keep_element(&c->attr->norm.drop, step, &c->in_type[0], i));
    return ST_OK;
}

const struct kernel REF(ref_norm)[] = {
    ROW(LAYERNORM, run_norm),
    ROW(RMSNORM, run_norm),
    ROW(ADD_RMSNORM, run_add_rmsnorm),
    ROW(RMSNORM_GRAD, run_rmsnorm_grad, .scratch_bytes = scratch_grad),
    ROW(RMSNORM_GRAD_ADD, run_rmsnorm_grad, .scratch_bytes = scratch_grad),
    ROW_TYPES(ADD_LAYERNORM, "aaiaa", "aaaa", run_add_layernorm),
    ROW(LAYERNORM_GRAD, run_layernorm_grad, .scratch_bytes = scratch_grad),
    ROW(LAYERNORM_GRAD_ADD, run_layernorm_grad, .scratch_bytes = scratch_grad),
    ROW_TYPES(LAYERNORM_GRAD_DROP, "aaaaaai", "aaaa", run_layernorm_grad_drop,
              .scratch_bytes = scratch_grad),
    {.run = NULL},
};

#endif
