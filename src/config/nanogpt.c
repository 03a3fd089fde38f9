#include "config/fields.h"

#include <string.h>
#include <strings.h>

/* A word that users of nanoGPT, of PyTorch or of CS336's assignments write and that is not in the
 * table of keys. */
struct word {
    const char *key;
    const char *value; /* whatever its case; "gpt2*": all that begin so; NULL: any other value */
    /* The value in Strobe; "": the key asks for what Strobe does anyway; NULL: refused. */
    const char *as;
    const char *advice; /* why it is refused, and what to write instead */
};

static const char logs[] = "every run has log.jsonl and, from `strobe report RUN`, curves in "
                           "report.html; leave wandb_log out";
static const char devices[] = "Strobe runs on CPUs and NVIDIA GPUs; write --device=cpu or "
                              "--device=cuda";

/* The first row of a key and a value counts. */
static const struct word words[] = {
    {"compile", "true", "", NULL},
    {"compile", NULL, NULL,
     "compile is called fusion here: fusion=full (the default) works across operations as "
     "torch.compile does, fusion=op runs a kernel for each layer operation as PyTorch does without "
     "it; leave compile out"},
    {"wandb_log", "false", "", NULL},
    {"wandb_log", NULL, NULL, logs},
    {"wandb_project", NULL, "", NULL},
    {"wandb_run_name", NULL, "", NULL},
    {"eval_only", "false", "", NULL},
    {"eval_only", NULL, NULL,
     "eval_only is a command here: `strobe eval RUN` prints the loss of a checkpoint on both "
     "splits"},
    {"always_save_checkpoint", NULL, "", NULL},
    {"backend", NULL, NULL,
     "backend is for nanoGPT's training on several GPUs; Strobe trains on one device, which "
     "device=auto, cpu or cuda:N chooses; leave backend out"},
    {"dtype", "bf16", "bfloat16", NULL},
    {"dtype", "fp32", "float32", NULL},
    {"dtype", "tf32", "tfloat32", NULL},
    {"dtype", "fp8", "float8", NULL},
    {"dtype", "float16", NULL,
     "dtype=float16 is not there; use dtype=bfloat16, which is as small and needs no scaling of "
     "the loss"},
    {"dtype", "fp16", NULL,
     "dtype=fp16 is not there; use dtype=bfloat16, which is as small and needs no scaling of the "
     "loss"},
    {"device", "gpu", "cuda", NULL},
    {"device", "mps", NULL, devices},
    {"device", "xpu", NULL, devices},
    {"device", "rocm", NULL, devices},
    {"lr", NULL, NULL, "lr is called learning_rate here"},
    {"context_length", NULL, NULL, "context_length is called block_size here"},
    {"d_model", NULL, NULL, "d_model is called n_embd here"},
    {"num_layers", NULL, NULL, "num_layers is called n_layer here"},
    {"num_heads", NULL, NULL, "num_heads is called n_head here"},
    {"init_from", "gpt2*", NULL,
     "init_from is scratch or resume; published weights of GPT-2 cannot be loaded"},
};

static bool is_value(const char *pattern, const char *value)
{
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*') return !strncasecmp(pattern, value, n - 1);
    return !strcasecmp(pattern, value);
}

bool nanogpt_is_key(const char *key, int64_t length)
{
    for (int i = 0; i < COUNT_OF(words); i++)
        if ((int64_t)strlen(words[i].key) == length && !memcmp(words[i].key, key, (size_t)length))
            return true;
    return false;
}

enum status nanogpt_take(const char *key, int64_t length, const char **value)
{
    for (int i = 0; i < COUNT_OF(words); i++) {
        const struct word *w = &words[i];
        if ((int64_t)strlen(w->key) != length || memcmp(w->key, key, (size_t)length)) continue;
        if (w->value && !is_value(w->value, *value)) continue;
        if (!w->as) return fail(ST_USAGE, "%s", w->advice);
        *value = w->as;
        return ST_OK;
    }
    return ST_OK;
}
