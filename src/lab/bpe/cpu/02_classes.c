/* 02_classes.c - one pass over the characters; a table has their classes.
 *
 * A piece ends where the class of the characters changes; the exceptions are a blank before a
 * piece, contractions, and the last of several spaces. So each character is looked up once in a
 * table, instead of trying seven alternatives. The merges still take by far most of the time. */
#include "lab/bpe/cpu/bpe.h"
#include "text/unicode.h"

static enum text_class class_at(const char *text, int64_t bytes, int64_t at, int *n)
{
    uint8_t byte = (uint8_t)text[at];
    static const uint8_t ascii[128] = {
        [' '] = CLASS_SPACE,          ['\t' ... '\r'] = CLASS_SPACE, ['0' ... '9'] = CLASS_NUMBER,
        ['a' ... 'z'] = CLASS_LETTER, ['A' ... 'Z'] = CLASS_LETTER,
    };
    *n = 1;
    return byte < 128 ? (enum text_class)ascii[byte] : unicode_next(text + at, bytes - at, n);
}

static int64_t contraction(const char *text, int64_t left)
{
    if (left < 2 || text[0] != '\'') return 0;
    if (text[1] == 's' || text[1] == 't' || text[1] == 'm' || text[1] == 'd') return 2;
    if (left < 3) return 0;
    bool two =
        !memcmp(text + 1, "re", 2) || !memcmp(text + 1, "ve", 2) || !memcmp(text + 1, "ll", 2);
    return two ? 3 : 0;
}

RUNG(bpe_classes)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
    const char *text = x->text;
    int64_t bytes = c->n[0];
    for (int64_t begin = 0, at = 0; begin < bytes; begin = at) {
        int n;
        at = begin + contraction(text + begin, bytes - begin);
        if (at == begin) {
            int64_t last = begin; /* the last character of the run so far */
            enum text_class class = class_at(text, bytes, begin, &n);
            if (text[begin] == ' ' && begin + 1 < bytes) {
                enum text_class next = class_at(text, bytes, begin + 1, &n);
                if (next != CLASS_SPACE) class = next, at++;
            }
            for (; at < bytes && class_at(text, bytes, at, &n) == class; at += n) last = at;
            if (class == CLASS_SPACE && at < bytes && last > begin) at = last;
        }
        put_naive(x, text + begin, at - begin, ret);
    }
}
