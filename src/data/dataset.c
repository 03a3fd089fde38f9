#include "data/dataset.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "data/meta.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "train.bin is mapped, so this machine must be little-endian");

enum status dataset_check_name(const char *name)
{
    if (!name[0] || name[0] == '.' || strchr(name, '/'))
        return fail(
            ST_USAGE,
            "\"%s\" is not a valid data set name: use a word without slashes, such as mytext",
            name);
    return ST_OK;
}

/* The command that creates the data set, ready to be pasted. */
static const char *command_for(const char *data_dir, const char *name, const char *option,
                               struct arena *a)
{
    bool known = strcmp(name, "shakespeare_char") == 0, default_dir = strcmp(data_dir, "data") == 0;
    return arena_printf(a, "`strobe data %s%s%s%s%s`", name, known ? "" : " --from FILE",
                        default_dir ? "" : " --data_dir ", default_dir ? "" : data_dir, option);
}

static enum status check_tokens(const struct dataset *d, enum split split, const char *path)
{
    for (int64_t i = 0; i < d->count[split]; i++)
        if (d->tokens[split][i] >= d->vocabulary.size)
            return fail(ST_FORMAT, "%s: token %lld is %d, but the vocabulary has %d", path,
                        (long long)i, d->tokens[split][i], d->vocabulary.size);
    return ST_OK;
}

static enum status map_split(struct dataset *d, enum split split, const char *path,
                             const struct meta_split *expected)
{
    TRY(file_map(path, &d->map[split], &d->map_bytes[split]));
    int64_t bytes = expected->tokens * (int64_t)sizeof(uint16_t);
    if (d->map_bytes[split] != bytes)
        return fail(ST_FORMAT, "%s has %lld bytes, but meta.json says %lld", path,
                    (long long)d->map_bytes[split], (long long)bytes);
    char digest[HASH_HEX];
    hash_bytes(d->map[split], bytes, digest);
    if (strcmp(digest, expected->sha256) != 0)
        return fail(ST_FORMAT,
                    "%s is corrupt: its SHA-256 is %.12s..., but meta.json says %.12s...", path,
                    digest, expected->sha256);
    d->tokens[split] = d->map[split];
    d->count[split] = expected->tokens;
    return check_tokens(d, split, path);
}

static enum status open_checked(struct dataset *d, const char *folder, struct arena *a)
{
    struct meta m;
    TRY(meta_read(&m, arena_printf(a, "%s/meta.json", folder), a));
    d->vocabulary = m.vocabulary;
    for (int s = 0; s < SPLIT_COUNT; s++) {
        const char *path = arena_printf(a, "%s/%s.bin", folder, split_name(s));
        TRY(map_split(d, s, path, &m.split[s]));
    }
    return ST_OK;
}

enum status dataset_open(struct dataset *d, const char *data_dir, const char *name, struct arena *a)
{
    TRY(dataset_check_name(name));
    const char *folder = arena_printf(a, "%s/%s", data_dir, name);
    if (!file_exists(folder))
        return fail(ST_IO, "%s does not exist: create it with %s", folder,
                    command_for(data_dir, name, "", a));
    static const char *const files[] = {"meta.json", "train.bin", "val.bin"};
    for (int i = 0; i < COUNT_OF(files); i++)
        if (!file_exists(arena_printf(a, "%s/%s", folder, files[i])))
            return fail(ST_IO, "%s has no %s: recreate it with %s", folder, files[i],
                        command_for(data_dir, name, " --force", a));
    struct dataset opened = {.name = arena_strdup(a, name)};
    enum status st = open_checked(&opened, folder, a);
    if (st == ST_FORMAT) {
        const char *message = arena_strdup(a, fail_message());
        st = fail(st, "%s; recreate it with %s", message,
                  command_for(data_dir, name, " --force", a));
    }
    if (st == ST_OK)
        *d = opened;
    else
        dataset_close(&opened);
    return st;
}

void dataset_close(struct dataset *d)
{
    for (int s = 0; s < SPLIT_COUNT; s++)
        if (d->map[s]) file_unmap(d->map[s], d->map_bytes[s]);
    *d = (struct dataset){};
}

