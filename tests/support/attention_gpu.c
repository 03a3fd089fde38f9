#include "attention_gpu.h"

#include "hand.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/launch.h"
#endif

const char *const attention_gradient_row[GRADIENT_ROWS] = {"wgmma", "wgmma_sums"};

/* Error limits: for outputs by norm, of the whole tensor and of the worst row; for the log-sum-exp
 * absolute. */
static const struct attention_error limits[OUTPUTS] = {
    [OF_Y] = {4e-3, 1e-2}, [OF_DQ] = {8e-3, 3e-2}, [OF_DK] = {8e-3, 3e-2}, [OF_DV] = {4e-3, 1e-2}};
static const char *const output_name[OUTPUTS] = {"y", "dq", "dk", "dv"};
#define LSE_LIMIT 1e-4

bool attention_gpu_open(struct attention_gpu *g)
{
    *g = (struct attention_gpu){.backend = backend_find("cuda")};
#ifdef HAVE_CUDA
    if (g->backend && g->backend->devices.count() > 0) {
        hand_ok(g->backend->open(0, &g->context));
        hand_ok(backend_target(g->backend, 0, &g->target));
        struct kernel_call c = {.target = &g->target};
        if (cuda_hopper(&c)) return true;
        g->backend->close(g->context);
    }
#endif
    g->backend = NULL;
    return false;
}

void attention_gpu_close(struct attention_gpu *g)
{
    g->backend->close(g->context);
}

void attention_wrong(struct attention_gpu *g, const struct attention_setting *s, const char *words,
                     ...)
{
    enum { MOST = 20 };
    if (g->failures++ >= MOST) return;
    va_list list;
    va_start(list, words);
    printf("    FAIL %s, B %d T %d H %d/%d D %d%s, dropout %d, numbers %d: ", g->test, (int)s->B,
           (int)s->T, (int)s->H, (int)s->KV, (int)s->D, s->causal ? " causal" : "", s->threshold,
           (int)s->numbers);
    vprintf(words, list);
    printf("\n");
    va_end(list);
}

void attention_report(struct attention_gpu *g)
{
    printf("  %-12s %4d", g->test, g->tried);
    if (g->worst[0][OF_Y].all > 0)
        printf("  y %.1e %.1e  lse %.0e", g->worst[0][OF_Y].all, g->worst[0][OF_Y].row,
               g->worst_lse);
    for (int r = 0; r < GRADIENT_ROWS; r++)
        for (int i = OF_DQ; i < OUTPUTS && g->worst[r][OF_DV].all > 0; i++)
            printf("%s%s %.1e %.1e", i == OF_DQ ? " | " : "  ", output_name[i], g->worst[r][i].all,
                   g->worst[r][i].row);
    printf("\n");
    memset(g->worst, 0, sizeof g->worst);
    g->worst_lse = 0;
    g->tried = 0;
}

/* --- calls ------------------------------------------------------------------------------------ */

void attention_call(const struct attention_gpu *g, const struct attention_setting *s, bool backward,
                    struct row_run *ret)
{
    struct type y = {DT_BF16, 3, {s->B, s->T, s->H * s->D}},
                qkv = {DT_BF16, 3, {s->B, s->T, attention_columns(s)}},
                lse = {DT_F32, 3, {s->B, s->H, s->T}}, step = type_1d(DT_I32, 1);
    *ret = (struct row_run){.backend = g->backend};
    ret->attr.attention.heads = (int)s->H;
    ret->attr.attention.kv_heads = (int)s->KV;
    ret->attr.attention.causal = s->causal;
    if (s->threshold)
        ret->attr.attention.drop = (struct dropout){.pattern = DROPOUT_ATTENTION,
                                                    .threshold = s->threshold,
                                                    .seed = NUMBERS_SEED,
                                                    .site = NUMBERS_SITE};
    if (backward)
        ret->call = (struct kernel_call){
            .n_in = 5, .in_type = {y, qkv, y, lse, step}, .n_out = 1, .out_type = {qkv}};
    else
        ret->call = (struct kernel_call){
            .n_in = 2, .in_type = {qkv, step}, .n_out = 2, .out_type = {y, lse}};
    ret->call.context = g->context;
    ret->call.target = &g->target;
}

