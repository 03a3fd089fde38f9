/* Writes pickles of protocol 2 with instructions that weights_only=True allows. The pickles use no
 * memo; torch.load shares storages by their keys. */
#include "exchange/torch_write.h"

#include "base/checked.h"
#include "exchange/torch_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Instructions of pickle; data/pickle.c has their names. */
#define ORDERED_DICT "ccollections\nOrderedDict\n)R"

static void put_bytes(struct torch_writer *w, const void *bytes, int64_t n)
{
    str_append_bytes(&w->pickle, bytes, n);
}

static void put_code(struct torch_writer *w, const char *codes)
{
    put_bytes(w, codes, (int64_t)strlen(codes));
}

/* An instruction with a little-endian number. */
static void put_coded(struct torch_writer *w, char code, int bytes, int64_t number)
{
    put_bytes(w, &code, 1);
    put_bytes(w, &number, bytes);
}

static void put_value(struct torch_writer *w)
{
    int64_t values = w->open[w->depth].values++;
    BUG_IF(!w->depth && values, "a file of torch.save has one value");
}

static void put_number(struct torch_writer *w, int64_t number)
{
    if (number >= 0 && number <= UINT8_MAX) {
        put_coded(w, 'K', 1, number);
    } else if (number >= INT32_MIN && number <= INT32_MAX) {
        put_coded(w, 'J', 4, number);
    } else {
        put_coded(w, '\x8a', 1, 8);
        put_bytes(w, &number, 8);
    }
}

static void put_text(struct torch_writer *w, const char *text)
{
    int64_t n = (int64_t)strlen(text);
    put_coded(w, 'X', 4, n);
    put_bytes(w, text, n);
}

enum status torch_writer_open(struct torch_writer *w, const char *path, struct arena *a)
{
    *w = (struct torch_writer){};
    TRY(zip_writer_open(&w->zip, path, a));
    put_code(w, "\x80\x02");
    return ST_OK;
}

int torch_put_storage(struct torch_writer *w, enum safetensors_type type, const void *data,
                      int64_t elements)
{
    char name[64];
    ARENA_GROW(w->zip.arena, w->storage, w->storages, w->capacity);
    w->storage[w->storages] = (struct torch_storage){type, elements};
    snprintf(name, sizeof name, "archive/data/%d", w->storages);
    zip_writer_add(&w->zip, name, data, elements * torch_types[type].bytes);
    return w->storages++;
}

static void put_tuple(struct torch_writer *w, int rank, const int64_t *number)
{
    put_code(w, "(");
    for (int i = 0; i < rank; i++) put_number(w, number[i]);
    put_code(w, "t");
}

void torch_put_tensor(struct torch_writer *w, int storage, int64_t from, int rank,
                      const int64_t *dim)
{
    BUG_IF(storage < 0 || storage >= w->storages, "storage %d of %d", storage, w->storages);
    BUG_IF(rank > SAFETENSORS_RANK_MAX, "a tensor of rank %d", rank);
    const struct torch_storage *s = &w->storage[storage];
    int64_t elements = 1, stride[SAFETENSORS_RANK_MAX];
    for (int i = rank - 1; i >= 0; i--) {
        stride[i] = elements;
        elements = size_mul(elements, dim[i]);
    }
    BUG_IF(from < 0 || size_add(from, elements) > s->elements, "a tensor beyond its storage");
    char key[16];
    snprintf(key, sizeof key, "%d", storage);
    put_value(w);
    put_code(w, "c" TORCH_UTILS "\n" TORCH_TENSOR "\n((");
    put_text(w, "storage");
    put_code(w, "ctorch\n");
    put_code(w, torch_types[s->type].storage);
    put_code(w, "\n");
    put_text(w, key);
    put_text(w, "cpu");
    put_number(w, s->elements);
    put_code(w, "tQ");
    put_number(w, from);
    put_tuple(w, rank, dim);
    put_tuple(w, rank, stride);
    put_code(w, "\x89" ORDERED_DICT "tR"); /* requires_grad=False, no hooks */
}

void torch_put_text(struct torch_writer *w, const char *text)
{
    put_value(w);
    put_text(w, text);
}

void torch_put_number(struct torch_writer *w, int64_t number)
{
    put_value(w);
    put_number(w, number);
}

void torch_put_real(struct torch_writer *w, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = __builtin_bswap64(bits);
    put_value(w);
    put_code(w, "G");
    put_bytes(w, &bits, sizeof bits);
}

void torch_put_bool(struct torch_writer *w, bool value)
{
    put_value(w);
    put_code(w, value ? "\x88" : "\x89");
}

void torch_put_none(struct torch_writer *w)
{
    put_value(w);
    put_code(w, "N");
}

/* --- values in values ------------------------------------------------------------------------- */

static const struct {
    const char *begin, *end;
} codes[] = {
    [TORCH_DICT] = {"}(", "u"},
    [TORCH_ORDERED_DICT] = {ORDERED_DICT "(", "u"},
    [TORCH_LIST] = {"](", "e"},
    [TORCH_TUPLE] = {"(", "t"},
};

void torch_begin(struct torch_writer *w, enum torch_kind kind)
{
    BUG_IF(w->depth == TORCH_DEPTH_MOST, "values are nested too deeply");
    put_value(w);
    put_code(w, codes[kind].begin);
    w->open[++w->depth].kind = kind;
    w->open[w->depth].values = 0;
}

void torch_end(struct torch_writer *w)
{
    BUG_IF(!w->depth, "an end without a begin");
    enum torch_kind kind = w->open[w->depth].kind;
    BUG_IF(kind <= TORCH_ORDERED_DICT && w->open[w->depth].values % 2, "a key without a value");
    put_code(w, codes[kind].end);
    w->depth--;
}

/* --- the file --------------------------------------------------------------------------------- */

static void put_record(struct torch_writer *w, const char *name, const char *text)
{
    zip_writer_add(&w->zip, name, text, (int64_t)strlen(text));
}

/* As PyTorch does, writes a hash of the names and a hash of the checksums, 20 digits each. */
static void put_identity(struct torch_writer *w)
{
    uint64_t names = 0xcbf29ce484222325, sums = names; /* FNV-1a */
    for (int i = 0; i < w->zip.count; i++) {
        for (const char *c = w->zip.entry[i].name; *c; c++)
            names = (names ^ (uint8_t)*c) * 0x100000001b3;
        sums = (sums ^ w->zip.entry[i].crc) * 0x100000001b3;
    }
    char text[64];
    snprintf(text, sizeof text, "%020" PRIu64 "%020" PRIu64, names, sums);
    put_record(w, "archive/.data/serialization_id", text);
}

enum status torch_writer_commit(struct torch_writer *w)
{
    BUG_IF(w->depth || w->open[0].values != 1, "the value of a file is not complete");
    put_code(w, ".");
    zip_writer_add(&w->zip, "archive/data.pkl", w->pickle.data, w->pickle.len);
    str_release(&w->pickle);
    put_record(w, "archive/.format_version", "1");
    put_record(w, "archive/.storage_alignment", "64");
    put_record(w, "archive/byteorder", "little");
    put_record(w, "archive/version", "3\n");
    put_identity(w);
    return zip_writer_commit(&w->zip);
}

void torch_writer_discard(struct torch_writer *w)
{
    str_release(&w->pickle);
    zip_writer_discard(&w->zip);
}
