#include "engine/fit.h"

#include "base/checked.h"

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
    if (st == ST_MEMORY) *ret = SIZE_TOO_LARGE; /* for any machine */
    arena_release(&a);
    return st == ST_MEMORY ? ST_OK : st;
}

enum { LINEAR_GUESSES = 6 }; /* before the search bisects */

/* Bytes grow almost linearly with the batch, so a line through the last two guesses needs a few
 * steps. Ends when a batch fits and the next does not. */
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
