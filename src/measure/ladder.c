#include "measure/ladder.h"

#include "measure/noise.h"
#include "measure/rounds.h"

#include <string.h>

enum { LEAST = 3, WARMUP = 3, KEYS_MOST = 4, PAD = 64 };

/* THE rungs: what each sets, over the one before. The first sets every key that a later one changes. */
static const struct {
    const char *name, *key[KEYS_MOST];
} rungs[LADDER_RUNGS] = {
    {"primitive, slow", {"dtype=float32", "fusion=primitive", "flash=false", "pad_vocab=0"}},
    {"op", {"fusion=op"}},
    {"full", {"fusion=full"}},
    {"bfloat16", {"dtype=bfloat16"}},
    {"flash", {"flash=true"}},
    {"padded vocabulary", {"pad_vocab=64"}},
};

bool ladder_sets(const char *key, int64_t length)
{
    for (int i = 0; i < KEYS_MOST; i++) {
        const char *own = rungs[0].key[i];
        if ((int64_t)strcspn(own, "=") == length && !strncmp(own, key, (size_t)length)) return true;
    }
    return false;
}

/* A rung with its engine, while it is open. */
struct climb {
    struct ladder_rung *rung;
    struct engine engine;
    struct noise noise;
    int iteration;
    bool open;
    int64_t bytes; /* that the engine takes */
    struct arena arena;
};

struct climbing {
    const struct ladder_options *o;
    struct ladder *l;
    struct climb climb[LADDER_RUNGS];
    int begun, climbs; /* where rungs run one after the other: the first of those that run now */
    struct arena *a;
};

/* Sets the keys of rung `i` over those of the one before; words why this build does not serve it. */
static enum status configure(struct climbing *c, int i, const struct config *before,
                             int64_t *ret_bytes)
{
    struct ladder_rung *r = &c->l->rung[i];
    *r = (struct ladder_rung){.name = rungs[i].name, .differs = "", .config = *before};
    for (int k = 0; k < KEYS_MOST && rungs[i].key[k]; k++) {
        TRY(config_set(&r->config, rungs[i].key[k], c->a));
        r->differs = arena_printf(c->a, "%s%s--%s", r->differs, k ? " " : "", rungs[i].key[k]);
    }
    r->dtype = r->config.plan.dtype == PRECISION_BFLOAT16 ? DT_BF16 : DT_F32;
    if (r->config.model.pad_vocab && c->o->vocab % PAD == 0)
        return fail(ST_UNSUPPORTED, "the vocabulary, %lld, is a multiple of %d already",
                    (long long)c->o->vocab, PAD);
    TRY(config_check(&r->config));
    return noise_bytes(&r->config, c->o->vocab, ret_bytes);
}

static enum status find_rungs(struct climbing *c)
{
    const struct config *before = c->o->config;
    for (int i = 0; i < LADDER_RUNGS; i++) {
        struct ladder_rung *r = &c->l->rung[i];
        int64_t bytes;
        enum status st = configure(c, i, before, &bytes);
        if (st != ST_OK && (i == 0 || st != ST_UNSUPPORTED)) return st;
        if (st == ST_OK) {
            before = &r->config;
            st = noise_check_room(bytes, c->o->room);
        }
        if (st == ST_OK)
            c->climb[c->climbs++] = (struct climb){.rung = r, .bytes = bytes};
        else
            r->reason = arena_strdup(c->a, fail_message());
    }
    if (c->climbs) return ST_OK;
    return fail(ST_UNSUPPORTED, "no rung can be run; the first: %s", c->l->rung[0].reason);
}

static enum status open_climb(struct climbing *c, struct climb *one)
{
    struct ladder_rung *r = one->rung;
    TRY(noise_open(&one->engine, &r->config, c->o->vocab, &one->arena));
    one->open = true;
    r->facts = facts_of(&one->engine);
    if (!(c->l->parameters > 0)) {
        const struct gpt *m = &one->engine.model;
        c->l->parameters = (double)gpt_count(m, false);
        c->l->flops_per_token = gpt_flops_per_token(m, m->config.block_size);
    }
    return noise_init(&one->noise, &one->engine, &one->arena);
}

