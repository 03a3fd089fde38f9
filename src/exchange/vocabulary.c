/* Finds the tokens of a model of another program. */
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "data/kind.h"
#include "data/tokenizers.h"
#include "exchange/exchange.h"

#include <string.h>

enum { CHARACTERS_BYTES_MOST = 1 << 24 };

/* --- characters ------------------------------------------------------------------------------- */

static const char each_character[] = "[\\s\\S]";

/* Describes a tokenizer in which each character is a token and decoding joins texts without
 * blanks. */
json_t *exchange_characters_json(const struct vocabulary *v)
{
    json_t *ids = json_object();
    for (int i = 0; i < v->size; i++) json_object_set_new(ids, v->text[i], json_integer(i));
    return json_pack(
        "{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:{s:s}, s:s, s:b}, s:n, s:{s:s}, s:{s:s, s:o, s:s}}",
        "version", "1.0", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
        "type", "Split", "pattern", "Regex", each_character, "behavior", "Isolated", "invert", 0,
        "post_processor", "decoder", "type", "Fuse", "model", "type", "WordLevel", "vocab", ids,
        "unk_token", "<unk>");
}

static bool has_text(const json_t *object, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(object, key));
    return found && !strcmp(found, text);
}

/* Reads the characters of a tokenizer that exchange_characters_json wrote; false: it is another
 * tokenizer. */
static bool read_characters(const json_t *root, struct vocabulary *ret, struct arena *a)
{
    const json_t *model = json_object_get(root, "model"), *ids = json_object_get(model, "vocab");
    const json_t *split = json_object_get(root, "pre_tokenizer");
    const char *text;
    json_t *item;
    int n = (int)json_object_size(ids);
    if (!has_text(model, "type", "WordLevel") || !n || n > VOCABULARY_MAX) return false;
    if (!has_text(json_object_get(split, "pattern"), "Regex", each_character)) return false;
    const char **texts = ARENA_NEW(a, const char *, n);
    json_object_foreach((json_t *)ids, text, item) {
        json_int_t id = json_integer_value(item);
        if (!json_is_integer(item) || id < 0 || id >= n || texts[id]) return false;
        texts[id] = arena_strdup(a, text);
    }
    *ret = (struct vocabulary){.kind = &data_characters, .size = n, .text = texts};
    return data_characters.invalid_entry(ret) < 0;
}

/* Reads the folder's tokenizer.json; false: the file is missing or has another tokenizer. */
static bool open_characters(const char *folder, struct vocabulary *ret, struct arena *a)
{
    const char *path = arena_printf(a, "%s/tokenizer.json", folder);
    char *text;
    int64_t bytes;
    if (!file_exists(path)) return false;
    if (file_read_most(path, CHARACTERS_BYTES_MOST, a, &text, &bytes) != ST_OK) return false;
    json_t *root = json_loadb(text, (size_t)bytes, 0, NULL);
    bool is = read_characters(root, ret, a);
    json_decref(root);
    return is;
}

/* --- any model -------------------------------------------------------------------------------- */

/* Whether a token table has GPT-2's size; it may have padding rows. */
static bool is_gpt2(int64_t vocab)
{
    enum { PADDING_MOST = 128 };
    return vocab >= GPT2_VOCABULARY && vocab < GPT2_VOCABULARY + PADDING_MOST;
}

static enum status open_tokenizer(const struct exchange_model *m, const char *word,
                                  struct vocabulary *ret, struct arena *a)
{
    struct tokenizer *t = ARENA_NEW(a, struct tokenizer, 1);
    TRY(tokenizers_find(t, word, a));
    if (t->bpe.ids > m->vocab)
        return fail(ST_FORMAT, "%s has %d tokens, but the model has %lld", word, t->bpe.ids,
                    (long long)m->vocab);
    data_byte_pairs.of_tokenizer(ret, t);
    return ST_OK;
}

enum status exchange_vocabulary(const struct exchange_model *m, struct vocabulary *ret,
                                struct arena *a)
{
    if (m->vocabulary) {
        *ret = *m->vocabulary;
        return ST_OK;
    }
    const char *word = m->tokenizer ? m->tokenizer : is_gpt2(m->vocab) ? "gpt2" : NULL;
    if (m->tokenizer && open_characters(m->tokenizer, ret, a) && ret->size <= m->vocab)
        return ST_OK;
    if (word && open_tokenizer(m, word, ret, a) == ST_OK) return ST_OK;
    if (word) log_warning("tokens are shown as numbers: %s", fail_message());
    data_tokens.sized(ret, (int)m->vocab, a);
    return ST_OK;
}
