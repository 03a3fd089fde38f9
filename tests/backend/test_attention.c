/* Flash attention against plain double loops that do have the matrix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/vector/attention_tables.h"
#include "base/arena.h"
#include "base/rng.h"

#include <cmocka.h>

enum { FORWARD, GRAD, CACHED };

struct isa {
    const char *name;
    const struct kernel *rows[3];
};

#define ISA_ROWS(isa)                                                                    \
    {                                                                                    \
#isa,                                                                            \
        {                                                                                \
            attention_rows_##isa, attention_grad_rows_##isa, attention_cached_rows_##isa \
        }                                                                                \
    }
static const struct isa isas[] = {
#if defined(__x86_64__)
    ISA_ROWS(avx512),
    ISA_ROWS(avx2),
    ISA_ROWS(sse2),
#endif
    ISA_ROWS(plain),
};

static bool available(const struct isa *isa)
{
#if defined(__x86_64__)
    if (!strcmp(isa->name, "avx512")) return __builtin_cpu_supports("avx512vl");
    if (!strcmp(isa->name, "avx2")) return __builtin_cpu_supports("avx2");
#endif
    return isa->name[0] != '\0';
}

/* One attention: shapes, operands and what the double loops say. */
struct problem {
    int64_t B, H, T, D;
    union attr attr;
    int32_t step;
    float *qkv, *dy;       /* (B,T,3C), (B,T,C) */
    float *y, *lse, *dqkv; /* of the kernel */
    double *want_y, *want_lse, *want_dqkv;
    struct arena arena;
};

static int64_t elements(const struct problem *p)
{
    return p->B * p->T * p->H * p->D;
}

static float *poisoned(struct arena *a, int64_t n)
{
    float *x = ARENA_NEW(a, float, n);
    memset(x, 0xff, (size_t)n * sizeof(float));
    return x;
}

/* Scores spread over a few units, so that some probabilities are large. */
static void problem_draw(struct problem *p)
{
    int64_t n = elements(p);
    p->qkv = ARENA_NEW(&p->arena, float, 3 * n);
    p->dy = ARENA_NEW(&p->arena, float, n);
    for (int64_t i = 0; i < 3 * n; i++) p->qkv[i] = 1.3f * rng_normal(7, RNG_TEST, 0, (uint64_t)i);
    for (int64_t i = 0; i < n; i++) p->dy[i] = rng_normal(7, RNG_TEST, 1, (uint64_t)i);
    p->y = poisoned(&p->arena, n);
    p->dqkv = poisoned(&p->arena, 3 * n);
    p->lse = poisoned(&p->arena, p->B * p->H * p->T);
    p->want_y = ARENA_NEW(&p->arena, double, n);
    p->want_dqkv = ARENA_NEW(&p->arena, double, 3 * n);
    p->want_lse = ARENA_NEW(&p->arena, double, p->B * p->H * p->T);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* What dropout makes of 1 at (q, k). */
static double kept(const struct problem *p, int64_t bh, int64_t q, int64_t k)
{
    const struct dropout *d = &p->attr.attention.drop;
    if (!d->threshold) return 1;
    uint8_t byte = dropout_attention_byte(d->seed, d->site, (uint32_t)p->step, (uint32_t)bh,
                                          (uint32_t)q, (uint32_t)k);
    return byte >= d->threshold ? 256.0 / (256 - d->threshold) : 0;
}

/* Query row q of head bh: forward, and what it adds to the gradients. `prob` has room for T. */
static void solve_row(struct problem *p, int64_t bh, int64_t q, double *prob)
{
    int64_t C = p->H * p->D, b = bh / p->H, head = bh % p->H * p->D, D = p->D;
    int64_t keys = p->attr.attention.causal ? q + 1 : p->T, row = b * p->T + q;
    const float *in = p->qkv + b * p->T * 3 * C + head, *dy = p->dy + row * C + head;
    double *dq = p->want_dqkv + row * 3 * C + head, *y = p->want_y + row * C + head;
    double scale = 1 / sqrt((double)D), sum = 0, delta = 0;
    for (int64_t k = 0; k < keys; k++)
        sum += prob[k] = exp(scale * dot(in + q * 3 * C, in + k * 3 * C + C, D));
    p->want_lse[bh * p->T + q] = log(sum);
    for (int64_t k = 0; k < keys; k++) {
        prob[k] /= sum;
        for (int64_t d = 0; d < D; d++)
            y[d] += prob[k] * kept(p, bh, q, k) * (double)in[k * 3 * C + 2 * C + d];
    }
    for (int64_t d = 0; d < D; d++) delta += y[d] * (double)dy[d];
    for (int64_t k = 0; k < keys; k++) {
        double keep = kept(p, bh, q, k);
        double ds = scale * prob[k] * (keep * dot(dy, in + k * 3 * C + 2 * C, D) - delta);
        double *dk = p->want_dqkv + (b * p->T + k) * 3 * C + C + head, *dv = dk + C;
        for (int64_t d = 0; d < D; d++) {
            dq[d] += ds * (double)in[k * 3 * C + C + d];
            dk[d] += ds * (double)in[q * 3 * C + d];
            dv[d] += prob[k] * keep * (double)dy[d];
        }
    }
}

static void problem_solve(struct problem *p)
{
    double *prob = ARENA_NEW(&p->arena, double, p->T);
    for (int64_t bh = 0; bh < p->B * p->H; bh++)
        for (int64_t q = 0; q < p->T; q++) solve_row(p, bh, q, prob);
}

static struct kernel_call call_of(struct problem *p, int what)
{
    int64_t C = p->H * p->D;
    struct type y = type_3d(DT_F32, p->B, p->T, C), qkv = type_3d(DT_F32, p->B, p->T, 3 * C);
    struct type lse = type_3d(DT_F32, p->B, p->H, p->T), step = type_scalar(DT_I32);
    if (what == FORWARD)
        return (struct kernel_call){
            .attr = &p->attr,
            .n_in = 2,
            .n_out = 2,
            .in_type = {qkv, step},
            .out_type = {y, lse},
            .in = {p->qkv, &p->step},
            .out = {p->y, p->lse},
        };
    return (struct kernel_call){
        .attr = &p->attr,
        .n_in = 5,
        .n_out = 1,
        .in_type = {y, qkv, y, lse, step},
        .out_type = {qkv},
        .in = {p->dy, p->qkv, p->y, p->lse, &p->step},
        .out = {p->dqkv},
    };
}

static void run_row(const struct kernel *k, struct kernel_call *call, struct arena *a)
{
    assert_true(!k->fits || k->fits(call));
    if (k->scratch_bytes) call->scratch = poisoned(a, k->scratch_bytes(call) / 4);
    if (k->prepare) assert_int_equal(k->prepare(call), ST_OK);
    assert_int_equal(k->run(call), ST_OK);
    if (k->release) k->release(call);
}

/* |got - want| / |want|; not a number is far away. */
static double distance(const float *got, const double *want, int64_t n)
{
    double far = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        far += d * d;
        norm += want[i] * want[i];
    }
    return isnan(far) ? 1e30 : sqrt(far / (norm + 1e-30));
}

