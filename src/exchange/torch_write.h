/* torch_write.h - writes files that torch.load of PyTorch 1.6 or later reads, even with
 * weights_only=True.
 *
 *     TRY(torch_writer_open(&w, path, a));
 *     int wte = torch_put_storage(&w, SAFETENSORS_F32, weights, 50304 * 768);
 *     torch_begin(&w, TORCH_DICT);
 *     torch_put_text(&w, "wte.weight");
 *     torch_put_tensor(&w, wte, 0, 2, (int64_t[]){50304, 768});
 *     torch_end(&w);
 *     TRY(torch_writer_commit(&w));
 *
 * A file has one value, most often a dictionary. Between torch_begin and torch_end of a dictionary,
 * keys and values alternate. A call in a wrong place is a BUG. torch_writer_commit reports the
 * first write error. */
#ifndef EXCHANGE_TORCH_WRITE_H
#define EXCHANGE_TORCH_WRITE_H

#include "base/str.h"
#include "data/safetensors.h"
#include "exchange/zip.h"

enum { TORCH_DEPTH_MOST = 16 };

enum torch_kind { TORCH_DICT, TORCH_ORDERED_DICT, TORCH_LIST, TORCH_TUPLE };

struct torch_writer {
    struct zip_writer zip;
    /* private to torch_write.c */
    struct str pickle;
    struct {
        enum torch_kind kind;
        int64_t values;
    } open[TORCH_DEPTH_MOST + 1]; /* [0]: the file */
    int depth;
    struct torch_storage {
        enum safetensors_type type;
        int64_t elements;
    } * storage;
    int storages, capacity;
};

/* Begins a file. The arena must live until the commit. The commit replaces any file at `path`. */
enum status torch_writer_open(struct torch_writer *w, const char *path, struct arena *a);
/* Writes the data of a storage immediately; returns its number. Can be called at any time. */
int torch_put_storage(struct torch_writer *w, enum safetensors_type type, const void *data,
                      int64_t elements);
/* Writes a tensor whose contiguous elements begin at element `from` of a storage. Tensors can share
 * elements. */
void torch_put_tensor(struct torch_writer *w, int storage, int64_t from, int rank,
                      const int64_t *dim);
/* `text` is UTF-8. */
void torch_put_text(struct torch_writer *w, const char *text);
void torch_put_number(struct torch_writer *w, int64_t number);
void torch_put_real(struct torch_writer *w, double number);
void torch_put_bool(struct torch_writer *w, bool value);
void torch_put_none(struct torch_writer *w);
void torch_begin(struct torch_writer *w, enum torch_kind kind);
void torch_end(struct torch_writer *w);
/* Writes the pickle, syncs the file and gives it its name; on failure removes the file. */
enum status torch_writer_commit(struct torch_writer *w);
void torch_writer_discard(struct torch_writer *w);

#endif
