#include "cli/variants.h"

#include "backend/backend.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/planned.h"
#include "engine/device.h"
#include "engine/fit.h"
#include "engine/tune.h"
#include "machine/machine.h"
#include "model/model.h"

#include <limits.h>
#include <string.h>

/* Of a process on a GPU besides its plans: context, libraries, compiled kernels. */
static const int64_t CONTEXT_BYTES = 1 << 30;

bool variants_wanted(int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++)
        if (config_is_override(argv[i]) && bench_is_list(argv[i])) return true;
    return false;
}

static enum status sort_words(struct variants *v, int argc, char **argv, struct arena *a)
{
    v->common = ARENA_NEW(a, char *, argc + 1);
    for (int i = 0; i < argc; i++)
        if (bench_is_list(argv[i]))
            TRY(bench_add_axis(&v->grid, argv[i], a));
        else
            v->common[v->commons++] = argv[i];
    if (v->grid.axes) return ST_OK;
    return fail(ST_USAGE,
                "nothing to compare; give a key several values, as in --flash=false,true");
}

/* Variant `n` of the Cartesian product. */
static void make_variant(struct variants *all, int n, struct arena *a)
{
    struct variant *v = &all->variant[n];
    v->name = "";
    for (int i = all->grid.axes - 1; i >= 0; i--) {
        const struct bench_axis *x = &all->grid.axis[i];
        const char *word = arena_printf(a, "%s=%s", x->key, x->value[n % x->values]);
        v->name = *v->name ? arena_printf(a, "%s,%s", word, v->name) : word;
        v->word[i] = arena_printf(a, "--%s", word);
        n /= x->values;
    }
    char *folder = arena_strdup(a, v->name);
    for (char *c = folder; *c; c++)
        if (*c == '/') *c = '_'; /* of init_from=runs/base */
    v->folder = folder;
    v->dir = arena_printf(a, "%s/%s", all->config.train.out_dir, folder);
}

enum status variants_read(struct variants *v, int argc, char **argv, struct arena *a)
{
    *v = (struct variants){0};
    TRY(sort_words(v, argc, argv, a));
    TRY(command_read_config(&v->config, v->commons, v->common, true, a));
    const char **folder = &v->config.train.out_dir;
    if (file_exists(
            arena_printf(a, "%s/config.conf",
                         *folder))) { /* its page would be replaced by that of the variants */
        const char *beside = arena_printf(a, "%s-variants", *folder);
        log_info("%s is a run itself; the variants are in %s", *folder, beside);
        *folder = beside;
    }
    int n = 1;
    for (int i = 0; i < v->grid.axes; i++) {
        n *= v->grid.axis[i].values;
        if (n > VARIANTS_MOST)
            return fail(ST_USAGE, "more than %d runs; vary fewer keys or values", VARIANTS_MOST);
    }
    for (; v->n < n; v->n++) make_variant(v, v->n, a);
    return ST_OK;
}

enum status variants_config(const struct variants *v, int i, struct config *ret, struct arena *a)
{
    const struct variant *x = &v->variant[i];
    char **word = ARENA_NEW(a, char *, v->commons + v->grid.axes + 1);
    int words = 0;
    for (int k = 0; k < v->commons; k++) word[words++] = v->common[k];
    for (int k = 0; k < v->grid.axes; k++) word[words++] = x->word[k];
    TRY(command_read_config(ret, words, word, true, a));
    TRY(model_check(ret));
    TRY(machine_choose(ret, NULL, false, a));
    if (strlen(x->folder) > NAME_MAX)
        return fail(ST_USAGE, "%s is too long for the name of a folder; choose shorter values",
                    x->folder);
    for (int k = 0; k < i; k++)
        if (!strcmp(v->variant[k].folder, x->folder))
            return fail(ST_USAGE, "%s and %s would have the same folder, %s; rename one of them",
                        v->variant[k].name, x->name, x->folder);
    return ST_OK;
}

enum status variants_plan(struct variants *v, int i, const struct config *c, unsigned kinds,
                          struct arena *a)
{
    struct variant *x = &v->variant[i];
    struct program p;
    struct arena scratch = {0};
    int64_t vocab;
    TRY(device_of(c, &x->device));
    TRY(planned_vocabulary(c, 0, &vocab, a));
    enum status st = program_for(&p, c, vocab, kinds, device_backend(c), &scratch);
    if (st == ST_OK) {
        bool host = x->device.backend->host_memory;
        x->bytes = program_bytes(&p);
        x->bytes += host ? fit_host_bytes(&p, false, c->plan.threads, 1) : CONTEXT_BYTES;
    }
    arena_release(&scratch);
    return st;
}

char **variants_words(const struct variants *v, int i, const char *command, char *const *word,
                      int n, struct arena *a)
{
    const struct variant *x = &v->variant[i];
    char **all = ARENA_NEW(a, char *, n + v->grid.axes + 4);
    int words = 0;
    all[words++] = "strobe";
    all[words++] = arena_strdup(a, command);
    for (int k = 0; k < n; k++) all[words++] = word[k];
    for (int k = 0; k < v->grid.axes; k++) all[words++] = x->word[k];
    all[words++] = arena_printf(a, "--out_dir=%s", x->dir);
    return all;
}

bool variants_fit(const struct variants *v)
{
    for (int i = 0; i < v->n; i++) {
        const struct device *d = &v->variant[i].device;
        int64_t sum = 0, room = device_room(d);
        for (int k = 0; k < v->n; k++) {
            const struct device *e = &v->variant[k].device;
            if (e->backend == d->backend && e->number == d->number) sum += v->variant[k].bytes;
        }
        if (room >= 0 && sum > room) return false;
    }
    return true;
}
