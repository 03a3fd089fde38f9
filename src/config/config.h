/* config.h - what a run is asked to do: plain structs, one per concern, filled from one table of keys.
 *
 * A file has `key = value` lines, `#` comments and, before all keys, at most one `include = other.conf`
 * (relative to the file); overrides are the same words as --key=value. Text may stand in quotes, and has
 * the escapes \n, \t, \r, \", \', \# and \\. Keys and defaults are nanoGPT's wherever it has
 * one. The table is fields.c; `strobe config`, docs/CONFIG.md and the copy kept with a run come from it. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/isa.h"

struct str;

enum model_kind {
    MODEL_GPT,
    MODEL_CS336,
    MODEL_ATTENTION_BLOCK,
    MODEL_ELU,
    MODEL_TOY,
    MODEL_COUNT
};
extern const char *const model_words[]; /* "gpt" ...; ends with NULL */
enum gelu { GELU_ERF, GELU_TANH };
/* DEVICE_CUDA_0 + n: the GPU of that number; DEVICE_CUDA: the first. */
enum device_kind { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA, DEVICE_CUDA_0 };
enum precision {
    PRECISION_FLOAT32,
    PRECISION_TFLOAT32,
    PRECISION_BFLOAT16,
    PRECISION_FLOAT8 /* bfloat16, and products of blocks in 8 bits */
};
static inline bool precision_is_mixed(enum precision p)
{
    return p == PRECISION_BFLOAT16 || p == PRECISION_FLOAT8;
}
/* Of the gradients that products of 8 bits read. */
enum float8 { FLOAT8_E5M2, FLOAT8_E4M3 };
enum fusion { FUSION_PRIMITIVE, FUSION_OP, FUSION_FULL };
enum packing { PACKING_AUTO, PACKING_FALSE, PACKING_TRUE };
enum tune { TUNE_AUTO, TUNE_OFF };
/* RECOMPUTE_BLOCK + n - 1: n blocks at a time. */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_GELU, RECOMPUTE_BLOCK };
enum { RECOMPUTE_MOST = 1024 }; /* blocks */
/* The table of optimizers is train/optim.c, in this order. */
enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_COUNT };
extern const char *const optimizer_words[]; /* "adamw" ...; ends with NULL */
enum init_from { INIT_SCRATCH, INIT_RESUME };

struct config_model {
    enum model_kind kind; /* the table is model/model.c */
    int64_t n_layer, n_head, n_embd, block_size;
    int64_t n_kv_head; /* heads of keys and values, a divisor of n_head; 0: n_head of them */
    double dropout;
    bool bias;
    enum gelu gelu;
    int64_t d_ff; /* channels between the products of the feed-forward layer; 0: 4 n_embd */
    double rope_theta;
    int64_t
        vocab_size; /* rows of the token table, at least as many as the text has tokens; 0: those */
    int64_t pad_vocab; /* the vocabulary is rounded up to a multiple; 0: not at all */
};

enum { BATCH_SIZE_MOST = 65536 };

struct config_data {
    const char *dataset;  /* a folder of data_dir */
    const char *data_dir; /* "data" */
    int64_t batch_size;
};

struct config_train {
    const char *out_dir; /* the run directory */
    enum init_from init_from;
    int64_t seed;
    int64_t max_iters, eval_interval, eval_iters, log_interval;
    int64_t sample_interval; /* milliseconds; 0: the device is not asked */
    int64_t gradient_accumulation_steps;
    enum optimizer_kind optimizer;
    double learning_rate, min_lr, weight_decay, beta1, beta2, momentum, grad_clip;
    bool decay_lr;
    int64_t warmup_iters, lr_decay_iters;
    bool check_nan;
};

struct config_plan {
    enum device_kind device;
    enum precision dtype;
    enum float8 float8_gradients;
    enum fusion fusion;
    bool flash, replay, deterministic;
    bool hopper;               /* kernels for compute capability 9.0 alone may be taken */
    enum tune tune;            /* tuning tables (engine/tune.h) */
    enum packing pack_weights; /* products read weights in the library's own layout */
    enum recompute recompute;  /* GELUs alone, or all of some blocks but what goes in */
    bool reuse;                /* values share bytes when their lives do not overlap */
    bool poison;               /* freed bytes become NaN before each run */
    int64_t threads;           /* 0: as many as this process may use */
    enum isa isa;              /* the widest instruction set of the CPU that may be used */
};

struct config_sample {
    const char *start; /* the prompt */
    int64_t num_samples, max_new_tokens, top_k;
    double temperature;
};

struct config {
    struct config_model model;
    struct config_data data;
    struct config_train train;
    struct config_plan plan;
    struct config_sample sample;
};

/* Defaults of the table. */
void config_init(struct config *c);
/* Reads a file over what is there. Strings live in `a`. An unknown key names the nearest one and the
 * line; a value out of range names the range. */
enum status config_read(struct config *c, const char *path, struct arena *a);
/* The same of texts that `find` has by the names of their files, as in "cs336_small.conf", those that they include, too; an
 * unknown name is NULL and a failure. */
enum status config_read_text(struct config *c, const char *name,
                             const char *(*find)(const char *name), struct arena *a);
/* One override: "--key=value", "--key" (a boolean: true) or "key=value". */
enum status config_set(struct config *c, const char *text, struct arena *a);
/* "--key=value" or "key=value": a word that sets something. A path may hold a '=', behind its first '/'. */
bool config_is_override(const char *text);
/* True if `text` is "--key..." with a key of the table, so a command may take it as an override. */
bool config_is_key(const char *text);
/* What only several keys together can get wrong (more warm-up than decay), and values that are
 * right but not served on this build: refused with a sentence, ST_UNSUPPORTED. */
enum status config_check(const struct config *c);
/* Every key, `key = value`, readable by config_read; groups as comments. */
void config_print(const struct config *c, struct str *s);
/* The same as one JSON object. */
void config_print_json(const struct config *c, struct str *s);
/* The same as an object; the caller releases it with json_decref. */
struct json_t *config_json(const struct config *c);
/* Every key with type, default, range and meaning, as a Markdown table: docs/CONFIG.md. */
void config_print_reference(struct str *s);
/* The value of one key as text, e.g. "true"; NULL if there is no such key. */
const char *config_value_text(const struct config *c, const char *key, struct arena *a);
/* What a change of a key means for a run; a column of the table. */
enum key_flag {
    KEY_MODEL = 1, /* another model: its weights do not fit */
    KEY_RUN = 2,   /* another run: one that is resumed keeps the value that it began with */
    KEY_PLACE = 4, /* where a run is kept and how it begins, not what it computes */
};
/* 0 if there is no such key. */
unsigned config_key_flags(const char *key);
/* Calls back for each key in which a and b differ. */
void config_diff(const struct config *a, const struct config *b,
                 void (*each)(void *user, const char *key, const char *in_a, const char *in_b),
                 void *user);

#endif
