/* 01_pattern.c - the pattern's alternatives, tried one after the other; pairs are looked up again.
 *
 * This follows the regular expression and the definition of byte pair encoding literally: at each
 * place every alternative of the pattern is tried, and after each merge all pairs of the piece are
 * looked up again. This rung defines the ids with which all other rungs are compared. */
#include "lab/bpe/cpu/bpe.h"
#include "text/unicode.h"

/* The end of the run of characters of one class that begins at `at`. */
static int64_t end_of_run(const char *text, int64_t bytes, int64_t at, enum text_class class)
{
    int n;
    while (at < bytes && unicode_next(text + at, bytes - at, &n) == class) at += n;
    return at;
}

static int64_t piece(const char *text, int64_t bytes, int64_t from)
{
    static const char *const contractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    static const enum text_class classes[] = {CLASS_LETTER, CLASS_NUMBER, CLASS_OTHER};
    for (int i = 0; i < COUNT_OF(contractions); i++) {
        int64_t n = (int64_t)strlen(contractions[i]);
        if (bytes - from >= n && !memcmp(text + from, contractions[i], (size_t)n)) return from + n;
    }
    int64_t after_blank = from + (text[from] == ' ');
    for (int i = 0; i < COUNT_OF(classes); i++) {
        int64_t end = end_of_run(text, bytes, after_blank, classes[i]);
        if (end > after_blank) return end;
    }
    int64_t end = end_of_run(text, bytes, from, CLASS_SPACE), last = from;
    if (end == bytes) return end;
    for (int64_t at = from; at < end;) {
        int n;
        last = at;
        unicode_next(text + at, bytes - at, &n);
        at += n;
    }
    return last > from ? last : end;
}

RUNG(bpe_pattern)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
    for (int64_t at = 0, end; at < c->n[0]; at = end) {
        end = piece(x->text, c->n[0], at);
        put_naive(x, x->text + at, end - at, ret);
    }
}
