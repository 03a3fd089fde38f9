#include "data/foreign.h"

#include "base/file.h"
#include "data/kind.h"
#include "data/meta.h"
#include "data/nanogpt_meta.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names of files, sorted. */
struct names {
    const char **name;
    int count;
};

/* The files of each split in a folder. */
struct listing {
    const char *folder;
    struct names plain[SPLIT_COUNT];    /* train.bin or, if it does not exist, train_*.bin */
    struct names prefixed[SPLIT_COUNT]; /* *_train.bin, *_train_*.bin */
    bool has_pickle, has_magic;         /* has meta.pkl; plain files begin with llm.c's magic */
};

/* --- names ------------------------------------------------------------------------------------ */

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static bool is_alone(const char *name, const char *split)
{
    size_t n = strlen(split);
    return !strncmp(name, split, n) && !strcmp(name + n, ".bin");
}

static bool is_shard(const char *name, const char *split)
{
    size_t n = strlen(split);
    return !strncmp(name, split, n) && name[n] == '_' && ends(name, ".bin");
}

static bool is_prefixed(const char *name, const char *split)
{
    for (const char *at = strchr(name, '_'); at; at = strchr(at + 1, '_'))
        if (at > name && (is_alone(at + 1, split) || is_shard(at + 1, split))) return true;
    return false;
}

