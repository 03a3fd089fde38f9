/* config.h - the settings of a run: plain structs, one per concern, filled from one table of keys.
 *
 * A file has `key = value` lines, `#` comments and, before the first key, at most one
 * `include = other.conf` (relative to the file). The command line overrides keys by --key=value. A
 * text value may be quoted and may have the escapes \n, \t, \r, \", \', \# and \\. A key that
 * nanoGPT also has keeps nanoGPT's name and default. The table is in fields.c; `strobe config`,
 * docs/CONFIG.md and the copy in each run directory are generated from the table. */
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
enum attention_mask { ATTENTION_MASK_NONE, ATTENTION_MASK_CAUSAL };
enum attention_scale { ATTENTION_SCALE_AUTO, ATTENTION_SCALE_NONE };
/* DEVICE_CUDA_0 + n is GPU n; DEVICE_CUDA is the first GPU. */
enum device_kind { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA, DEVICE_CUDA_0 };
enum precision {
    PRECISION_FLOAT32,
    PRECISION_TFLOAT32,
    PRECISION_BFLOAT16,
    PRECISION_FLOAT8, /* bfloat16, with the matmuls of the transformer blocks in 8 bits */
    PRECISION_AUTO
};
static inline bool precision_is_mixed(enum precision p)
{
    return p == PRECISION_BFLOAT16 || p == PRECISION_FLOAT8;
}
/* The format of the gradients that 8-bit matmuls read. */
enum float8 { FLOAT8_E5M2, FLOAT8_E4M3 };
enum fusion { FUSION_PRIMITIVE, FUSION_OP, FUSION_FULL };
enum packing { PACKING_AUTO, PACKING_FALSE, PACKING_TRUE };
enum tune { TUNE_AUTO, TUNE_OFF };
enum replay { REPLAY_FALSE, REPLAY_TRUE, REPLAY_AUTO };
/* RECOMPUTE_BLOCK + n - 1 means that n blocks are recomputed together. */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_GELU, RECOMPUTE_BLOCK };
enum { RECOMPUTE_MOST = 1024 }; /* blocks */
/* When gradients are summed over the ranks. */
enum overlap { OVERLAP_NONE, OVERLAP_FLAT, OVERLAP_PARAMETER, OVERLAP_BUCKET };
/* The type in which gradients are summed over the ranks. */
enum reduce_dtype { REDUCE_FLOAT32, REDUCE_BFLOAT16 };
/* How ranks communicate: as threads of one process, or as processes by MPI. */
enum ranks_by { RANKS_AUTO, RANKS_THREADS, RANKS_MPI };
/* The table of optimizers, in engine/optimizer.c, has this order. */
enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_COUNT };
extern const char *const optimizer_words[]; /* "adamw" ...; ends with NULL */

enum { CONFIG_AUTO = -1 }; /* a number that config_choose sets */

struct config_model {
    enum model_kind kind; /* the table of models is in model/model.c */
    int64_t n_layer, n_head, n_embd, block_size;
    int64_t n_kv_head; /* key and value heads, a divisor of n_head; 0: n_head */
    double dropout;
    bool bias;
    enum gelu gelu;
    int64_t d_ff; /* hidden width of the feed-forward layer; 0: 4 n_embd */
    double rope_theta;
    /* Only the model attention_block reads these two keys. The attention of all other models is
     * causal and divides scores by sqrt(head size). */
    enum attention_mask attention_mask;
    enum attention_scale attention_scale;
    int64_t vocab_size; /* rows of the token embedding; 0: the data set's number of token ids */
    /* The vocabulary is rounded up to a multiple of this; 0 and CONFIG_AUTO: not rounded. */
    int64_t pad_vocab;
};

enum { BATCH_SIZE_MOST = 65536 };

struct config_data {
    const char *dataset;  /* a folder of data_dir */
    const char *data_dir; /* "data" */
    int64_t batch_size;
};

#define INIT_SCRATCH "scratch"
#define INIT_RESUME  "resume"

struct config_train {
    const char *out_dir;   /* the run directory */
    const char *init_from; /* INIT_SCRATCH, INIT_RESUME, or the name or path of initial weights */
    bool init_weights_only;
    int64_t seed;
    int64_t max_iters, eval_interval, eval_iters, log_interval;
    int64_t sample_interval; /* milliseconds between telemetry samples; 0: no samples */
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
    enum replay replay;
    bool flash, deterministic;
    bool hopper;               /* allow kernels that run only on compute capability 9.0 */
    enum tune tune;            /* tuning tables (engine/tune.h) */
    enum packing pack_weights; /* matmuls read copies of weights in oneDNN's layout */
    enum recompute recompute;  /* only GELUs, or whole blocks from their inputs */
    bool reuse;                /* values share bytes if their live ranges do not overlap */
    bool poison;               /* unwritten and dead bytes are filled with NaN */
    int64_t threads;           /* 0: OMP_NUM_THREADS, else one per core that this process may use */
    enum isa isa;              /* the widest instruction set of the CPU that may be used */
};

