#include "train/sampler.h"

#include "base/rng.h"
#include "base/str.h"
#include "data/vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sampler_init(struct sampler *s, struct engine *e, const struct sampler_options *o,
                  struct arena *a)
{
    int64_t T = e->program.model.config.block_size, V = e->program.model.vocab;
    *s = (struct sampler){.engine = e, .options = *o, .T = T, .vocab = V};
    s->window = ARENA_NEW(a, int32_t, T);
    s->positions = ARENA_NEW(a, int32_t, T);
    for (int64_t t = 0; t < T; t++) s->positions[t] = (int32_t)t;
    sequence_init_plan(&s->window_logits, e, GRAPH_LOGITS, NULL, a);
    sequence_init_plan(&s->decode, e, GRAPH_DECODE, NULL, a);
    s->logits = ARENA_NEW(a, float, V);
    s->sorted = ARENA_NEW(a, float, V);
}

void sampler_close(struct sampler *s)
{
    sequence_close(&s->window_logits);
    sequence_close(&s->decode);
}

static void append(struct sampler *s, int32_t token)
{
    if (s->length == s->T)
        memmove(s->window, s->window + 1, (size_t)(s->T - 1) * sizeof(int32_t));
    else
        s->length++;
    s->window[s->length - 1] = token;
    s->total++;
}

void sampler_start(struct sampler *s, int64_t text, const int32_t *prompt, int64_t n)
{
    BUG_IF(n < 1, "an empty prompt");
    s->text = (uint32_t)text;
    s->length = s->cached = s->total = 0;
    for (int64_t i = 0; i < n; i++) append(s, prompt[i]);
}

/* Copies n tokens of the window, from index `first` on, to the inputs of `q` and runs it. */
static enum status run_tokens(struct sampler *s, struct sequence *q, int64_t first, int64_t n)
{
    int64_t bytes = n * (int64_t)sizeof(int32_t);
    TRY(sequence_feed(q, 0, "tokens", s->window + first, bytes));
    TRY(sequence_feed(q, 0, "positions", s->positions + first, bytes));
    return sequence_start(q, NULL);
}

/* Reads row `row` of the output (1,T,V) without its padding columns. */
static enum status read_logits(struct sampler *s, enum graph_kind kind, int64_t row)
{
    const int64_t size = sizeof(float);
    return plan_read(&s->engine->program.plan[kind], "logits",
                     row * s->engine->program.model.padded_vocab * size, s->logits,
                     s->vocab * size);
}

/* Runs the window as one batch with one sequence. Attention is causal, so the values after the last
 * token (zeros or an older text) have no effect. */
static enum status run_window(struct sampler *s)
{
    TRY(run_tokens(s, &s->window_logits, 0, s->T));
    return read_logits(s, GRAPH_LOGITS, s->length - 1);
}

