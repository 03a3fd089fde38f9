#include "exchange/published.h"

#include "base/file.h"
#include "base/log.h"
#include "data/download.h"
#include "exchange/huggingface.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct published {
    const char *name;
    double loss; /* validation loss on OpenWebText, from nanoGPT's README */
    int64_t n_layer, n_head, n_embd;
    struct remote_file weights;
};

/* Each address contains the revision, so the file at the address never changes. */
#define HUB                     "https://huggingface.co/openai-community/"
#define WEIGHTS(name, revision) HUB name "/resolve/" revision "/model.safetensors"

static const struct published models[] = {
    {"gpt2",
     3.12,
     12,
     12,
     768,
     {WEIGHTS("gpt2", "607a30d783dfa663caf39e06633721c8d4cfcd7e"),
      "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707", 548105171, false}},
    {"gpt2-medium",
     2.84,
     24,
     16,
     1024,
     {WEIGHTS("gpt2-medium", "6dcaa7a952f72f9298047fd5137cd6e4f05f41da"),
      "fc5a354a19255ad494f3d71549390baca1ccf61d1d822b9408971705c687c9cd", 1519984962, false}},
    {"gpt2-large",
     2.67,
     36,
     20,
     1280,
     {WEIGHTS("gpt2-large", "32b71b12589c2f8d625668d2335a01cac3249519"),
      "5f47f3e12f91cd33b662ce7e433b6150ad5512b5884a2cee961b50e9c3bbebce", 3247159078, true}},
    {"gpt2-xl",
     2.54,
     48,
     25,
     1600,
     {WEIGHTS("gpt2-xl", "15ea56dee5df4983c59b2538573817e1667135e2"),
      "0f8b28eb05a8075f48b61b6f35332978c74fc7763fa9fb4051a1c30511736a6a", 6431829964, true}},
};

const struct published *published_find(const char *name)
{
    for (int i = 0; i < COUNT_OF(models); i++)
        if (!strcmp(models[i].name, name)) return &models[i];
    return NULL;
}

const char *published_names(struct arena *a)
{
    const char *names = "";
    for (int i = 0; i < COUNT_OF(models); i++)
        names = arena_printf(a, "%s%s%s", names, *names ? ", " : "", models[i].name);
    return names;
}

double published_loss(const char *name)
{
    const struct published *p = published_find(name);
    return p ? p->loss : NAN;
}

void published_config(const struct published *p, struct config_model *ret)
{
    struct config c;
    config_init(&c);
    c.model.n_layer = p->n_layer;
    c.model.n_head = p->n_head;
    c.model.n_embd = p->n_embd;
    c.model.block_size = 1024;
    c.model.vocab_size = 50257;
    c.model.bias = true;
    c.model.gelu = GELU_TANH;
    *ret = c.model;
}

static bool has_weights(const char *folder, struct arena *a)
{
    return file_exists(arena_printf(a, "%s/model.safetensors", folder)) ||
           file_exists(arena_printf(a, "%s/model.safetensors.index.json", folder));
}

/* The folder of Hugging Face's downloads; NULL: none. */
static const char *hub_folder(struct arena *a)
{
    const char *hub = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME"), *user = getenv("HOME");
    if (hub && *hub) return hub;
    if (home && *home) return arena_printf(a, "%s/hub", home);
    return user && *user ? arena_printf(a, "%s/.cache/huggingface/hub", user) : NULL;
}

/* The folder of the snapshot of branch main in Hugging Face's cache; NULL: there is no such
 * snapshot, or it does not have the weights. */
static const char *in_hub(const struct published *p, struct arena *a)
{
    static const char *const owners[] = {"openai-community--", ""}; /* now; before 2024 */
    const char *hub = hub_folder(a);
    for (int i = 0; hub && i < COUNT_OF(owners); i++) {
        char revision[64];
        const char *model = arena_printf(a, "%s/models--%s%s", hub, owners[i], p->name);
        if (!file_peek(arena_printf(a, "%s/refs/main", model), revision, sizeof revision)) continue;
        revision[strspn(revision, "0123456789abcdef")] = '\0';
        const char *folder = arena_printf(a, "%s/snapshots/%s", model, revision);
        if (has_weights(folder, a) && file_exists(arena_printf(a, "%s/config.json", folder)))
            return folder;
    }
    return NULL;
}

static enum status fetch(const struct published *p, const char *folder, struct arena *a)
{
    const char *path = arena_printf(a, "%s/model.safetensors", folder);
    TRY(file_make_dirs(folder));
    log_info("downloading %s (%.1f GB) into %s", p->name, (double)p->weights.bytes / 1e9, folder);
    enum status st = download(&p->weights, path);
    if (st == ST_OK) return ST_OK;
    return fail_in(st,
                   "no weights of %s: put model.safetensors of "
                   "https://huggingface.co/openai-community/%s into %s by hand, or name a folder "
                   "that has it together with config.json",
                   p->name, p->name, folder);
}

bool published_is_remote(const struct published *p, const char **ret_words, struct arena *a)
{
    const char *cache = file_cache_folder(a);
    if (in_hub(p, a) || (cache && has_weights(arena_printf(a, "%s/%s", cache, p->name), a)))
        return false;
    *ret_words = arena_printf(a,
                              "%s is not on this machine; its first use, as in `strobe sample %s`, "
                              "downloads %s (%.1f GB) into %s/%s",
                              p->name, p->name, p->weights.url, (double)p->weights.bytes / 1e9,
                              cache ? cache : "the cache", p->name);
    return true;
}

enum status published_get(const struct published *p, const char **ret_folder, struct arena *a)
{
    const char *cache = file_cache_folder(a), *found = in_hub(p, a);
    if (!cache && found) {
        *ret_folder = found;
        return ST_OK;
    }
    if (!cache) return fail(ST_IO, "there is no folder for the cache: HOME is not set");
    const char *folder = arena_printf(a, "%s/%s", cache, p->name);
    const char *config = arena_printf(a, "%s/config.json", folder);
    struct config_model model;
    *ret_folder = folder;
    if (!has_weights(folder, a)) {
        if (found) *ret_folder = found;
        if (found) return ST_OK;
        TRY(fetch(p, folder, a));
    }
    if (file_exists(config)) return ST_OK;
    published_config(p, &model);
    return huggingface_write_config(&(struct config){.model = model}, config);
}
