#include "train/disk.h"

#include "base/str.h"
#include "train/checkpoint.h"
#include "train/state_file.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    KEPT_MOST = 4,    /* checkpoints: newest, previous, best, and the one being written */
    OF_TENSOR = 200,  /* bytes of a safetensors header per tensor */
    LINE = 200,       /* bytes of a line of log.jsonl */
    TEXTS = 16 << 10, /* at most the bytes of one checkpoint's text files; likewise of the run's */
};

static int64_t checkpoint_bytes(const struct trainer *t)
{
    int64_t bytes = TEXTS;
    for (int i = 0; i < t->learner.engine.program.model.parameters; i++) {
        int64_t elements = 1, copies = 1;
        for (int d = 0; d < t->tensors[i].rank; d++) elements *= t->tensors[i].dim[d];
        for (int k = 0; k < OPTIMIZER_STATES; k++) copies += t->tensors[i].state[k].data != NULL;
        bytes += copies * (elements * (int64_t)sizeof(float) + OF_TENSOR);
    }
    return bytes;
}

/* The number of existing checkpoints, and the bytes of their tensor files. */
static enum status existing(const char *run, int *ret_count, int64_t *ret_bytes)
{
    struct arena a = {};
    int64_t *iters;
    enum status st = checkpoint_iters(run, &a, &iters, ret_count);
    *ret_bytes = 0;
    for (int i = 0; st == ST_OK && i < *ret_count * STATE_FILE_COUNT; i++) {
        struct stat info;
        const char *path = checkpoint_path(run, iters[i / STATE_FILE_COUNT], &a);
        const char *file = state_tensor_file(i % STATE_FILE_COUNT);
        if (!stat(arena_printf(&a, "%s/%s", path, file), &info)) *ret_bytes += info.st_size;
    }
    arena_release(&a);
    return st;
}

enum status disk_check(struct trainer *t)
{
    const struct config_train *c = &t->config->train;
    struct statvfs fs;
    int there;
    int64_t taken, left = c->max_iters - t->iter, one = checkpoint_bytes(t);
    char need[32], each[32], available[32] = "an unknown amount";
    TRY(existing(t->run.lock.path, &there, &taken));
    int64_t kept = ceil_div(left, c->eval_interval);
    if (config_resumes(t->config)) kept += there;
    kept = min_i64(kept, KEPT_MOST);
    int64_t total = kept * one + left / c->log_interval * LINE + TEXTS, space = INT64_MAX;
    if (statvfs(t->run.lock.path, &fs) == 0 && fs.f_blocks) {
        space = (int64_t)(geteuid() ? fs.f_bavail : fs.f_bfree) * (int64_t)fs.f_frsize + taken;
        str_bytes(available, (double)space);
    }
    str_bytes(need, (double)total);
    str_bytes(each, (double)one);
    snprintf(t->disk_words, sizeof t->disk_words,
             "disk         needs %s for %lld checkpoint%s of %s and the log (available: %s)\n",
             need, (long long)kept, kept == 1 ? "" : "s", each, available);
    if (total <= space) return ST_OK;
    return fail(ST_FULL,
                "this run will write %s to %s (%lld checkpoint%s of %s at a time, and its log), "
                "and %s are available there, counting the checkpoints that it replaces: free some "
                "space, or choose an --out_dir on another disk",
                need, t->run.lock.path, (long long)kept, kept == 1 ? "" : "s", each, available);
}