static enum status run_cached(struct sampler *s)
{
    for (; s->cached < s->length; s->cached++) TRY(run_tokens(s, &s->decode, s->cached, 1));
    return read_logits(s, GRAPH_DECODE, 0);
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The least number of most likely tokens with the share top_p of the probability of all n. */
static int64_t nucleus(const struct sampler *s, int64_t n)
{
    double all = 0, sum = 0, temperature = s->options.temperature;
    for (int64_t i = 0; i < n; i++) all += exp((double)(s->sorted[i] - s->sorted[0]) / temperature);
    for (int64_t i = 0; i < n; i++) {
        sum += exp((double)(s->sorted[i] - s->sorted[0]) / temperature);
        if (sum >= s->options.top_p * all) return i + 1;
    }
    return n;
}

/* Moves the n largest of `count` numbers to the front, in any order (Hoare's selection). For 50,000
 * tokens this takes 0.3 ms, and sorting would take 5 ms. */
static void select_largest(float *x, int64_t count, int64_t n)
{
    int64_t first = 0, last = count - 1;
    while (first < last) {
        float pivot = x[first + (last - first) / 2];
        int64_t i = first, k = last;
        while (i <= k) {
            while (x[i] > pivot) i++;
            while (x[k] < pivot) k--;
            if (i > k) break;
            float kept = x[i];
            x[i++] = x[k];
            x[k--] = kept;
        }
        if (k < n - 1 && n - 1 < i) return;
        if (n - 1 <= k)
            last = k;
        else
            first = i;
    }
}

/* The smallest logit of a candidate. Tokens that tie with the last candidate are candidates too. */
static float least_logit(struct sampler *s)
{
    int64_t k = s->options.top_k, n = k <= 0 || k >= s->vocab ? s->vocab : k;
    if (n == s->vocab && s->options.top_p >= 1) return -INFINITY;
    memcpy(s->sorted, s->logits, (size_t)s->vocab * sizeof(float));
    if (n < s->vocab) select_largest(s->sorted, s->vocab, n);
    qsort(s->sorted, (size_t)n, sizeof(float), descending);
    if (s->options.top_p < 1) n = nucleus(s, n);
    return s->sorted[n - 1];
}

static int32_t most_likely(const struct sampler *s)
{
    int32_t best = 0;
    for (int32_t i = 1; i < s->vocab; i++)
        if (s->logits[i] > s->logits[best]) best = i;
    return best;
}

/* Sums exp(logit / temperature) over the candidate tokens until the sum exceeds `limit`. *ret_token
 * is the last token in the sum. */
static double add_up(const struct sampler *s, float max, float least, double limit,
                     int32_t *ret_token)
{
    double sum = 0;
    for (int32_t i = 0; i < s->vocab && sum <= limit; i++) {
        if (s->logits[i] < least) continue;
        sum += exp((double)(s->logits[i] - max) / s->options.temperature);
        *ret_token = i;
    }
    return sum;
}

static int32_t sample_token(struct sampler *s)
{
    int32_t token = most_likely(s);
    if (s->options.temperature <= 0) return token;
    float max = s->logits[token], least = least_logit(s);
    double all = add_up(s, max, least, INFINITY, &token);
    float u = rng_uniform(s->options.seed, RNG_SAMPLE, s->text, (uint64_t)s->total);
    add_up(s, max, least, (double)u * all, &token);
    return token;
}

enum status sampler_next(struct sampler *s, int32_t *ret_token)
{
    bool fits = s->total <= s->T;
    TRY(s->options.cache && fits ? run_cached(s) : run_window(s));
    for (int64_t i = 0; i < s->vocab; i++)
        if (!(s->logits[i] < INFINITY))
            return fail(ST_NUMERIC,
                        "the model's logits are not finite: its weights are corrupt or the "
                        "training diverged");
    int32_t token = sample_token(s);
    append(s, token);
    *ret_token = token;
    return ST_OK;
}

static void append_text(struct str *s, const struct vocabulary *v, int32_t token)
{
    struct token_text text = vocabulary_bytes(v, token);
    str_append_bytes(s, text.bytes, text.length);
}

enum status sampler_write_text(struct engine *e, const struct vocabulary *v, struct str *s,
                               struct arena *a)
{
    enum { LENGTH = 300 };
    const struct config *c = e->program.config;
    struct sampler_options o = {c->sample.temperature, c->sample.top_k, c->sample.top_p,
                                (uint32_t)c->train.seed, true};
    struct sampler sampler;
    int32_t first[1] = {0}, *prompt = first, token;
    int64_t n = 1;
    if (vocabulary_encode(v, c->sample.start, a, &prompt, &n) != ST_OK || n == 0) {
        prompt = first;
        n = 1;
    }
    sampler_init(&sampler, e, &o, a);
    sampler_start(&sampler, 0, prompt, n);
    for (int64_t i = 0; i < n; i++) append_text(s, v, prompt[i]);
    enum status st = ST_OK;
    for (int i = 0; i < LENGTH; i++) {
        TRY_OUT(st, sampler_next(&sampler, &token));
        append_text(s, v, token);
    }
    str_append(s, "\n");
out:
    sampler_close(&sampler);
    return st;
}
