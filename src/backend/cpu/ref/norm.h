/* norm.h - the reference: layer normalisation, and RMS normalisation, which is the same about a mean of 0.
 * A text of ref_f32.c and ref_f64.c. */
#ifndef BACKEND_CPU_REF_NORM_H
#define BACKEND_CPU_REF_NORM_H

#include "backend/cpu/ref/ref.h"

struct norm {
    const real *x, *w, *bias; /* (N,C), (C), (C) or NULL */
    real *y, *mean, *rstd;    /* (N,C), (N) or NULL: the mean is 0, (N) */
    int64_t N, C;
    double eps;
};

static void normalise(const struct norm *n)
{
    int64_t C = n->C;
    for (int64_t row = 0; row < n->N; row++) {
        const real *x = n->x + row * C;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < C; i++) sum += (double)x[i];
        double mean = n->mean ? sum / (double)C : 0;
        for (int64_t i = 0; i < C; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        double rstd = 1 / sqrt(squares / (double)C + n->eps);
        for (int64_t i = 0; i < C; i++) {
            double y = ((double)x[i] - mean) * rstd * (double)n->w[i];
            n->y[row * C + i] = (real)(n->bias ? y + (double)n->bias[i] : y);
        }
        if (n->mean) n->mean[row] = (real)mean;
        n->rstd[row] = (real)rstd;
    }
}

/* x (...,C), w (C), [bias (C)] -> y (...,C), mean (...,1), rstd (...,1) */
static enum status run_layernorm(const struct kernel_call *c)
{
    normalise(&(struct norm){
        .x = c->in[0],
        .w = c->in[1],
        .bias = c->n_in > 2 ? c->in[2] : NULL,
        .y = c->out[0],
        .mean = c->out[1],
        .rstd = c->out[2],
        .N = type_rows(&c->in_type[0]),
        .C = type_columns(&c->in_type[0]),
        .eps = c->attr->norm.eps,
    });
    return ST_OK;
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
    normalise(&(struct norm){
        .x = s,
        .w = c->in[3],
        .bias = c->n_in > 4 ? c->in[4] : NULL,
        .y = c->out[1],
        .mean = c->out[2],
        .rstd = c->out[3],
        .N = type_rows(&c->in_type[0]),
        .C = type_columns(&c->in_type[0]),
        .eps = c->attr->norm.eps,
    });
    return ST_OK;
}

/* x (...,C), w (C) -> y (...,C), rrms (...,1) */
static enum status run_rmsnorm(const struct kernel_call *c)
{
    normalise(&(struct norm){
        .x = c->in[0],
        .w = c->in[1],
        .y = c->out[0],
        .rstd = c->out[1],
        .N = type_rows(&c->in_type[0]),
        .C = type_columns(&c->in_type[0]),
        .eps = c->attr->norm.eps,
    });
    return ST_OK;
}

/* a, b (...,C), w (C) -> s = a + b, and y, rrms of s */
static enum status run_add_rmsnorm(const struct kernel_call *c)
{
    const real *a = c->in[0], *b = c->in[1];
    real *s = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++)
        s[i] = (real)((double)a[i] + (double)b[i]);
    normalise(&(struct norm){
        .x = s,
        .w = c->in[2],
        .y = c->out[1],
        .rstd = c->out[2],
        .N = type_rows(&c->in_type[0]),
        .C = type_columns(&c->in_type[0]),
        .eps = c->attr->norm.eps,
    });
    return ST_OK;
}

struct norm_grad {
    const real *more;                     /* (N,C), added to dx, or NULL */
    const real *dy, *x, *w, *mean, *rstd; /* (N,C), (N,C), (C), (N) or NULL: 0, (N) */
    real *dx, *dw, *dbias;                /* (N,C), (C), (C) or NULL; dx may be dy or more */
    double *dw_sum, *dbias_sum;           /* (C): scratch */
    int64_t N, C;
};

/* With h = (x - mean) rstd and g = dy w:  dx = rstd (g - avg(g) - h avg(g h)),  dw = sum of dy h,
 * dbias = sum of dy. Where the mean is 0 whatever x is, avg(g) is not taken away. */
static void normalise_grad(const struct norm_grad *n)
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
            n->dx[row * C + i] = (real)(n->more ? dx + (double)n->more[row * C + i] : dx);
        }
    }
    for (int64_t i = 0; i < C; i++) n->dw[i] = (real)n->dw_sum[i];
    for (int64_t i = 0; n->dbias && i < C; i++) n->dbias[i] = (real)n->dbias_sum[i];
}

