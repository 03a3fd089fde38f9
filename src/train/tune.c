#include "train/tune.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/file.h"
#include "base/log.h"
#include "train/device.h"

#include <stdio.h>
#include <string.h>

bool tune_read(const struct config *c, const struct target *target, struct tuning *ret,
               struct arena *a)
{
    const char *why = NULL;
    tuning_init(ret, target, a);
    if (c->plan.tune == TUNE_OFF || !target->backend->tune) return false;
    const char *path = tuning_path(target->name, a);
    if (!path || !file_exists(path)) return true;
    struct tuning kept;
    if (tuning_read(path, &kept, a) != ST_OK)
        log_warning("%s", fail_message());
    else if (!tuning_holds(&kept, target, &why))
        log_info("%s is not used: %s", path, why);
    else
        *ret = kept;
    ret->target = *target;
    return true;
}

static void name_driver(struct tuning *t)
{
    struct device_library l;
    if (backend_library(t->target.backend, "driver", &l))
        snprintf(t->driver, sizeof t->driver, "%s", l.version);
}

/* What cannot be written is measured again by the next program. */
static void keep(const struct tuning *t, const char *path)
{
    struct arena a = {0};
    const char *folder = file_cache_folder(&a);
    if (path && folder && (file_make_dirs(folder) != ST_OK || tuning_write(path, t) != ST_OK))
        log_debug("the tuning table is not kept: %s", fail_message());
    arena_release(&a);
}

static bool measure(const struct program *p, const struct tuning_question *q, void *context,
                    struct tuning_entry *ret)
{
    struct kernel_call call = {.attr = &q->attr,
                               .n_in = q->n_in,
                               .n_out = q->n_out,
                               .context = context,
                               .target = p->target};
    memcpy(call.in_type, q->in_type, sizeof q->in_type);
    memcpy(call.out_type, q->out_type, sizeof q->out_type);
    return p->target->backend->tune(context, (int)q->op, &call, ret) == ST_OK;
}

enum status tune_program(const struct program *p, void *context, struct tuning *t, bool *ret_more)
{
    struct arena a = {0};
    struct progress progress;
    const struct tuning_questions *asked = &p->questions;
    const char *path = tuning_path(p->target->name, &a);
    int missing = tuning_missing(asked), done = 0;
    *ret_more = false;
    log_info("tuning %d matmul%s for %s%s%s", missing, missing == 1 ? "" : "s", p->target->name,
             path ? ", kept in " : "", path ? path : "");
    name_driver(t);
    progress_start(&progress, "tune", 0, missing);
    for (int i = 0; i < asked->n; i++) {
        struct tuning_entry e;
        const struct tuning_question *q = &asked->question[i];
        if (q->entry) continue;
        progress_show(&progress, done++, q->key);
        if (!measure(p, q, context, &e)) {
            log_debug("%s is not measured: %s", q->key, fail_message());
            continue;
        }
        tuning_set(t, &e);
        keep(t, path);
        *ret_more = true;
    }
    progress_end(&progress);
    arena_release(&a);
    return ST_OK;
}

enum status tune_target(const struct config *c, const char *backend, struct target *ret,
                        const struct tuning **ret_tuning, struct arena *a)
{
    struct tuning *t = ARENA_NEW(a, struct tuning, 1);
    TRY(device_target(c, backend, false, ret));
    *ret_tuning = tune_read(c, ret, t, a) ? t : NULL;
    return ST_OK;
}

enum status program_for(struct program *ret, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a)
{
    struct target target;
    const struct tuning *tuning;
    TRY(tune_target(c, backend, &target, &tuning, a));
    return program_compile(ret, c, vocab, &target, tuning, kinds, a);
}
