#include "data/token_split.h"

int token_bytes(int vocabulary)
{
    return vocabulary <= UINT16_MAX + 1 ? sizeof(uint16_t) : sizeof(uint32_t);
}

enum status token_split_open(struct token_split *s, const struct token_file *like, int files,
                             const char *source, struct arena *a)
{
    *s = (struct token_split){.bytes_per_token = like[0].bytes_per_token};
    s->shard = ARENA_NEW(a, struct shard, files);
    for (; s->files < files; s->files++) {
        struct shard *x = &s->shard[s->files];
        x->first = s->count;
        enum status st = token_file_open(&x->file, &like[s->files], source);
        if (st != ST_OK) {
            token_split_close(s);
            return st;
        }
        s->count += x->file.count;
    }
    return ST_OK;
}

void token_split_close(struct token_split *s)
{
    for (int i = 0; i < s->files; i++) token_file_close(&s->shard[i].file);
    *s = (struct token_split){};
}

/* The last file that begins at or before token `at`, by binary search. */
static int file_of(const struct token_split *s, int64_t at)
{
    int low = 0, high = s->files - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (s->shard[middle].first <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The number of tokens in the file among n tokens from `first` on. */
static int64_t tokens_in(const struct shard *x, int64_t first, int64_t n)
{
    return min_i64(n, x->first + x->file.count - first);
}

enum status token_split_read(const struct token_split *s, int64_t first, int64_t n, int vocabulary,
                             int32_t *ret)
{
    BUG_IF(first < 0 || n < 0 || first > s->count - n, "tokens %lld to %lld of %lld",
           (long long)first, (long long)(first + n), (long long)s->count);
    int64_t some;
    for (int i = file_of(s, first); n > 0; i++, first += some, n -= some, ret += some) {
        const struct shard *x = &s->shard[i];
        some = tokens_in(x, first, n);
        TRY(token_file_read(&x->file, first - x->first, some, vocabulary, ret));
    }
    return ST_OK;
}

const char *token_split_path(const struct token_split *s)
{
    return s->shard[0].file.path;
}

/* --- verifying -------------------------------------------------------------------------------- */

bool token_split_is_small(const struct token_split *s)
{
    return s->count <= TOKEN_SPLIT_MEMORY / s->bytes_per_token;
}

bool token_split_block(int64_t count, int bytes_per_token, int i, int64_t *ret_first,
                       int64_t *ret_n)
{
    bool small = count <= TOKEN_SPLIT_MEMORY / bytes_per_token;
    int blocks = small ? 1 : TOKEN_SPLIT_BLOCKS;
    int64_t n = small ? count : TOKEN_SPLIT_BLOCK / bytes_per_token, last = count - n;
    if (i >= blocks) return false;
    /* i * last / 63 without a product that could overflow */
    int64_t gaps = TOKEN_SPLIT_BLOCKS - 1;
    *ret_first = small ? 0 : last / gaps * i + last % gaps * i / gaps;
    *ret_n = n;
    return true;
}

static enum status scan(struct token_split *s, int64_t first, int64_t n, int vocabulary,
                        struct hash *h, enum status *ret_tokens)
{
    int64_t some;
    for (int i = file_of(s, first); n > 0; i++, first += some, n -= some) {
        struct shard *x = &s->shard[i];
        some = tokens_in(x, first, n);
        TRY(token_file_scan(&x->file, first - x->first, some, vocabulary, h, ret_tokens));
    }
    return ST_OK;
}

static enum status scan_blocks(struct token_split *s, int vocabulary, struct hash *h,
                               enum status *ret_tokens)
{
    int64_t first, n;
    for (int i = 0; token_split_block(s->count, s->bytes_per_token, i, &first, &n); i++)
        TRY(scan(s, first, n, vocabulary, h, ret_tokens));
    return ST_OK;
}

enum status token_split_scan(struct token_split *s, int vocabulary, bool every_token,
                             bool with_sizes, char ret_digest[HASH_HEX], enum status *ret_tokens)
{
    struct hash *h = hash_open();
    *ret_tokens = ST_OK;
    for (int i = 0; i < s->files; i++) {
        struct token_file *f = &s->shard[i].file;
        if (token_split_is_small(s)) token_file_keep(f);
        if (with_sizes) hash_add(h, &f->count, sizeof f->count);
    }
    enum status st = every_token ? scan(s, 0, s->count, vocabulary, h, ret_tokens)
                                 : scan_blocks(s, vocabulary, h, ret_tokens);
    hash_close(h, ret_digest);
    return st;
}

void token_split_hash(const void *tokens, int64_t count, int bytes_per_token,
                      char ret_digest[HASH_HEX])
{
    struct hash *h = hash_open();
    int64_t first, n;
    for (int i = 0; token_split_block(count, bytes_per_token, i, &first, &n); i++)
        hash_add(h, (const char *)tokens + first * bytes_per_token, n * bytes_per_token);
    hash_close(h, ret_digest);
}
