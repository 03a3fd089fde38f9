#include "engine/tune.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/trust.h"
#include "engine/device.h"

#include <stdio.h>
#include <string.h>

bool tune_read(const struct config *c, const struct target *target, struct tuning *ret,
               struct arena *a)
{
    const char *why = NULL;
    tuning_init(ret, target, a);
    if (c->plan.tune == TUNE_OFF || !target->backend->kernels.tune) return false;
    const char *path = tuning_path(target->name, a);
    static bool warned;
    if (!path || !trust_path(path, &warned, a, &path) || !file_exists(path)) return true;
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

static enum status write_trusted(const char *path, const struct tuning *t, struct arena *a)
{
    TRY(trust_parent(path, a, &path));
    return tuning_write(path, t);
}

/* If the file cannot be written, the next run of the program repeats the measurements. */
static void keep(const struct tuning *t, const char *path)
{
    struct arena a = {0};
    if (path && write_trusted(path, t, &a) != ST_OK)
        log_debug("the tuning table is not kept: %s", fail_message());
    arena_release(&a);
}

static bool measure(const struct program *p, const struct tuning_lookup *q, void *context,
                    struct tuning_entry *ret)
{
    struct kernel_call call = {.attr = &q->attr,
                               .numerics = q->numerics,
                               .n_in = q->n_in,
                               .n_out = q->n_out,
                               .context = context,
                               .target = p->target};
    memcpy(call.in_type, q->in_type, sizeof q->in_type);
    memcpy(call.out_type, q->out_type, sizeof q->out_type);
    return p->target->backend->kernels.tune(context, (int)q->op, &call, ret) == ST_OK;
}

/* Returns the number of entries measured. */
static int measure_missing(const struct program *p, void *context, struct tuning *t)
{
    struct arena a = {0};
    struct progress progress;
    const struct tuning_lookups *lookups = &p->lookups;
    const char *path = tuning_path(p->target->name, &a);
    int missing = tuning_missing(lookups), done = 0, measured = 0;
    log_info("tuning %d matmul%s for %s%s%s", missing, missing == 1 ? "" : "s", p->target->name,
             path ? "; the times are kept in " : "", path ? path : "");
    name_driver(t);
    progress_start(&progress, "tune", 0, missing);
    for (int i = 0; i < lookups->n; i++) {
        struct tuning_entry e;
        const struct tuning_lookup *q = &lookups->lookup[i];
        if (q->entry) continue;
        progress_show(&progress, done++, q->key);
        if (!measure(p, q, context, &e)) {
            log_debug("%s is not measured: %s", q->key, fail_message());
            continue;
        }
        tuning_set(t, &e);
        keep(t, path);
        measured++;
    }
    progress_end(&progress);
    arena_release(&a);
    return measured;
}

/* The key of the first lookup without an entry; there must be one. */
static const char *first_missing(const struct tuning_lookups *q)
{
    int i = 0;
    while (q->lookup[i].entry) i++;
    return q->lookup[i].key;
}

/* New entries can change which operators the passes fuse, and so which matmuls are looked up. Two
 * or three rounds suffice. More than ROUNDS indicate a bug, such as an entry that is measured under
 * one key and looked up under another. */
enum { ROUNDS = 8 };

enum status tune_program(struct program *p, unsigned kinds, void *context, struct tuning *t,
                         struct arena *a)
{
    for (int round = 0; p->tuning && tuning_missing(&p->lookups); round++) {
        if (round == ROUNDS)
            return fail(ST_UNSUPPORTED,
                        "tuning does not settle: after %d rounds %d matmuls, such as %s, are still "
                        "not in the table; use tune=off",
                        ROUNDS, tuning_missing(&p->lookups), first_missing(&p->lookups));
        if (!measure_missing(p, context, t)) break;
        struct target target = *p->target;
        TRY(program_compile(p, p->config, p->model.vocab, &target, t, kinds, a));
    }
    return ST_OK;
}

/* The fastest variant except the chosen one; NULL: there is none. */
static const struct tuning_candidate *next_of(const struct tuning_lookup *q)
{
    for (int i = 0; q->entry && i < q->entry->n; i++)
        if (strcmp(q->entry->candidate[i].variant, q->chosen) != 0) return &q->entry->candidate[i];
    return NULL;
}

static const char *chosen_of(const struct tuning_lookup *q)
{
    return *q->chosen ? q->chosen : "none";
}

void tune_print(const struct program *p, struct str *s)
{
    const struct tuning_lookups *lookups = &p->lookups;
    int missing = tuning_missing(lookups), width = 6;
    if (!lookups->n) return;
    for (int i = 0; i < lookups->n; i++) {
        int length = (int)strlen(lookups->lookup[i].key);
        if (length > width) width = length;
    }
    str_printf(s, "\n# tuning, %d matmuls: %d measured, %d by default\n", lookups->n,
               lookups->n - missing, missing);
    str_printf(s, "%-*s %-10s %10s %8s   %s\n", width, "matmul", "chosen", "us", "spread",
               "fastest other");
    for (int i = 0; i < lookups->n; i++) {
        const struct tuning_lookup *q = &lookups->lookup[i];
        const struct tuning_candidate *chosen = tuning_candidate(q->entry, q->chosen);
        const struct tuning_candidate *next = next_of(q);
        str_printf(s, "%-*s %-10s", width, q->key, chosen_of(q));
        if (chosen) str_printf(s, " %10.2f %8.2f", chosen->us, chosen->spread_us);
        if (next) str_printf(s, "   %s %.2f", next->variant, next->us);
        str_append(s, q->entry ? "\n" : " not measured\n");
    }
}

json_t *tune_json(const struct program *p)
{
    json_t *all = json_array();
    for (int i = 0; i < p->lookups.n; i++) {
        const struct tuning_lookup *q = &p->lookups.lookup[i];
        json_t *candidates = json_array();
        for (int k = 0; q->entry && k < q->entry->n; k++) {
            const struct tuning_candidate *c = &q->entry->candidate[k];
            json_array_append_new(candidates, json_pack("{s:s, s:f, s:f}", "variant", c->variant,
                                                        "us", c->us, "spread_us", c->spread_us));
        }
        json_t *one = json_pack("{s:s, s:s, s:b, s:o}", "matmul", q->key, "taken", chosen_of(q),
                                "measured", q->entry != NULL, "candidates", candidates);
        if (*q->launch) json_object_set_new(one, "launch", json_string(q->launch));
        json_array_append_new(all, one);
    }
    return all;
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
