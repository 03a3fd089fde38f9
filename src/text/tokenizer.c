#include "text/tokenizer.h"

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/byte_text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Limits; larger files and tokens are refused. */
enum { FILE_MOST = 1 << 27, TOKEN_MOST = 1 << 16, RANKED_MOST = 256, BYTES = 256 };

/* The state while a vocabulary is read. */
struct reading {
    const char *where; /* for messages */
    struct arena *a;
    struct token_text *text;
    int ids;
    int64_t *slot; /* a hash table from texts to ids; -1: empty */
    int slot_bits;
    struct bpe_merge *merge;
    int64_t merges;
    struct special_token *special;
    int specials;
};

/* --- texts to ids ----------------------------------------------------------------------------- */

static uint64_t hash_text(const char *bytes, int64_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < n; i++) h = (h ^ (uint8_t)bytes[i]) * 0x100000001b3u;
    return h * 0x9e3779b97f4a7c15u;
}

static int64_t *find_slot(const struct reading *r, const char *bytes, int64_t n)
{
    int64_t most = ((int64_t)1 << r->slot_bits) - 1;
    int64_t i = (int64_t)(hash_text(bytes, n) >> (64 - r->slot_bits));
    for (; r->slot[i] >= 0; i = (i + 1) & most) {
        const struct token_text *t = &r->text[r->slot[i]];
        if (t->length == n && !memcmp(t->bytes, bytes, (size_t)n)) break;
    }
    return &r->slot[i];
}

static enum status begin(struct reading *r, int64_t highest_id)
{
    int64_t ids = min_i64(highest_id, INT64_MAX - 1) + 1;
    if (ids < BYTES || ids > BPE_IDS_MOST)
        return fail(ST_FORMAT, "%s: a vocabulary of %lld tokens; 256 to %d are possible", r->where,
                    (long long)ids, BPE_IDS_MOST);
    r->ids = (int)ids;
    r->text = ARENA_NEW(r->a, struct token_text, ids);
    r->slot_bits = 10;
    while ((int64_t)1 << r->slot_bits < 2 * ids) r->slot_bits++;
    r->slot = ARENA_NEW(r->a, int64_t, (int64_t)1 << r->slot_bits);
    memset(r->slot, 0xff, sizeof *r->slot << r->slot_bits);
    return ST_OK;
}

static enum status add_token(struct reading *r, int64_t id, struct token_text t)
{
    if (id < 0 || id >= r->ids)
        return fail(ST_FORMAT, "%s: token id %lld is not among 0 to %d", r->where, (long long)id,
                    r->ids - 1);
    if (t.length < 1 || t.length > TOKEN_MOST)
        return fail(ST_FORMAT, "%s: token %lld has %d bytes; 1 to %d are possible", r->where,
                    (long long)id, t.length, TOKEN_MOST);
    if (r->text[id].length)
        return fail(ST_FORMAT, "%s: two tokens have the id %lld", r->where, (long long)id);
    int64_t *slot = find_slot(r, t.bytes, t.length);
    if (*slot >= 0)
        return fail(ST_FORMAT, "%s: tokens %lld and %lld have the same text", r->where,
                    (long long)*slot, (long long)id);
    r->text[id] = t;
    *slot = id;
    return ST_OK;
}

static enum status add_special(struct reading *r, int64_t id, struct token_text t)
{
    if (id >= 0 && id < r->ids && r->text[id].length) {
        if (r->text[id].length != t.length ||
            memcmp(r->text[id].bytes, t.bytes, (size_t)t.length) != 0)
            return fail(ST_FORMAT, "%s: two tokens have the id %lld", r->where, (long long)id);
    } else {
        TRY(add_token(r, id, t));
    }
    r->special[r->specials++] = (struct special_token){t, (uint32_t)id};
    return ST_OK;
}

/* --- merges ----------------------------------------------------------------------------------- */