static void expect(const struct problem *p, const struct isa *isa, const char *what,
                   const float *got, const double *want, int64_t n)
{
    double far = distance(got, want, n);
    if (far > 2e-6)
        fail_msg("%s %s: B %d H %d T %d D %d causal %d threshold %d: off by %.2e", isa->name, what,
                 (int)p->B, (int)p->H, (int)p->T, (int)p->D, p->attr.attention.causal,
                 p->attr.attention.drop.threshold, far);
}

static void try_one(int64_t T, int64_t D, bool causal, double drop)
{
    struct problem p = {.B = 2, .H = 2, .T = T, .D = D, .step = 5};
    p.attr.attention.heads = 2;
    p.attr.attention.causal = causal;
    p.attr.attention.drop = (struct dropout){DROPOUT_ATTENTION, dropout_threshold(drop), 11, 3};
    problem_draw(&p);
    problem_solve(&p);
    int64_t n = elements(&p);
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        struct kernel_call forward = call_of(&p, FORWARD), grad = call_of(&p, GRAD);
        run_row(isas[i].rows[FORWARD], &forward, &p.arena);
        expect(&p, &isas[i], "y", p.y, p.want_y, n);
        expect(&p, &isas[i], "lse", p.lse, p.want_lse, p.B * p.H * T);
        run_row(isas[i].rows[GRAD], &grad, &p.arena);
        expect(&p, &isas[i], "dqkv", p.dqkv, p.want_dqkv, 3 * n);
        memset(p.y, 0xff, (size_t)n * sizeof(float));
        memset(p.dqkv, 0xff, (size_t)(3 * n) * sizeof(float));
    }
    arena_release(&p.arena);
}

static void test_against_loops(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 7, 63, 64, 65, 130}, sizes[] = {16, 24, 32, 64, 80, 128};
    for (int t = 0; t < COUNT_OF(lengths); t++)
        for (int d = 0; d < COUNT_OF(sizes); d++)
            for (int causal = 0; causal < 2; causal++) {
                try_one(lengths[t], sizes[d], causal, 0);
                try_one(lengths[t], sizes[d], causal, 0.2);
            }
    try_one(20, 1, true, 0.5);
    try_one(20, 5, true, 0);
    try_one(260, 10, true, 0.1);
}

