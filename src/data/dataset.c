#include "data/dataset.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/own.h"
#include "data/foreign.h"
#include "data/kind.h"
#include "data/meta.h"

#include <string.h>
#include <unistd.h>

enum {
    NAME_BYTES_MOST = 200, /* a file name has at most 255; a temporary folder has a longer name */
    OPEN_TRIES = 100,      /* if other processes replace the set while it is opened */
};

enum status dataset_check_name(const char *name)
{
    bool valid = name[0] && name[0] != '.' && strlen(name) <= NAME_BYTES_MOST;
    for (const char *c = name; *c; c++)
        if (*c == '/' || (uint8_t)*c < ' ' || *c == 0x7f) valid = false;
    valid &= !file_temporary_of(name);
    if (!valid)
        return fail(
            ST_USAGE,
            "\"%.200s\" is not a valid data set name: use a word without slashes, such as mytext",
            name);
    return ST_OK;
}

/* The command that creates the data set, ready to be pasted. */
static const char *command_for(const char *data_dir, const char *name, const struct data_kind *kind,
                               const char *option, struct arena *a)
{
    bool known = strcmp(name, "shakespeare_char") == 0, default_dir = strcmp(data_dir, "data") == 0;
    bool byte_pairs = kind == &data_byte_pairs;
    return arena_printf(a, "`strobe data %s%s%s%s%s%s`", name, known ? "" : " --from FILE",
                        byte_pairs ? " --tokenizer TOKENIZER" : "",
                        default_dir ? "" : " --data_dir ", default_dir ? "" : data_dir, option);
}