static void close_climb(struct climb *one)
{
    if (one->open) engine_close(&one->engine);
    one->open = false;
    arena_release(&one->arena);
}

static enum status step(void *user, int calls, double *ret_ms)
{
    struct climb *one = user;
    BUG_IF(calls != 1, "%d calls", calls);
    TRY(noise_step(&one->noise, one->iteration, NULL, &ret_ms[0]));
    if (one->iteration++ == 0) one->rung->loss = (double)one->noise.loss;
    return ST_OK;
}

static void show(void *user, double done_ms, double expected_ms)
{
    const struct climbing *c = user;
    bool warm = expected_ms > 0;
    double share = warm ? done_ms / expected_ms : 0, before = c->begun;
    const char *what = c->l->interleaved ? "rungs in turn" : c->climb[c->begun].rung->name;
    if (!c->l->interleaved) share = (before + share) / c->climbs;
    if (c->o->each) c->o->each(c->o->user, share < 1 ? share : 1, warm ? what : "warming up");
}

/* Runs the climbs first ... first + n - 1 in turn. */
static enum status climb(struct climbing *c, int first, int n)
{
    struct contender contender[LADDER_RUNGS];
    struct rounds rounds = {
        .most = c->o->steps, .least = LEAST, .warmup = WARMUP - 1, .each = show, .user = c};
    if (rounds.least > rounds.most) rounds.least = rounds.most;
    c->begun = first;
    for (int i = 0; i < n; i++) {
        struct climb *one = &c->climb[first + i];
        TRY(open_climb(c, one));
        contender[i] =
            (struct contender){.sample = step, .user = one, .parts = 1, .one_by_one = true};
        contender[i].budget_ms = c->o->limit_ms;
    }
    TRY(rounds_run(&rounds, contender, n));
    for (int i = 0; i < n; i++) {
        c->climb[first + i].rung->ms = contender[i].whole;
        c->climb[first + i].rung->first_ms = contender[i].first_ms;
    }
    return ST_OK;
}

static bool all_fit(const struct climbing *c)
{
    int64_t bytes = 0;
    for (int i = 0; i < c->climbs; i++) bytes += c->climb[i].bytes;
    return c->o->room < 0 || bytes <= c->o->room;
}

static void conclude(struct climbing *c)
{
    const struct ladder_rung *before = NULL, *first = c->climb[0].rung;
    for (int i = 0; i < c->climbs; i++) {
        struct ladder_rung *r = c->climb[i].rung;
        double ms = r->ms.median, seconds = ms * 1e-3;
        const struct machine_peak *peak = machine_peak(c->o->machine, r->dtype);
        r->tokens_per_s = (double)r->facts.tokens / seconds;
        if (before) r->times_before = before->ms.median / ms;
        r->times_first = first->ms.median / ms;
        if (peak) {
            r->mfu = c->l->flops_per_token * r->tokens_per_s / peak->flops;
            r->plan_share = r->facts.flops / seconds / peak->flops;
        }
        before = r;
    }
}

enum status ladder_run(const struct ladder_options *o, struct ladder *ret, struct arena *a)
{
    struct climbing c = {.o = o, .l = ret, .a = a};
    enum status st = ST_OK;
    *ret = (struct ladder){0};
    TRY(find_rungs(&c));
    ret->interleaved = all_fit(&c);
    int together = ret->interleaved ? c.climbs : 1;
    for (int i = 0; i < c.climbs && st == ST_OK; i += together) {
        st = climb(&c, i, together);
        for (int k = i; k < i + together; k++) close_climb(&c.climb[k]);
    }
    if (st == ST_OK) conclude(&c);
    return st;
}