/* Few heads and many threads take another way through the gradient: the bits must not tell. */
static void test_threads_do_not_show(void **state)
{
    (void)state;
    int before = omp_get_max_threads();
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        for (int causal = 0; causal < 2; causal++) {
            struct problem p = {.B = 1, .H = 1, .T = 200, .D = 40, .step = 9};
            p.attr.attention.heads = 1;
            p.attr.attention.causal = causal;
            p.attr.attention.drop = (struct dropout){DROPOUT_ATTENTION, 51, 1, 2};
            problem_draw(&p);
            int64_t n = elements(&p);
            float *first_y = NULL, *first_dqkv = NULL;
            for (int threads = 1; threads <= 4; threads++) {
                omp_set_num_threads(threads);
                p.y = poisoned(&p.arena, n);
                p.dqkv = poisoned(&p.arena, 3 * n);
                struct kernel_call forward = call_of(&p, FORWARD), grad = call_of(&p, GRAD);
                run_row(isas[i].rows[FORWARD], &forward, &p.arena);
                run_row(isas[i].rows[GRAD], &grad, &p.arena);
                if (threads == 1) {
                    first_y = p.y;
                    first_dqkv = p.dqkv;
                }
                assert_memory_equal(p.y, first_y, (size_t)n * sizeof(float));
                assert_memory_equal(p.dqkv, first_dqkv, (size_t)(3 * n) * sizeof(float));
            }
            arena_release(&p.arena);
        }
    }
    omp_set_num_threads(before);
}

/* Position after position through the cache gives the rows of the whole, and writes nothing else. */
static void cached_rows(const struct isa *isa, int64_t T, int64_t D)
{
    enum { ROOM = 3 };
    struct problem p = {.B = 2, .H = 2, .T = T, .D = D};
    p.attr.attention.heads = 2;
    p.attr.attention.causal = true;
    problem_draw(&p);
    problem_solve(&p);
    int64_t C = p.H * D, most = T + ROOM;
    float *cache = poisoned(&p.arena, 2 * p.B * most * C), *y = ARENA_NEW(&p.arena, float, p.B *C);
    float *qkv = ARENA_NEW(&p.arena, float, p.B * 3 * C);
    for (int32_t t = 0; t < T; t++) {
        for (int64_t b = 0; b < p.B; b++)
            memcpy(qkv + b * 3 * C, p.qkv + (b * T + t) * 3 * C, (size_t)(3 * C) * sizeof(float));
        memset(y, 0xff, (size_t)(p.B * C) * sizeof(float));
        struct type cache_type = type_4d(DT_F32, 2, p.B, most, C);
        struct kernel_call call = {
            .attr = &p.attr,
            .n_in = 3,
            .n_out = 2,
            .in_type = {cache_type, type_3d(DT_F32, p.B, 1, 3 * C), type_scalar(DT_I32)},
            .out_type = {cache_type, type_3d(DT_F32, p.B, 1, C)},
            .in = {cache, qkv, &t},
            .out = {cache, y},
        };
        run_row(isa->rows[CACHED], &call, &p.arena);
        for (int64_t b = 0; b < p.B; b++)
            expect(&p, isa, "cached y", y + b * C, p.want_y + (b * T + t) * C, C);
    }
    for (int64_t part = 0; part < 2 * p.B; part++) {
        const float *rest = cache + (part * most + T) * C;
        for (int64_t i = 0; i < ROOM * C; i++) assert_true(isnan(rest[i]));
    }
    arena_release(&p.arena);
}

static void test_cached_equals_whole(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        cached_rows(&isas[i], 130, 24);
        cached_rows(&isas[i], 20, 64);
    }
}

/* Large scores must not overflow, and what is not a number must show. */
static void test_extremes(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        struct problem p = {.B = 1, .H = 1, .T = 70, .D = 16};
        p.attr.attention.heads = 1;
        p.attr.attention.causal = true;
        problem_draw(&p);
        for (int64_t j = 0; j < 3 * elements(&p); j++) p.qkv[j] *= 100.0f;
        struct kernel_call forward = call_of(&p, FORWARD), grad = call_of(&p, GRAD);
        run_row(isas[i].rows[FORWARD], &forward, &p.arena);
        run_row(isas[i].rows[GRAD], &grad, &p.arena);
        for (int64_t j = 0; j < elements(&p); j++) assert_true(isfinite(p.y[j]));
        for (int64_t j = 0; j < 3 * elements(&p); j++) assert_true(isfinite(p.dqkv[j]));
        p.qkv[40 * 48 + 3] = NAN; /* a query: its row alone */
        run_row(isas[i].rows[FORWARD], &forward, &p.arena);
        for (int64_t j = 0; j < elements(&p); j++) assert_true(!isfinite(p.y[j]) == (j / 16 == 40));
        arena_release(&p.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_loops),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_cached_equals_whole),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
