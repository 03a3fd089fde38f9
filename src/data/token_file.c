#include "data/token_file.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKEN_BYTES = sizeof(uint16_t), VERIFIED_AT_ONCE = 32768, LANES = 16 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tokens are used as they are stored, so this machine must be little-endian");

enum status token_file_open(struct token_file *f, const char *path, int64_t count)
{
    int fd;
    int64_t bytes;
    TRY(file_open_at(NULL, path, &fd, &bytes));
    if (bytes % TOKEN_BYTES != 0 || bytes / TOKEN_BYTES != count) {
        close(fd);
        return fail(ST_FORMAT, "%s has %lld bytes, but meta.json says %lld", path, (long long)bytes,
                    (long long)count * TOKEN_BYTES);
    }
    *f = (struct token_file){.path = path, .fd = fd, .count = count};
    return ST_OK;
}

void token_file_close(struct token_file *f)
{
    if (f->path) close(f->fd);
    free(f->memory);
    *f = (struct token_file){};
}

static enum status read_raw(const struct token_file *f, int64_t first, int64_t n, uint16_t *ret)
{
    return file_read_range(f->fd, f->path, first * TOKEN_BYTES, n * TOKEN_BYTES, ret);
}

/* The inner loop has a fixed length and no branch, so the compiler vectorizes it. */
static bool all_below(const uint16_t *token, int64_t n, int vocabulary)
{
    uint16_t most[LANES] = {};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) most[k] = token[i + k] > most[k] ? token[i + k] : most[k];
    for (; i < n; i++) most[0] = token[i] > most[0] ? token[i] : most[0];
    for (int k = 0; k < LANES; k++)
        if (most[k] >= vocabulary) return n == 0;
    return true;
}

/* `token` has one that is too large; it stands at `first` in the file. */
static enum status fail_token(const struct token_file *f, int64_t first, const uint16_t *token,
                              int vocabulary)
{
    int64_t i = 0;
    while (token[i] < vocabulary) i++;
    return fail(ST_FORMAT, "%s: token %lld is %d, but the vocabulary has %d", f->path,
                (long long)(first + i), token[i], vocabulary);
}

enum status token_file_read(const struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            uint16_t *ret)
{
    BUG_IF(first < 0 || n < 0 || first > f->count - n, "tokens %lld to %lld of %lld",
           (long long)first, (long long)(first + n), (long long)f->count);
    if (f->memory) {
        memcpy(ret, f->memory + first, (size_t)n * TOKEN_BYTES);
        return ST_OK;
    }
    TRY(read_raw(f, first, n, ret));
    return all_below(ret, n, vocabulary) ? ST_OK : fail_token(f, first, ret, vocabulary);
}

/* `memory` may be NULL. *ret_tokens tells of the first token that is too large; the rest is hashed
 * all the same, since a wrong digest is the better answer. */
static enum status hash_tokens(const struct token_file *f, int vocabulary, uint16_t *memory,
                               struct hash *h, enum status *ret_tokens)
{
    static _Thread_local uint16_t buffer[VERIFIED_AT_ONCE];
    *ret_tokens = ST_OK;
    for (int64_t at = 0; at < f->count; at += VERIFIED_AT_ONCE) {
        int64_t n = min_i64(f->count - at, VERIFIED_AT_ONCE);
        uint16_t *token = memory ? memory + at : buffer;
        TRY(read_raw(f, at, n, token));
        hash_add(h, token, n * TOKEN_BYTES);
        if (*ret_tokens == ST_OK && !all_below(token, n, vocabulary))
            *ret_tokens = fail_token(f, at, token, vocabulary);
    }
    return ST_OK;
}

static enum status verify(const struct token_file *f, const char sha256[HASH_HEX], int vocabulary,
                          uint16_t *memory)
{
    enum status tokens;
    char digest[HASH_HEX];
    struct hash *h = hash_open();
    enum status st = hash_tokens(f, vocabulary, memory, h, &tokens);
    hash_close(h, digest);
    TRY(st);
    if (strcmp(digest, sha256) != 0)
        return fail(ST_FORMAT,
                    "%s is corrupt: its SHA-256 is %.12s..., but meta.json says %.12s...", f->path,
                    digest, sha256);
    return tokens;
}

enum status token_file_verify(struct token_file *f, const char sha256[HASH_HEX], int vocabulary)
{
    int64_t bytes = f->count * TOKEN_BYTES;
    uint16_t *memory = bytes <= TOKEN_FILE_MEMORY ? malloc((size_t)bytes) : NULL;
    enum status st = verify(f, sha256, vocabulary, memory);
    if (st == ST_OK)
        f->memory = memory;
    else
        free(memory);
    return st;
}
