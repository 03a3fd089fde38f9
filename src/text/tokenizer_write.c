/* Converts a vocabulary to the JSON value of a tokenizer.json. */
#include "base/heap.h"
#include "base/json.h"
#include "text/byte_text.h"
#include "text/tokenizer.h"

#include <stdlib.h>

static json_t *byte_text_json(const struct token_text *t)
{
    struct str s = {};
    byte_text_append(&s, t);
    json_t *text = json_string(str_text(&s));
    str_release(&s);
    return text;
}

static json_t *added_json(const struct tokenizer *t)
{
    json_t *list = json_array();
    for (int i = 0; i < t->specials; i++)
        json_array_append_new(
            list,
            json_pack("{s:I, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)t->special[i].id,
                      "content", t->special[i].text.bytes, (size_t)t->special[i].text.length,
                      "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
    return list;
}

json_t *tokenizer_json(const struct tokenizer *t)
{
    json_t *vocabulary = json_object(), *merges = json_array();
    bool *special = HEAP_NEW(bool, t->bpe.ids + 1);
    for (int i = 0; i < t->specials; i++) special[t->special[i].id] = true;
    for (int i = 0; i < t->bpe.ids; i++) {
        if (!t->bpe.text[i].length || special[i]) continue;
        json_t *text = byte_text_json(&t->bpe.text[i]);
        json_object_set_new(vocabulary, json_string_value(text), json_integer(i));
        json_decref(text);
    }
    free(special);
    for (int64_t i = 0; i < t->merges; i++)
        json_array_append_new(merges,
                              json_pack("[o, o]", byte_text_json(&t->bpe.text[t->merge[i].left]),
                                        byte_text_json(&t->bpe.text[t->merge[i].right])));
    return json_pack(
        "{s:s, s:n, s:n, s:o, s:n, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b}, s:{s:s, "
        "s:n, s:n, s:s, s:s, s:b, s:b, s:o, s:o}}",
        "version", "1.0", "truncation", "padding", "added_tokens", added_json(t), "normalizer",
        "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex",
        1, "post_processor", "decoder", "type", "ByteLevel", "add_prefix_space", 1, "trim_offsets",
        1, "use_regex", 1, "model", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "", "end_of_word_suffix", "", "fuse_unk", 0, "byte_fallback",
        0, "vocab", vocabulary, "merges", merges);
}
