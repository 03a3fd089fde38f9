#include "data/nanogpt_meta.h"

#include "base/file.h"
#include "base/str.h"
#include "data/kind.h"
#include "data/pickle.h"

#include <string.h>

/* Reads the texts by id. A text with a zero byte becomes "", which invalid_entry refuses. */
static enum status read_texts(const char *path, const struct pickle_dict *itos, int size,
                              const char **text, struct arena *a)
{
    for (int i = 0; i < itos->count; i++) {
        const struct pickle_value *key = &itos->item[i].key, *value = &itos->item[i].value;
        if (key->type != PICKLE_NUMBER || key->number < 0 || key->number >= size ||
            value->type != PICKLE_TEXT)
            return fail(ST_FORMAT, "%s: \"itos\" does not lead from numbers below %d to texts",
                        path, size);
        bool has_zero = memchr(value->text, 0, (size_t)value->number) != NULL;
        text[key->number] =
            has_zero ? "" : arena_printf(a, "%.*s", (int)value->number, value->text);
    }
    for (int i = 0; i < size; i++)
        if (!text[i]) return fail(ST_FORMAT, "%s: \"itos\" has no entry %d", path, i);
    return ST_OK;
}

/* Whether each entry of "stoi" is the inverse of one of "itos". */
static enum status check_inverse(const char *path, const struct pickle_dict *stoi,
                                 const struct vocabulary *v)
{
    for (int i = 0; i < stoi->count; i++) {
        const struct pickle_value *key = &stoi->item[i].key, *value = &stoi->item[i].value;
        const char *text = value->type == PICKLE_NUMBER && value->number >= 0 &&
                                   value->number < v->size && key->type == PICKLE_TEXT
                               ? v->text[value->number]
                               : NULL;
        if (!text || (int64_t)strlen(text) != key->number ||
            memcmp(text, key->text, (size_t)key->number) != 0)
            return fail(ST_FORMAT, "%s: entry %d of \"stoi\" contradicts \"itos\"", path, i);
    }
    return ST_OK;
}

enum status nanogpt_meta_read(struct vocabulary *v, const char *path, struct arena *a)
{
    char *data;
    int64_t bytes;
    struct pickle_value root;
    TRY(file_read_most(path, PICKLE_BYTES_MOST, a, &data, &bytes));
    TRY(pickle_read(PICKLE_PLAIN, path, data, bytes, a, &root));
    const struct pickle_value *size = pickle_find(&root, "vocab_size"),
                              *itos = pickle_find(&root, "itos"),
                              *stoi = pickle_find(&root, "stoi");
    if (!size || size->type != PICKLE_NUMBER || !itos || itos->type != PICKLE_DICT || !stoi ||
        stoi->type != PICKLE_DICT)
        return fail(ST_FORMAT, "%s is not a dictionary with \"vocab_size\", \"itos\" and \"stoi\"",
                    path);
    if (size->number < 1 || size->number > UINT16_MAX + 1)
        return fail(ST_FORMAT, "%s: \"vocab_size\" is %lld, not 1 to %d", path,
                    (long long)size->number, UINT16_MAX + 1);
    const char **text = ARENA_NEW(a, const char *, size->number);
    struct vocabulary read = {.kind = &data_characters, .size = (int)size->number, .text = text};
    TRY(read_texts(path, itos->dict, read.size, text, a));
    int wrong = data_characters.invalid_entry(&read);
    if (wrong >= 0)
        return fail(ST_FORMAT, "%s: entry %d of the vocabulary %s", path, wrong,
                    data_characters.invalid);
    TRY(check_inverse(path, stoi->dict, &read));
    *v = read;
    return ST_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* An opcode with a little-endian operand of 4 bytes. */
static void put_operand(struct str *s, char opcode, uint32_t operand)
{
    str_append_bytes(s, &opcode, 1);
    for (int i = 0; i < 4; i++) str_append_bytes(s, &(char){(char)(operand >> 8 * i)}, 1);
}

static void put_number(struct str *s, int number)
{
    put_operand(s, 'J', (uint32_t)number);
}

static void put_text(struct str *s, const char *text)
{
    put_operand(s, 'X', (uint32_t)strlen(text));
    str_append(s, text);
}

enum status nanogpt_meta_write(const struct vocabulary *v, const char *path)
{
    struct str s = {};
    str_append(&s, "\x80\x02}("); /* protocol 2; an empty dictionary, and the items to put in */
    put_text(&s, "vocab_size");
    put_number(&s, v->size);
    put_text(&s, "itos");
    str_append(&s, "}(");
    for (int i = 0; i < v->size; i++) {
        put_number(&s, i);
        put_text(&s, v->text[i]);
    }
    str_append(&s, "u");
    put_text(&s, "stoi");
    str_append(&s, "}(");
    for (int i = 0; i < v->size; i++) {
        put_text(&s, v->text[i]);
        put_number(&s, i);
    }
    str_append(&s, "uu.");
    enum status st = file_write(path, s.data, s.len);
    str_release(&s);
    return st;
}