/* Token id of each code point; -1 if the text does not contain it. */
struct numbering {
    int32_t *id;
    int64_t characters;
    struct vocabulary vocabulary;
};

static enum status number_characters(struct numbering *n, const char *text, int64_t bytes,
                                     struct arena *a)
{
    n->id = ARENA_NEW(a, int32_t, UTF8_LIMIT);
    for (int64_t at = 0; at < bytes; n->characters++) {
        int length;
        int32_t code = utf8_decode(text + at, bytes - at, &length);
        if (code < 0)
            return fail(ST_FORMAT,
                        "the text is not valid UTF-8 at byte %lld: convert it with iconv first",
                        (long long)at);
        if (code == 0)
            return fail(ST_FORMAT, "byte %lld is zero: this is not a text file", (long long)at);
        n->id[code] = 1;
        at += length;
    }
    int size = 0;
    for (int32_t code = 0; code < UTF8_LIMIT; code++) n->id[code] = n->id[code] ? size++ : -1;
    if (size > META_VOCABULARY_MAX)
        return fail(ST_UNSUPPORTED,
                    "the text has %d different characters, but 16-bit tokens "
                    "can encode only %d",
                    size, META_VOCABULARY_MAX);
    const char **texts = ARENA_NEW(a, const char *, size);
    for (int32_t code = 0; code < UTF8_LIMIT; code++) {
        if (n->id[code] < 0) continue;
        char character[UTF8_BYTES];
        utf8_encode(code, character);
        texts[n->id[code]] = arena_strdup(a, character);
    }
    n->vocabulary = (struct vocabulary){.size = size, .text = texts};
    return ST_OK;
}

static enum status write_split(struct meta_split *s, const uint16_t *tokens, int64_t count,
                               const char *folder, enum split split, struct arena *a)
{
    int64_t bytes = count * (int64_t)sizeof *tokens;
    s->tokens = count;
    hash_bytes(tokens, bytes, s->sha256);
    return file_write(arena_printf(a, "%s/%s.bin", folder, split_name(split)), tokens, bytes);
}

static enum status write_files(struct meta *m, const uint16_t *tokens, int64_t train,
                               int64_t characters, const char *folder, struct arena *a)
{
    TRY(write_split(&m->split[SPLIT_TRAIN], tokens, train, folder, SPLIT_TRAIN, a));
    TRY(write_split(&m->split[SPLIT_VAL], tokens + train, characters - train, folder, SPLIT_VAL,
                    a));
    return meta_write(m, arena_printf(a, "%s/meta.json", folder));
}

static enum status write_characters(const char *folder, const char *text, int64_t bytes,
                                    const char *source, struct dataset_facts *ret, struct arena *a)
{
    struct numbering n = {};
    TRY(number_characters(&n, text, bytes, a));
    int64_t train = (int64_t)(0.9 * (double)n.characters);
    if (train < 1)
        return fail(ST_USAGE,
                    "the text has %lld characters: too few to split into training and validation",
                    (long long)n.characters);
    uint16_t *tokens = ARENA_NEW(a, uint16_t, n.characters);
    for (int64_t at = 0, i = 0; at < bytes; i++) {
        int length;
        tokens[i] = (uint16_t)n.id[utf8_decode(text + at, bytes - at, &length)];
        at += length;
    }
    struct meta m = {.source = source, .vocabulary = n.vocabulary};
    struct folder_writer w;
    TRY(folder_writer_open(&w, folder));
    enum status st = write_files(&m, tokens, train, n.characters, w.temporary, a);
    if (st != ST_OK)
        folder_writer_discard(&w);
    else
        st = folder_writer_commit(&w);
    if (st == ST_OK)
        *ret = (struct dataset_facts){.characters = n.characters,
                                      .count = {train, n.characters - train},
                                      .vocabulary = n.vocabulary.size};
    return st;
}

enum status dataset_write_characters(const char *data_dir, const char *name, const char *text,
                                     int64_t bytes, const char *source, struct dataset_facts *ret)
{
    TRY(dataset_check_name(name));
    struct arena scratch = {};
    const char *folder = arena_printf(&scratch, "%s/%s", data_dir, name);
    enum status st = write_characters(folder, text, bytes, source, ret, &scratch);
    arena_release(&scratch);
    return st;
}
