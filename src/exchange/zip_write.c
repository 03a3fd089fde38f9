/* Writes the sizes and the checksum of an entry before its data, since the whole entry is in
 * memory. */
#include "exchange/crc32.h"
#include "exchange/zip.h"
#include "exchange/zip_format.h"

#include <string.h>

/* A record that is being assembled. */
struct record {
    uint8_t byte[128];
    int n;
};

static void put(struct record *r, int bytes, int64_t number)
{
    for (int i = 0; i < bytes; i++) r->byte[r->n++] = (uint8_t)((uint64_t)number >> 8 * i);
}

static void write_bytes(struct zip_writer *w, const void *data, int64_t n)
{
    w->at += n;
    file_writer_add(&w->file, data, n);
}

static void write_record(struct zip_writer *w, const struct record *r)
{
    write_bytes(w, r->byte, r->n);
}

static int64_t narrowed(const struct zip_writer *w, int64_t number)
{
    return number >= w->narrow ? ZIP_WIDE32 : number;
}

/* Appends the fields that both headers of an entry have, from the flags to the name's length. */
static void put_common(struct record *r, const struct zip_writer *w, const struct zip_entry *e)
{
    enum { DATE = 1 << 5 | 1 }; /* 1980-01-01 */
    put(r, 2, ZIP_UTF8);
    put(r, 2, 0); /* stored */
    put(r, 2, 0);
    put(r, 2, DATE);
    put(r, 4, e->crc);
    put(r, 4, narrowed(w, e->bytes));
    put(r, 4, narrowed(w, e->bytes));
    put(r, 2, (int64_t)strlen(e->name));
}

enum { VERSION = 45 /* 4.5, the first with zip64 */, PADDING = 'F' | 'B' << 8 };

static void write_local(struct zip_writer *w, const struct zip_entry *e)
{
    struct record r = {}, extra = {};
    uint8_t letters[ZIP_ALIGNMENT];
    if (e->bytes >= w->narrow) {
        put(&extra, 2, ZIP_EXTRA64);
        put(&extra, 2, 16);
        put(&extra, 8, e->bytes);
        put(&extra, 8, e->bytes);
    }
    /* As torch.save does, adds an extra field of 4 bytes and as many letters as align the data. */
    int64_t name = (int64_t)strlen(e->name), at = w->at + ZIP_LOCAL_BYTES + name + extra.n + 4;
    int64_t padding = round_up(at, ZIP_ALIGNMENT) - at;
    put(&extra, 2, PADDING);
    put(&extra, 2, padding);
    put(&r, 4, ZIP_LOCAL);
    put(&r, 2, VERSION);
    put_common(&r, w, e);
    put(&r, 2, extra.n + padding);
    write_record(w, &r);
    write_bytes(w, e->name, name);
    write_record(w, &extra);
    memset(letters, 'Z', sizeof letters);
    write_bytes(w, letters, padding);
}

static void write_directory_record(struct zip_writer *w, const struct zip_entry *e)
{
    struct record r = {}, extra = {};
    bool wide = e->bytes >= w->narrow, far = e->header >= w->narrow;
    if (wide || far) {
        put(&extra, 2, ZIP_EXTRA64);
        put(&extra, 2, 16 * wide + 8 * far);
    }
    if (wide) put(&extra, 8, e->bytes);
    if (wide) put(&extra, 8, e->bytes);
    if (far) put(&extra, 8, e->header);
    put(&r, 4, ZIP_DIRECTORY);
    put(&r, 2, VERSION);
    put(&r, 2, VERSION);
    put_common(&r, w, e);
    put(&r, 2, extra.n);
    put(&r, 2, 0); /* comment */
    put(&r, 2, 0); /* part */
    put(&r, 2, 0); /* attributes */
    put(&r, 4, 0);
    put(&r, 4, narrowed(w, e->header));
    write_record(w, &r);
    write_bytes(w, e->name, (int64_t)strlen(e->name));
    write_record(w, &extra);
}

static void write_end64(struct zip_writer *w, int64_t from, int64_t bytes)
{
    struct record r = {};
    int64_t at = w->at;
    put(&r, 4, ZIP_END64);
    put(&r, 8, ZIP_END64_BYTES - 12);
    put(&r, 2, VERSION);
    put(&r, 2, VERSION);
    put(&r, 4, 0);
    put(&r, 4, 0);
    put(&r, 8, w->count);
    put(&r, 8, w->count);
    put(&r, 8, bytes);
    put(&r, 8, from);
    put(&r, 4, ZIP_LOCATOR64);
    put(&r, 4, 0);
    put(&r, 8, at);
    put(&r, 4, 1);
    write_record(w, &r);
}

static void write_end(struct zip_writer *w)
{
    int64_t from = w->at;
    for (int i = 0; i < w->count; i++) write_directory_record(w, &w->entry[i]);
    int64_t bytes = w->at - from, count = min_i64(w->count, ZIP_WIDE16);
    if (count == ZIP_WIDE16 || bytes >= w->narrow || from >= w->narrow) write_end64(w, from, bytes);
    struct record r = {};
    put(&r, 4, ZIP_END);
    put(&r, 4, 0); /* parts */
    put(&r, 2, count);
    put(&r, 2, count);
    put(&r, 4, narrowed(w, bytes));
    put(&r, 4, narrowed(w, from));
    put(&r, 2, 0); /* comment */
    write_record(w, &r);
}

enum status zip_writer_open(struct zip_writer *w, const char *path, struct arena *a)
{
    *w = (struct zip_writer){.narrow = ZIP_WIDE32, .arena = a};
    return file_writer_open(&w->file, path);
}

void zip_writer_add(struct zip_writer *w, const char *name, const void *data, int64_t bytes)
{
    BUG_IF(!*name || strlen(name) > UINT16_MAX, "the length of the name of an entry");
    for (int i = 0; i < w->count; i++)
        BUG_IF(!strcmp(w->entry[i].name, name), "two entries have the name %s", name);
    ARENA_GROW(w->arena, w->entry, w->count, w->capacity);
    struct zip_entry *e = &w->entry[w->count++];
    *e = (struct zip_entry){.name = arena_strdup(w->arena, name), .bytes = bytes};
    e->crc = crc32_add(0, data, bytes);
    e->header = w->at;
    write_local(w, e);
    e->from = w->at;
    write_bytes(w, data, bytes);
}

enum status zip_writer_commit(struct zip_writer *w)
{
    write_end(w);
    return file_writer_commit(&w->file);
}

void zip_writer_discard(struct zip_writer *w)
{
    file_writer_discard(&w->file);
}
