#include "data/meta.h"

#include "base/file.h"
#include "base/json.h"
#include "base/visible.h"
#include "data/kind.h"
#include "text/tokenizer.h"

#include <string.h>
#include <unistd.h>

/* More than twice the size of any valid file: tokens have at most BPE_TEXT_MOST bytes together, a
 * byte takes at most two bytes in JSON, and the merges take about twice as much as the tokens. */
enum { META_BYTES_MOST = 1 << 27 };

const char *split_name(enum split split)
{
    return split == SPLIT_TRAIN ? "train" : "val";
}

/* The digest of all token texts in order, each including its zero byte, and of the merges. */
static void hash_vocabulary(const struct vocabulary *v, char ret_hex[HASH_HEX])
{
    const struct tokenizer *t = v->tokenizer;
    struct hash *h = hash_open();
    for (int i = 0; i < v->size; i++) {
        const char *text = vocabulary_text(v, i);
        hash_add(h, text, (int64_t)strlen(text) + 1);
    }
    if (t) hash_add(h, t->merge, t->merges * (int64_t)sizeof *t->merge);
    hash_close(h, ret_hex);
}

static enum status read_sized(struct meta *m, const struct data_kind *kind, const char *path,
                              json_t *root, struct arena *a)
{
    int64_t size = json_integer_value(json_object_get(root, "vocabulary_size")); /* else 0 */
    if (size < 1 || size > VOCABULARY_MAX)
        return fail(ST_FORMAT, "%s: \"vocabulary_size\" is not 1 to %d", path, VOCABULARY_MAX);
    kind->sized(&m->vocabulary, (int)size, a);
    return ST_OK;
}

static enum status read_listed(struct meta *m, const struct data_kind *kind, const char *path,
                               json_t *root, struct arena *a)
{
    json_t *list = json_object_get(root, "vocabulary");
    int64_t size = (int64_t)json_array_size(list); /* 0 if it is not an array */
    if (size < 1 || size > VOCABULARY_MAX)
        return fail(ST_FORMAT, "%s: \"vocabulary\" is not a list of 1 to %d %s", path,
                    VOCABULARY_MAX, kind->name);
    const char **text = ARENA_NEW(a, const char *, size);
    for (int64_t i = 0; i < size; i++) {
        const char *entry = json_string_value(json_array_get(list, (size_t)i));
        text[i] = arena_strdup(a, entry ? entry : "");
    }
    m->vocabulary = (struct vocabulary){.kind = kind, .size = (int)size, .text = text};
    int wrong = kind->invalid_entry(&m->vocabulary);
    if (wrong >= 0)
        return fail(ST_FORMAT, "%s: entry %d of the vocabulary %s", path, wrong, kind->invalid);
    return ST_OK;
}

static enum status read_tokenizer(struct meta *m, const struct data_kind *kind, const char *path,
                                  json_t *root, struct arena *a)
{
    struct tokenizer *t = ARENA_NEW(a, struct tokenizer, 1);
    TRY(tokenizer_read(t, json_object_get(root, "tokenizer"), path, a));
    kind->of_tokenizer(&m->vocabulary, t);
    return ST_OK;
}

static enum status read_vocabulary(struct meta *m, const struct data_kind *kind, const char *path,
                                   json_t *root, struct arena *a)
{
    if (kind->of_tokenizer)
        TRY(read_tokenizer(m, kind, path, root, a));
    else if (kind->sized)
        TRY(read_sized(m, kind, path, root, a));
    else
        TRY(read_listed(m, kind, path, root, a));
    char digest[HASH_HEX];
    hash_vocabulary(&m->vocabulary, digest);
    const char *stored = json_string_value(json_object_get(root, "vocabulary_sha256"));
    if (!stored || strcmp(stored, digest) != 0)
        return fail(ST_FORMAT, "%s: the vocabulary is corrupt: its SHA-256 does not match", path);
    return ST_OK;
}

static bool is_digest(const char *text)
{
    return text && strspn(text, "0123456789abcdef") == HASH_HEX - 1 && !text[HASH_HEX - 1];
}

