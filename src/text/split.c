#include "text/split.h"

#include "base/isa.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <string.h>

/* --- classes as masks ------------------------------------------------------------------------- */

/* Masks of 64 bytes: bit i belongs to byte i. `high`: bytes that are not ASCII. */
struct ascii {
    uint64_t letter, number, space, blank, quote, high;
};

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* Which bytes of `x` are in [first, first + n). */
static AVX2 inline __m256i in_range(__m256i x, char first, char n)
{
    __m256i offset = _mm256_sub_epi8(x, _mm256_set1_epi8(first));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(offset, _mm256_set1_epi8((char)(n - 1))), offset);
}

static AVX2 inline uint64_t mask(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)_mm256_movemask_epi8(high) << 32;
}

static AVX2 inline __m256i is_space(__m256i x)
{
    return _mm256_or_si256(in_range(x, '\t', 5), _mm256_cmpeq_epi8(x, _mm256_set1_epi8(' ')));
}

static AVX2 struct ascii classify_avx2(const char *text)
{
    __m256i a = _mm256_loadu_si256((const __m256i *)text),
            b = _mm256_loadu_si256((const __m256i *)(text + 32)), bit = _mm256_set1_epi8(0x20),
            blank = _mm256_set1_epi8(' '), quote = _mm256_set1_epi8('\'');
    return (struct ascii){
        .letter = mask(in_range(_mm256_or_si256(a, bit), 'a', 26),
                       in_range(_mm256_or_si256(b, bit), 'a', 26)),
        .number = mask(in_range(a, '0', 10), in_range(b, '0', 10)),
        .space = mask(is_space(a), is_space(b)),
        .blank = mask(_mm256_cmpeq_epi8(a, blank), _mm256_cmpeq_epi8(b, blank)),
        .quote = mask(_mm256_cmpeq_epi8(a, quote), _mm256_cmpeq_epi8(b, quote)),
        .high = mask(a, b),
    };
}

#endif

static struct ascii classify_plain(const char *text)
{
    struct ascii m = {};
    for (int i = 0; i < SPLIT_BLOCK; i++) {
        uint8_t c = (uint8_t)text[i];
        m.letter |= (uint64_t)((uint8_t)((c | 0x20) - 'a') < 26) << i;
        m.number |= (uint64_t)((uint8_t)(c - '0') < 10) << i;
        m.space |= (uint64_t)((uint8_t)(c - '\t') < 5 || c == ' ') << i;
        m.blank |= (uint64_t)(c == ' ') << i;
        m.quote |= (uint64_t)(c == '\'') << i;
        m.high |= (uint64_t)(c >> 7) << i;
    }
    return m;
}

static void add_class(struct split_masks *m, int class, uint64_t bits)
{
    if (class == CLASS_LETTER) m->letter |= bits;
    if (class == CLASS_NUMBER) m->number |= bits;
    if (class == CLASS_SPACE) m->space |= bits;
}

static struct ascii classify_ascii(const struct splitter *s, const char *text)
{
#ifdef __x86_64__
    if (s->avx2) return classify_avx2(text);
#endif
    return classify_plain(text);
}

/* Adds characters of several bytes to the masks: all bytes get the class of their character. */
static void add_high(struct splitter *s, int64_t from, uint64_t high, struct split_masks *m)
{
    uint64_t spilled = ((uint64_t)1 << s->spilled) - 1;
    m->inner |= spilled;
    add_class(m, s->spilled_class, spilled);
    s->spilled = 0;
    for (uint64_t left = high & ~spilled; left;) {
        int i = __builtin_ctzll(left), n;
        enum text_class class = unicode_next(s->text + from + i, s->bytes - from - i, &n);
        uint64_t bits = (((uint64_t)1 << n) - 1) << i;
        m->inner |= bits & ~((uint64_t)1 << i);
        add_class(m, class, bits);
        left &= ~bits;
        if (i + n <= SPLIT_BLOCK) continue;
        s->spilled = i + n - SPLIT_BLOCK;
        s->spilled_class = class;
    }
}

/* The masks of the block that begins at `from`, which may be beyond the end of the text. */
static struct split_masks classify(struct splitter *s, int64_t from)
{
    char rest[SPLIT_BLOCK];
    const char *text = s->text + from;
    int64_t n = s->bytes - from;
    if (n <= 0) return (struct split_masks){};
    if (n < SPLIT_BLOCK) {
        memset(rest, 0, sizeof rest);
        memcpy(rest, text, (size_t)n);
        text = rest;
    }
    struct ascii a = classify_ascii(s, text);
    struct split_masks m = {
        .there = n < SPLIT_BLOCK ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0,
        .letter = a.letter,
        .number = a.number,
        .space = a.space,
        .blank = a.blank,
        .quote = a.quote,
    };
    if (a.high || s->spilled) add_high(s, from, a.high, &m);
    return m;
}

/* --- where pieces begin ----------------------------------------------------------------------- */

/* Shifts a mask to the next byte; `before`, the mask of the previous block, supplies the first
 * bit. */
static uint64_t later(uint64_t mask, uint64_t before)
{
    return mask << 1 | before >> 63;
}

