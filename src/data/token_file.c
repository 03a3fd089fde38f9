#include "data/token_file.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_AT_ONCE = 16384, LANES = 16 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tokens are used as they are stored, so this machine must be little-endian");

enum status token_file_open(struct token_file *f, const struct token_file *like, const char *source)
{
    int fd;
    int64_t bytes;
    TRY(file_open(like->path, &fd, &bytes));
    int64_t data = bytes - like->first_byte, size = like->bytes_per_token;
    if (data < 0 || data % size != 0 || data / size != like->count) {
        close(fd);
        return fail(ST_FORMAT, "%s has %lld bytes, but %s says %lld tokens, which are %lld bytes",
                    like->path, (long long)bytes, source, (long long)like->count,
                    (long long)(like->first_byte + like->count * size));
    }
    *f = *like;
    f->fd = fd;
    f->memory = NULL;
    return ST_OK;
}

void token_file_close(struct token_file *f)
{
    if (f->path) close(f->fd);
    free(f->memory);
    *f = (struct token_file){};
}

static enum status read_raw(const struct token_file *f, int64_t first, int64_t n, void *ret)
{
    int64_t size = f->bytes_per_token;
    return file_read_range(f->fd, f->path, f->first_byte + first * size, n * size, ret);
}

/* The inner loop has a fixed length and no branch, so the compiler vectorizes it. */
static bool all_below(const int32_t *token, int64_t n, int vocabulary)
{
    uint32_t most[LANES] = {};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            uint32_t id = (uint32_t)token[i + k];
            most[k] = id > most[k] ? id : most[k];
        }
    for (; i < n; i++) most[0] = (uint32_t)token[i] > most[0] ? (uint32_t)token[i] : most[0];
    for (int k = 0; k < LANES; k++)
        if (most[k] >= (uint32_t)vocabulary) return n == 0;
    return true;
}

/* Reports the first of the tokens that is not below the vocabulary; there must be such a token.
 * token[0] is token `first` of the file. */
static enum status fail_token(const struct token_file *f, int64_t first, const int32_t *token,
                              int vocabulary)
{
    int64_t i = 0;
    while ((uint32_t)token[i] < (uint32_t)vocabulary) i++;
    return fail(ST_FORMAT, "%s: token %lld is %lld, but the vocabulary has only %d tokens", f->path,
                (long long)(first + i), (long long)(uint32_t)token[i], vocabulary);
}

/* Converts tokens from the width of the file to ids. `raw` and `ret` must not overlap. */
static void widen(const struct token_file *f, const void *raw, int64_t n, int32_t *ret)
{
    const uint16_t *narrow = raw;
    if (f->bytes_per_token == sizeof *ret)
        memcpy(ret, raw, (size_t)n * sizeof *ret);
    else
        for (int64_t i = 0; i < n; i++) ret[i] = narrow[i];
}

static enum status read_ids(const struct token_file *f, int64_t first, int64_t n, int32_t *ret)
{
    uint16_t narrow[READ_AT_ONCE];
    if (f->bytes_per_token == sizeof *ret) return read_raw(f, first, n, ret);
    for (int64_t done = 0; done < n; done += READ_AT_ONCE) {
        int64_t some = min_i64(n - done, READ_AT_ONCE);
        TRY(read_raw(f, first + done, some, narrow));
        widen(f, narrow, some, ret + done);
    }
    return ST_OK;
}

static void *in_memory(const struct token_file *f, int64_t first)
{
    return (char *)f->memory + first * f->bytes_per_token;
}

enum status token_file_read(const struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            int32_t *ret)
{
    BUG_IF(first < 0 || n < 0 || first > f->count - n, "tokens %lld to %lld of %lld",
           (long long)first, (long long)(first + n), (long long)f->count);
    if (f->memory) {
        widen(f, in_memory(f, first), n, ret);
        return ST_OK;
    }
    TRY(read_ids(f, first, n, ret));
    return all_below(ret, n, vocabulary) ? ST_OK : fail_token(f, first, ret, vocabulary);
}

void token_file_keep(struct token_file *f)
{
    if (!f->memory) f->memory = malloc((size_t)(f->count * f->bytes_per_token));
}

enum status token_file_scan(struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            struct hash *h, enum status *ret_tokens)
{
    static _Thread_local union {
        uint16_t narrow[READ_AT_ONCE];
        int32_t wide[READ_AT_ONCE];
    } buffer;
    static _Thread_local int32_t ids[READ_AT_ONCE];
    for (int64_t done = 0; done < n; done += READ_AT_ONCE) {
        int64_t at = first + done, some = min_i64(n - done, READ_AT_ONCE);
        void *raw = f->memory ? in_memory(f, at) : &buffer;
        TRY(read_raw(f, at, some, raw));
        if (h) hash_add(h, raw, some * f->bytes_per_token);
        widen(f, raw, some, ids);
        if (*ret_tokens == ST_OK && !all_below(ids, some, vocabulary))
            *ret_tokens = fail_token(f, at, ids, vocabulary);
    }
    return ST_OK;
}
