/* torch_file.h - reads files that torch.save of PyTorch 1.6 or later writes: a zip file with a
 * pickle, PREFIX/data.pkl, and the bytes of each storage, PREFIX/data/KEY.
 *
 * No code of a file is run (data/pickle.h), and files are not trusted. The messages of ST_FORMAT,
 * ST_UNSUPPORTED and ST_IO name the file and what to do. */
#ifndef EXCHANGE_TORCH_FILE_H
#define EXCHANGE_TORCH_FILE_H

#include "data/pickle.h"
#include "data/safetensors.h"
#include "exchange/zip.h"

/* An open file; everything except the descriptor lives in the arena. */
struct torch_file {
    struct zip_file zip;
    struct pickle_value root; /* the object that was saved */
    /* private to torch_file.c */
    const char *prefix;
    struct arena *arena;
    bool *is_checked; /* for each zip.entry: whether its checksum was found to be right */
};

/* A tensor and its place in the file. Its elements are contiguous, in row-major order. Tied weights
 * are two tensors with the same `from`. */
struct torch_tensor {
    enum safetensors_type type;
    int rank; /* 0: a scalar */
    int64_t dim[SAFETENSORS_RANK_MAX];
    int64_t from, bytes; /* offset and size of the data in the file */
    const struct zip_entry *storage;
};

/* Opens a file and reads its pickle. The arena must outlive the file. */
enum status torch_open(struct torch_file *f, const char *path, struct arena *a);
/* Closes the file; has no effect on a zeroed struct. */
void torch_close(struct torch_file *f);
/* Whether a value is a tensor or a parameter, valid or not. */
bool torch_is_tensor(const struct pickle_value *v);
/* Finds a tensor in the file without reading its data. `name` is for messages. ST_UNSUPPORTED: its
 * elements are not in order (a transposed view), or it has more than SAFETENSORS_RANK_MAX
 * dimensions. */
enum status torch_tensor(const struct torch_file *f, const char *name, const struct pickle_value *v,
                         struct torch_tensor *ret);
/* Checks the checksum of a tensor's storage; a storage of several tensors is checked only once. For
 * callers that read the bytes themselves. Not thread-safe. */
enum status torch_check(const struct torch_file *f, const struct torch_tensor *t);
/* Reads a tensor's t->bytes bytes of data and checks the checksum. */
enum status torch_read(const struct torch_file *f, const struct torch_tensor *t, void *ret);

#endif