/* Shifts a mask to the previous byte; `next`, the mask of the next block, supplies the last bit. */
static uint64_t earlier(uint64_t mask, uint64_t next)
{
    return mask >> 1 | next << 63;
}

static uint64_t other(const struct split_masks *m)
{
    return m->there & ~(m->letter | m->number | m->space);
}

/* A mask of the first byte of each space character that ends a run of spaces and is followed by
 * text. A space character has at most three bytes. */
static uint64_t last_spaces(const struct split_masks *m, const struct split_masks *next)
{
    uint64_t text = m->there & ~m->space, next_text = next->there & ~next->space;
    uint64_t end = m->space & earlier(text, next_text);
    uint64_t next_end = next->space & next_text >> 1;
    uint64_t one = earlier(end & m->inner, next_end & next->inner);
    uint64_t two = earlier(one & m->inner, (next_end & next->inner) >> 1 & next->inner);
    return (end | one | two) & m->space & ~m->inner;
}

static uint64_t beginnings(const struct split_masks *before, const struct split_masks *m,
                           const struct split_masks *next)
{
    uint64_t o = other(m);
    uint64_t continued = (m->letter & later(m->letter, before->letter)) |
                         (m->number & later(m->number, before->number)) |
                         (o & later(o, other(before)));
    uint64_t text = m->there & ~m->space & ~continued & ~later(m->blank, before->blank);
    uint64_t space = m->space & (~later(m->space, before->space) | last_spaces(m, next));
    return (text | space) & ~m->inner;
}

/* The length of the contraction that begins with the apostrophe at `text`; 0: there is none. */
static int contraction(const char *text, int64_t bytes)
{
    if (bytes < 2) return 0;
    if (strchr("stmd", text[1]) && text[1]) return 2;
    if (bytes < 3) return 0;
    static const char longer[][2] = {{'r', 'e'}, {'v', 'e'}, {'l', 'l'}};
    for (int i = 0; i < COUNT_OF(longer); i++)
        if (!memcmp(text + 1, longer[i], 2)) return 3;
    return 0;
}

/* Corrects `begins` for contractions: no piece begins within a contraction, and a piece begins
 * after each contraction. */
static uint64_t mark_contractions(struct splitter *s, uint64_t begins, uint64_t quote)
{
    begins = (begins & ~s->clear) | s->set;
    s->set = s->clear = 0;
    for (uint64_t left = begins & quote; left;) {
        int i = __builtin_ctzll(left);
        int n = contraction(s->text + s->at + i, s->bytes - s->at - i);
        left &= left - 1;
        if (n == 0) continue;
        if (i + 1 < SPLIT_BLOCK)
            begins &= ~((uint64_t)1 << (i + 1));
        else
            s->clear = 1;
        if (s->at + i + n == s->bytes) break;
        if (i + n < SPLIT_BLOCK)
            begins |= (uint64_t)1 << (i + n);
        else
            s->set = (uint64_t)1 << (i + n - SPLIT_BLOCK);
    }
    return begins;
}

void split_begin(struct splitter *s, const char *text, int64_t bytes)
{
    *s = (struct splitter){.text = text, .bytes = bytes, .avx2 = isa_allows(ISA_AVX2)};
    s->block = classify(s, 0);
}

int64_t split_next(struct splitter *s, int64_t blocks, uint64_t *ret)
{
    int64_t k = 0;
    for (; k < blocks && s->at < s->bytes; k++, s->at += SPLIT_BLOCK) {
        struct split_masks next = classify(s, s->at + SPLIT_BLOCK);
        uint64_t begins = beginnings(&s->before, &s->block, &next);
        if (s->block.quote || s->set || s->clear)
            begins = mark_contractions(s, begins, s->block.quote);
        ret[k] = begins;
        s->before = s->block;
        s->block = next;
    }
    return k;
}

/* --- safe cuts -------------------------------------------------------------------------------- */

/* The class of the character that ends before byte `end`; *ret is its first byte. */
static enum text_class class_before(const char *text, int64_t bytes, int64_t end, int64_t *ret)
{
    int n;
    for (int back = 2; back <= 4 && back <= end && !utf8_begins(text[end - 1]); back++) {
        enum text_class class = unicode_next(text + end - back, bytes - end + back, &n);
        *ret = end - back;
        if (n == back) return class;
    }
    *ret = end - 1;
    return unicode_next(text + end - 1, 1, &n);
}

/* A cut between characters of two classes is safe, with two exceptions: the pattern joins two
 * classes in a blank before text and in a contraction, and it looks ahead after spaces. The last
 * bytes of the text may be an incomplete character. */
int64_t split_safe_cut(const char *text, int64_t bytes, int64_t most)
{
    for (int64_t cut = min_i64(most, bytes - (UTF8_BYTES - 1)); cut > 0;) {
        int64_t before;
        int n;
        enum text_class class = class_before(text, bytes, cut, &before);
        bool inside = !utf8_begins(text[cut]); /* the cut may be inside a character */
        if (!inside && class != CLASS_SPACE && text[before] != '\'' &&
            class != unicode_next(text + cut, bytes - cut, &n))
            return cut;
        cut = before;
    }
    return 0;
}
