/* Values for keys that are left at auto, by the device and the record of its peaks. */
#include "base/arena.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "engine/device.h"
#include "machine/machine.h"
#include "model/model.h"

#include <string.h>

/* Without oneDNN, a CPU has no fast matmuls in bfloat16. The peaks of some CPUs are lower in
 * bfloat16 than in float32, although they have its instructions. */
static bool host_bfloat16_is_faster(const struct config *c, const struct device *d, struct arena *a)
{
    struct machine m;
    if (!d->backend->kernels.library_isa() || !isa_bf16_is_fast()) return false;
    return !machine_find(&m, d, c->plan.threads, a) || !machine_has_slow_bf16(&m);
}

static bool bfloat16_is_faster(const struct config *c, const struct device *d, struct arena *a)
{
    const struct backend *b = d->backend;
    struct target t;
    if (b->host_memory) return host_bfloat16_is_faster(c, d, a);
    int there = d->number < b->devices.count() ? d->number : TARGET_ANY;
    return backend_target(b, there, &t) == ST_OK && !b->devices.refuses(&t, DT_BF16, false);
}

/* One line: the features that were auto and are used, and how to do without them. */
static void say_chosen(const struct config *was, const struct config *now, struct arena *a)
{
    static const struct {
        const char *key, *without;
    } all[] = {{"dtype", "float32"}, {"replay", "false"}, {"pad_vocab", "0"}};
    struct str what = {0}, instead = {0};
    for (int i = 0; i < COUNT_OF(all); i++) {
        const char *used = config_value_text(now, all[i].key, a);
        bool chosen = strcmp(config_value_text(was, all[i].key, a), "auto") == 0;
        if (!chosen || !strcmp(used, all[i].without)) continue;
        str_printf(&what, "%s%s=%s", what.len ? ", " : "", all[i].key, used);
        str_printf(&instead, " --%s=%s", all[i].key, all[i].without);
    }
    if (what.len)
        log_info("chosen for speed: %s; to override,%s", str_text(&what), str_text(&instead));
    str_release(&what);
    str_release(&instead);
}

enum status machine_choose(struct config *c, const struct config *before, bool say, struct arena *a)
{
    const struct config was = *c;
    struct device d;
    if (c->plan.dtype != PRECISION_AUTO && c->plan.replay != REPLAY_AUTO &&
        c->model.pad_vocab != CONFIG_AUTO)
        return ST_OK;
    TRY(isa_limit(c->plan.isa));
    TRY(device_of(c, &d));
    struct config_facts by = {
        .captures = d.backend->recording,
        .bfloat16_is_faster = c->plan.dtype == PRECISION_AUTO && bfloat16_is_faster(c, &d, a),
        .padding_pays = !d.backend->host_memory && model_reads(&c->model, "pad_vocab"),
        .ranks_sync_on_host = device_ranks_sync_on_host(c),
        .before = before};
    config_choose(c, &by);
    if (say && !before) say_chosen(&was, c, a);
    return ST_OK;
}