static int compare(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static struct names find(const struct file_entries *e, const char *split,
                         bool (*is)(const char *name, const char *split), struct arena *a)
{
    struct names n = {.name = ARENA_NEW(a, const char *, e->count)};
    for (int i = 0; i < e->count; i++)
        if (e->name[i][0] != '.' && is(e->name[i], split)) n.name[n.count++] = e->name[i];
    qsort(n.name, (size_t)n.count, sizeof *n.name, compare);
    return n;
}

static bool has_both(const struct names n[SPLIT_COUNT])
{
    return n[SPLIT_TRAIN].count && n[SPLIT_VAL].count;
}

/* --- llm.c: shards with a header -------------------------------------------------------------- */

enum { MAGIC, VERSION, TOKENS, HEADER_USED, HEADER_BYTES = 256 * sizeof(int32_t) };

static const struct shard_format {
    int32_t magic, version;
    int bytes_per_token, vocabulary;
    const char *source;
} formats[] = {
    {20240520, 1, sizeof(uint16_t), GPT2_VOCABULARY, "shards of llm.c, tokens of GPT-2"},
    {20240801, 7, sizeof(uint32_t), LLAMA3_VOCABULARY, "shards of llm.c, tokens of Llama 3"},
};

static const struct shard_format *format_of(int32_t magic)
{
    for (int i = 0; i < COUNT_OF(formats); i++)
        if (formats[i].magic == magic) return &formats[i];
    return NULL;
}

/* Reads the fields that are used; fields beyond the end of a short file are 0. */
static enum status read_header(const char *path, int32_t ret[HEADER_USED], int64_t *ret_bytes)
{
    int fd;
    memset(ret, 0, HEADER_USED * sizeof *ret);
    TRY(file_open(path, &fd, ret_bytes));
    int64_t n = min_i64(*ret_bytes, HEADER_USED * (int64_t)sizeof *ret);
    enum status st = file_read_range(fd, path, 0, n, ret);
    close(fd);
    return st;
}

static enum status read_shard(const char *path, struct token_file *ret,
                              const struct shard_format **ret_format)
{
    int32_t header[HEADER_USED];
    int64_t bytes;
    TRY(read_header(path, header, &bytes));
    if (bytes < HEADER_BYTES)
        return fail(ST_FORMAT, "%s has %lld bytes, but the header of a shard of llm.c has %d", path,
                    (long long)bytes, (int)HEADER_BYTES);
    const struct shard_format *f = format_of(header[MAGIC]);
    if (!f)
        return fail(ST_FORMAT, "%s begins with the number %d, but a shard of llm.c with %d or %d",
                    path, header[MAGIC], formats[0].magic, formats[1].magic);
    if (header[VERSION] != f->version)
        return fail(ST_FORMAT, "%s is a shard of version %d; only %d is known for files with %d",
                    path, header[VERSION], f->version, f->magic);
    if (header[TOKENS] < 1)
        return fail(ST_FORMAT, "%s: its header says %d tokens", path, header[TOKENS]);
    *ret = (struct token_file){path, HEADER_BYTES, f->bytes_per_token, header[TOKENS], -1, NULL};
    *ret_format = f;
    return ST_OK;
}

/* Opens the tokenizer in the folder, if there is one; otherwise the ids have no texts. */
static enum status find_texts(const char *folder, int size, struct vocabulary *ret, struct arena *a)
{
    struct tokenizer *t = ARENA_NEW(a, struct tokenizer, 1);
    if (!file_exists(arena_printf(a, "%s/tokenizer.json", folder)) &&
        !file_exists(arena_printf(a, "%s/vocab.json", folder))) {
        data_tokens.sized(ret, size, a);
        return ST_OK;
    }
    TRY(tokenizer_open(t, folder, a));
    data_byte_pairs.of_tokenizer(ret, t);
    return ST_OK;
}

static bool is_llmc(const struct listing *l)
{
    return has_both(l->plain) ? l->has_magic : has_both(l->prefixed);
}

static enum status open_llmc(const struct listing *l, struct foreign_set *ret, struct arena *a)
{
    const struct names *names = has_both(l->plain) ? l->plain : l->prefixed;
    const struct shard_format *first = NULL, *format = NULL;
    for (int s = 0; s < SPLIT_COUNT; s++) {
        ret->split[s].file = ARENA_NEW(a, struct token_file, names[s].count);
        for (int i = 0; i < names[s].count; i++) {
            const char *path = arena_printf(a, "%s/%s", l->folder, names[s].name[i]);
            TRY(read_shard(path, &ret->split[s].file[ret->split[s].files++], &format));
            if (!first) first = format;
            if (format != first)
                return fail(ST_FORMAT, "%s begins with %d, but another shard of the folder with %d",
                            path, format->magic, first->magic);
        }
    }
    ret->source = first->source;
    ret->counts = "its header";
    return find_texts(l->folder, first->vocabulary, &ret->vocabulary, a);
}

/* --- nanoGPT: raw uint16 ---------------------------------------------------------------------- */

static enum status read_raw(const char *path, struct token_file *ret)
{
    int fd;
    int64_t bytes, size = sizeof(uint16_t);
    TRY(file_open(path, &fd, &bytes));
    close(fd);
    if (bytes == 0 || bytes % size != 0)
        return fail(ST_FORMAT, "%s has %lld bytes, but tokens of nanoGPT have %lld each", path,
                    (long long)bytes, (long long)size);
    *ret = (struct token_file){path, 0, (int)size, bytes / size, -1, NULL};
    return ST_OK;
}

static bool is_nanogpt(const struct listing *l)
{
    return has_both(l->plain);
}

static enum status open_nanogpt(const struct listing *l, struct foreign_set *ret, struct arena *a)
{
    for (int s = 0; s < SPLIT_COUNT; s++) {
        const struct names *n = &l->plain[s];
        ret->split[s].file = ARENA_NEW(a, struct token_file, n->count);
        for (int i = 0; i < n->count; i++)
            TRY(read_raw(arena_printf(a, "%s/%s", l->folder, n->name[i]),
                         &ret->split[s].file[ret->split[s].files++]));
    }
    ret->counts = "its size when it was opened";
    if (l->has_pickle) {
        ret->source = "files of nanoGPT, characters of meta.pkl";
        return nanogpt_meta_read(&ret->vocabulary, arena_printf(a, "%s/meta.pkl", l->folder), a);
    }
    ret->source = "files of nanoGPT, tokens of GPT-2";
    TRY(find_texts(l->folder, GPT2_VOCABULARY, &ret->vocabulary, a));
    if (ret->vocabulary.tokenizer)
        ret->source = "files of nanoGPT, with a tokenizer";
    else
        ret->note = arena_printf(a,
                                 "%s has neither meta.json nor meta.pkl: its tokens are taken for "
                                 "the %d of GPT-2",
                                 l->folder, GPT2_VOCABULARY);
    return ST_OK;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct foreign_kind {
    bool (*is)(const struct listing *l);
    enum status (*open)(const struct listing *l, struct foreign_set *ret, struct arena *a);
} kinds[] = {
    {is_llmc, open_llmc},
    {is_nanogpt, open_nanogpt},
};

/* Sets has_magic. A raw file of GPT-2's tokens never begins like a shard, because the first two
 * bytes of each magic number are larger than GPT-2's ids. */
static enum status look_at_header(struct listing *l, struct arena *a)
{
    int32_t header[HEADER_USED];
    int64_t bytes;
    if (!has_both(l->plain)) return ST_OK;
    TRY(read_header(arena_printf(a, "%s/%s", l->folder, l->plain[SPLIT_TRAIN].name[0]), header,
                    &bytes));
    l->has_magic = format_of(header[MAGIC]) != NULL;
    return ST_OK;
}

static enum status list(const char *folder, struct listing *ret, struct arena *a)
{
    struct file_entries e;
    *ret = (struct listing){.folder = folder};
    TRY(file_list(folder, a, &e));
    for (int s = 0; s < SPLIT_COUNT; s++) {
        ret->plain[s] = find(&e, split_name(s), is_alone, a);
        if (!ret->plain[s].count) ret->plain[s] = find(&e, split_name(s), is_shard, a);
        ret->prefixed[s] = find(&e, split_name(s), is_prefixed, a);
    }
    for (int i = 0; i < e.count; i++) ret->has_pickle |= !strcmp(e.name[i], "meta.pkl");
    return look_at_header(ret, a);
}

enum status foreign_find(const char *folder, bool *ret_found, struct foreign_set *ret,
                         struct arena *a)
{
    struct listing l;
    *ret_found = false;
    *ret = (struct foreign_set){};
    TRY(list(folder, &l, a));
    for (int i = 0; i < COUNT_OF(kinds) && !*ret_found; i++) {
        *ret_found = kinds[i].is(&l);
        if (*ret_found) TRY(kinds[i].open(&l, ret, a));
    }
    return ST_OK;
}
