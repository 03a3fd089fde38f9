#include "train/disk.h"

#include "base/str.h"
#include "train/ckpt.h"
#include "train/state_file.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    KEPT_MOST = 4,   /* the new one, the one before, the best, and the one being written */
    OF_TENSOR = 200, /* of a header of safetensors */
    STEP_LINE = 200, /* of log.jsonl */
    EVAL_LINE = 100, /* the same */
    STATE_AND_PLANS = 16 << 10, /* of a checkpoint, and of the run */
};

static int64_t checkpoint_bytes(const struct trainer *t)
{
    int64_t bytes = STATE_AND_PLANS;
    for (int i = 0; i < t->learner.engine.program.model.parameters; i++) {
        int64_t elements = 1, copies = 1;
        for (int d = 0; d < t->tensors[i].rank; d++) elements *= t->tensors[i].dim[d];
        for (int k = 0; k < OPTIMIZER_STATES; k++) copies += t->tensors[i].state[k].data != NULL;
        bytes += copies * (elements * (int64_t)sizeof(float) + OF_TENSOR);
    }
    return bytes;
}

/* What the checkpoints that exist take. */
static enum status existing(const struct dir *run, int *ret_count, int64_t *ret_bytes)
{
    struct arena a = {};
    int64_t *iters;
    enum status st = ckpt_iters(run, &a, &iters, ret_count);
    *ret_bytes = 0;
    for (int i = 0; st == ST_OK && i < *ret_count; i++)
        for (int f = 0; f < STATE_FILE_COUNT; f++) {
            char name[CKPT_NAME];
            struct stat info;
            ckpt_name(name, iters[i]);
            const char *path = arena_printf(&a, "%s/%s", name, state_tensor_file(f));
            if (fstatat(dir_fd(run), path, &info, 0) == 0) *ret_bytes += info.st_size;
        }
    arena_release(&a);
    return st;
}

enum status disk_forecast(const struct trainer *t, struct disk_need *ret)
{
    const struct config_train *c = &t->config->train;
    struct statvfs fs;
    int there;
    int64_t taken, left = c->max_iters - t->iter;
    TRY(existing(&t->run.dir, &there, &taken));
    int64_t evals = left / c->eval_interval + 1, saves = left > 0 ? evals : 0;
    if (left % c->eval_interval == 0 && saves)
        saves--; /* iteration 0, or the one it goes on from */
    if (c->init_from == INIT_RESUME) saves += there;
    *ret = (struct disk_need){
        .checkpoint = checkpoint_bytes(t),
        .kept = min_i64(saves, KEPT_MOST),
        .log = left / c->log_interval * STEP_LINE + evals * EVAL_LINE + STATE_AND_PLANS,
        .free = -1,
    };
    ret->total = ret->kept * ret->checkpoint + ret->log;
    if (fstatvfs(t->run.dir.fd, &fs) != 0 || !fs.f_blocks) return ST_OK;
    int64_t blocks = (int64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail);
    ret->free = blocks * (int64_t)fs.f_frsize + taken;
    return ST_OK;
}

enum status disk_check(const struct disk_need *n, const char *out_dir)
{
    char need[32], one[32], room[32];
    if (n->free < 0 || n->total <= n->free) return ST_OK;
    return fail(
        ST_IO,
        "this run will write %s to %s (%lld checkpoint%s of %s at a time, and its log), and "
        "%s are free there: make room, or choose an --out_dir on another disk",
        str_bytes(need, (double)n->total), out_dir, (long long)n->kept, n->kept == 1 ? "" : "s",
        str_bytes(one, (double)n->checkpoint), str_bytes(room, (double)n->free));
}

void disk_print(const struct disk_need *n, struct str *s)
{
    char need[32], one[32], room[32];
    str_printf(s, "disk         %lld checkpoint%s of %s, log %s", (long long)n->kept,
               n->kept == 1 ? "" : "s", str_bytes(one, (double)n->checkpoint),
               str_bytes(room, (double)n->log));
    str_printf(s, ": %s", str_bytes(need, (double)n->total));
    if (n->free >= 0) str_printf(s, " of %s free", str_bytes(room, (double)n->free));
    str_append(s, "\n");
}
