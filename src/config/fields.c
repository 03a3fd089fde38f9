#include "config/fields.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

const char *const model_words[] = {"gpt", "cs336", "attention_block", "elu", "toy", NULL};
_Static_assert(COUNT_OF(model_words) == MODEL_COUNT + 1, "one word for each model");
static const char *const gelus[] = {"erf", "tanh", NULL};
static const char *const masks[] = {"none", "causal", NULL};
static const char *const scales[] = {"auto", "none", NULL};
static const char *const devices[] = {"auto",   "cpu",    "cuda",   "cuda:0", "cuda:1", "cuda:2",
                                      "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7", NULL};
static const char *const precisions[] = {"float32", "tfloat32", "bfloat16", "float8", "auto", NULL};
static const char *const float8s[] = {"e5m2", "e4m3", NULL};
static const char *const fusions[] = {"primitive", "op", "full", NULL};
static const char *const recomputes[] = {"none", "gelu", "block", "block:N", NULL};
static const char *const tunes[] = {"auto", "off", NULL};
static const char *const replays[] = {"false", "true", "auto", NULL};
static const char *const overlaps[] = {"none", "flat", "parameter", "bucket", NULL};
static const char *const reduce_dtypes[] = {"float32", "bfloat16", NULL};
static const char *const zeros[] = {"0", "1", "3", NULL};
static const char *const ranks_words[] = {"auto", "threads", "mpi", NULL};
static const char *const packings[] = {"auto", "false", "true", NULL};
const char *const optimizer_words[] = {"adamw", "sgd", NULL};
_Static_assert(COUNT_OF(optimizer_words) == OPTIMIZER_COUNT + 1, "one word for each optimizer");
static const char *const pads[] = {"auto", "0", "64", "128", NULL};

/* The offset of a member. A row whose type differs from the member's does not compile. */
#define AT(member, type) \
    _Generic(((struct config *)0)->member, type : (int64_t)offsetof(struct config, member))

/* Short names of flags, for the table. */
#define M KEY_MODEL
#define R KEY_RUN
#define P KEY_PLACE
#define FIELD(key, member, flags, kind, type, initial, min, max, choice, help)       \
    {                                                                                \
        key, #member, flags, kind, AT(member, type), initial, min, max, choice, help \
    }
#define INT(key, member, flags, initial, min, max, help) \
    FIELD(key, member, flags, FIELD_INT, int64_t, initial, min, max, NULL, help)
#define PICK(key, member, flags, initial, choice, help) \
    FIELD(key, member, flags, FIELD_INT, int64_t, initial, 0, 0, choice, help)
#define REAL(key, member, flags, initial, min, max, help) \
    FIELD(key, member, flags, FIELD_REAL, double, initial, min, max, NULL, help)
#define BOOL(key, member, flags, initial, help) \
    FIELD(key, member, flags, FIELD_BOOL, bool, initial, 0, 0, NULL, help)
#define TEXT(key, member, flags, initial, help) \
    FIELD(key, member, flags, FIELD_TEXT, const char *, initial, 0, 0, NULL, help)
#define ENUM(key, member, flags, initial, type, choice, help) \
    FIELD(key, member, flags, FIELD_ENUM, type, initial, 0, 0, choice, help)
#define ENUM_N(key, member, flags, initial, type, choice, most, help) \
    FIELD(key, member, flags, FIELD_ENUM, type, initial, 1, most, choice, help)

/* Hard limits: Philox counters hold block_size/16 in 14 bits, token numbers are int32. */
enum { MOST = 1000000000, MOST_CONTEXT = 1 << 18 };

