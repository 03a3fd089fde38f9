#include "config/fields.h"

#include "base/str.h"

#include <string.h>
#include <strings.h>

/* A key or value that users of nanoGPT, PyTorch or CS336's assignments write and that Strobe does
 * not have. */
struct word {
    const char *key;
    const char *value;  /* in upper or lower case; NULL: any value */
    const char *as;     /* Strobe's value; "": the key is ignored; NULL: key or value is refused */
    const char *advice; /* the message if refused: why, and what to write instead */
};

static const char devices[] = "Strobe runs on CPUs and NVIDIA GPUs; write --device=cpu or "
                              "--device=cuda";

static const char half[] = "Strobe has no float16; leave dtype out: bfloat16, which needs no "
                           "scaling of the loss, or float32 is chosen for the device";

/* The first row that matches a key and its value is used. */
static const struct word words[] = {
    {"compile", NULL, "", NULL},
    {"backend", NULL, "", NULL},
    {"wandb_log", NULL, "", NULL},
    {"wandb_project", NULL, "", NULL},
    {"wandb_run_name", NULL, "", NULL},
    {"always_save_checkpoint", NULL, "", NULL},
    {"eval_only", "false", "", NULL},
    {"eval_only", NULL, NULL,
     "eval_only is a command here: `strobe eval RUN` prints the loss of a checkpoint on both "
     "splits, `strobe eval gpt2 --dataset=NAME` that of GPT-2"},
    {"dtype", "bf16", "bfloat16", NULL},
    {"dtype", "fp32", "float32", NULL},
    {"dtype", "tf32", "tfloat32", NULL},
    {"dtype", "fp8", "float8", NULL},
    {"dtype", "float16", NULL, half},
    {"dtype", "fp16", NULL, half},
    {"device", "gpu", "cuda", NULL},
    {"device", "mps", NULL, devices},
    {"device", "xpu", NULL, devices},
    {"device", "rocm", NULL, devices},
    {"lr", NULL, NULL, "lr is called learning_rate here"},
    {"context_length", NULL, NULL, "context_length is called block_size here"},
    {"d_model", NULL, NULL, "d_model is called n_embd here"},
    {"num_layers", NULL, NULL, "num_layers is called n_layer here"},
    {"num_heads", NULL, NULL, "num_heads is called n_head here"},
};

static bool is_key(const struct word *w, const char *key, int64_t length)
{
    return (int64_t)strlen(w->key) == length && !memcmp(w->key, key, (size_t)length);
}

bool nanogpt_is_key(const char *key, int64_t length)
{
    for (int i = 0; i < COUNT_OF(words); i++)
        if (is_key(&words[i], key, length)) return true;
    return false;
}

bool nanogpt_ignores(const char *key, int64_t length, uint64_t *ignored)
{
    _Static_assert(COUNT_OF(words) <= 64, "a bit for each row");
    for (int i = 0; i < COUNT_OF(words); i++) {
        const struct word *w = &words[i];
        if (!is_key(w, key, length) || w->value || !w->as || *w->as) continue;
        *ignored |= UINT64_C(1) << i;
        return true;
    }
    return false;
}

void nanogpt_print_ignored(uint64_t ignored, struct str *s)
{
    for (int i = 0; i < COUNT_OF(words); i++)
        if (ignored >> i & 1) str_printf(s, "%s%s", s->len ? ", " : "", words[i].key);
}

enum status nanogpt_translate(const char *key, int64_t length, const char **value)
{
    for (int i = 0; i < COUNT_OF(words); i++) {
        const struct word *w = &words[i];
        if (!is_key(w, key, length)) continue;
        if (w->value && strcasecmp(w->value, *value)) continue;
        if (!w->as) return fail(ST_USAGE, "%s", w->advice);
        *value = w->as;
        return ST_OK;
    }
    return ST_OK;
}
