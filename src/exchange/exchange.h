/* exchange.h - reads and writes models in the formats of other programs, which exchange.c lists.
 *
 * The code of a format lists the tensors of a model and their places in files. The tensors have
 * Strobe's names, which are Hugging Face's for GPT-2. One reader for all formats then converts
 * types to float32 and (out,in) to (in,out), crops positions and pads the vocabulary. Files are not
 * trusted: shapes are compared before memory is allocated.
 *
 * A new format needs a file like huggingface.c, a declaration below, and a row in exchange.c. */
#ifndef EXCHANGE_EXCHANGE_H
#define EXCHANGE_EXCHANGE_H

#include "data/safetensors.h"
#include "data/vocabulary.h"
#include "model/model.h"

struct exchange_model;
struct exchange_source;

struct exchange_format {
    const char *name;   /* the value of `strobe export --to`; NULL: the format is only read */
    const char *ending; /* of the folder or file that is written: "-hf" */
    bool states;        /* the optimizer's state is written */
    const char *what;   /* for messages: "a folder of Hugging Face" */
    /* Whether a path has this format, judging by names and first bytes. */
    bool (*is)(const char *path, struct arena *a);
    enum status (*open)(struct exchange_model *m, struct arena *a);
    /* Compares the checksums of the file, before its tensors are read; NULL: there are none. */
    enum status (*verify)(const struct exchange_model *m);
    /* Writes a folder or file that does not exist yet. */
    enum status (*write)(const struct exchange_source *s, const char *path, struct arena *a);
};
extern const struct exchange_format exchange_huggingface;
extern const struct exchange_format exchange_nanogpt; /* ckpt.pt */
extern const struct exchange_format exchange_strobe;  /* a checkpoint, ckpt/ITER of a run */

/* A tensor is the weight of a parameter or one of the moments in the optimizer's state. */
enum exchange_part { EXCHANGE_WEIGHT, EXCHANGE_MOMENT1, EXCHANGE_MOMENT2, EXCHANGE_PARTS };

struct exchange_tensor {
    const char *name; /* of the parameter, "h.0.attn.c_attn.weight" */
    enum exchange_part part;
    enum safetensors_type type;
    bool transposed; /* stored as (out,in) */
    int rank;
    int64_t dim[SAFETENSORS_RANK_MAX]; /* in the file */
    int file;                          /* index in exchange_model.file */
    int64_t from, bytes;               /* offset and size of the data in that file */
};

/* An open file with tensors. */
struct exchange_file {
    const char *path;
    int fd;
};

/* An open model. Everything except the file descriptors lives in the arena. */
struct exchange_model {
    const struct exchange_format *format;
    const char *path;
    struct config config; /* keys that the format does not have have their defaults */
    int64_t vocab;        /* rows of the token table */
    int64_t tokens;       /* rows that are tokens; the other rows are padding */
    struct exchange_tensor *tensor;
    int tensors, capacity;
    struct exchange_file *file;
    int files;
    int64_t iter;         /* updates done; 0: none or unknown */
    double best_val_loss; /* +infinity: unknown */
    double steps;         /* that its optimizer has done, if fewer than iter; else 0 */
    int states;           /* moments of each parameter: AdamW 2, SGD 1; 0: no optimizer state */
    void *private;        /* for the format's own use */
    const struct vocabulary *vocabulary; /* for a checkpoint of a run: the run's; NULL: unknown */
    const char *tokenizer;               /* argument for tokenizers_find; NULL: unknown */
};

/* Whether a word is the name of a published model or a path in one of the formats. */
bool exchange_is(const char *word, struct arena *a);
/* Whether a word is a path in one of the formats. */
bool exchange_is_path(const char *word, struct arena *a);
/* Opens a model by path (for a run, the path of one of its checkpoints) or a published model by
 * name, which is downloaded if needed. Checks that the tensors are exactly those of
 * m->config.model. ST_FORMAT, ST_UNSUPPORTED, ST_USAGE or ST_IO. */
enum status exchange_open(struct exchange_model *m, const char *word, struct arena *a);
void exchange_close(struct exchange_model *m);
/* Compares checksums, if the format has any; call this before using the weights. */
enum status exchange_verify(const struct exchange_model *m);
/* Reads only the configuration keys of a model; a published model is not downloaded. */
enum status exchange_config(const char *word, struct config_model *ret, struct arena *a);
/* Reads a parameter, or one of its m->states moments, into p's shape: drops positions that the file
 * has and p does not, and sets rows of the token table that the file does not have to zero. All
 * other sizes must be equal to those of m->config.model. */
enum status exchange_read(const struct exchange_model *m, const struct parameter *p,
                          enum exchange_part part, float *ret);

/* Describe format, sizes, types and the state of the training, as lines or as a JSON object. */
void exchange_print(const struct exchange_model *m, struct str *s);
struct json_t *exchange_json(const struct exchange_model *m);
/* *ret is the vocabulary of the model's own tokenizer, else GPT-2's if the number of tokens fits,
 * else ids without texts. Logs a warning if a tokenizer cannot be used. */
enum status exchange_vocabulary(const struct exchange_model *m, struct vocabulary *ret,
                                struct arena *a);
/* A vocabulary of characters as a tokenizer.json that exchange_vocabulary can read. */
struct json_t *exchange_characters_json(const struct vocabulary *v);

/* --- functions for the code of formats -------------------------------------------------------- */

/* Appends a tensor. */
void exchange_add(struct exchange_model *m, struct exchange_tensor t, struct arena *a);
/* Converts a tensor of the file that was opened last; the result has the tensor's name in the
 * file. */
struct exchange_tensor exchange_from_safetensor(const struct exchange_model *m,
                                                const struct safetensor *t);
/* Sets a key of m->config; `path` is for the message. ST_UNSUPPORTED: the value is out of range. */
enum status exchange_set(struct exchange_model *m, const char *path, const char *key,
                         const char *to, struct arena *a);
/* Sorts the tensors, for exchange_find. ST_FORMAT: two tensors have the same name and part. */
enum status exchange_sort(struct exchange_model *m);
/* Finds a tensor; NULL: there is none. */
const struct exchange_tensor *exchange_find(const struct exchange_model *m, const char *name,
                                            enum exchange_part part);
/* Drops the tensor lm_head.weight, because in Strobe the token table is also the output head.
 * ST_UNSUPPORTED: the tensor is not `tied` and has other values than the token table. */
enum status exchange_drop_head(struct exchange_model *m, bool tied);

/* The model that a format writes. */
struct exchange_source {
    const char *from;            /* for messages */
    const struct config *config; /* vocab_size is the number of rows of the token table */
    const struct vocabulary *vocabulary;
    int64_t iter;
    double best_val_loss;
    /* The parameters in the model's order: (in,out), float32, without padding of the vocabulary. */
    struct exchange_values {
        const char *name;
        int rank;
        int64_t dim[2];
        const float *part[EXCHANGE_PARTS]; /* NULL: missing */
    } * values;
    int count;
};

/* Writes an open model in another format, as a new folder or file. `vocabulary` is the model's;
 * padding rows of the token table are left out. ST_UNSUPPORTED: the format cannot express the
 * model. ST_USAGE: `path` exists. */
enum status exchange_write(const struct exchange_model *m, const struct vocabulary *vocabulary,
                           const struct exchange_format *f, const char *path, struct arena *a);
/* The format with this name; NULL: there is none, or it is only read. */
const struct exchange_format *exchange_find_format(const char *name);
/* The names of all formats that can be written, comma-separated. */
const char *exchange_format_names(struct arena *a);

#endif