/* clang-format off */
const struct field fields[] = {
    ENUM("model",          model.kind,           M, "gpt",      enum model_kind, model_words, "model to run; gpt and cs336 can be trained, all others are only timed"),
    INT ("n_layer",        model.n_layer,        M, "12",       1, 1024,         "number of transformer blocks"),
    INT ("n_head",         model.n_head,         M, "12",       1, 1024,         "attention heads per block; must divide n_embd"),
    INT ("n_kv_head",      model.n_kv_head,      M, "0",        0, 1024,         "key and value heads per block, each shared by a group of query heads; must divide n_head; 1: one for all query heads, 0: as many as n_head"),
    INT ("n_embd",         model.n_embd,         M, "768",      1, 65536,        "width (channels) of the residual stream"),
    INT ("block_size",     model.block_size,     M, "1024",     1, MOST_CONTEXT, "context length in tokens"),
    REAL("dropout",        model.dropout,        0, "0.0",      0, 0.99,         "probability of dropping an activation during training, rounded to a multiple of 1/256"),
    BOOL("bias",           model.bias,           M, "false",                     "use biases in linear layers and layer norms"),
    ENUM("gelu",           model.gelu,           M, "erf",      enum gelu, gelus, "erf: exact; tanh: GPT-2's approximation"),
    INT ("d_ff",           model.d_ff,           M, "0",        0, 262144,       "hidden width (gate and up channels) of the feed-forward layer of cs336; 0: 4 n_embd"),
    REAL("rope_theta",     model.rope_theta,     M, "10000",    1, MOST,         "base of the rotary position embedding of cs336"),
    ENUM("attention_mask", model.attention_mask, M, "none",     enum attention_mask, masks, "attention_block only; causal: a position attends to itself and earlier ones; none: to all; gpt and cs336 are always causal"),
    ENUM("attention_scale", model.attention_scale, M, "auto",   enum attention_scale, scales, "attention_block only; what scores are multiplied by before the softmax; auto: 1/sqrt(head size), as in gpt and cs336; none: 1, the product of q and k as it is"),
    INT ("vocab_size",     model.vocab_size,     M, "0",        0, 1048576,      "tokens of the model, at least as many as the data set has; the others are never seen, but take part in the softmax, as in nanoGPT; models that are only timed use random tokens below it; 0: as many as the data set has"),
    PICK("pad_vocab",      model.pad_vocab,      M, "auto",     pads,            "round the vocabulary up to a multiple of this number; 0: no padding; auto: 64 on a GPU, else 0"),

    TEXT("dataset",        data.dataset,         R, "shakespeare_char",          "data set to train on: the name of a folder in data_dir"),
    TEXT("data_dir",       data.data_dir,        P, "data",                      "folder that holds the data sets"),
    INT ("batch_size",     data.batch_size,      0, "12",       1, BATCH_SIZE_MOST, "sequences per micro-batch"),

    TEXT("out_dir",        train.out_dir,        P, "runs/out",                  "run directory"),
    TEXT("init_from",      train.init_from,      P, "scratch",                   "scratch: random weights; resume: continue the run in out_dir from its last checkpoint; else the weights that a new run begins with: gpt2, gpt2-medium, gpt2-large or gpt2-xl, a folder of Hugging Face, nanoGPT's ckpt.pt, a run or a checkpoint. The keys of the model follow the file"),
    BOOL("init_weights_only", train.init_weights_only, P, "false",              "of a run, a checkpoint or ckpt.pt, init_from takes the weights alone, not its iteration and the state of its optimizer"),
    INT ("seed",           train.seed,           R, "1337",     0, 4294967295,   "seed of all random numbers"),
    INT ("max_iters",      train.max_iters,      0, "600000",   0, MOST,         "number of training steps"),
    INT ("eval_interval",  train.eval_interval,  0, "2000",     1, MOST,         "steps between evaluations; each also saves a checkpoint"),
    INT ("eval_iters",     train.eval_iters,     0, "200",      1, MOST,         "batches per evaluation, for each split"),
    INT ("log_interval",   train.log_interval,   0, "1",        1, MOST,         "steps between logged steps"),
    INT ("sample_interval", train.sample_interval, 0, "500",    0, 3600000,      "milliseconds between samples of the device's utilization, clock, power and memory; 0: no samples"),
    INT ("gradient_accumulation_steps", train.gradient_accumulation_steps, 0, "1", 1, 65536,
         "micro-batches per step; nanoGPT's default is 40, for eight GPUs: on one device a step would take 40 times as long"),
    REAL("learning_rate",  train.learning_rate,  0, "6e-4",     0, 10,           "maximum learning rate"),
    BOOL("decay_lr",       train.decay_lr,       0, "true",                      "warm up, then decay the learning rate along a cosine; false: keep it constant"),
    INT ("warmup_iters",   train.warmup_iters,   0, "2000",     0, MOST,         "number of warm-up steps, in which the learning rate rises"),
    INT ("lr_decay_iters", train.lr_decay_iters, 0, "600000",   0, MOST,         "step at which the learning rate reaches min_lr"),
    REAL("min_lr",         train.min_lr,         0, "6e-5",     0, 10,           "minimum learning rate"),
    ENUM("optimizer",      train.optimizer,      R, "adamw",    enum optimizer_kind, optimizer_words, "AdamW, or SGD with momentum, which stores one number per parameter instead of two"),
    REAL("weight_decay",   train.weight_decay,   0, "1e-1",     0, 10,           "weight decay, on matrices only; AdamW applies it separately from the gradient, SGD adds it to the gradient"),
    REAL("beta1",          train.beta1,          0, "0.9",      0, 0.999999,     "AdamW: decay rate of the first moment (the gradient)"),
    REAL("beta2",          train.beta2,          0, "0.95",     0, 0.999999,     "AdamW: decay rate of the second moment (the squared gradient)"),
    REAL("momentum",       train.momentum,       0, "0.9",      0, 0.999999,     "SGD: momentum; 0: none"),
    REAL("grad_clip",      train.grad_clip,      0, "1.0",      0, MOST,         "maximum norm of the gradient; 0: no clipping"),
    BOOL("check_nan",      train.check_nan,      0, "false",                     "wait for each operator; stop at the first one that returns NaN or infinity or whose kernel fails, and name it"),

    ENUM("device",         plan.device,          0, "auto",     enum device_kind, devices, "device to run on; auto: a GPU if there is one"),
    ENUM("dtype",          plan.dtype,           0, "auto",     enum precision, precisions, "type of activations and matmuls; auto: bfloat16 where the device multiplies it faster than float32 (GPUs from compute capability 8.0 on, CPUs with AMX, AMD's with AVX512_BF16, unless `strobe machine` measured float32 to be faster), else float32; float8: bfloat16, with the matmuls of the transformer blocks in 8 bits; a resumed float8 run is not bitwise equal, because checkpoints hold no amax values"),
    ENUM("float8_gradients", plan.float8_gradients, 0, "e5m2",  enum float8, float8s, "format of gradients with dtype=float8: e5m2 has the wider range, e4m3 the higher precision"),
    ENUM("fusion",         plan.fusion,          0, "full",     enum fusion, fusions, "one kernel per arithmetic step (primitive), per layer operation (op), or across operations (full)"),
    BOOL("flash",          plan.flash,           0, "true",                      "attention without its T x T matrices in memory"),
    ENUM("pack_weights",   plan.pack_weights,    0, "auto",     enum packing, packings, "keep a second copy of the weights in the layout that matmuls read (at fusion=full); auto: if a step has enough tokens to repay it"),
    ENUM("replay",         plan.replay,          0, "auto",     enum replay, replays, "capture a step once as a CUDA graph and replay it; auto: on a GPU, unless poison or check_nan is set or several ranks are threads; it changes no result, so a resume that names only the run chooses it anew"),
    ENUM_N("recompute",    plan.recompute,       0, "none",     enum recompute, recomputes, RECOMPUTE_MOST, "what the backward pass recomputes instead of keeping it: GELUs, or blocks from the residual sums between them; block:N: N blocks at a time, from the sum before the first"),
    BOOL("deterministic",  plan.deterministic,   0, "false",                     "bitwise equal results in every run, independent of earlier tuning; on a CPU results are equal anyway for equal numbers of threads, and this key keeps their number independent of other programs"),
    ENUM("tune",           plan.tune,            0, "auto",     enum tune, tunes, "how the variant of each matmul is chosen on a GPU; auto: the fastest one, measured before the first step and stored (strobe tune); off: without measuring"),
    BOOL("hopper",         plan.hopper,          0, "true",                      "use the attention and matmul kernels for compute capability 9.0 if the GPU has it; false: use those for every GPU, for comparison"),
    BOOL("reuse",          plan.reuse,           0, "true",                      "values share memory if their live ranges do not overlap"),
    BOOL("poison",         plan.poison,          0, "false",                     "fill freed memory with NaN, to find reads after free"),
    INT ("threads",        plan.threads,         0, "0",        0, 4096,         "CPU threads; 0: OMP_NUM_THREADS if it is set, else one for each core that this process may use; train and compare without deterministic: fewer on a CPU if both the load average of the last minute and a look at the start say that other programs use its cores. Runs with other numbers of threads may differ in the last bits, so a run on a CPU records the number that it began with, and a resume uses it unless --threads says otherwise or the number of ranks changes"),
    ENUM("isa",            plan.isa,             0, "auto",     enum isa, isa_words, "widest CPU instruction set that may be used; plain: only C, without library"),

    INT ("ranks",          ranks.count,          0, "1",        1, 1024,         "ranks that share the micro-batches of a step (data parallel); gradient_accumulation_steps must be a multiple, so the batch of a step stays the same"),
    ENUM("ranks_by",       ranks.by,             0, "auto",     enum ranks_by, ranks_words, "what joins the ranks; threads: one process with a thread for each rank; mpi: a process for each, started by mpirun; auto: mpi where it is installed, else threads; on a GPU, which ranks share, threads"),
    ENUM("overlap",        ranks.overlap,        0, "bucket",   enum overlap, overlaps, "when gradients are summed over the ranks; none: after the backward pass, one parameter after another; flat: after it, all at once; parameter: each when it is ready; bucket: as many as fill bucket_mb when they are ready"),
    INT ("bucket_mb",      ranks.bucket_mb,      0, "25",       1, 65536,        "size in MiB of float32 from which a bucket of gradients is summed (overlap=bucket)"),
    ENUM("reduce_dtype",   ranks.reduce_dtype,   0, "float32",  enum reduce_dtype, reduce_dtypes, "type in which gradients are summed over the ranks; bfloat16: half the bytes over the link, with a GPU for each rank; several micro-steps of a rank are still summed in float32"),
    PICK("zero",           ranks.zero,           0, "0",        zeros, "what the ranks share instead of having all of it; 0: nothing; 1: the state of the optimizer and its work (ZeRO stage 1), with overlap=flat or bucket; 3: weights and gradients, too (ZeRO stage 3), with overlap=none or bucket"),
    INT ("rank_timeout",   ranks.timeout,        0, "30",       1, 86400,        "seconds that a rank waits for another before all end"),

    TEXT("start",          sample.start,         0, "\n",                       "prompt"),
    INT ("num_samples",    sample.num_samples,   0, "10",       1, MOST,         "number of texts to generate"),
    INT ("max_new_tokens", sample.max_new_tokens, 0, "500",     1, MOST,         "tokens to generate per text"),
    REAL("temperature",    sample.temperature,   0, "0.8",      0, 100,          "sampling temperature: below 1 favors likely tokens, above 1 is more random; 0: always the most likely token"),
    INT ("top_k",          sample.top_k,         0, "200",      0, MOST,         "sample among the k most likely tokens; 1: always the most likely, 0: among all"),
    REAL("top_p",          sample.top_p,         0, "1",        0, 1,            "sample among the most likely tokens whose probabilities, at the temperature, add up to this; 1: among all"),
    {0},
};
/* clang-format on */
_Static_assert(COUNT_OF(fields) <= FIELD_MOST, "FIELD_MOST is less than the rows of the table");

const struct field *field_find(const char *key, int64_t length)
{
    for (const struct field *f = fields; f->key; f++)
        if ((int64_t)strlen(f->key) == length && !memcmp(f->key, key, (size_t)length)) return f;
    return NULL;
}

const struct field *field_nearest(const char *key, int64_t length)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)length, key);
    const struct field *nearest = NULL;
    /* At least half of the letters must be right, or the hint would mislead. */
    int best = (int)strlen(word) / 2 + 1;
    for (const struct field *f = fields; f->key; f++) {
        int distance = str_distance(word, f->key);
        if (distance >= best) continue;
        best = distance;
        nearest = f;
    }
    return nearest;
}