static enum status add_merge(struct reading *r, struct token_text left, struct token_text right)
{
    struct token_text joined = {.length = left.length + right.length};
    char *bytes = arena_alloc(r->a, joined.length + 1);
    memcpy(bytes, left.bytes, (size_t)left.length);
    memcpy(bytes + left.length, right.bytes, (size_t)right.length);
    const struct token_text part[] = {left, right, {bytes, joined.length}};
    int64_t id[3];
    for (int i = 0; i < 3; i++) {
        id[i] = part[i].length ? *find_slot(r, part[i].bytes, part[i].length) : -1;
        if (id[i] >= 0) continue;
        struct str shown = {};
        byte_text_append(&shown, &part[i]);
        enum status st =
            fail(ST_FORMAT, "%s: merge %lld %s \"%.80s\", which is not in the vocabulary", r->where,
                 (long long)r->merges + 1, i < 2 ? "joins" : "makes", str_text(&shown));
        str_release(&shown);
        return st;
    }
    r->merge[r->merges++] = (struct bpe_merge){(uint32_t)id[0], (uint32_t)id[1], (uint32_t)id[2]};
    return ST_OK;
}

/* Reads a merge such as "Ġ the", the form of merges.txt and of older Hugging Face files. */
static enum status read_merge(struct reading *r, const char *text, int64_t bytes)
{
    const char *blank = memchr(text, ' ', (size_t)bytes);
    int64_t n = blank ? blank - text : 0;
    struct token_text left, right;
    if (!blank || !byte_text_read(text, n, r->a, &left) ||
        !byte_text_read(blank + 1, bytes - n - 1, r->a, &right))
        return fail(ST_FORMAT, "%s: merge %lld, \"%.*s\", is not two tokens", r->where,
                    (long long)r->merges + 1, (int)min_i64(bytes, 80), text);
    return add_merge(r, left, right);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static enum status read_json(const char *path, struct arena *a, json_t **ret)
{
    char *data;
    int64_t size;
    json_error_t e;
    TRY(file_read_most(path, FILE_MOST, a, &data, &size));
    *ret = json_loadb(data, (size_t)size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (!*ret) return fail(ST_FORMAT, "%s is not valid JSON: line %d: %s", path, e.line, e.text);
    return ST_OK;
}

static int64_t highest_id(const json_t *vocabulary, const json_t *added)
{
    int64_t most = -1;
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach((json_t *)vocabulary, key, value)
        most = max_i64(most, json_is_integer(value) ? json_integer_value(value) : -1);
    json_array_foreach(added, i, value)
        most = max_i64(most, json_integer_value(json_object_get(value, "id")));
    return most;
}

/* Reads the object of texts and ids of a vocab.json or tokenizer.json. Texts with characters that
 * stand for no byte (byte_text.h) can only be special tokens. */
static enum status read_vocabulary(struct reading *r, const json_t *vocabulary, const json_t *added)
{
    const char *key;
    json_t *value;
    if (!json_is_object(vocabulary))
        return fail(ST_FORMAT, "%s: the vocabulary is not an object of texts and ids", r->where);
    TRY(begin(r, highest_id(vocabulary, added)));
    json_object_foreach((json_t *)vocabulary, key, value) {
        struct token_text t;
        int64_t bytes = (int64_t)strlen(key);
        if (!json_is_integer(value))
            return fail(ST_FORMAT, "%s: the id of \"%.80s\" is not a whole number", r->where, key);
        if (!byte_text_read(key, bytes, r->a, &t))
            t = (struct token_text){arena_strdup(r->a, key), (int)min_i64(bytes, INT_MAX)};
        TRY(add_token(r, json_integer_value(value), t));
    }
    return ST_OK;
}

static enum status read_added(struct reading *r, const json_t *added)
{
    json_t *token;
    size_t i;
    r->special = ARENA_NEW(r->a, struct special_token, (int64_t)json_array_size(added) + 1);
    json_array_foreach(added, i, token) {
        static const char *const modes[] = {"single_word", "lstrip", "rstrip"};
        const char *content = json_string_value(json_object_get(token, "content"));
        json_t *id = json_object_get(token, "id");
        if (!content || !json_is_integer(id))
            return fail(ST_FORMAT, "%s: added token %zu has no \"content\" or no \"id\"", r->where,
                        i + 1);
        for (int k = 0; k < COUNT_OF(modes); k++)
            if (json_is_true(json_object_get(token, modes[k])))
                return fail(ST_UNSUPPORTED,
                            "%s: the added token %.80s has \"%s\", which Strobe "
                            "does not have",
                            r->where, content, modes[k]);
        struct token_text t = {arena_strdup(r->a, content), (int)strlen(content)};
        TRY(add_special(r, json_integer_value(id), t));
    }
    return ST_OK;
}

static enum status read_merges(struct reading *r, const json_t *merges)
{
    json_t *merge;
    size_t i;
    if (!json_is_array(merges)) return fail(ST_FORMAT, "%s: \"merges\" is not a list", r->where);
    r->merge = ARENA_NEW(r->a, struct bpe_merge, (int64_t)json_array_size(merges) + 1);
    json_array_foreach(merges, i, merge) {
        const char *left = json_string_value(json_array_get(merge, 0)),
                   *right = json_string_value(json_array_get(merge, 1));
        struct token_text l, m;
        if (json_is_string(merge)) {
            TRY(read_merge(r, json_string_value(merge), (int64_t)json_string_length(merge)));
        } else if (left && right && byte_text_read(left, (int64_t)strlen(left), r->a, &l) &&
                   byte_text_read(right, (int64_t)strlen(right), r->a, &m)) {
            TRY(add_merge(r, l, m));
        } else {
            return fail(ST_FORMAT, "%s: merge %zu is not two tokens", r->where, i + 1);
        }
    }
    return ST_OK;
}

/* --- tokenizer.json --------------------------------------------------------------------------- */

static bool is_set(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);
    return x && !json_is_null(x) && !json_is_false(x) &&
           !(json_is_string(x) && !json_string_length(x)) &&
           !(json_is_number(x) && json_number_value(x) == 0);
}

static bool is_type(const json_t *o, const char *type)
{
    return str_same(json_string_value(json_object_get(o, "type")), type);
}

/* Whether the tokenizer splits text as GPT-2. Hugging Face's type ByteLevel has GPT-2's pattern. */
static bool splits_as_gpt2(const json_t *root)
{
    const json_t *s = json_object_get(root, "pre_tokenizer");
    return is_type(s, "ByteLevel") && !is_set(s, "add_prefix_space") &&
           !json_is_false(json_object_get(s, "use_regex"));
}

/* Whether a post-processor does not change the tokens, such as the template without special tokens
 * that the transformers library writes. */
static bool adds_nothing(const json_t *after)
{
    if (is_type(after, "ByteLevel")) return true;
    return is_type(after, "TemplateProcessing") &&
           json_object_size(json_object_get(after, "special_tokens")) == 0;
}

static enum status check_settings(const json_t *root, const char *where)
{
    static const char *const unknown[] = {"dropout", "continuing_subword_prefix", "byte_fallback",
                                          "end_of_word_suffix", "ignore_merges"};
    const json_t *model = json_object_get(root, "model"),
                 *after = json_object_get(root, "post_processor");
    if (!json_is_object(model) || (json_object_get(model, "type") && !is_type(model, "BPE")))
        return fail(ST_UNSUPPORTED, "%s: its model is not BPE", where);
    if (!splits_as_gpt2(root))
        return fail(ST_UNSUPPORTED,
                    "%s splits text otherwise than GPT-2 (\"pre_tokenizer\" is not ByteLevel with "
                    "its pattern and without add_prefix_space), so its ids would be wrong",
                    where);
    if (is_set(root, "normalizer"))
        return fail(ST_UNSUPPORTED, "%s normalizes text, which Strobe does not", where);
    if (after && !json_is_null(after) && !adds_nothing(after))
        return fail(ST_UNSUPPORTED,
                    "%s adds tokens to each text (\"post_processor\"), which "
                    "Strobe does not",
                    where);
    for (int i = 0; i < COUNT_OF(unknown); i++)
        if (is_set(model, unknown[i]))
            return fail(ST_UNSUPPORTED, "%s has \"%s\", which Strobe does not", where, unknown[i]);
    return ST_OK;
}

static int by_length(const void *a, const void *b)
{
    return ((const struct special_token *)b)->text.length -
           ((const struct special_token *)a)->text.length;
}

static enum status finish(struct reading *r, struct tokenizer *t)
{
    if (r->specials) qsort(r->special, (size_t)r->specials, sizeof *r->special, by_length);
    struct tokenizer read = {
        .merge = r->merge, .merges = r->merges, .special = r->special, .specials = r->specials};
    enum status st = bpe_build(&read.bpe, r->text, r->ids, r->merge, r->merges, r->a);
    if (st != ST_OK) return fail_in(st, "%s", r->where);
    *t = read;
    return ST_OK;
}

enum status tokenizer_read(struct tokenizer *t, const json_t *root, const char *where,
                           struct arena *a)
{
    struct reading r = {.where = where, .a = a};
    TRY(check_settings(root, where));
    const json_t *model = json_object_get(root, "model"),
                 *added = json_object_get(root, "added_tokens");
    TRY(read_vocabulary(&r, json_object_get(model, "vocab"), added));
    TRY(read_added(&r, added));
    TRY(read_merges(&r, json_object_get(model, "merges")));
    return finish(&r, t);
}

static enum status open_json(struct tokenizer *t, const char *path, struct arena *a)
{
    json_t *root;
    TRY(read_json(path, a, &root));
    enum status st = tokenizer_read(t, root, path, a);
    json_decref(root);
    return st;
}

/* --- vocab.json and merges.txt ---------------------------------------------------------------- */

static enum status read_lines(struct reading *r, const char *text, int64_t bytes)
{
    int64_t lines = 1;
    for (int64_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    r->merge = ARENA_NEW(r->a, struct bpe_merge, lines);
    bool first = true;
    for (int64_t at = 0; at < bytes; first = false) {
        const char *line = text + at, *end = memchr(line, '\n', (size_t)(bytes - at));
        int64_t n = end ? end - line : bytes - at;
        at += n + 1;
        if (n && line[n - 1] == '\r') n--;
        if (n == 0 || (first && !strncmp(line, "#version", 8))) continue;
        TRY(read_merge(r, line, n));
    }
    return ST_OK;
}

/* Whether a token is UTF-8 without a zero byte, and so can be a JSON string. */
static bool is_text(const struct token_text *t)
{
    int n;
    for (int at = 0; at < t->length; at += n)
        if (utf8_decode(t->bytes + at, t->length - at, &n) <= 0) return false;
    return true;
}

/* A token that is neither a byte nor the result of a merge becomes a special token if it is
 * text. */
static void find_specials(struct reading *r)
{
    bool *made = ARENA_NEW(r->a, bool, r->ids);
    for (int64_t i = 0; i < r->merges; i++) made[r->merge[i].result] = true;
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        r->special = pass ? ARENA_NEW(r->a, struct special_token, count + 1) : NULL;
        for (int i = 0; i < r->ids; i++) {
            const struct token_text *t = &r->text[i];
            if (t->length < 2 || made[i] || !is_text(t)) continue;
            if (pass) r->special[r->specials++] = (struct special_token){*t, (uint32_t)i};
            count += !pass;
        }
    }
}

static enum status read_pair(struct reading *r, const char *vocabulary, const char *merges)
{
    json_t *root;
    char *text;
    int64_t bytes;
    TRY(read_json(vocabulary, r->a, &root));
    r->where = vocabulary;
    enum status st = read_vocabulary(r, root, NULL);
    json_decref(root);
    TRY(st);
    TRY(file_read_most(merges, FILE_MOST, r->a, &text, &bytes));
    r->where = merges;
    TRY(read_lines(r, text, bytes));
    find_specials(r);
    return ST_OK;
}

static enum status open_pair(struct tokenizer *t, const char *folder, struct arena *a)
{
    struct reading r = {.a = a};
    TRY(read_pair(&r, arena_printf(a, "%s/vocab.json", folder),
                  arena_printf(a, "%s/merges.txt", folder)));
    r.where = folder;
    return finish(&r, t);
}

/* --- tiktoken's ranks ------------------------------------------------------------------------- */

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool read_base64(const char *text, int64_t n, struct arena *a, struct token_text *ret)
{
    char *bytes = arena_alloc(a, n);
    int64_t digits = n;
    uint32_t bits = 0;
    ret->length = 0;
    ret->bytes = bytes;
    if (n == 0 || n % 4 != 0) return false;
    while (digits > n - 2 && text[digits - 1] == '=') digits--;
    for (int64_t i = 0; i < digits; i++) {
        int value = base64_value(text[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 != 0) bytes[ret->length++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return true;
}

/* Reads a line such as "IHRoZQ== 262". */
static enum status read_rank(const char *line, int64_t n, struct reading *r, struct token_text *t,
                             int64_t *ret_id)
{
    const char *blank = memchr(line, ' ', (size_t)n);
    char *end;
    if (blank && read_base64(line, blank - line, r->a, t)) {
        *ret_id = strtoll(blank + 1, &end, 10);
        if (end != blank + 1 && (end == line + n || *end == '\r')) return ST_OK;
    }
    return fail(ST_FORMAT,
                "%s is not a file of ranks as tiktoken writes them: \"%.*s\" is not a token in "
                "base64 and its rank",
                r->where, (int)min_i64(n, 80), line);
}

/* Adds all merges: tiktoken joins two neighbors whenever their joined text is a token. */
static enum status all_merges(struct reading *r)
{
    int64_t most = 0;
    for (int i = 0; i < r->ids; i++) most += max_i64(r->text[i].length - 1, 0);
    r->merge = ARENA_NEW(r->a, struct bpe_merge, most + 1);
    for (int i = 0; i < r->ids; i++) {
        const struct token_text *t = &r->text[i];
        int64_t before = r->merges;
        if (t->length > RANKED_MOST)
            return fail(ST_UNSUPPORTED, "%s: token %d has %d bytes; at most %d are possible here",
                        r->where, i, t->length, RANKED_MOST);
        for (int n = 1; n < t->length; n++) {
            int64_t left = *find_slot(r, t->bytes, n),
                    right = *find_slot(r, t->bytes + n, t->length - n);
            if (left < 0 || right < 0) continue;
            r->merge[r->merges++] =
                (struct bpe_merge){(uint32_t)left, (uint32_t)right, (uint32_t)i};
        }
        if (t->length > 1 && r->merges == before)
            return fail(ST_FORMAT, "%s: token %d is not two other tokens side by side", r->where,
                        i);
    }
    return ST_OK;
}

/* Of OpenAI's vocabularies only those of GPT-2 and GPT-3, with about 50,000 tokens, split text by
 * GPT-2's pattern. Larger vocabularies do not. */
enum { GPT2_END = 50256, RANKS_OF_GPT2 = 100000 };

static enum status read_ranks(struct reading *r, const char *text, int64_t bytes)
{
    int64_t highest = -1;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) TRY(begin(r, highest));
        for (int64_t at = 0; at < bytes;) {
            const char *line = text + at, *end = memchr(line, '\n', (size_t)(bytes - at));
            int64_t n = end ? end - line : bytes - at, id = -1;
            struct token_text t;
            at += n + 1;
            if (n == 0) continue;
            TRY(read_rank(line, n, r, &t, &id));
            if (id > highest) highest = id;
            if (pass) TRY(add_token(r, id, t));
        }
        if (!pass && highest >= GPT2_END - 1 && highest < RANKS_OF_GPT2)
            highest = max_i64(highest, GPT2_END);
    }
    if (r->ids >= RANKS_OF_GPT2)
        return fail(ST_UNSUPPORTED,
                    "%s has %d ranks: files so large (cl100k_base, o200k_base, Llama 3) split text "
                    "otherwise than GPT-2, so the ids would be wrong",
                    r->where, r->ids);
    TRY(all_merges(r));
    r->special = ARENA_NEW(r->a, struct special_token, 1);
    if (r->ids <= GPT2_END || r->text[GPT2_END].length) return ST_OK;
    return add_special(r, GPT2_END, (struct token_text){"<|endoftext|>", 13});
}

static enum status open_ranks(struct tokenizer *t, const char *path, struct arena *a)
{
    struct reading r = {.where = path, .a = a};
    char *text;
    int64_t bytes;
    TRY(file_read_most(path, FILE_MOST, a, &text, &bytes));
    TRY(read_ranks(&r, text, bytes));
    TRY(finish(&r, t));
    /* If a piece is the text of a token, tiktoken uses this token without merging. */
    for (int i = 0; i < t->bpe.ranks; i++)
        if (!bpe_is_made(&t->bpe, (uint32_t)i))
            return fail(ST_UNSUPPORTED,
                        "%s: merging never makes token %u, but tiktoken uses it, so the ids would "
                        "be wrong",
                        path, t->bpe.id[i]);
    return ST_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

enum status tokenizer_open(struct tokenizer *t, const char *path, struct arena *a)
{
    size_t n = strlen(path);
    *t = (struct tokenizer){};
    if (!file_is_dir(path)) {
        if (!file_exists(path)) return fail(ST_ABSENT, "%s: no such file or folder", path);
        bool json = n > 5 && !strcmp(path + n - 5, ".json");
        return json ? open_json(t, path, a) : open_ranks(t, path, a);
    }
    const char *whole = arena_printf(a, "%s/tokenizer.json", path);
    if (file_exists(whole)) return open_json(t, whole, a);
    if (file_exists(arena_printf(a, "%s/vocab.json", path))) return open_pair(t, path, a);
    return fail(ST_IO,
                "%s has no tokenizer: neither tokenizer.json nor vocab.json and merges.txt are in "
                "this folder",
                path);
}

int64_t tokenizer_special(const struct tokenizer *t, const char *text)
{
    for (int i = 0; i < t->specials; i++)
        if (t->special[i].text.length == (int)strlen(text) &&
            !memcmp(t->special[i].text.bytes, text, strlen(text)))
            return t->special[i].id;
    return -1;
}

int64_t tokenizer_find_special(const struct tokenizer *t, const char *text, int64_t bytes,
                               const struct special_token **ret)
{
    enum {
        WINDOW = 1 << 12
    }; /* a token that does not occur must not be searched in the whole text */
    int64_t first = -1;
    for (int64_t from = 0; from < bytes && first < 0; from += WINDOW)
        for (int i = 0; i < t->specials; i++) {
            const struct special_token *s = &t->special[i];
            int64_t end = (first < 0 ? from + WINDOW : first) + s->text.length - 1;
            const char *at = memmem(text + from, (size_t)(min_i64(end, bytes) - from),
                                    s->text.bytes, (size_t)s->text.length);
            if (!at) continue;
            first = at - text;
            *ret = s;
        }
    return first;
}

bool tokenizer_is_special(const struct tokenizer *t, int64_t id)
{
    for (int i = 0; i < t->specials; i++)
        if (t->special[i].id == id) return true;
    return false;
}

struct token_text tokenizer_text(const struct tokenizer *t, int64_t id)
{
    bool there = id >= 0 && id < t->bpe.ids && t->bpe.text[id].length;
    return there ? t->bpe.text[id] : (struct token_text){"", 0};
}
