/* Bitwise tests of attention on a GPU: dropout masks, neighboring sequences, repeated runs. */
#include "attention_gpu.h"

#include "base/rng.h"
#include "hand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/jit.h"
#endif

static const int32_t step_now = NUMBERS_STEP;

/* --- masks ------------------------------------------------------------------------------------ */

/* A part of a mask that is being read: D rows or columns, starting at `first`. */
struct window {
    const struct attention_setting *s;
    const char *of; /* the kernel row that generated it */
    int64_t first;
    int64_t *kept, *seen;
};

/* Records whether the weight of element (q,k) of head h was kept. */
static void note(struct attention_gpu *g, const struct window *w, int64_t h, int64_t q, int64_t k,
                 bool there)
{
    const struct attention_setting *s = w->s;
    bool seen = !s->causal || k <= q;
    bool wanted =
        seen && dropout_attention_byte(NUMBERS_SEED, NUMBERS_SITE, NUMBERS_STEP, (uint32_t)h,
                                       (uint32_t)q, (uint32_t)k) >= s->threshold;
    if (there != wanted)
        attention_wrong(g, s, "%s %s (%d,%d) of head %d", w->of, there ? "keeps" : "drops", (int)q,
                        (int)k, (int)h);
    if (w->kept) *w->kept += seen && there, *w->seen += seen;
}

/* Puts ones in column d of row first + d, for each head in the part that begins at column `at`. */
static void put_ones(uint16_t *rows, int64_t columns, int64_t at, const struct window *w)
{
    for (int64_t h = 0; h < w->s->H; h++)
        for (int64_t d = 0; d < w->s->D && w->first + d < w->s->T; d++)
            rows[(w->first + d) * columns + at + h * w->s->D + d] = bf16_bits(1);
}
static void put_first(uint16_t *rows, int64_t columns, int64_t at,
                      const struct attention_setting *s)
{
    for (int64_t i = 0; i < s->T * s->H; i++)
        rows[i / s->H * columns + at + i % s->H * s->D] = bf16_bits(1);
}

/* Each value has a one in one column, so y is the mask. */
static void read_forward(struct attention_gpu *g, struct row_run *r, const struct window *w)
{
    const struct attention_setting *s = w->s;
    int64_t columns = attention_columns(s), C = s->H * s->D;
    uint16_t *qkv = calloc((size_t)(s->T * columns), sizeof *qkv),
             *y = malloc((size_t)(s->T * C) * sizeof *y);
    put_ones(qkv, columns, 2 * C, w);
    row_upload(r, 0, 0, qkv, r->in[0].bytes);
    row_upload(r, 1, 0, &step_now, sizeof step_now);
    row_start(r);
    row_download(r, 0, 0, y, r->out[0].bytes);
    for (int64_t i = 0; i < s->T * C; i++)
        if (w->first + i % s->D < s->T)
            note(g, w, i % C / s->D, i / C, w->first + i % s->D, (y[i] & 0x7fff) != 0);
    free(qkv), free(y);
}

/* of_dq: each key has a one in one column and dy v is 1 everywhere, so dq is the mask. Otherwise
 * each row of dy has a one in one column, so dv is the transposed mask. */
static void read_backward(struct attention_gpu *g, struct row_run *r, const struct window *w,
                          bool of_dq)
{
    const struct attention_setting *s = w->s;
    int64_t columns = attention_columns(s), C = s->H * s->D;
    uint16_t *qkv = calloc((size_t)(s->T * columns), sizeof *qkv),
             *dy = calloc((size_t)(s->T * C), sizeof *dy);
    float *lse = malloc((size_t)(s->H * s->T) * sizeof *lse);
    for (int64_t i = 0; i < s->H * s->T; i++)
        lse[i] = logf((float)(s->causal ? i % s->T + 1 : s->T));
    if (of_dq)
        put_ones(qkv, columns, C, w), put_first(qkv, columns, 2 * C, s), put_first(dy, C, 0, s);
    else
        put_ones(dy, C, 0, w);
    hand_ok(r->backend->memory.fill(r->call.context, r->in[2].at, 0,
                                    r->in[2].bytes)); /* y: zero row sums of dp p */
    const void *from[] = {dy, qkv, NULL, lse, &step_now};
    for (int i = 0; i < COUNT_OF(from); i++)
        if (from[i]) row_upload(r, i, 0, from[i], r->in[i].bytes);
    row_start(r);
    row_download(r, 0, 0, qkv, r->out[0].bytes);
    for (int64_t i = 0; i < s->T * C; i++) {
        int64_t t = i / C, of = w->first + i % s->D;
        float x = (float)bf16_value(qkv[t * columns + (of_dq ? 0 : 2 * C) + i % C]);
        if (of < s->T) note(g, w, i % C / s->D, of_dq ? t : of, of_dq ? of : t, !(x <= 0));
    }
    free(qkv), free(dy), free(lse);
}

