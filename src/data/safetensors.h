/* safetensors.h - named tensors in one file, in the format of Hugging Face's safetensors: the length of
 * a header (8 bytes, low first), the header (JSON), the bytes of the tensors. docs/FORMATS.md has what
 * we add to it.
 *
 * A file is checked whole before any of it is handed out: a header that is cut, has unknown fields in
 * the wrong places, or offsets that overlap, leave gaps or do not fit the shapes is ST_FORMAT. */
#ifndef DATA_SAFETENSORS_H
#define DATA_SAFETENSORS_H

#include "base/arena.h"
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
    int rank; /* 0: a single number */
    int64_t dim[SAFETENSORS_RANK_MAX];
    const void *data; /* of a file that others wrote it may stand at any address, even an odd one */
    int64_t bytes;    /* a writer need not fill it */
};

struct safetensors {
    struct safetensor *tensor; /* by their place in the file */
    int count;
    /* private to safetensors.c */
    void *map;
    int64_t map_bytes;
};

/* "F32" */
const char *safetensors_type_name(enum safetensors_type type);

/* Maps a file; tensors point into the map until safetensors_close, names live in the arena. */
enum status safetensors_open(struct safetensors *s, const char *path, struct arena *a);
void safetensors_close(struct safetensors *s);
/* NULL if there is none of that name. */
const struct safetensor *safetensors_find(const struct safetensors *s, const char *name);
/* The shape as people write it, "(768,2304)"; the buffer belongs to the caller. */
const char *safetensors_shape(const struct safetensor *t, char buffer[128]);
/* Copies to fp32 from F32, F64, BF16 or F16; other types are ST_UNSUPPORTED. */
enum status safetensors_read_floats(const struct safetensor *t, float *ret_values);

/* Length and digest of what was written. */
struct safetensors_facts {
    int64_t bytes;
    char sha256[HASH_HEX];
};
/* Writes the tensors in the order given; the file appears whole or not at all. Two of one name are a
 * BUG. `ret` may be NULL. */
enum status safetensors_write(const char *path, const struct safetensor *tensors, int count,
                              struct safetensors_facts *ret);

#endif
