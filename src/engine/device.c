#include "engine/device.h"

#include "backend/communicator.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/threads.h"
#include "engine/shards.h"

#include <string.h>

/* True if there is a device and its libraries are installed. Warns once if a library is missing. */
static bool is_usable(const struct backend *b)
{
    static bool warned;
    struct device_library l;
    if (!b || b->devices.count() == 0) return false;
    for (int i = 0; backend_library_at(b, i, &l) && l.needed; i++) {
        if (!l.unavailable_because) continue;
        if (!warned)
            log_warning("the CPU is used, not the GPU: %s: %s; %s", l.name, l.unavailable_because,
                        l.consequence);
        warned = true;
        return false;
    }
    return true;
}

const char *device_backend(const struct config *c)
{
    if (c->plan.device == DEVICE_AUTO) return is_usable(backend_find("cuda")) ? "cuda" : "cpu";
    return c->plan.device == DEVICE_CPU ? "cpu" : "cuda";
}

int device_number(const struct config *c)
{
    return c->plan.device >= DEVICE_CUDA_0 ? (int)(c->plan.device - DEVICE_CUDA_0) : 0;
}

static enum status check_there(const struct backend *b, const char *name)
{
    if (!b && !strcmp(name, "cuda"))
        return fail(ST_UNSUPPORTED,
                    "device=cuda: this build has no CUDA backend (it was built without the CUDA "
                    "toolkit's headers); use device=cpu");
    BUG_IF(!b, "there is no backend %s", name);
    return ST_OK;
}

enum status device_of(const struct config *c, struct device *ret)
{
    const char *name = device_backend(c);
    *ret = (struct device){.backend = backend_find(name), .number = device_number(c)};
    return check_there(ret->backend, name);
}

bool device_ranks_sync_on_host(const struct config *c)
{
    return c->ranks.count > 1 && !communicator_is_mpi();
}

enum status device_check(const struct config *c, const struct backend *b, const char *name)
{
    TRY(check_there(b, name));
    if (strcmp(name, "cpu") && c->plan.replay == REPLAY_TRUE && device_ranks_sync_on_host(c))
        return fail(ST_UNSUPPORTED,
                    "replay=true: a captured step cannot wait for ranks = %lld threads; use "
                    "replay=false",
                    (long long)c->ranks.count);
    if (strcmp(name, "cpu")) return ST_OK;
    if (shards_reduce_bf16(c))
        return fail(ST_UNSUPPORTED, "reduce_dtype=bfloat16 needs a GPU for each rank, and this run "
                                    "uses the CPU; use reduce_dtype=float32");
    if (c->plan.dtype == PRECISION_TFLOAT32)
        return fail(ST_UNSUPPORTED,
                    "dtype=tfloat32 needs a CUDA device, and this run uses the CPU; use "
                    "dtype=float32");
    if (c->plan.replay == REPLAY_TRUE)
        return fail(ST_UNSUPPORTED, "replay=true needs a CUDA device, and this run uses the CPU; "
                                    "use replay=false");
    return ST_OK;
}

enum status device_target(const struct config *c, const char *backend, bool there,
                          struct target *ret)
{
    const struct backend *b = backend_find(backend);
    TRY(device_check(c, b, backend));
    TRY(isa_limit(c->plan.isa));
    int number = device_number(c);
    return backend_target(b, there || number < b->devices.count() ? number : TARGET_ANY, ret);
}

enum status device_check_type(const struct config *c, const struct target *target)
{
    const struct backend *b = target->backend;
    enum precision precision = c->plan.dtype;
    static const struct {
        const char *word, *instead;
        enum dtype dtype;
    } of[] = {[PRECISION_FLOAT32] = {"float32", "", DT_F32},
              [PRECISION_TFLOAT32] = {"tfloat32", "float32", DT_F32},
              [PRECISION_BFLOAT16] = {"bfloat16", "float32", DT_BF16},
              [PRECISION_FLOAT8] = {"float8", "bfloat16", DT_E4M3}};
    if (!b->devices.refuses) return ST_OK;
    const char *why =
        b->devices.refuses(target, of[precision].dtype, precision == PRECISION_TFLOAT32);
    if (!why) return ST_OK;
    return fail(ST_UNSUPPORTED, "this device does not support dtype=%s: %s; use dtype=%s",
                of[precision].word, why, of[precision].instead);
}

/* --- checkpoints of other machines ------------------------------------------------------------ */

static void say_adapted(const char *key, const struct config *was, const struct config *now)
{
    struct arena a = {0};
    log_info("%s=%s of the checkpoint is not supported here: %s=%s is used", key,
             config_value_text(was, key, &a), key, config_value_text(now, key, &a));
    arena_release(&a);
}

/* The type of the configuration, or the next more precise one that the device supports. */
static enum precision supported_type(const struct config *c, const struct device *d)
{
    static const enum precision instead[] = {[PRECISION_TFLOAT32] = PRECISION_FLOAT32,
                                             [PRECISION_BFLOAT16] = PRECISION_FLOAT32,
                                             [PRECISION_FLOAT8] = PRECISION_BFLOAT16};
    struct config tried = *c;
    struct target t;
    tried.plan.replay = REPLAY_FALSE;
    if (backend_target(d->backend, d->number, &t) != ST_OK) return c->plan.dtype;
    while (tried.plan.dtype != PRECISION_FLOAT32 && tried.plan.dtype != PRECISION_AUTO &&
           (device_check(&tried, d->backend, device_backend(&tried)) != ST_OK ||
            device_check_type(&tried, &t) != ST_OK))
        tried.plan.dtype = instead[tried.plan.dtype];
    return tried.plan.dtype;
}

void device_adapt(struct config *c, const struct config *trained)
{
    const struct config was = *c;
    struct config_plan *now = &c->plan;
    const struct config_plan *old = &trained->plan;
    struct device d;
    bool named = now->device != DEVICE_AUTO && now->device != DEVICE_CPU;
    if (named && now->device == old->device && !is_usable(backend_find("cuda"))) {
        now->device = DEVICE_AUTO;
        say_adapted("device", &was, c);
    }
    if (now->isa == old->isa && isa_check(now->isa, isa_widest()) != ST_OK) {
        now->isa = ISA_AUTO;
        say_adapted("isa", &was, c);
    }
    if (now->threads == old->threads && now->threads > threads_available()) {
        now->threads = 0;
        say_adapted("threads", &was, c);
    }
    if (device_of(c, &d) != ST_OK) return; /* opening the device reports the reason */
    bool replays = d.backend->recording && !device_ranks_sync_on_host(c);
    if (now->replay == REPLAY_TRUE && old->replay == REPLAY_TRUE && !replays) {
        now->replay = REPLAY_FALSE;
        say_adapted("replay", &was, c);
    }
    if (now->dtype == old->dtype) now->dtype = supported_type(c, &d);
    if (now->dtype != was.plan.dtype) say_adapted("dtype", &was, c);
}