static enum status read_split(struct meta *m, const char *path, json_t *root, enum split split)
{
    json_t *o = json_object_get(root, split_name(split));
    json_t *tokens = json_object_get(o, "tokens");
    const char *digest = json_string_value(json_object_get(o, "sha256"));
    struct meta_split *s = &m->split[split];
    s->tokens = json_integer_value(tokens);
    if (!json_is_integer(tokens) || !is_digest(digest))
        return fail(ST_FORMAT, "%s: \"%s\" has no \"tokens\" or no \"sha256\"", path,
                    split_name(split));
    if (s->tokens < 1 || s->tokens > INT64_MAX / 2)
        return fail(ST_FORMAT, "%s: \"%s\" has %lld tokens", path, split_name(split),
                    (long long)s->tokens);
    memcpy(s->sha256, digest, HASH_HEX);
    json_t *blocks = json_object_get(o, "blocks_sha256");
    digest = json_string_value(blocks);
    if (blocks && !is_digest(digest))
        return fail(ST_FORMAT, "%s: \"%s\" has a \"blocks_sha256\" of another form", path,
                    split_name(split));
    if (blocks) memcpy(s->blocks_sha256, digest, HASH_HEX);
    return ST_OK;
}

static enum status read_fields(struct meta *m, const char *path, json_t *root, struct arena *a)
{
    json_t *version = json_object_get(root, "v");
    if (!json_is_integer(version) || json_integer_value(version) != META_VERSION)
        return fail(ST_FORMAT,
                    "%s: \"v\" is not %d: this file was written by another version of strobe or is "
                    "corrupt",
                    path, META_VERSION);
    const char *name = json_string_value(json_object_get(root, "kind"));
    const struct data_kind *kind = name ? data_kind_find(name) : NULL;
    if (!kind)
        return fail(ST_UNSUPPORTED, "%s: \"kind\" is %s%.40s%s; the known ones are %s", path,
                    name ? "\"" : "", name ? name : "missing", name ? "\"" : "",
                    data_kind_names("\"", a));
    const char *source = json_string_value(json_object_get(root, "source"));
    m->source = arena_strdup(a, source ? source : "");
    m->documents = json_integer_value(json_object_get(root, "documents"));
    TRY(read_vocabulary(m, kind, path, root, a));
    for (int s = 0; s < SPLIT_COUNT; s++) TRY(read_split(m, path, root, s));
    return ST_OK;
}

const char *meta_printable(const char *text, struct arena *a)
{
    struct str s = {};
    visible_append(&s, text);
    const char *printable = arena_strdup(a, str_text(&s));
    str_release(&s);
    return printable;
}

enum status meta_read(struct meta *m, const char *path, struct arena *a)
{
    char *data;
    int64_t size;
    TRY(file_read_most(path, META_BYTES_MOST, a, &data, &size));
    json_error_t e;
    json_t *root = json_loadb(data, (size_t)size, JSON_REJECT_DUPLICATES, &e);
    if (!root) return fail(ST_FORMAT, "%s is not valid JSON: line %d: %s", path, e.line, e.text);
    struct meta read = {.text = data};
    enum status st = read_fields(&read, path, root, a);
    json_decref(root);
    if (st == ST_OK) *m = read;
    return st;
}

static json_t *split_json(const struct meta_split *s)
{
    /* "s:s*" leaves out a value that is NULL */
    return json_pack("{s:I, s:s, s:s*}", "tokens", (json_int_t)s->tokens, "sha256", s->sha256,
                     "blocks_sha256", s->blocks_sha256[0] ? s->blocks_sha256 : NULL);
}

static json_t *to_json(const struct meta *m)
{
    const struct vocabulary *v = &m->vocabulary;
    bool sized = v->kind->sized;
    json_t *list = sized || v->tokenizer ? NULL : texts_json(v->text, v->size);
    char digest[HASH_HEX];
    hash_vocabulary(v, digest);
    json_int_t documents = (json_int_t)m->documents;
    return json_pack("{s:i, s:s, s:s, s:o*, s:o*, s:o*, s:s, s:o*, s:o, s:o}",        /**/
                     "v", META_VERSION, "kind", v->kind->name, "source", m->source,   /**/
                     "vocabulary", list, "vocabulary_size",                           /**/
                     sized ? json_integer(v->size) : NULL,                            /**/
                     "tokenizer", v->tokenizer ? tokenizer_json(v->tokenizer) : NULL, /**/
                     "vocabulary_sha256", digest,                                     /**/
                     "documents", documents ? json_integer(documents) : NULL,         /**/
                     "train", split_json(&m->split[SPLIT_TRAIN]),                     /**/
                     "val", split_json(&m->split[SPLIT_VAL]));
}

enum status meta_write(const struct meta *m, const char *path)
{
    json_t *root = to_json(m);
    BUG_IF(!root, "%s: cannot be written as JSON", path);
    return json_write(root, JSON_COMPACT, path);
}

const char *meta_text(const struct meta *m, struct arena *a)
{
    struct str s = {};
    json_t *root = to_json(m);
    BUG_IF(!root, "a vocabulary cannot be written as JSON");
    json_print_with(root, JSON_COMPACT, &s);
    const char *text = arena_strdup(a, str_text(&s));
    str_release(&s);
    return text;
}
