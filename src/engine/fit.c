#include "engine/fit.h"

#include "backend/communicator.h"
#include "base/checked.h"
#include "base/free_memory.h"
#include "base/str.h"
#include "base/threads.h"
#include "engine/device.h"
#include "engine/optimizer.h"
#include "engine/shards.h"

#include <stdio.h>
#include <sys/resource.h>

struct fit {
    struct config config;
    int64_t vocab;
    unsigned kinds;
    const struct target *target;
    const struct tuning *tuning;
};

static enum status bytes_at(struct fit *f, int64_t batch_size, int64_t *ret)
{
    struct arena a = {0};
    struct program p;
    f->config.data.batch_size = batch_size;
    enum status st = program_compile(&p, &f->config, f->vocab, f->target, f->tuning, f->kinds, &a);
    if (st == ST_OK) *ret = program_bytes(&p);
    if (st == ST_MEMORY) *ret = SIZE_TOO_LARGE; /* too large for any machine */
    arena_release(&a);
    return st == ST_MEMORY ? ST_OK : st;
}

static enum status bytes_of_ranks(struct fit *f, int64_t ranks, int64_t micro_steps, int64_t *ret)
{
    f->config.ranks.count = ranks;
    f->config.train.gradient_accumulation_steps = ranks * micro_steps;
    return bytes_at(f, f->config.data.batch_size, ret);
}

int fit_zero_stage(const struct config *c)
{
    return c->ranks.zero == 3 ? 3 : 1;
}

enum status fit_ranks(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret, int64_t *ret_least)
{
    struct fit f = {*c, vocab, kinds, target, tuning};
    int64_t micro_steps = micro_steps_of(c), good = RANKS_MOST, bad = 1, now;
    f.config.ranks.zero = fit_zero_stage(c);
    f.config.ranks.overlap = OVERLAP_BUCKET;
    f.config.ranks.rank = 0;
    f.config.plan.replay = REPLAY_FALSE; /* required by ranks that are threads; changes no bytes */
    *ret = *ret_least = 0;
    enum status st = bytes_of_ranks(&f, good, micro_steps, ret_least);
    if (st == ST_UNSUPPORTED) return ST_OK; /* the device has no collectives */
    TRY(st);
    if (*ret_least > bytes) return ST_OK;
    while (good - bad > 1) {
        int64_t middle = bad + (good - bad) / 2;
        TRY(bytes_of_ranks(&f, middle, micro_steps, &now));
        if (now <= bytes)
            good = middle, *ret_least = now;
        else
            bad = middle;
    }
    *ret = good;
    return ST_OK;
}

enum { LINEAR_GUESSES = 6 }; /* before the search bisects */

/* The bytes grow almost linearly with the batch, so a line through the last two guesses leads to
 * the result in a few steps. The search ends when a batch fits and the next larger one does not. */
enum status fit_batch(const struct config *c, int64_t vocab, unsigned kinds,
                      const struct target *target, const struct tuning *tuning, int64_t bytes,
                      int64_t *ret)
{
    struct fit f = {*c, vocab, kinds, target, tuning};
    int64_t most = INT32_MAX / c->model.block_size; /* the limit of model_check */
    if (most > BATCH_SIZE_MOST) most = BATCH_SIZE_MOST;
    int64_t good = 1, bad = most + 1, of_good, now, last = 1, of_last;
    *ret = 0;
    TRY(bytes_at(&f, 1, &of_good));
    if (of_good > bytes) return ST_OK;
    of_last = of_good;
    int64_t next = c->data.batch_size > 1 ? c->data.batch_size : 2;
    for (int i = 0; bad - good > 1; i++) {
        if (next <= good) next = good + 1;
        if (next >= bad) next = bad - 1;
        TRY(bytes_at(&f, next, &now));
        double each = ((double)now - (double)of_last) / (double)(next - last);
        last = next, of_last = now;
        if (now <= bytes && now != SIZE_TOO_LARGE)
            good = next, of_good = now;
        else
            bad = next;
        double on = each > 0 ? ((double)bytes - (double)of_good) / each : (double)most;
        next = good + min_i64(int64_of(on, most), most);
        if (i >= LINEAR_GUESSES) next = good + (bad - good) / 2;
    }
    *ret = good;
    return ST_OK;
}