bool attention_gradient_fits(const struct attention_setting *s, int row)
{
    bool sizes = (s->D > 32 && s->D <= 64) || (s->D > 96 && s->D <= 128);
    return row == 0 || (!s->threshold && sizes);
}

/* Finds the row and opens it, unless calls are only announced. */
static bool begin(struct attention_gpu *g, const struct attention_setting *s, bool backward,
                  const char *variant, struct row_run *r)
{
    attention_call(g, s, backward, r);
    if (!row_find(r, backward ? OP_ATTENTION_GRAD : OP_ATTENTION, variant, 0)) {
        attention_wrong(g, s, "there is no row %s", variant);
        return false;
    }
    if (!g->announcing) {
        row_open(r);
        return true;
    }
    row_close(r);
    return false;
}

static void end(struct attention_gpu *g, const struct attention_setting *s, struct row_run *r)
{
    const char *where = row_stray_write(r);
    if (where) attention_wrong(g, s, "%s writes %s", r->kernel->variant, where);
    row_close(r);
    g->tried++;
}

static const int32_t step_now = NUMBERS_STEP;

static bool make_forward(struct attention_gpu *g, const struct attention_setting *s,
                         const uint16_t *qkv, struct attention_made *m)
{
    struct row_run r;
    if (!begin(g, s, false, "wgmma", &r)) return false;
    m->y = malloc((size_t)r.out[0].bytes);
    m->lse = malloc((size_t)r.out[1].bytes);
    row_upload(&r, 0, 0, qkv, r.in[0].bytes);
    row_upload(&r, 1, 0, &step_now, sizeof step_now);
    row_start(&r);
    row_download(&r, 0, 0, m->y, r.out[0].bytes);
    row_download(&r, 1, 0, m->lse, r.out[1].bytes);
    end(g, s, &r);
    return true;
}

static void make_backward(struct attention_gpu *g, const struct attention_setting *s,
                          const uint16_t *qkv, const uint16_t *dy, int row,
                          struct attention_made *m)
{
    struct row_run r;
    if (!begin(g, s, true, attention_gradient_row[row], &r)) return;
    const void *from[] = {dy, qkv, m->y, m->lse, &step_now};
    for (int i = 0; i < COUNT_OF(from); i++) row_upload(&r, i, 0, from[i], r.in[i].bytes);
    m->dqkv[row] = malloc((size_t)r.out[0].bytes);
    row_start(&r);
    row_download(&r, 0, 0, m->dqkv[row], r.out[0].bytes);
    end(g, s, &r);
}

bool attention_make(struct attention_gpu *g, const struct attention_setting *s, const uint16_t *qkv,
                    const uint16_t *dy, struct attention_made *ret)
{
    *ret = (struct attention_made){0};
    bool made = make_forward(g, s, qkv, ret);
    for (int row = 0; row < GRADIENT_ROWS; row++)
        if (attention_gradient_fits(s, row) && (made || g->announcing))
            make_backward(g, s, qkv, dy, row, ret);
    return made;
}

void attention_made_free(struct attention_made *m)
{
    free(m->y);
    free(m->lse);
    for (int i = 0; i < GRADIENT_ROWS; i++) free(m->dqkv[i]);
}

/* --- comparison with double precision --------------------------------------------------------- */

/* Sums over rows of an output: of squared differences and of squared reference values. */
struct sums {
    double apart, size, worst;
};

/* Adds D elements of one row. A GPU flushes weights below the smallest normal float to zero; rows
 * of only such weights are far below 1e-30, the lower bound of the norm per element. */
static void add_row(struct sums *a, const uint16_t *x, const double *exact, double size, int64_t D)
{
    double apart = 0, norm = 0;
    for (int64_t d = 0; d < D; d++) {
        double difference = bf16_value(x[d]) - exact[d];
        apart += difference * difference, norm += exact[d] * exact[d];
    }
    norm = fmax(fmax(norm, size * size), (double)D * 1e-60);
    a->apart += apart, a->size += norm;
    if (!(apart / norm <= a->worst)) a->worst = apart / norm; /* also if NaN */
}

