/* ckpt.h - writes a small ckpt.pt of nanoGPT (names, shapes and groups as in its model.py), of
 * which a test can change each part. */
#ifndef SUPPORT_CKPT_H
#define SUPPORT_CKPT_H

#include "exchange/torch_write.h"

enum { CKPT_LAYERS = 2, CKPT_HEADS = 3, CKPT_EMBD = 9, CKPT_POSITIONS = 5, CKPT_VOCAB = 11 };
enum { CKPT_ITER_NUM = 7, CKPT_TENSORS_MOST = 64, CKPT_MOMENTS = 2 };

/* Pickle instructions that create one value. `bytes` NULL: the value of the model; n 0: neither the
 * value nor its key is written. */
struct ckpt_value {
    const char *bytes;
    int64_t n;
};
#define CKPT_VALUE(text)          \
    (struct ckpt_value)           \
    {                             \
        text, sizeof(text "") - 1 \
    }
#define CKPT_NOTHING CKPT_VALUE("")

/* CKPT_STORAGE begins the pickle instructions of a tensor, with its storage; CKPT_END ends them. */
#define CKPT_STORAGE(class, key, elements)                                                        \
    "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\n" class "\n" key                \
                                                                          "X\3\0\0\0cpu" elements \
                                                                          "tQ"
#define CKPT_KEY(digit) "X\1\0\0\0" digit
#define CKPT_END \
    "\x89"       \
    "ccollections\nOrderedDict\n)RtR"
/* Storage 0 has CKPT_ITER_NUM as a float, 1 has 2.5; neither belongs to a parameter. */
#define CKPT_SCALAR(key) CKPT_STORAGE("FloatStorage", CKPT_KEY(key), "K\1") "K\0))" CKPT_END

struct ckpt_tensor {
    const char *name;
    enum safetensors_type type;
    int rank;
    int64_t dim[4];
    const float *data;     /* fp32 values, which are written as `type` */
    const char *same_as;   /* shares the storage of the tensor of this name */
    struct ckpt_value raw; /* pickle instructions to write instead of this tensor */
};

enum ckpt_part {
    CKPT_ROOT,
    CKPT_MODEL,
    CKPT_OPTIMIZER,
    CKPT_STATE,
    CKPT_GROUPS,
    CKPT_ARGS,
    CKPT_ITER,
    CKPT_BEST,
    CKPT_STEP, /* of each parameter */
    CKPT_PARTS,
};

/* Zero the struct before ckpt_init. */
struct ckpt {
    struct arena arena;
    struct ckpt_value part[CKPT_PARTS];
    struct {
        const char *key;
        struct ckpt_value value;
    } arg[12];
    int args;
    struct ckpt_tensor tensor[CKPT_TENSORS_MOST];
    int tensors;
    bool bias;
};

/* Values are multiples of 1/64 between -2 and 2, which are exact in float16 and bfloat16. All
 * tensors and moments have different values. */
void ckpt_init(struct ckpt *c, bool bias);
void ckpt_release(struct ckpt *c);
/* Sets a key of model_args; adds the key if it is new. */
void ckpt_set(struct ckpt *c, const char *key, struct ckpt_value value);
/* The tensor of this name, without "transformer."; it must exist. */
struct ckpt_tensor *ckpt_tensor(struct ckpt *c, const char *name);
void ckpt_remove(struct ckpt *c, const char *name);
struct ckpt_tensor *ckpt_add(struct ckpt *c, const char *name, int rank, const int64_t *dim);
/* Puts `prefix` before all names. */
void ckpt_prefix(struct ckpt *c, const char *prefix);
/* Moment 1 or 2 of a tensor: the values of the file, in their order. */
const float *ckpt_moment(struct ckpt *c, const struct ckpt_tensor *t, int moment);
int64_t ckpt_elements(const struct ckpt_tensor *t);
void ckpt_write(struct ckpt *c, const char *path);
/* Only the dictionary of weights, as torch.save(model.state_dict()) writes it. */
void ckpt_write_weights(struct ckpt *c, const char *path);

#endif