struct config_ranks {
    int64_t count; /* processes or threads that share the micro-batches of a step; 1: no sharing */
    enum ranks_by by;
    enum overlap overlap;
    int64_t bucket_mb; /* size of a bucket of gradients, MiB of float32 */
    enum reduce_dtype reduce_dtype;
    /* ZeRO stage: 0: ranks split nothing, 1: they split the optimizer's state, 3: also weights and
     * gradients. */
    int64_t zero;
    int64_t rank;    /* not a key: number of the rank that compiles, 0 ... count - 1 */
    int64_t timeout; /* seconds that a rank waits for another */
};

struct config_sample {
    const char *start; /* the prompt */
    int64_t num_samples, max_new_tokens, top_k;
    double temperature, top_p;
};

struct config {
    struct config_model model;
    struct config_data data;
    struct config_train train;
    struct config_plan plan;
    struct config_ranks ranks;
    struct config_sample sample;
    uint64_t ignored; /* bit mask of the ignored keys of nanoGPT that were set (nanogpt.c) */
};

/* True if this run continues the run in out_dir. */
bool config_resumes(const struct config *c);
/* The name or path of the weights that a new run begins with; NULL: random weights, or a run that
 * is continued. */
const char *config_origin(const struct config *c);
/* Sets every member to its default. */
void config_init(struct config *c);
/* Reads a file into `c`; keys that the file does not set keep their values. Strings live in `a`.
 * Errors name the line and the most similar key, or the allowed range. Errors quote an included
 * file only if it is in the folder of `path` or below it, and then only keys and values. */
enum status config_read(struct config *c, const char *path, struct arena *a);
/* config_read for texts in memory: `find` returns the text of a file or an included file by its
 * name, such as "cs336_small.conf", or NULL if the name is unknown, which is an error. */
enum status config_read_text(struct config *c, const char *name,
                             const char *(*find)(const char *name), struct arena *a);
/* config_read for one text in memory, which may not include files; `name` is for messages. */
enum status config_read_memory(struct config *c, const char *name, const char *text,
                               struct arena *a);
/* Applies one override: "--key=value", "--key" (a boolean: true) or "key=value". */
enum status config_set(struct config *c, const char *text, struct arena *a);
/* True for "--key=value" and "key=value". A '=' after the first '/' is part of a path. */
bool config_is_override(const char *text);
/* True if `text` is "--key..." with a key of the table, or with a key of nanoGPT that nanogpt.c
 * lists. */
bool config_is_key(const char *text);
/* True if the words "--key" "value" mean "--key=value": the first is a key of the table without
 * '=', and the second is not an option; after a boolean key it must be true or false. `value` may
 * be NULL. */
bool config_takes(const char *key, const char *value);
/* Facts about the device and the run that decide the values of keys left at auto. */
struct config_facts {
    bool captures;           /* the device can capture a step and replay it */
    bool bfloat16_is_faster; /* matmuls are faster in bfloat16 than in float32 */
    bool ranks_sync_on_host; /* ranks wait for each other on the host, so no step is captured */
    bool padding_pays;       /* matmuls are faster if the vocabulary is a multiple of 64 */
    /* The resumed run, whose type and padding are kept if they are not auto themselves; NULL: a new
     * run. Replay changes no result, so the device and the ranks decide it anew. */
    const struct config *before;
};
/* Replaces the value auto of dtype, replay and pad_vocab; must be called before compiling. */
void config_choose(struct config *c, const struct config_facts *by);
/* Checks keys that depend on each other (more warm-up than decay steps: ST_USAGE) and values that
 * the chosen device does not support (ST_UNSUPPORTED). */
enum status config_check(const struct config *c);
/* Logs a sentence for each key that has no effect or an unexpected one in a run from iteration
 * `begun` to max_iters. */
void config_log_ineffective(const struct config *c, int64_t begun);
/* Prints every key as `key = value`, readable by config_read, with the groups as comments. */
void config_print(const struct config *c, struct str *s);
/* Prints every key and its value as one JSON object. */
void config_print_json(const struct config *c, struct str *s);
/* Every key and its value as a JSON object; the caller releases it with json_decref. */
struct json_t *config_json(const struct config *c);
/* Prints every key with its default, range and meaning, as text of at most 80 columns. */
void config_print_reference(struct str *s);
/* Prints the reference as Markdown tables: the content of docs/CONFIG.md. */
void config_print_reference_markdown(struct str *s);
/* Prints the reference of the keys that `keys` lists, separated by spaces, for a command's help. */
void config_print_keys(const char *keys, struct str *s);
/* The value of one key as text, e.g. "true"; NULL if there is no such key. */
const char *config_value_text(const struct config *c, const char *key, struct arena *a);
/* What a key affects; a column of the table. */
enum key_flag {
    KEY_MODEL = 1, /* the model: weights saved with another value do not fit */
    KEY_RUN = 2,   /* the run: a resumed run keeps the value that it started with */
    KEY_PLACE = 4, /* where a run is stored and how it starts, not what it computes */
};
/* The flags (enum key_flag) of a key; 0 if there is no such key. */
unsigned config_key_flags(const char *key);
/* Calls `each` for every key in which a and b differ. */
void config_diff(const struct config *a, const struct config *b,
                 void (*each)(void *user, const char *key, const char *in_a, const char *in_b),
                 void *user);

#endif
