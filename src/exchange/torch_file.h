/* torch_file.h - reads the files that torch.save writes since PyTorch 1.6: a zip file with a
 * pickle, PREFIX/data.pkl, and the bytes of each storage, PREFIX/data/KEY.
 *
 * Nothing in a file is run (data/pickle.h), and no file is trusted. ST_FORMAT, ST_UNSUPPORTED and
 * ST_IO name the file and what to do. */
#ifndef EXCHANGE_TORCH_FILE_H
#define EXCHANGE_TORCH_FILE_H

#include "data/pickle.h"
#include "data/safetensors.h"
#include "exchange/zip.h"

/* An open file; all but the descriptor lives in the arena. */
struct torch_file {
    struct zip_file zip;
    struct pickle_value root; /* what was saved */
    /* private to torch_file.c */
    const char *prefix;
    struct arena *arena;
    bool *is_checked; /* of zip.entry: its checksum is right */
};

/* Where a tensor is. Its elements are in order, the last dimension contiguous. Two tensors can have
 * the same bytes (tied weights): then their `from` are equal. */
struct torch_tensor {
    enum safetensors_type type;
    int rank; /* 0: a scalar */
    int64_t dim[SAFETENSORS_RANK_MAX];
    int64_t from, bytes; /* its data, in the file */
    const struct zip_entry *storage;
};

/* Opens a file and reads its pickle. The arena must outlive the file. */
enum status torch_open(struct torch_file *f, const char *path, struct arena *a);
/* No effect on a zeroed struct. */
void torch_close(struct torch_file *f);
/* Whether a value is a tensor or a parameter, valid or not. */
bool torch_is_tensor(const struct pickle_value *v);
/* Finds a tensor: its data is in the file, but has not been read. `name` is for messages.
 * ST_UNSUPPORTED: its elements are not in order (a transposed view), or it has more than
 * SAFETENSORS_RANK_MAX dimensions. */
enum status torch_tensor(const struct torch_file *f, const char *name, const struct pickle_value *v,
                         struct torch_tensor *ret);
/* Compares the checksum of a tensor's storage, once for each storage; for callers that read the
 * bytes by themselves. One thread at a time. */
enum status torch_check(const struct torch_file *f, const struct torch_tensor *t);
/* Reads a tensor's data, t->bytes of them, and checks it as torch_check does. */
enum status torch_read(const struct torch_file *f, const struct torch_tensor *t, void *ret);

#endif
