/* hf.h - writes a small GPT-2 as a Hugging Face folder, of which a test can change each part. */
#ifndef SUPPORT_HF_H
#define SUPPORT_HF_H

#include "data/safetensors.h"

enum { HF_LAYERS = 2, HF_EMBD = 8, HF_POSITIONS = 6, HF_VOCAB = 11, HF_TENSORS = 28 };

/* Zero the struct before hf_init. */
struct hf {
    struct arena arena;
    struct {
        const char *key, *value; /* JSON */
    } key[32];
    int keys;
    struct safetensor tensor[48]; /* with "transformer." before the names */
    int tensors;
};

/* A model and its config.json. The values are exact in float16 and bfloat16. */
void hf_init(struct hf *h);
void hf_release(struct hf *h);
/* Sets a key of config.json; NULL removes it. */
void hf_set(struct hf *h, const char *key, const char *value);
const char *hf_config(struct hf *h);
/* The tensor of this name, without "transformer."; it must exist. */
struct safetensor *hf_tensor(struct hf *h, const char *name);
void hf_remove(struct hf *h, const char *name);
/* `name` is the whole name. */
struct safetensor *hf_add(struct hf *h, const char *name, enum safetensors_type type, int rank,
                          const int64_t *dim, const void *data);
/* Turns the F32 values of a tensor into F16 or BF16. */
void hf_narrow(struct hf *h, struct safetensor *t, enum safetensors_type type);
/* Writes config.json and model.safetensors. */
void hf_write(struct hf *h, const char *folder);
void hf_write_config(struct hf *h, const char *folder);
/* Writes the tensors from ... to - 1 to a file. */
void hf_write_tensors(struct hf *h, const char *folder, const char *name, int from, int to);

#endif