/* Slow attention: scores of zero; the outputs are the weights, before and after dropout. */
static void read_slow(struct attention_gpu *g, struct row_run *r, const struct attention_setting *s)
{
    struct window w = {s, r->kernel->variant, 0, NULL, NULL};
    uint16_t *p = malloc((size_t)r->out[0].bytes);
    hand_ok(r->backend->memory.fill(r->call.context, r->in[0].at, 0, r->in[0].bytes));
    row_upload(r, 1, 0, &step_now, sizeof step_now);
    row_start(r);
    row_download(r, 1, 0, p, r->out[1].bytes);
    for (int64_t i = 0; i < s->H * s->T * s->T; i++)
        note(g, &w, i / s->T / s->T, i / s->T % s->T, i % s->T, (p[i] & 0x7fff) != 0);
    free(p);
}

static void slow_call(const struct attention_gpu *g, const struct attention_setting *s,
                      struct row_run *ret)
{
    struct type scores = {DT_BF16, 4, {s->B, s->H, s->T, s->T}};
    *ret = (struct row_run){.backend = g->backend};
    ret->attr.score.scale = 1;
    ret->attr.score.causal = s->causal;
    ret->attr.score.drop = (struct dropout){.pattern = DROPOUT_ATTENTION,
                                            .threshold = s->threshold,
                                            .seed = NUMBERS_SEED,
                                            .site = NUMBERS_SITE};
    ret->call = (struct kernel_call){.n_in = 2,
                                     .in_type = {scores, type_1d(DT_I32, 1)},
                                     .n_out = 2,
                                     .out_type = {scores, scores},
                                     .context = g->context,
                                     .target = &g->target};
}

enum way { FORWARD, BACKWARD, SLOW, WAYS };

/* Reads the mask with the n-th row that accepts the call; false if there are no more rows. */
static bool read_row(struct attention_gpu *g, const struct attention_setting *s, enum way way,
                     int n, int64_t *kept, int64_t *seen)
{
    static const enum op op[WAYS] = {OP_ATTENTION, OP_ATTENTION_GRAD, OP_SCORE_SOFTMAX};
    struct row_run r;
    if (way == SLOW)
        slow_call(g, s, &r);
    else
        attention_call(g, s, way == BACKWARD, &r);
    if (!row_find(&r, op[way], NULL, n)) return false;
    if (!g->announcing) {
        row_open(&r);
        if (way == SLOW) read_slow(g, &r, s);
        for (int64_t first = 0; first < s->T && way != SLOW; first += s->D) {
            bool counts = way == FORWARD && n == 0; /* counts each element once */
            struct window w = {s, r.kernel->variant, first, counts ? kept : NULL,
                               counts ? seen : NULL};
            if (way == FORWARD) read_forward(g, &r, &w);
            if (way == BACKWARD) read_backward(g, &r, &w, true), read_backward(g, &r, &w, false);
        }
        const char *where = row_stray_write(&r);
        if (where) attention_wrong(g, s, "%s writes %s", r.kernel->variant, where);
        g->tried++;
    }
    row_close(&r);
    return true;
}

void attention_masks(struct attention_gpu *g, const struct attention_setting *s, int64_t *kept,
                     int64_t *seen)
{
    for (int way = 0; way < WAYS; way++) {
        int n = 0;
        while (read_row(g, s, (enum way)way, n, kept, seen)) n++;
        if (n < (way == SLOW ? 1 : 2)) attention_wrong(g, s, "only %d rows with dropout", n);
    }
}

/* --- neighboring sequences ------------------------------------------------------------------- */

/* Compares sequence b of `all` with the results of this sequence alone. A dq that is accumulated in
 * any order is compared by norm. */
