/* safetensors.h - named tensors in one file, in Hugging Face's format: the length of the header (8
 * bytes, little-endian), the header (JSON), the data. docs/FORMATS.md lists our additions.
 *
 * A file is checked completely when it is opened. ST_FORMAT: a truncated header, fields of the
 * wrong type, or offsets that overlap, leave gaps or do not match the shapes. */
#ifndef DATA_SAFETENSORS_H
#define DATA_SAFETENSORS_H

#include "base/file.h"
#include "base/hash.h"

enum { SAFETENSORS_RANK_MAX = 8 };

enum safetensors_type {
    SAFETENSORS_F32,
    SAFETENSORS_F64,
    SAFETENSORS_BF16,
    SAFETENSORS_F16,
    SAFETENSORS_I32,
    SAFETENSORS_I64,
    SAFETENSORS_I16,
    SAFETENSORS_I8,
    SAFETENSORS_U8,
    SAFETENSORS_BOOL,
    SAFETENSORS_TYPE_COUNT
};

struct safetensor {
    const char *name;
    enum safetensors_type type;
    int rank; /* 0: a scalar */
    int64_t dim[SAFETENSORS_RANK_MAX];
    const void *data; /* the data to write; NULL in an open file */
    int64_t bytes;    /* ignored by safetensors_write */
    int64_t from;     /* offset of the data in an open file */
};

struct safetensors {
    struct safetensor *tensor; /* in file order */
    int count;
    /* private to safetensors.c */
    const char *path;
    int fd;
};

/* The type's name in the header, "F32". */
const char *safetensors_type_name(enum safetensors_type type);

/* Opens a file and reads its header, which lives in the arena. */
enum status safetensors_open(struct safetensors *s, const char *path, struct arena *a);
void safetensors_close(struct safetensors *s);
/* Reads a tensor's t->bytes bytes of data. ST_IO, or ST_FORMAT if the file was truncated after it
 * was opened. */
enum status safetensors_read(const struct safetensors *s, const struct safetensor *t, void *ret);
/* NULL: there is no tensor with this name. */
const struct safetensor *safetensors_find(const struct safetensors *s, const char *name);
/* The shape as text, "(768,2304)"; the caller provides the buffer. */
const char *safetensors_shape(const struct safetensor *t, char buffer[128]);

/* Length and digest of the written file. */
struct safetensors_facts {
    int64_t bytes;
    char sha256[HASH_HEX];
};
/* Writes the tensors in order, atomically. Duplicate names are a BUG. `ret` may be NULL. */
enum status safetensors_write(const char *path, const struct safetensor *tensors, int count,
                              struct safetensors_facts *ret);

#endif
