#include "data/dataset.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "data/kind.h"
#include "data/meta.h"

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
static const char *command_for(const char *data_dir, const char *name, const struct data_kind *kind,
                               const char *option, struct arena *a)
{
    bool known = strcmp(name, "shakespeare_char") == 0, default_dir = strcmp(data_dir, "data") == 0;
    bool default_kind = !kind || kind == data_kind_at(0);
    return arena_printf(a, "`strobe data %s%s%s%s%s%s%s`", name, known ? "" : " --from FILE",
                        default_kind ? "" : " --kind ", default_kind ? "" : kind->name,
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
                    command_for(data_dir, name, NULL, "", a));
    static const char *const files[] = {"meta.json", "train.bin", "val.bin"};
    for (int i = 0; i < COUNT_OF(files); i++)
        if (!file_exists(arena_printf(a, "%s/%s", folder, files[i])))
            return fail(ST_IO, "%s has no %s: recreate it with %s", folder, files[i],
                        command_for(data_dir, name, NULL, " --force", a));
    struct dataset opened = {.name = arena_strdup(a, name)};
    enum status st = open_checked(&opened, folder, a);
    if (st == ST_FORMAT) {
        const char *message = arena_strdup(a, fail_message());
        st = fail(st, "%s; recreate it with %s", message,
                  command_for(data_dir, name, opened.vocabulary.kind, " --force", a));
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

static enum status write_split(struct meta_split *s, const uint16_t *tokens, int64_t count,
                               const char *folder, enum split split, struct arena *a)
{
    int64_t bytes = count * (int64_t)sizeof *tokens;
    s->tokens = count;
    hash_bytes(tokens, bytes, s->sha256);
    return file_write(arena_printf(a, "%s/%s.bin", folder, split_name(split)), tokens, bytes);
}

static enum status write_files(struct meta *m, const uint16_t *tokens, int64_t train, int64_t count,
                               const char *folder, struct arena *a)
{
    TRY(write_split(&m->split[SPLIT_TRAIN], tokens, train, folder, SPLIT_TRAIN, a));
    TRY(write_split(&m->split[SPLIT_VAL], tokens + train, count - train, folder, SPLIT_VAL, a));
    return meta_write(m, arena_printf(a, "%s/meta.json", folder));
}

static enum status write_text(const struct data_kind *kind, const char *folder, const char *text,
                              int64_t bytes, const char *source, struct dataset_facts *ret,
                              struct arena *a)
{
    struct tokenized t;
    TRY(kind->tokenize(text, bytes, a, &t));
    int64_t train = (int64_t)(0.9 * (double)t.count);
    if (train < 1)
        return fail(ST_USAGE, "the text has %lld %s: too few to split into training and validation",
                    (long long)t.count, kind->name);
    struct meta m = {.source = source, .vocabulary = t.vocabulary};
    struct folder_writer w;
    TRY(folder_writer_open(&w, folder));
    enum status st = write_files(&m, t.token, train, t.count, w.temporary, a);
    if (st != ST_OK)
        folder_writer_discard(&w);
    else
        st = folder_writer_commit(&w);
    if (st == ST_OK)
        *ret = (struct dataset_facts){
            .tokens = t.count, .count = {train, t.count - train}, .vocabulary = t.vocabulary.size};
    return st;
}

enum status dataset_write(const struct data_kind *kind, const char *data_dir, const char *name,
                          const char *text, int64_t bytes, const char *source,
                          struct dataset_facts *ret)
{
    TRY(dataset_check_name(name));
    struct arena scratch = {};
    const char *folder = arena_printf(&scratch, "%s/%s", data_dir, name);
    enum status st = write_text(kind, folder, text, bytes, source, ret, &scratch);
    arena_release(&scratch);
    return st;
}