static void judge(struct attention_gpu *g, const struct attention_setting *s, int row, int of,
                  const struct sums *a)
{
    struct attention_error e = {sqrt(a->apart / a->size), sqrt(a->worst)},
                           *worst = &g->worst[row][of];
    if (!(e.all <= limits[of].all && e.row <= limits[of].row))
        attention_wrong(g, s, "%s of %s: %.2e, of its worst row %.2e", output_name[of],
                        attention_gradient_row[row], e.all, e.row);
    worst->all = fmax(worst->all, e.all);
    worst->row = fmax(worst->row, e.row);
}

static void add_forward(struct attention_gpu *g, const struct attention_setting *s,
                        const struct attention_made *m, const struct attention_exact_rows *e,
                        int64_t b, int64_t kv, struct sums *y)
{
    for (int64_t at = 0; at < e->group * e->rows; at++) {
        int64_t h = kv * e->group + at / e->rows, t = e->row[at % e->rows];
        add_row(y, m->y + ((b * s->T + t) * s->H + h) * s->D, e->y + at * s->D, e->size_y[at],
                s->D);
        double apart = fabs((double)m->lse[(b * s->H + h) * s->T + t] - e->lse[at]);
        /* In float, the log-sum-exp of large scores is less accurate. */
        if (!(apart <= LSE_LIMIT + ldexp(e->slack[at], -21)))
            attention_wrong(g, s, "log-sum-exp of head %d row %d: %.2e from %g", (int)h, (int)t,
                            apart, e->lse[at]);
        if (e->slack[at] < 100) g->worst_lse = fmax(g->worst_lse, apart);
    }
}

static void add_backward(const struct attention_setting *s, const uint16_t *dqkv,
                         const struct attention_exact_rows *e, int64_t b, int64_t kv,
                         struct sums *of)
{
    int64_t columns = attention_columns(s), D = s->D;
    const uint16_t *sequence = dqkv + b * s->T * columns;
    for (int64_t at = 0; at < e->group * e->rows; at++)
        add_row(&of[OF_DQ],
                sequence + e->row[at % e->rows] * columns + (kv * e->group + at / e->rows) * D,
                e->dq + at * D, e->size_dq[at], D);
    for (int64_t t = 0; t < s->T; t++) {
        add_row(&of[OF_DK], sequence + t * columns + (s->H + kv) * D, e->dk + t * D, e->size_dk[t],
                D);
        add_row(&of[OF_DV], sequence + t * columns + (s->H + s->KV + kv) * D, e->dv + t * D,
                e->size_dv[t], D);
    }
}

void attention_try(struct attention_gpu *g, const struct attention_setting *s)
{
    struct attention_made m;
    struct sums of[GRADIENT_ROWS][OUTPUTS] = {0};
    int64_t rows = s->B * s->T;
    uint16_t *qkv = NULL, *dy = NULL;
    if (!g->announcing) {
        qkv = malloc((size_t)(rows * attention_columns(s)) * sizeof *qkv);
        dy = malloc((size_t)(rows * s->H * s->D) * sizeof *dy);
        attention_draw_qkv(s, 0, s->B, qkv);
        attention_draw_dy(s, 0, s->B, dy);
    }
    bool made = attention_make(g, s, qkv, dy, &m);
    for (int64_t i = 0; made && i < s->B * s->KV; i++) {
        int64_t b = i / s->KV, kv = i % s->KV;
        struct attention_exact_rows e;
        attention_exact_rows(s, qkv + b * s->T * attention_columns(s), dy + b * s->T * s->H * s->D,
                             b, kv, &e);
        add_forward(g, s, &m, &e, b, kv, &of[0][OF_Y]);
        for (int r = 0; r < GRADIENT_ROWS; r++)
            if (m.dqkv[r]) add_backward(s, m.dqkv[r], &e, b, kv, of[r]);
        attention_exact_free(&e);
    }
    if (made) judge(g, s, 0, OF_Y, &of[0][OF_Y]);
    for (int r = 0; r < GRADIENT_ROWS; r++)
        for (int i = OF_DQ; i < OUTPUTS && m.dqkv[r]; i++) judge(g, s, r, i, &of[r][i]);
    attention_made_free(&m);
    free(qkv), free(dy);
}