static void compare_sequence(struct attention_gpu *g, const struct attention_setting *s,
                             const struct attention_made *all, int64_t b,
                             const struct attention_made *alone)
{
    int64_t columns = attention_columns(s), C = s->H * s->D;
    if (memcmp(all->y + b * s->T * C, alone->y, (size_t)(s->T * C) * sizeof *alone->y) != 0)
        attention_wrong(g, s, "y of sequence %d has different bits than alone", (int)b);
    if (memcmp(all->lse + b * s->H * s->T, alone->lse,
               (size_t)(s->H * s->T) * sizeof *alone->lse) != 0)
        attention_wrong(g, s, "log-sum-exp of sequence %d has different bits than alone", (int)b);
    for (int r = 0; r < GRADIENT_ROWS; r++) {
        if (!all->dqkv[r]) continue;
        const uint16_t *x = all->dqkv[r] + b * s->T * columns, *y = alone->dqkv[r];
        int64_t others = 0;
        double apart = 0, norm = 0;
        for (int64_t i = 0; i < s->T * columns; i++) {
            bool added = r == 1 && i % columns < C;
            others += !added && x[i] != y[i];
            if (added)
                apart += pow(bf16_value(x[i]) - bf16_value(y[i]), 2),
                    norm += pow(bf16_value(y[i]), 2);
        }
        if (others || !(apart <= 1e-6 * norm))
            attention_wrong(
                g, s, "%s: %d elements of sequence %d have other bits than alone; dq is %.1e away",
                attention_gradient_row[r], (int)others, (int)b, sqrt(apart / norm));
    }
}

/* Counts the numbers from `first` (inclusive) to `last` (exclusive) that are not zero. */
static int64_t not_zero(const uint16_t *x, int64_t first, int64_t last)
{
    int64_t n = 0;
#pragma omp parallel for reduction(+ : n)
    for (int64_t i = first; i < last; i++) n += (x[i] & 0x7fff) != 0;
    return n;
}
/* Inputs between the ends are zero, so their outputs must be zero. */
static void look_between(struct attention_gpu *g, const struct attention_setting *s,
                         const struct attention_made *m)
{
    int64_t each = s->T * attention_columns(s), y_each = s->T * s->H * s->D;
    int64_t others = not_zero(m->y, y_each, (s->B - 1) * y_each);
    for (int r = 0; r < GRADIENT_ROWS; r++)
        if (m->dqkv[r]) others += not_zero(m->dqkv[r], each, (s->B - 1) * each);
    if (others)
        attention_wrong(g, s, "%lld elements of sequences of zeros are not zero",
                        (long long)others);
}

static void draw_ends(const struct attention_setting *s, float worthless, uint16_t *qkv,
                      uint16_t *dy)
{
    int64_t qkv_each = s->T * attention_columns(s), dy_each = s->T * s->H * s->D;
    attention_draw_qkv(s, 0, 1, qkv);
    attention_draw_qkv(s, s->B - 1, s->B, qkv + (s->B - 1) * qkv_each);
    attention_draw_dy(s, 0, 1, dy);
    attention_draw_dy(s, s->B - 1, s->B, dy + (s->B - 1) * dy_each);
    if (worthless == 0) return;
    uint16_t bits = bf16_bits((double)worthless);
    for (int64_t i = qkv_each; i < (s->B - 1) * qkv_each; i++) qkv[i] = bits;
    for (int64_t i = dy_each; i < (s->B - 1) * dy_each; i++) dy[i] = bits;
}

void attention_alone(struct attention_gpu *g, const struct attention_setting *s, float worthless)
{
    int64_t qkv_each = s->T * attention_columns(s), dy_each = s->T * s->H * s->D;
    struct attention_setting one = *s;
    struct attention_made all, alone;
    uint16_t *qkv = NULL, *dy = NULL;
    one.B = 1;
    if (!g->announcing) {
        qkv = calloc((size_t)(s->B * qkv_each), sizeof *qkv);
        dy = calloc((size_t)(s->B * dy_each), sizeof *dy);
        draw_ends(s, worthless, qkv, dy);
    }
    bool made = attention_make(g, s, qkv, dy, &all);
    for (int64_t b = 0; b < s->B && (made || g->announcing); b += s->B - 1) {
        bool there = attention_make(g, &one, qkv ? qkv + b * qkv_each : NULL,
                                    dy ? dy + b * dy_each : NULL, &alone);
        if (there) compare_sequence(g, s, &all, b, &alone);
        attention_made_free(&alone);
    }
    if (made && worthless == 0) look_between(g, s, &all);
    attention_made_free(&all);
    free(qkv), free(dy);
}

/* --- repeated runs ---------------------------------------------------------------------------- */

#ifdef HAVE_CUDA
/* Blocks that occupy SMs for different times, and read and write memory meanwhile. */
static const char load_text[] =
    "#include \"device.cuh\"\n"
    "KERNEL(256) burden(float *memory, int words, int turns)\n"
    "{\n"
    "    int at = (blockIdx.x * 7919 + threadIdx.x) % words;\n"
    "    for (int i = turns * (1 + (int)blockIdx.x % 5); i > 0; i--) {\n"
    "        memory[at] = memory[at] * 0.5f + 1;\n"
    "        at = (at + 104729) % words;\n"
    "    }\n"
    "}\n";
