/* Reads zip files without trusting them. Sizes are compared with the size of the file before memory
 * is allocated. The entries are sorted by offset; each entry must begin after the data of the entry
 * before, and the last entry must end before the directory. So entries do not overlap, and all data
 * is inside the file. */
#include "exchange/zip.h"

#include "exchange/crc32.h"
#include "exchange/zip_format.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAIL_MOST = ZIP_LOCATOR64_BYTES + ZIP_END_BYTES + UINT16_MAX, PIECE = 1 << 20 };

/* A little-endian number of n <= 8 bytes. */
static uint64_t get(const uint8_t *at, int n)
{
    uint64_t number = 0;
    for (int i = 0; i < n; i++) number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static enum status fail_zip(const struct zip_file *z, const char *what)
{
    return fail(ST_FORMAT, "%s: %s: the file is damaged or no zip file of torch.save", z->path,
                what);
}

static enum status fail_parts(const struct zip_file *z)
{
    return fail(ST_UNSUPPORTED,
                "%s is one part of a zip file of several; join the parts before you read it",
                z->path);
}

static enum status fail_entry(const struct zip_file *z, const struct zip_entry *e, const char *what)
{
    return fail(ST_FORMAT, "%s: entry %.200s %s: the file is damaged", z->path, e->name, what);
}

/* --- the end of the file ---------------------------------------------------------------------- */

struct directory {
    uint64_t count, bytes, from;
    uint64_t end; /* offset of the record that follows the directory */
};

static bool agrees(uint64_t narrow, uint64_t wide, uint64_t most)
{
    return narrow == most || narrow == wide;
}

/* Reads the zip64 end record. `end` is the end record without 64-bit numbers, at offset `at`. */
static enum status read_end64(const struct zip_file *z, const uint8_t *locator, const uint8_t *end,
                              uint64_t at, struct directory *d)
{
    uint8_t wide[ZIP_END64_BYTES];
    uint64_t from = get(locator + 8, 8), before = at - ZIP_LOCATOR64_BYTES;
    if (get(locator + 4, 4) || get(locator + 16, 4) > 1) return fail_parts(z);
    if (before < ZIP_END64_BYTES || from > before - ZIP_END64_BYTES)
        return fail_zip(z, "its zip64 end record is beyond the file");
    TRY(file_read_range(z->fd, z->path, (int64_t)from, ZIP_END64_BYTES, wide));
    if (get(wide, 4) != ZIP_END64 || get(wide + 4, 8) != before - from - 12)
        return fail_zip(z, "its zip64 end record is not where the locator says");
    if (get(wide + 16, 4) || get(wide + 20, 4)) return fail_parts(z);
    *d = (struct directory){get(wide + 32, 8), get(wide + 40, 8), get(wide + 48, 8), from};
    if (get(wide + 24, 8) != d->count || !agrees(get(end + 8, 2), d->count, ZIP_WIDE16) ||
        !agrees(get(end + 10, 2), d->count, ZIP_WIDE16) ||
        !agrees(get(end + 12, 4), d->bytes, ZIP_WIDE32) ||
        !agrees(get(end + 16, 4), d->from, ZIP_WIDE32))
        return fail_zip(z, "its two end records disagree");
    return ST_OK;
}

static enum status read_end(const struct zip_file *z, struct arena *a, struct directory *d)
{
    int64_t bytes = min_i64(z->bytes, TAIL_MOST), i = bytes - ZIP_END_BYTES;
    uint8_t *tail = arena_alloc(a, bytes + 1);
    TRY(file_read_range(z->fd, z->path, z->bytes - bytes, bytes, tail));
    while (i >= 0 && (get(tail + i, 4) != ZIP_END ||
                      get(tail + i + 20, 2) != (uint64_t)(bytes - i - ZIP_END_BYTES)))
        i--;
    if (i < 0)
        return fail(ST_FORMAT, "%s is not a zip file, or it is truncated: it has no end record",
                    z->path);
    const uint8_t *end = tail + i;
    uint64_t at = (uint64_t)(z->bytes - bytes + i);
    if (get(end + 4, 2) % ZIP_WIDE16 || get(end + 6, 2) % ZIP_WIDE16) return fail_parts(z);
    if (i >= ZIP_LOCATOR64_BYTES && get(end - ZIP_LOCATOR64_BYTES, 4) == ZIP_LOCATOR64) {
        TRY(read_end64(z, end - ZIP_LOCATOR64_BYTES, end, at, d));
    } else {
        *d = (struct directory){get(end + 10, 2), get(end + 12, 4), get(end + 16, 4), at};
        if (get(end + 8, 2) != d->count) return fail_parts(z);
    }
    if (d->count > ZIP_ENTRIES_MOST || d->bytes > ZIP_DIRECTORY_MOST)
        return fail(ST_UNSUPPORTED,
                    "%s: its directory has %llu entries in %llu bytes, more than the %d in %d that "
                    "are read",
                    z->path, (unsigned long long)d->count, (unsigned long long)d->bytes,
                    ZIP_ENTRIES_MOST, ZIP_DIRECTORY_MOST);
    if (d->count * ZIP_DIRECTORY_BYTES > d->bytes || d->bytes > d->end ||
        d->from != d->end - d->bytes)
        return fail_zip(z, "its directory is not where the end record says");
    return ST_OK;
}

/* --- the directory ---------------------------------------------------------------------------- */

/* Size, stored size and (if has_header) offset of an entry. */
struct sizes {
    uint64_t bytes, stored, header;
    bool has_header;
};

/* Replaces fields with the value ZIP_WIDE32 by their values in the zip64 extra field. */
static bool widen(const uint8_t *extra, uint64_t n, struct sizes *s)
{
    uint64_t *wide[3], count = 0;
    if (s->bytes == ZIP_WIDE32) wide[count++] = &s->bytes;
    if (s->stored == ZIP_WIDE32) wide[count++] = &s->stored;
    if (s->has_header && s->header == ZIP_WIDE32) wide[count++] = &s->header;
    if (!count) return true;
    while (n >= 4) {
        uint64_t id = get(extra, 2), length = get(extra + 2, 2);
        if (length > n - 4) return false;
        if (id == ZIP_EXTRA64 && length >= 8 * count) {
            for (uint64_t i = 0; i < count; i++) *wide[i] = get(extra + 4 + 8 * i, 8);
            return true;
        }
        extra += 4 + length;
        n -= 4 + length;
    }
    return false;
}

/* Whether a name is safe for programs that extract the file; Strobe itself extracts nothing. */
static bool is_safe_name(const char *name, uint64_t n)
{
    if (!n || memchr(name, 0, n) || *name == '/' || *name == '\\') return false;
    for (uint64_t begin = 0, i = 0; i <= n; i++) {
        if (i < n && name[i] != '/' && name[i] != '\\') continue;
        if (i - begin == 2 && !memcmp(name + begin, "..", 2)) return false;
        begin = i + 1;
    }
    return true;
}

static enum status check_method(const struct zip_file *z, const struct zip_entry *e, int method)
{
    if (e->flags & ZIP_ENCRYPTED)
        return fail(ST_UNSUPPORTED, "%s: entry %.200s is encrypted; torch.save does not encrypt",
                    z->path, e->name);
    if (method)
        return fail(ST_UNSUPPORTED,
                    "%s: entry %.200s is compressed; torch.save stores without compression, so "
                    "unpack the file and make one by `zip -0`",
                    z->path, e->name);
    return ST_OK;
}

/* Reads the directory record at `at`, where `left` bytes are left; *ret is its length. */
static enum status read_record(const struct zip_file *z, const uint8_t *at, uint64_t left,
                               struct arena *a, struct zip_entry *e, uint64_t *ret)
{
    if (left < ZIP_DIRECTORY_BYTES || get(at, 4) != ZIP_DIRECTORY)
        return fail_zip(z, "its directory has an invalid record");
    uint64_t name = get(at + 28, 2), extra = get(at + 30, 2), comment = get(at + 32, 2);
    const char *text = (const char *)at + ZIP_DIRECTORY_BYTES;
    *ret = ZIP_DIRECTORY_BYTES + name + extra + comment;
    if (*ret > left) return fail_zip(z, "a record reaches beyond its directory");
    e->name = arena_printf(a, "%.*s", (int)name, text);
    if (!is_safe_name(text, name))
        return fail_entry(z, e, "has an absolute name, one with \"..\", or none");
    e->flags = (int)get(at + 8, 2);
    e->crc = (uint32_t)get(at + 16, 4);
    TRY(check_method(z, e, (int)get(at + 10, 2)));
    struct sizes s = {get(at + 24, 4), get(at + 20, 4), get(at + 42, 4), true};
    if (!widen(at + ZIP_DIRECTORY_BYTES + name, extra, &s))
        return fail_entry(z, e, "has no zip64 sizes");
    if (get(at + 34, 2) % ZIP_WIDE16) return fail_parts(z);
    if (s.bytes != s.stored || s.bytes > (uint64_t)z->bytes || s.header > (uint64_t)z->bytes)
        return fail_entry(z, e, "reaches beyond the file");
    e->bytes = (int64_t)s.bytes;
    e->header = (int64_t)s.header;
    return ST_OK;
}

/* Checks that the local header agrees with the directory; sets e->from. Data must end at `end`. */
static enum status read_local(const struct zip_file *z, struct zip_entry *e, int64_t end,
                              uint8_t *buffer)
{
    int64_t name = (int64_t)strlen(e->name);
    if (e->header > end - ZIP_LOCAL_BYTES) return fail_entry(z, e, "reaches beyond the file");
    TRY(file_read_range(z->fd, z->path, e->header, ZIP_LOCAL_BYTES, buffer));
    const uint8_t *at = buffer;
    int64_t extra = (int64_t)get(at + 28, 2);
    e->from = e->header + ZIP_LOCAL_BYTES + name + extra;
    if (e->from > end || e->bytes > end - e->from)
        return fail_entry(z, e, "reaches beyond the file");
    uint8_t *rest = buffer + ZIP_LOCAL_BYTES;
    TRY(file_read_range(z->fd, z->path, e->header + ZIP_LOCAL_BYTES, name + extra, rest));
    struct sizes s = {get(at + 22, 4), get(at + 18, 4), 0, false};
    uint32_t crc = (uint32_t)get(at + 14, 4);
    bool follow = e->flags & ZIP_SIZES_FOLLOW;
    bool same = get(at, 4) == ZIP_LOCAL && (int)get(at + 6, 2) == e->flags && !get(at + 8, 2) &&
                (int64_t)get(at + 26, 2) == name && !memcmp(rest, e->name, (size_t)name) &&
                widen(rest + name, (uint64_t)extra, &s);
    bool empty = follow && !crc && !s.bytes && !s.stored;
    if (!same || (!empty && (crc != e->crc || s.bytes != (uint64_t)e->bytes ||
                             s.stored != (uint64_t)e->bytes)))
        return fail_entry(z, e, "has a local header that disagrees with the directory");
    return ST_OK;
}

static int by_header(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    return x->header < y->header ? -1 : x->header > y->header;
}

static int by_name(const void *a, const void *b)
{
    const struct zip_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum status check_entries(struct zip_file *z, int64_t end, struct arena *a)
{
    uint8_t *buffer = arena_alloc(a, ZIP_LOCAL_BYTES + 2 * UINT16_MAX);
    qsort(z->entry, (size_t)z->count, sizeof *z->entry, by_header);
    for (int i = 0; i < z->count; i++) {
        struct zip_entry *e = &z->entry[i];
        TRY(read_local(z, e, end, buffer));
        if (i && e->header < e[-1].from + e[-1].bytes)
            return fail_entry(z, e, "overlaps another one");
    }
    qsort(z->entry, (size_t)z->count, sizeof *z->entry, by_name);
    for (int i = 1; i < z->count; i++)
        if (!strcmp(z->entry[i].name, z->entry[i - 1].name))
            return fail_entry(z, &z->entry[i], "is there twice");
    return ST_OK;
}

static enum status read_all(struct zip_file *z, struct arena *a)
{
    struct directory d = {};
    TRY(read_end(z, a, &d));
    uint8_t *at = arena_alloc(a, (int64_t)d.bytes + 1);
    TRY(file_read_range(z->fd, z->path, (int64_t)d.from, (int64_t)d.bytes, at));
    z->count = (int)d.count;
    z->entry = ARENA_NEW(a, struct zip_entry, z->count + 1);
    uint64_t left = d.bytes;
    for (int i = 0; i < z->count; i++) {
        uint64_t n = 0;
        TRY(read_record(z, at, left, a, &z->entry[i], &n));
        at += n;
        left -= n;
    }
    if (left) return fail_zip(z, "its directory has more bytes than its entries");
    return check_entries(z, (int64_t)d.from, a);
}

enum status zip_open(struct zip_file *z, const char *path, struct arena *a)
{
    struct zip_file opened = {.path = arena_strdup(a, path)};
    TRY(file_open(path, &opened.fd, &opened.bytes));
    enum status st = read_all(&opened, a);
    if (st == ST_OK)
        *z = opened;
    else
        zip_close(&opened);
    return st;
}

void zip_close(struct zip_file *z)
{
    if (z->path) close(z->fd);
    *z = (struct zip_file){};
}

const struct zip_entry *zip_find(const struct zip_file *z, const char *name)
{
    struct zip_entry key = {.name = name};
    return bsearch(&key, z->entry, (size_t)z->count, sizeof *z->entry, by_name);
}

/* --- data ------------------------------------------------------------------------------------- */

static enum status compare(const struct zip_file *z, const struct zip_entry *e, uint32_t crc)
{
    if (crc == e->crc) return ST_OK;
    return fail(ST_FORMAT,
                "%s: entry %.200s has the checksum %08x instead of %08x: the file is damaged",
                z->path, e->name, crc, e->crc);
}

enum status zip_read(const struct zip_file *z, const struct zip_entry *e, void *ret)
{
    TRY(file_read_range(z->fd, z->path, e->from, e->bytes, ret));
    return compare(z, e, crc32_add(0, ret, e->bytes));
}

enum status zip_check(const struct zip_file *z, const struct zip_entry *e)
{
    struct arena a = {0};
    uint8_t *piece = arena_alloc(&a, min_i64(e->bytes, PIECE) + 1);
    uint32_t crc = 0;
    enum status st = ST_OK;
    for (int64_t at = 0; at < e->bytes && st == ST_OK; at += PIECE) {
        int64_t n = min_i64(e->bytes - at, PIECE);
        st = file_read_range(z->fd, z->path, e->from + at, n, piece);
        crc = crc32_add(crc, piece, n);
    }
    arena_release(&a);
    return st == ST_OK ? compare(z, e, crc) : st;
}
