#include "slow_bpe.h"

#include "base/utf8.h"
#include "text/unicode.h"

#include <string.h>

/* --- the pattern ------------------------------------------------------------------------------ */

/* The end of the run of characters of one class that begins at `at`. */
static int64_t run_end(const char *text, int64_t bytes, int64_t at, enum text_class class)
{
    int n;
    while (at < bytes && unicode_next(text + at, bytes - at, &n) == class) at += n;
    return at;
}

/* \s+(?!\S): spaces up to the end of the text, or all but the last one. */
static int64_t spaces_end(const char *text, int64_t bytes, int64_t from)
{
    int64_t end = run_end(text, bytes, from, CLASS_SPACE), last = from;
    int n;
    if (end == bytes) return end;
    for (int64_t at = from; at < end; at += n) {
        last = at;
        unicode_next(text + at, bytes - at, &n);
    }
    return last > from ? last : end;
}

int64_t slow_piece(const char *text, int64_t bytes, int64_t from)
{
    static const char *const contractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (int i = 0; i < COUNT_OF(contractions); i++) {
        int64_t n = (int64_t)strlen(contractions[i]);
        if (bytes - from >= n && !memcmp(text + from, contractions[i], (size_t)n)) return n;
    }
    static const enum text_class classes[] = {CLASS_LETTER, CLASS_NUMBER, CLASS_OTHER};
    int64_t after_blank = from + (text[from] == ' ');
    for (int i = 0; i < COUNT_OF(classes); i++) {
        int64_t end = run_end(text, bytes, after_blank, classes[i]);
        if (end > after_blank) return end - from;
    }
    return spaces_end(text, bytes, from) - from;
}

/* --- merges ----------------------------------------------------------------------------------- */

static int64_t merge_of(const struct bpe_merge *merge, int64_t merges, uint32_t left,
                        uint32_t right)
{
    for (int64_t i = 0; i < merges; i++)
        if (merge[i].left == left && merge[i].right == right) return i;
    return -1;
}

int64_t slow_merge(const struct token_text *text, int ids, const struct bpe_merge *merge,
                   int64_t merges, const char *piece, int64_t bytes, uint32_t *ret)
{
    int64_t n = bytes;
    for (int64_t i = 0; i < bytes; i++)
        for (int id = 0; id < ids; id++)
            if (text[id].length == 1 && text[id].bytes[0] == piece[i]) ret[i] = (uint32_t)id;
    for (;;) {
        int64_t best = -1, at = -1;
        for (int64_t i = 0; i + 1 < n; i++) {
            int64_t m = merge_of(merge, merges, ret[i], ret[i + 1]);
            if (m < 0 || (at >= 0 && m >= best)) continue;
            best = m;
            at = i;
        }
        if (at < 0) return n;
        ret[at] = merge[best].result;
        memmove(ret + at + 1, ret + at + 2, (size_t)(n - at - 2) * sizeof *ret);
        n--;
    }
}

/* --- random texts ----------------------------------------------------------------------------- */

uint64_t slow_random(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static int64_t append(char *ret, int64_t n, int64_t most, const char *text)
{
    int64_t bytes = (int64_t)strlen(text);
    if (n + bytes > most) return n;
    memcpy(ret + n, text, (size_t)bytes);
    return n + bytes;
}

int64_t slow_random_text(uint64_t *seed, int64_t most, char *ret)
{
    static const char *const parts[] = {"'s",
                                        "'S",
                                        "'ll",
                                        "'re",
                                        "'ve",
                                        "'",
                                        "''",
                                        "'d",
                                        "don't",
                                        "the",
                                        " the",
                                        "12",
                                        "a1",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\t",
                                        "\r\n",
                                        "   ",
                                        "\x1c",
                                        "\xc2\x85",
                                        "\xc2\xa0",
                                        "\u3000",
                                        "\u2003",
                                        "\u1680",
                                        "\u180e",
                                        "\u200b",
                                        "\ufeff",
                                        "e\u0301",
                                        "\u00e9",
                                        "\u65e5\u672c",
                                        "\u0661",
                                        "\u2460",
                                        "\U0001f600",
                                        "\U00010428",
                                        "====",
                                        "<|endoftext|>",
                                        "!",
                                        ".",
                                        "...",
                                        "\xc3",
                                        "\xe3\x81",
                                        "\x80",
                                        "\xf0\x9f\x98",
                                        "\xff",
                                        "\xed\xa0\x80"};
    int64_t n = 0;
    for (uint64_t left = slow_random(seed, 60); left > 0 && n < most; left--) {
        if (slow_random(seed, 4) == 0) {
            for (uint64_t k = slow_random(seed, 40); k > 0 && n < most; k--)
                ret[n++] = (char)('a' + slow_random(seed, 3));
            continue;
        }
        n = append(ret, n, most, parts[slow_random(seed, COUNT_OF(parts))]);
    }
    return n;
}
