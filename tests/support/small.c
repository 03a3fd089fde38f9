#include "small.h"

#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/threads.h"
#include "data/dataset.h"
#include "data/kind.h"
#include "workdir.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 1200 };
static char data_dir[512], out_dir[512];

void small_make(void)
{
    static const char *const words[] = {"aba", "cab", "deed", "fad", "bee", "face", "a", "ed"};
    struct str s = {0};
    for (uint64_t i = 0; i < WORDS; i++) {
        str_append(&s, words[rng_below(1, RNG_TEST, 0, i, COUNT_OF(words))]);
        str_append(&s, i % 8 == 7 ? "\n" : " ");
    }
    snprintf(data_dir, sizeof data_dir, "%s/data", workdir_open());
    snprintf(out_dir, sizeof out_dir, "%s", workdir_path("run"));
    log_set_level(LOG_ERROR);
    struct dataset_facts facts;
    const struct dataset_text text = {&data_characters, s.data, s.len, "a test"};
    enum status st = dataset_write(data_dir, "tiny", &text, true, &facts);
    BUG_IF(st != ST_OK, "%s", fail_message());
    str_release(&s);
}

void small_remove(void)
{
    workdir_close();
}

struct config small_config(void)
{
    struct config c;
    config_init(&c);
    config_choose(&c, &(struct config_facts){0});
    c.model.n_layer = 2;
    c.model.n_head = 2;
    c.model.n_embd = 16;
    c.model.block_size = 16;
    c.data.dataset = "tiny";
    c.data.data_dir = data_dir;
    c.data.batch_size = 4;
    c.train.out_dir = out_dir;
    c.train.max_iters = 20;
    c.train.eval_interval = 10;
    c.train.eval_iters = 3;
    c.train.learning_rate = 1e-2;
    c.train.min_lr = 1e-3;
    c.train.warmup_iters = 4;
    c.train.lr_decay_iters = 20;
    c.plan.device = DEVICE_CPU;
    c.plan.threads = 1;
    threads_set(1);
    return c;
}

void small_learner(struct learner *l, const struct config *c, unsigned more, struct arena *a)
{
    enum status st = learner_open(l, c, more, NULL, a);
    BUG_IF(st != ST_OK, "%s", fail_message());
}

const float *small_weights(const struct learner *l)
{
    return l->engine.storage.base[STORAGE_WEIGHTS];
}
