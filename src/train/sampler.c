#include "train/sampler.h"

#include "backend/backend.h"
#include "base/rng.h"

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
    s->logits = ARENA_NEW(a, float, V);
    s->sorted = ARENA_NEW(a, float, V);
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

/* Row `row` of the output (1,T,V), without the columns that are padding. */
static enum status read_logits(struct sampler *s, enum graph_kind kind, int64_t row)
{
    struct engine *e = s->engine;
    const float *all = plan_output(&e->program.plan[kind], "logits");
    return e->backend->download(e->context, s->logits, all + row * e->program.model.padded_vocab,
                                s->vocab * (int64_t)sizeof(float));
}

/* The window as one batch of one sequence. It is causal, so what stands behind the last token, here
 * zeros or an older text, changes nothing. */
static enum status whole_window(struct sampler *s)
{
    int64_t bytes = s->T * (int64_t)sizeof(int32_t);
    TRY(engine_feed(s->engine, GRAPH_LOGITS, "tokens", s->window, bytes));
    TRY(engine_feed(s->engine, GRAPH_LOGITS, "positions", s->positions, bytes));
    TRY(plan_run(&s->engine->program.plan[GRAPH_LOGITS], NULL));
    return read_logits(s, GRAPH_LOGITS, s->length - 1);
}

static enum status through_cache(struct sampler *s)
{
    for (; s->cached < s->length; s->cached++) {
        int64_t at = s->cached;
        TRY(engine_feed(s->engine, GRAPH_DECODE, "tokens", &s->window[at], sizeof(int32_t)));
        TRY(engine_feed(s->engine, GRAPH_DECODE, "positions", &s->positions[at], sizeof(int32_t)));
        TRY(plan_run(&s->engine->program.plan[GRAPH_DECODE], NULL));
    }
    return read_logits(s, GRAPH_DECODE, 0);
}

static int falling(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The logit that a token must reach to be drawn; equals of the k-th likeliest one are let in. */
static float least_logit(struct sampler *s)
{
    int64_t k = s->options.top_k;
    if (k <= 0 || k >= s->vocab) return -INFINITY;
    memcpy(s->sorted, s->logits, (size_t)s->vocab * sizeof(float));
    qsort(s->sorted, (size_t)s->vocab, sizeof(float), falling);
    return s->sorted[k - 1];
}

static int32_t likeliest(const struct sampler *s)
{
    int32_t best = 0;
    for (int32_t i = 1; i < s->vocab; i++)
        if (s->logits[i] > s->logits[best]) best = i;
    return best;
}

/* Adds up exp(logit / temperature) over the tokens that may be drawn, until the sum exceeds `limit`;
 * the token at which it stopped, else the last one. */
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

static int32_t draw(struct sampler *s)
{
    int32_t token = likeliest(s);
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
    TRY(s->options.cache && fits ? through_cache(s) : whole_window(s));
    for (int64_t i = 0; i < s->vocab; i++)
        if (isnan(s->logits[i]))
            return fail(ST_NUMERIC,
                        "the model computes no numbers: its weights are damaged, or the "
                        "training diverged");
    int32_t token = draw(s);
    append(s, token);
    *ret_token = token;
    return ST_OK;
}
