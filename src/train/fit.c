#include "train/fit.h"

struct fit {
    struct config config;
    int64_t vocab, bytes;
    unsigned kinds;
    const char *backend;
};

static enum status fits(struct fit *f, int64_t batch_size, bool *ret)
{
    struct arena a = {0};
    struct engine e;
    f->config.data.batch_size = batch_size;
    enum status st = engine_plan(&e, &f->config, f->vocab, f->kinds, f->backend, &a);
    if (st == ST_OK) {
        *ret = engine_bytes(&e) <= f->bytes;
        engine_close(&e);
    }
    arena_release(&a);
    return st;
}

enum status fit_batch(const struct config *c, int64_t vocab, unsigned kinds, const char *backend,
                      int64_t bytes, int64_t *ret)
{
    struct fit f = {*c, vocab, bytes, kinds, backend};
    int64_t most = INT32_MAX / c->model.block_size; /* what model_check lets through */
    if (most > BATCH_SIZE_MOST) most = BATCH_SIZE_MOST;
    int64_t good = 0, bad = 1;
    bool fine = true;
    while (bad <= most) {
        TRY(fits(&f, bad, &fine));
        if (!fine) break;
        good = bad;
        bad = 2 * bad > most && bad < most ? most : 2 * bad;
    }
    if (fine) bad = good + 1; /* `most` itself fits */
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        TRY(fits(&f, middle, &fine));
        *(fine ? &good : &bad) = middle;
    }
    *ret = good;
    return ST_OK;
}