const char *fit_words(const struct program *p, unsigned kinds, int64_t memory_limit,
                      struct arena *a)
{
    int64_t batch;
    enum status st =
        fit_batch(p->config, p->model.vocab, kinds, p->target, p->tuning, memory_limit, &batch);
    if (st != ST_OK) return "try a smaller batch_size";
    if (!batch) return "not even batch_size=1 fits";
    return arena_printf(a, "batch_size=%lld is the largest that fits", (long long)batch);
}

/* --- free memory ------------------------------------------------------------------------------ */

/* Host memory in addition to storage blocks: libraries and the code that they generate, file
 * streams, JSON, plans of the samples. A model of 3 million parameters takes 25 MiB, and 52 MiB of
 * addresses with one thread; each further thread has a stack and a heap of the C library. */
static const int64_t HOST_BESIDES = 32 << 20, ADDRESSES_BESIDES = 64 << 20, THREAD_HEAP = 64 << 20;

static int64_t stack_bytes(void)
{
    struct rlimit r;
    enum { USUAL = 8 << 20 };
    return getrlimit(RLIMIT_STACK, &r) == 0 && r.rlim_cur < INT32_MAX ? (int64_t)r.rlim_cur : USUAL;
}

int64_t fit_host_bytes(const struct program *p, bool reserved, int64_t threads, int64_t ranks)
{
    int64_t bytes = HOST_BESIDES, state = 0;
    if (reserved) bytes = ADDRESSES_BESIDES + (threads - 1) * (stack_bytes() + THREAD_HEAP);
    if (p->built[GRAPH_UPDATE]) state = optimizer_of(p->config)->states;
    if (p->target->backend->host_memory)
        return bytes + (state ? shard_host_bytes(p->config, &p->model, (int)state) : 0);
    return bytes + ranks * (1 + state) * p->model.elements * (int64_t)sizeof(float);
}

struct need {
    const char *whose;    /* "memory", "the device's memory" */
    int64_t bytes, there; /* needed and free, for all ranks together */
    int64_t besides;      /* the part of `bytes` that does not depend on the batch size */
    int64_t ranks;
    const char *limit;
};

static enum status refuse(const struct program *p, unsigned kinds, const struct need *n)
{
    char needed[32], there[32], missing[32], advice[96], ranks[40] = "this needs";
    int64_t batch = 0, least = 1 << 20;
    str_bytes(needed, (double)n->bytes);
    str_bytes(there, (double)n->there);
    str_bytes(missing, (double)(n->bytes - n->there));
    bool asks = n->bytes > n->besides && n->there - n->besides > least;
    if (asks)
        TRY(fit_batch(p->config, p->model.vocab, kinds, p->target, p->tuning,
                      (n->there - n->besides) / n->ranks, &batch));
    if (n->ranks > 1) snprintf(ranks, sizeof ranks, "%lld ranks need", (long long)n->ranks);
    snprintf(advice, sizeof advice, "--batch_size=%lld is the largest that fits", (long long)batch);
    if (batch == 0) snprintf(advice, sizeof advice, "try a smaller model or block_size");
    return fail(ST_UNSUPPORTED,
                "%s %s of %s, and %s are free %s: %s are missing%s; %s; `strobe memory` "
                "shows what needs it and what --recompute=block saves",
                ranks, needed, n->whose, there, n->limit, missing,
                batch ? "" : ", and no batch fits", advice);
}

static enum status check_host(const struct program *p, unsigned kinds, int64_t ranks, bool reserved,
                              const struct memory_limit *there)
{
    int64_t besides = fit_host_bytes(p, reserved, ranks * threads_count(), ranks);
    struct need n = {"memory", besides, there->bytes, besides, ranks, there->name};
    if (p->target->backend->host_memory) n.bytes += ranks * program_bytes(p);
    return there->bytes >= 0 && n.bytes > there->bytes ? refuse(p, kinds, &n) : ST_OK;
}

enum status fit_check(const struct program *p, unsigned kinds, int64_t ranks)
{
    const struct backend *b = p->target->backend;
    struct free_memory host = free_memory_now();
    int64_t blocks = ranks * program_bytes(p);
    TRY(check_host(p, kinds, ranks, false, &host.pages));
    TRY(check_host(p, kinds, ranks, true, &host.addresses));
    if (b->host_memory) return ST_OK;
    int64_t space = b->devices.free_memory(device_number(p->config));
    struct need of_device = {"the device's memory", blocks, space, 0, ranks, "on it"};
    return space >= 0 && blocks > space ? refuse(p, kinds, &of_device) : ST_OK;
}