static int64_t scratch_layernorm_grad(const struct kernel *row, const struct kernel_call *c)
{
    (void)row;
    return 2 * type_columns(&c->in_type[0]) * (int64_t)sizeof(double);
}

/* [more,] dy, x (...,C), w (C), mean, rstd (...,1) -> dx (...,C), dw (C), [dbias (C)]; output `dw` is dw */
static void layernorm_grad(const struct kernel_call *c, bool add, int dw)
{
    int64_t C = type_columns(&c->in_type[0]);
    normalise_grad(&(struct norm_grad){
        .more = add ? c->in[0] : NULL,
        .dy = c->in[add + 0],
        .x = c->in[add + 1],
        .w = c->in[add + 2],
        .mean = c->in[add + 3],
        .rstd = c->in[add + 4],
        .dx = c->out[0],
        .dw = c->out[dw],
        .dbias = c->attr->norm.bias ? c->out[dw + 1] : NULL,
        .dw_sum = c->scratch,
        .dbias_sum = (double *)c->scratch + C,
        .N = type_rows(&c->in_type[0]),
        .C = C,
    });
}

static enum status run_layernorm_grad(const struct kernel_call *c)
{
    layernorm_grad(c, false, 1);
    return ST_OK;
}

static enum status run_layernorm_grad_add(const struct kernel_call *c)
{
    layernorm_grad(c, true, 1);
    return ST_OK;
}

/* [more,] dy, x (...,C), w (C), rrms (...,1) -> dx (...,C), dw (C) */
static enum status rmsnorm_grad(const struct kernel_call *c, bool add)
{
    int64_t C = type_columns(&c->in_type[0]);
    normalise_grad(&(struct norm_grad){
        .more = add ? c->in[0] : NULL,
        .dy = c->in[add + 0],
        .x = c->in[add + 1],
        .w = c->in[add + 2],
        .rstd = c->in[add + 3],
        .dx = c->out[0],
        .dw = c->out[1],
        .dw_sum = c->scratch,
        .dbias_sum = (double *)c->scratch + C,
        .N = type_rows(&c->in_type[0]),
        .C = C,
    });
    return ST_OK;
}

static enum status run_rmsnorm_grad(const struct kernel_call *c)
{
    return rmsnorm_grad(c, false);
}

static enum status run_rmsnorm_grad_add(const struct kernel_call *c)
{
    return rmsnorm_grad(c, true);
}

/* LAYERNORM_GRAD_ADD's, step -> dx, dropout(dx), dw, [dbias] */
static enum status run_layernorm_grad_drop(const struct kernel_call *c)
{
    const int32_t *step = c->in[6];
    const real *dx = c->out[0];
    real *dropped = c->out[1];
    layernorm_grad(c, true, 2);
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++)
        dropped[i] =
            (real)((double)dx[i] * keep_element(&c->attr->norm.drop, step, &c->in_type[0], i));
    return ST_OK;
}

const struct kernel REF(ref_norm)[] = {
    {.op = OP_LAYERNORM, .variant = "ref", .fits = fits_real, .run = run_layernorm},
    {.op = OP_RMSNORM, .variant = "ref", .fits = fits_real, .run = run_rmsnorm},
    {.op = OP_ADD_RMSNORM, .variant = "ref", .fits = fits_real, .run = run_add_rmsnorm},
    {.op = OP_RMSNORM_GRAD,
     .variant = "ref",
     .fits = fits_real,
     .scratch_bytes = scratch_layernorm_grad,
     .run = run_rmsnorm_grad},
    {.op = OP_RMSNORM_GRAD_ADD,
     .variant = "ref",
     .fits = fits_real,
     .scratch_bytes = scratch_layernorm_grad,
     .run = run_rmsnorm_grad_add},
    {.op = OP_ADD_LAYERNORM, .variant = "ref", .fits = fits_int_2, .run = run_add_layernorm},
    {.op = OP_LAYERNORM_GRAD,
     .variant = "ref",
     .fits = fits_real,
     .scratch_bytes = scratch_layernorm_grad,
     .run = run_layernorm_grad},
    {.op = OP_LAYERNORM_GRAD_ADD,
     .variant = "ref",
     .fits = fits_real,
     .scratch_bytes = scratch_layernorm_grad,
     .run = run_layernorm_grad_add},
    {.op = OP_LAYERNORM_GRAD_DROP,
     .variant = "ref",
     .fits = fits_int_6,
     .scratch_bytes = scratch_layernorm_grad,
     .run = run_layernorm_grad_drop},
    {.run = NULL},
};

#endif
