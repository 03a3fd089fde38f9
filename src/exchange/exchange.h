/* exchange.h - THE table of formats in which other programs keep a GPT; models in and out of them.
 *
 * A format that is read lists its tensors under Strobe's names, which are Hugging Face's for GPT-2,
 * with the place of each in a file. Reading is the same for all: types become float32, (out,in)
 * becomes (in,out), positions are cropped and the vocabulary is padded. No file is trusted: shapes
 * are compared before memory is taken.
 *
 * A new format: a file of its own beside huggingface.c, its declaration below, its row in
 * exchange.c. */
#ifndef EXCHANGE_EXCHANGE_H
#define EXCHANGE_EXCHANGE_H

#include "data/safetensors.h"
#include "data/vocabulary.h"
#include "model/model.h"

struct exchange_model;
struct exchange_source;

struct exchange_format {
    const char *name;   /* the value of `strobe export --to`; NULL: it is not written */
    const char *ending; /* of the folder or file that is written: "-hf" */
    bool states;        /* what is written has the state of the optimizer */
    const char *what;   /* "a folder of Hugging Face" */
    /* Whether a path is of this format, by a look at names and first bytes. */
    bool (*is)(const char *path, struct arena *a);
    enum status (*open)(struct exchange_model *m, struct arena *a);
    /* Compares the checksums that the file has, before its tensors are read; NULL: it has none. */
    enum status (*verify)(const struct exchange_model *m);
    /* Writes a folder or file that does not exist yet. */
    enum status (*write)(const struct exchange_source *s, const char *path, struct arena *a);
};
extern const struct exchange_format exchange_huggingface;
extern const struct exchange_format exchange_nanogpt; /* its ckpt.pt */
extern const struct exchange_format exchange_strobe;  /* a checkpoint, ckpt/ITER of a run */

/* What a tensor is for its parameter. Moments are the states of the optimizer, in their order. */
enum exchange_part { EXCHANGE_WEIGHT, EXCHANGE_MOMENT1, EXCHANGE_MOMENT2, EXCHANGE_PARTS };

struct exchange_tensor {
    const char *name; /* of the parameter, "h.0.attn.c_attn.weight" */
    enum exchange_part part;
    enum safetensors_type type;
    bool transposed; /* in the file it is (out,in) */
    int rank;
    int64_t dim[SAFETENSORS_RANK_MAX]; /* in the file */
    int file;
    int64_t from, bytes; /* its data in that file */
};

/* Tensors of one file. */
struct exchange_file {
    const char *path;
    int fd;
};

/* A model that was opened. All but the files lives in the arena. */
struct exchange_model {
    const struct exchange_format *format;
    const char *path;
    struct config config; /* the keys that the format has; the others have their defaults */
    int64_t vocab;        /* rows of its token table */
    int64_t tokens;       /* those of them that are in the softmax; the others are padding */
    struct exchange_tensor *tensor;
    int tensors, capacity;
    struct exchange_file *file;
    int files;
    int64_t iter;         /* updates done; 0: unknown, or none */
    double best_val_loss; /* +infinity: unknown */
    int states;           /* moments of each parameter that it has: of AdamW 2, of SGD 1; 0: none */
    void *private;        /* of the format */
    const struct vocabulary *vocabulary; /* of the run that a checkpoint is in; NULL: unknown */
    const char *tokenizer;               /* what tokenizers_find takes; NULL: the format has none */
};

/* Whether a word of the user is the name of a published model or a path of one of the formats. */
bool exchange_is(const char *word, struct arena *a);
/* Whether it is a path of one of the formats. */
bool exchange_is_path(const char *word, struct arena *a);
/* Opens a published model by name, downloading it if need be, or a path; of a run, name the
 * checkpoint. Then the tensors are those
 * of m->config.model, no more and no less. ST_FORMAT, ST_UNSUPPORTED, ST_USAGE or ST_IO. */
enum status exchange_open(struct exchange_model *m, const char *word, struct arena *a);
void exchange_close(struct exchange_model *m);
/* Compares checksums, where the format has some; call it before the weights are used. */
enum status exchange_verify(const struct exchange_model *m);
/* The keys of the model alone: of a published one without a download. */
enum status exchange_config(const char *word, struct config_model *ret, struct arena *a);
/* Reads a parameter, or one of its m->states moments, into p's shape: positions beyond it
 * are left out, rows of the vocabulary beyond the file's are zero. All other sizes must be those of
 * m->config.model. */
enum status exchange_read(const struct exchange_model *m, const struct parameter *p,
                          enum exchange_part part, float *ret);

/* Format, sizes, types and the state of the training, as lines or as an object. */
void exchange_print(const struct exchange_model *m, struct str *s);
struct json_t *exchange_json(const struct exchange_model *m);
/* Its tokens: by the tokenizer of the file, GPT-2's if it has as many, else ids without texts; a
 * warning says why a tokenizer cannot be used. */
enum status exchange_vocabulary(const struct exchange_model *m, struct vocabulary *ret,
                                struct arena *a);
/* A vocabulary of characters as the value of a tokenizer.json, which exchange_vocabulary reads. */
struct json_t *exchange_characters_json(const struct vocabulary *v);

/* For formats: appends a tensor. */
void exchange_add(struct exchange_model *m, struct exchange_tensor t, struct arena *a);
/* A tensor of the file that was opened last, under the name that it has there. */
struct exchange_tensor exchange_of(const struct exchange_model *m, const struct safetensor *t);
/* Sets a key of m->config; `path` is for the message. ST_UNSUPPORTED: the value is out of range. */
enum status exchange_set(struct exchange_model *m, const char *path, const char *key,
                         const char *to, struct arena *a);
/* Call it after the last one. ST_FORMAT if two have the same name and part. */
enum status exchange_sort(struct exchange_model *m);
/* In a sorted list; NULL: there is none. */
const struct exchange_tensor *exchange_find(const struct exchange_model *m, const char *name,
                                            enum exchange_part part);
/* The output head is the token table here. Drops lm_head.weight, which a file may have a second
 * time: if it is `tied`, or has the same values; otherwise ST_UNSUPPORTED. */
enum status exchange_drop_head(struct exchange_model *m, bool tied);

/* What a format writes. */
struct exchange_source {
    const char *from;            /* for messages */
    const struct config *config; /* vocab_size is the number of rows of the token table */
    const struct vocabulary *vocabulary;
    int64_t iter;
    double best_val_loss;
    /* Parameters without the padding of the vocabulary, (in,out), float32, in the model's order. */
    struct exchange_values {
        const char *name;
        int rank;
        int64_t dim[2];
        const float *part[EXCHANGE_PARTS]; /* NULL: not there */
    } * values;
    int count;
};

/* Writes an open model in another format, as a new folder or file. `vocabulary`: that of its
 * tokens; rows of the token table that are padding alone are left out. ST_UNSUPPORTED if the format
 * has no such model; ST_USAGE if `path` exists. */
enum status exchange_write(const struct exchange_model *m, const struct vocabulary *vocabulary,
                           const struct exchange_format *f, const char *path, struct arena *a);
/* NULL if there is none of that name, or it is not written. */
const struct exchange_format *exchange_find_format(const char *name);
/* The names of all that are written, comma-separated. */
const char *exchange_format_names(struct arena *a);

#endif