/* How to mend a set: if Strobe may not replace the folder, the set must get another name. */
static const char *remedy(const char *data_dir, const char *name, const struct data_kind *kind,
                          struct arena *a)
{
    struct failure kept;
    fail_keep(&kept);
    bool own = own_check(arena_printf(a, "%s/%s", data_dir, name), OWN_SET) == ST_OK;
    fail_restore(&kept);
    return own ? arena_printf(a, "recreate it with %s",
                              command_for(data_dir, name, kind, " --force", a))
               : "it is not a data set that Strobe can replace, so make one under another name "
                 "(`strobe data OTHER --from FILE`) and set --dataset=OTHER";
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum status fail_absent(const char *data_dir, const char *name, const char *folder,
                               struct arena *a)
{
    return fail(ST_ABSENT,
                "%s does not exist: create it with %s, or name the folder in which it is with "
                "--data_dir",
                folder, command_for(data_dir, name, NULL, "", a));
}

static enum status check_files(const char *data_dir, const char *name, const char *folder,
                               struct arena *a)
{
    static const char *const files[] = {"meta.json", "train.bin", "val.bin"};
    for (int i = 0; i < COUNT_OF(files); i++)
        if (!file_exists(arena_printf(a, "%s/%s", folder, files[i])))
            return fail(ST_ABSENT, "%s has no %s: %s", folder, files[i],
                        remedy(data_dir, name, NULL, a));
    return ST_OK;
}

static enum status open_own(struct dataset *d, const char *data_dir, const char *folder,
                            struct arena *a)
{
    struct meta m;
    TRY(check_files(data_dir, d->name, folder, a));
    TRY(meta_read(&m, arena_printf(a, "%s/meta.json", folder), a));
    d->vocabulary = m.vocabulary;
    d->source = m.source;
    d->documents = m.documents;
    d->meta = m.text;
    d->remake = command_for(data_dir, d->name, m.vocabulary.kind, " --force", a);
    for (int s = 0; s < SPLIT_COUNT; s++) {
        const struct token_file like = {.path = arena_printf(a, "%s/%s.bin", folder, split_name(s)),
                                        .bytes_per_token = token_bytes(m.vocabulary.size),
                                        .count = m.split[s].tokens};
        d->count[s] = like.count;
        memcpy(d->sha256[s], m.split[s].sha256, HASH_HEX);
        memcpy(d->blocks_sha256[s], m.split[s].blocks_sha256, HASH_HEX);
        TRY(token_split_open(&d->tokens[s], &like, 1, "meta.json", a));
    }
    return ST_OK;
}

static enum status open_foreign(struct dataset *d, const struct foreign_set *x, struct arena *a)
{
    d->foreign = true;
    d->vocabulary = x->vocabulary;
    d->source = x->source;
    if (x->note) log_info("%s", x->note);
    for (int s = 0; s < SPLIT_COUNT; s++) {
        const struct foreign_split *f = &x->split[s];
        TRY(token_split_open(&d->tokens[s], f->file, f->files, x->counts, a));
        d->count[s] = d->tokens[s].count;
    }
    return ST_OK;
}

/* A folder with meta.json never counts as a folder of another program. */
static enum status find_foreign(const char *folder, bool *ret_found, struct foreign_set *ret,
                                struct arena *a)
{
    bool own;
    *ret_found = false;
    TRY(file_has(arena_printf(a, "%s/meta.json", folder), &own));
    return own ? ST_OK : foreign_find(folder, ret_found, ret, a);
}

static enum status open_files(struct dataset *d, const char *data_dir, const char *folder,
                              struct arena *a)
{
    bool foreign;
    struct foreign_set x;
    TRY(find_foreign(folder, &foreign, &x, a));
    return foreign ? open_foreign(d, &x, a) : open_own(d, data_dir, folder, a);
}

/* --- verifying -------------------------------------------------------------------------------- */

static enum status verify_own(struct dataset *d, enum split split, bool every_token)
{
    char digest[HASH_HEX];
    enum status tokens;
    struct token_split *t = &d->tokens[split];
    const char *blocks = d->blocks_sha256[split];
    every_token |= token_split_is_small(t) || !blocks[0];
    TRY(token_split_scan(t, d->vocabulary.size, every_token, false, digest, &tokens));
    const char *expected = every_token ? d->sha256[split] : blocks;
    if (strcmp(digest, expected) != 0)
        return fail(ST_FORMAT,
                    "%s is corrupt: its SHA-256%s is %.12s..., but meta.json says %.12s...",
                    token_split_path(t), every_token ? "" : " of blocks", digest, expected);
    d->verified[split] = every_token;
    return tokens;
}

/* The digest of a foreign split identifies the split, so it is always the digest of the blocks,
 * also if all tokens are read. */
static enum status verify_foreign(struct dataset *d, enum split split, bool every_token)
{
    char digest[HASH_HEX] = "";
    enum status tokens;
    struct token_split *t = &d->tokens[split];
    TRY(token_split_scan(t, d->vocabulary.size, every_token, true, digest, &tokens));
    if (!every_token) memcpy(d->sha256[split], digest, HASH_HEX);
    d->verified[split] = every_token || token_split_is_small(t);
    return tokens;
}

static enum status verify_splits(struct dataset *d, bool every_token)
{
    for (int s = 0; s < SPLIT_COUNT; s++)
        if (!d->verified[s])
            TRY(d->foreign ? verify_foreign(d, s, every_token) : verify_own(d, s, every_token));
    return ST_OK;
}

static void describe(struct dataset *d, struct arena *a)
{
    struct meta m = {.source = d->source, .vocabulary = d->vocabulary};
    for (int s = 0; s < SPLIT_COUNT; s++) {
        m.split[s].tokens = d->count[s];
        memcpy(m.split[s].sha256, d->sha256[s], HASH_HEX);
    }
    d->meta = meta_text(&m, a);
}

static enum status verify_opened(struct dataset *d, struct arena *a)
{
    TRY(verify_splits(d, false));
    if (d->foreign) describe(d, a);
    return ST_OK;
}

/* Tries once to open the set. *ret_replaced: another process replaced the folder meanwhile, so a
 * failure may not be an error of the set. */
static enum status try_open(struct dataset *d, const char *data_dir, const char *folder,
                            bool *ret_replaced, struct arena *a)
{
    struct lock watch;
    struct failure kept;
    *ret_replaced = false;
    enum status st = lock_watch(&watch, folder);
    if (st == ST_ABSENT) return fail_absent(data_dir, d->name, folder, a);
    TRY(st);
    st = open_files(d, data_dir, folder, a);
    fail_keep(&kept);
    *ret_replaced = lock_check(&watch) != ST_OK;
    fail_restore(&kept);
    lock_release(&watch);
    return st == ST_OK && !*ret_replaced ? verify_opened(d, a) : st;
}

enum status dataset_open(struct dataset *d, const char *data_dir, const char *name, struct arena *a)
{
    TRY(dataset_check_name(name));
    const char *folder = arena_printf(a, "%s/%s", data_dir, name);
    bool replaced = true;
    enum status st = ST_OK;
    struct dataset opened;
    for (int i = 0; i < OPEN_TRIES && replaced; i++) {
        opened = (struct dataset){.name = arena_strdup(a, name)};
        st = try_open(&opened, data_dir, folder, &replaced, a);
        if (st != ST_OK || replaced) dataset_close(&opened);
    }
    if (replaced)
        return fail(ST_BUSY,
                    "%s is replaced again and again by another process: try again when it has "
                    "ended",
                    folder);
    if (st == ST_FORMAT) {
        const char *message = arena_strdup(a, fail_message());
        st = fail(st, "%s; %s", message, remedy(data_dir, name, opened.vocabulary.kind, a));
    }
    if (st == ST_OK) *d = opened;
    return st;
}

void dataset_close(struct dataset *d)
{
    for (int s = 0; s < SPLIT_COUNT; s++) token_split_close(&d->tokens[s]);
}

/* Adds the remedy to the message of the failure. */
static enum status advise(const struct dataset *d, enum status st)
{
    struct failure why;
    fail_keep(&why);
    return d->remake ? fail(st, "%s; recreate it with %s", why.message, d->remake)
                     : fail(st, "%s; make it again with the program that made it", why.message);
}

enum status dataset_read(const struct dataset *d, enum split split, int64_t first, int64_t n,
                         int32_t *ret)
{
    enum status st = token_split_read(&d->tokens[split], first, n, d->vocabulary.size, ret);
    if (st != ST_FORMAT) return st;
    return advise(d, st);
}

enum status dataset_verify(struct dataset *d)
{
    enum status st = verify_splits(d, true);
    return st == ST_FORMAT ? advise(d, st) : st;
}

enum status dataset_vocabulary(const char *data_dir, const char *name, int64_t *ret,
                               struct arena *a)
{
    const char *folder = arena_printf(a, "%s/%s", data_dir, name);
    const char *path = arena_printf(a, "%s/meta.json", folder);
    struct foreign_set x;
    struct meta m;
    bool foreign;
    *ret = 0;
    TRY(find_foreign(folder, &foreign, &x, a));
    if (foreign) {
        *ret = x.vocabulary.size;
    } else if (file_exists(path)) {
        TRY(meta_read(&m, path, a));
        *ret = m.vocabulary.size;
    }
    return ST_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Checks the folder. The caller holds the lock, so no other process changes the folder. */
static enum status check_free(const char *folder, bool replace)
{
    bool exists = false;
    if (!replace) TRY(file_has(folder, &exists));
    TRY(own_check(folder, OWN_SET));
    return exists ? fail(ST_USAGE, "%s already exists; replace it with --force", folder) : ST_OK;
}

enum status dataset_create(const char *data_dir, const char *name, bool replace,
                           enum status (*fill)(void *user, const char *folder, struct meta *ret),
                           void *user, struct arena *a)
{
    const char *folder = arena_printf(a, "%s/%s", data_dir, name);
    struct folder_writer w;
    struct meta m = {};
    TRY(dataset_check_name(name));
    bool had_data_dir = file_exists(data_dir);
    TRY(file_make_dirs(data_dir));
    TRY(folder_writer_open(&w, folder, OWN_SET));
    enum status st = check_free(folder, replace);
    if (st == ST_OK) st = fill(user, w.temporary, &m);
    if (st == ST_OK) st = meta_write(&m, arena_printf(a, "%s/meta.json", w.temporary));
    if (st == ST_OK) return folder_writer_commit(&w);
    folder_writer_discard(&w);
    if (!had_data_dir) rmdir(data_dir); /* unless another data set is there by now */
    return st;
}

/* A text whose tokens are in memory. */
struct tokenized_text {
    const struct tokenized *t;
    const char *source;
    int64_t train; /* tokens of the training split */
    struct arena *a;
};

static enum status write_split(struct meta *m, const char *tokens, int64_t count,
                               const char *folder, enum split split, struct arena *a)
{
    struct meta_split *s = &m->split[split];
    int64_t bytes = count * token_bytes(m->vocabulary.size);
    s->tokens = count;
    hash_bytes(tokens, bytes, s->sha256);
    if (bytes > TOKEN_SPLIT_MEMORY)
        token_split_hash(tokens, count, token_bytes(m->vocabulary.size), s->blocks_sha256);
    return file_write(arena_printf(a, "%s/%s.bin", folder, split_name(split)), tokens, bytes);
}

static enum status fill_from_text(void *user, const char *folder, struct meta *m)
{
    const struct tokenized_text *w = user;
    const char *tokens = w->t->token;
    m->source = w->source;
    m->vocabulary = w->t->vocabulary;
    TRY(write_split(m, tokens, w->train, folder, SPLIT_TRAIN, w->a));
    return write_split(m, tokens + w->train * token_bytes(m->vocabulary.size),
                       w->t->count - w->train, folder, SPLIT_VAL, w->a);
}

static enum status write_text(const char *data_dir, const char *name, const struct dataset_text *x,
                              bool replace, struct dataset_facts *ret, struct arena *a)
{
    struct tokenized t;
    if (!x->kind->tokenize)
        return fail(ST_UNSUPPORTED, "a text alone does not make a data set of the kind %s",
                    x->kind->name);
    TRY(x->kind->tokenize(x->text, x->bytes, a, &t));
    struct tokenized_text w = {&t, meta_printable(x->source, a), (int64_t)(0.9 * (double)t.count),
                               a};
    if (w.train < 1)
        return fail(ST_USAGE, "the text has %lld %s: too few to split into training and validation",
                    (long long)t.count, x->kind->name);
    TRY(dataset_create(data_dir, name, replace, fill_from_text, &w, a));
    *ret = (struct dataset_facts){
        .tokens = t.count, .count = {w.train, t.count - w.train}, .vocabulary = t.vocabulary.size};
    return ST_OK;
}

enum status dataset_write(const char *data_dir, const char *name, const struct dataset_text *t,
                          bool replace, struct dataset_facts *ret)
{
    TRY(dataset_check_name(name));
    struct arena scratch = {};
    enum status st = write_text(data_dir, name, t, replace, ret, &scratch);
    arena_release(&scratch);
    return st;
}