enum { LOAD_WORDS = 1 << 20 };
struct load {
    CUstream stream;
    CUfunction function;
    void *memory;
};

static void load_open(const struct attention_gpu *g, struct load *l)
{
    int module = jit_request(cuda_jit(g->context), "load.cu", load_text, "");
    hand_ok(jit_finish(cuda_jit(g->context)));
    hand_ok(jit_function(cuda_jit(g->context), module, "burden", &l->function));
    hand_ok(g->backend->memory.alloc(g->context, LOAD_WORDS * 4, &l->memory));
    hand_ok(cuda_check(cuda_driver(NULL)->cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING),
                       "create a stream"));
}
/* Load number i: a different number of blocks and a different duration. */
static void load_start(struct load *l, int i)
{
    int words = LOAD_WORDS, turns = 20 + i * 37 % 400;
    void *parameters[] = {&l->memory, &words, &turns};
    hand_ok(
        cuda_check(cuda_driver(NULL)->cuLaunchKernel(l->function, 20 + (unsigned)i * 61 % 400, 1, 1,
                                                     256, 1, 1, 0, l->stream, parameters, NULL),
                   "launch the load"));
}
static void load_close(const struct attention_gpu *g, struct load *l)
{
    hand_ok(cuda_check(cuda_driver(NULL)->cuStreamSynchronize(l->stream), "wait for the load"));
    cuda_driver(NULL)->cuStreamDestroy(l->stream);
    g->backend->memory.free(g->context, l->memory);
}
#else
struct load {
    int none;
};
static void load_open(const struct attention_gpu *g, struct load *l)
{
    (void)g, l->none = 0;
}
static void load_start(struct load *l, int i)
{
    (void)l, (void)i;
}
static void load_close(const struct attention_gpu *g, struct load *l)
{
    (void)g, (void)l;
}
#endif

/* Compares, in each row of `row` bytes, the bytes from `from` on. */
static bool same(const char *a, const char *b, int64_t bytes, int64_t row, int64_t from)
{
    for (int64_t i = 0; i < bytes; i += row)
        if (memcmp(a + i + from, b + i + from, (size_t)(row - from)) != 0) return false;
    return true;
}

static void repeat(struct attention_gpu *g, const struct attention_setting *s, struct row_run *r,
                   bool adds, int times)
{
    struct load load;
    char *first[2] = {0}, *again[2] = {0};
    load_open(g, &load);
    for (int i = 0; i < times; i++) {
        load_start(&load, i);
        row_start(r);
        for (int o = 0; o < r->call.n_out; o++) {
            char **to = i ? &again[o] : &first[o];
            if (i < 2) *to = malloc((size_t)r->out[o].bytes);
            row_download(r, o, 0, *to, r->out[o].bytes);
            int64_t row = 2 * attention_columns(s);
            bool equal = adds ? same(first[o], *to, r->out[o].bytes, row, 2 * s->H * s->D)
                              : !memcmp(first[o], *to, (size_t)r->out[o].bytes);
            if (!equal)
                attention_wrong(g, s, "%s, output %d: run %d has other bits", r->kernel->variant, o,
                                i);
        }
    }
    for (int o = 0; o < r->call.n_out; o++) free(first[o]), free(again[o]);
    load_close(g, &load);
    g->tried += times;
}

void attention_repeats(struct attention_gpu *g, const struct attention_setting *s, int times)
{
    struct attention_made m = {0};
    struct row_run r;
    uint16_t *qkv = malloc((size_t)(s->B * s->T * attention_columns(s)) * sizeof *qkv),
             *dy = malloc((size_t)(s->B * s->T * s->H * s->D) * sizeof *dy);
    attention_draw_qkv(s, 0, s->B, qkv);
    attention_draw_dy(s, 0, s->B, dy);
    bool made = attention_make(g, s, qkv, dy, &m);
    for (int row = -1; row < GRADIENT_ROWS && made; row++) {
        if (row >= 0 && !m.dqkv[row]) continue;
        attention_call(g, s, row >= 0, &r);
        row_find(&r, row < 0 ? OP_ATTENTION : OP_ATTENTION_GRAD,
                 row < 0 ? "wgmma" : attention_gradient_row[row], 0);
        row_open(&r);
        const void *of_grad[] = {dy, qkv, m.y, m.lse, &step_now}, *of_forward[] = {qkv, &step_now};
        for (int i = 0; i < r.call.n_in; i++)
            row_upload(&r, i, 0, row < 0 ? of_forward[i] : of_grad[i], r.in[i].bytes);
        repeat(g, s, &r, row == 1, times);
        row_close(&r);
    }
    attention_made_free(&m);
    free(qkv), free(dy);
}
