#include "base/unpack.h"

#include "base/file.h"
#include "base/heap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

enum { BUFFER = 1 << 17 };

struct unpack {
    const char *name;
    int fd;
    int64_t consumed;
    char buffer[BUFFER]; /* of the file */
    int64_t at, filled;
    bool ended;  /* the end of the file was read */
    bool inside; /* a compressed stream has begun */
    enum status (*read)(struct unpack *u, char *ret, int64_t most, int64_t *ret_bytes);
#ifdef HAVE_ZLIB
    z_stream zlib;
    bool stream_ended; /* a stream has ended, which zeros may follow */
    bool has_zlib;
#endif
#ifdef HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
};

static enum status fill(struct unpack *u)
{
    int64_t n;
    if (u->at < u->filled || u->ended) return ST_OK;
    TRY(file_read_next(u->fd, u->name, u->buffer, BUFFER, &n));
    u->at = 0;
    u->filled = n;
    u->consumed += n;
    u->ended = n == 0;
    return ST_OK;
}

static enum status read_plain(struct unpack *u, char *ret, int64_t most, int64_t *ret_bytes)
{
    TRY(fill(u));
    int64_t n = min_i64(most, u->filled - u->at);
    if (n > 0) memcpy(ret, u->buffer + u->at, (size_t)n);
    u->at += n;
    *ret_bytes = n;
    return ST_OK;
}

#if defined HAVE_ZLIB || defined HAVE_ZSTD
static enum status fail_cut(const struct unpack *u)
{
    return fail(ST_FORMAT, "%s is cut: its compressed text does not end", u->name);
}

static enum status fail_damaged(const struct unpack *u, const char *why)
{
    return fail(ST_FORMAT, "%s is damaged: %s", u->name, why);
}
#endif

#ifdef HAVE_ZLIB
/* A file may have several streams, one after the other. */
static enum status read_zlib(struct unpack *u, char *ret, int64_t most, int64_t *ret_bytes)
{
    z_stream *z = &u->zlib;
    z->next_out = (Bytef *)ret;
    z->avail_out = (uInt)min_i64(most, 1 << 30);
    uInt available = z->avail_out;
    while (z->avail_out == available) {
        TRY(fill(u));
        /* Tapes and some programs pad the last block with zeros. */
        while (u->stream_ended && !u->inside && u->at < u->filled && !u->buffer[u->at]) u->at++;
        if (u->at == u->filled) {
            if (u->inside) return fail_cut(u);
            if (u->ended) break;
            continue;
        }
        z->next_in = (Bytef *)u->buffer + u->at;
        z->avail_in = (uInt)(u->filled - u->at);
        u->inside = true;
        int st = inflate(z, Z_NO_FLUSH);
        u->at = u->filled - z->avail_in;
        if (st == Z_STREAM_END) {
            u->inside = false;
            u->stream_ended = true;
            inflateReset(z);
        } else if (st != Z_OK && st != Z_BUF_ERROR) {
            return fail_damaged(u, z->msg ? z->msg : "it is no gzip file");
        }
    }
    *ret_bytes = available - z->avail_out;
    return ST_OK;
}
#endif

#ifdef HAVE_ZSTD
static enum status read_zstd(struct unpack *u, char *ret, int64_t most, int64_t *ret_bytes)
{
    ZSTD_outBuffer out = {ret, (size_t)most, 0};
    while (out.pos == 0) {
        TRY(fill(u));
        if (u->at == u->filled) {
            if (u->inside) return fail_cut(u);
            break;
        }
        ZSTD_inBuffer in = {u->buffer + u->at, (size_t)(u->filled - u->at), 0};
        size_t left = ZSTD_decompressStream(u->zstd, &out, &in);
        if (ZSTD_isError(left)) return fail_damaged(u, ZSTD_getErrorName(left));
        u->at += (int64_t)in.pos;
        u->inside = left != 0;
    }
    *ret_bytes = (int64_t)out.pos;
    return ST_OK;
}
#endif

/* First bytes of compressed files, and the command that prints their contents. */
static const struct packed {
    const char *begin, *command;
} packed[] = {
    {"\x1f\x8b", "gunzip -c"}, {"\x28\xb5\x2f\xfd", "zstd -dc"}, {"\x50\x2a\x4d\x18", "zstd -dc"},
    {"BZh91AY", "bunzip2 -c"}, {"\xfd\x37zXZ", "xz -dc"},        {"PK\x03\x04", "unzip -p"},
};
/* Indices into `packed`. Files of pzstd begin with a skippable frame, ZSTD_SKIPPED. */
enum { GZIP, ZSTD, ZSTD_SKIPPED };

static bool begin_packed(struct unpack *u, int kind)
{
#ifdef HAVE_ZLIB
    enum { WINDOW = 15 + 16 }; /* 15: a window of 32 KiB; 16: a gzip header */
    if (kind == GZIP) {
        u->has_zlib = inflateInit2(&u->zlib, WINDOW) == Z_OK;
        u->read = read_zlib;
        return u->has_zlib;
    }
#endif
#ifdef HAVE_ZSTD
    if (kind == ZSTD || kind == ZSTD_SKIPPED) {
        u->zstd = ZSTD_createDStream();
        u->read = read_zstd;
        return u->zstd;
    }
#endif
    (void)u, (void)kind;
    return false;
}

static enum status recognize(struct unpack *u)
{
    TRY(fill(u));
    u->read = read_plain;
    for (int i = 0; i < COUNT_OF(packed); i++) {
        int64_t n = (int64_t)strlen(packed[i].begin);
        if (u->filled < n || memcmp(u->buffer, packed[i].begin, (size_t)n) != 0) continue;
        if (begin_packed(u, i)) return ST_OK;
        return fail(ST_UNSUPPORTED,
                    "%s is compressed: unpack it first, as in `%s FILE > text.txt`, and give "
                    "text.txt",
                    u->name, packed[i].command);
    }
    return ST_OK;
}

enum status unpack_open(struct unpack **ret, int fd, const char *name)
{
    struct unpack *u = HEAP_NEW(struct unpack, 1);
    u->name = name;
    u->fd = fd;
    enum status st = recognize(u);
    if (st == ST_OK)
        *ret = u;
    else
        unpack_close(u);
    return st;
}

enum status unpack_read(struct unpack *u, char *ret, int64_t most, int64_t *ret_bytes)
{
    return u->read(u, ret, most, ret_bytes);
}

int64_t unpack_consumed(const struct unpack *u)
{
    return u->consumed - (u->filled - u->at);
}

void unpack_close(struct unpack *u)
{
    if (!u) return;
#ifdef HAVE_ZLIB
    if (u->has_zlib) inflateEnd(&u->zlib);
#endif
#ifdef HAVE_ZSTD
    ZSTD_freeDStream(u->zstd);
#endif
    close(u->fd);
    free(u);
}
