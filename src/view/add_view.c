#include "view/add_view.h"

#include "present/table_cells.h"
#include "view/formats_view.h"

#include <math.h>

enum { STEP, SIGNIFICAND, EXTRA, EXPONENT, VALUE, COLUMNS };
static const struct table_column columns[COLUMNS] = {
    [STEP] = {"step", "step", "what is done", false},
    [SIGNIFICAND] = {"significand", "significand", "sign and significand, in binary", true},
    [EXTRA] = {"grs", "grs", "guard, round and sticky bit", false},
    [EXPONENT] = {"exponent", "x 2^", "exponent", true},
    [VALUE] = {"value", "value", "in decimal, exactly", true},
};

struct board {
    const struct addition *x;
    struct sheet *sheet;
    struct table *table;
    struct arena *arena;
    int row, said;
};

static const char *name_of(int term)
{
    return term ? "b" : "a";
}

static const char *bits_text(uint32_t x, int n, struct arena *a)
{
    char *s = arena_alloc(a, n + 1);
    for (int i = 0; i < n; i++) s[i] = x >> (n - 1 - i) & 1 ? '1' : '0';
    return s;
}

/* Adds a line for a number; `extra`: how many guard, round and sticky bits the number has. */
static void write_number(struct board *b, const char *step, const struct add_number *n, int extra)
{
    int fraction = number_formats[b->x->format].fraction;
    struct arena *a = b->arena;
    uint32_t kept = n->significand >> extra, before = kept >> fraction;
    double x = ldexp(n->significand, n->exponent - fraction - extra);
    table_set_text(b->table, b->row, STEP, step);
    *table_at(b->table, b->row, SIGNIFICAND) = (struct table_cell){
        arena_printf(a, "%c%s.%s", n->negative ? '-' : '+',
                     bits_text(before, before > 1 ? 2 : 1, a), bits_text(kept, fraction, a)),
        n->negative ? -(double)n->significand : n->significand};
    if (extra) table_set_text(b->table, b->row, EXTRA, bits_text(n->significand, extra, a));
    *table_at(b->table, b->row, EXPONENT) =
        (struct table_cell){arena_printf(a, "%d", n->exponent), n->exponent};
    if (!extra)
        *table_at(b->table, b->row, VALUE) =
            (struct table_cell){exact_text(n->negative ? -x : x, a), n->negative ? -x : x};
    b->row++;
}

static void say(struct board *b, const char *sentence)
{
    sheet_note(b->sheet, arena_printf(b->arena, "%d. %s", ++b->said, sentence));
}

static const char *rounding_words(double given, double term, const char *word, struct arena *a)
{
    if (given == term || isnan(given)) return arena_printf(a, "%s is exact", word);
    if (!isfinite(term) || !isfinite(given))
        return arena_printf(a, "%s becomes %s", word, exact_text(term, a));
    return arena_printf(a, "%s becomes %s (%+.2g %%)", word, exact_text(term, a),
                        100 * (term - given) / given);
}

static void say_terms(struct board *b, const char *const word[2])
{
    const struct addition *x = b->x;
    say(b, arena_printf(b->arena, "Round to %s: %s; %s.", number_formats[x->format].dtype,
                        rounding_words(x->given[0], x->term[0], word[0], b->arena),
                        rounding_words(x->given[1], x->term[1], word[1], b->arena)));
}

static void say_alignment(struct board *b)
{
    const struct addition *x = b->x;
    struct arena *a = b->arena;
    const char *small = name_of(!x->larger);
    int fraction = number_formats[x->format].fraction;
    if (x->shift == 0) {
        say(b,
            arena_printf(a, "The exponents are equal, %d: nothing is shifted.", x->of[0].exponent));
        return;
    }
    const char *left = x->lost == 0    ? "no 1 bit falls off"
                       : x->shift == 1 ? "its last bit falls off"
                       : x->shift <= fraction
                           ? arena_printf(a, "its last %d bits fall off", x->shift)
                           : arena_printf(a, "all its %d bits fall off", fraction + 1);
    uint32_t grs = x->aligned.significand;
    say(b, arena_printf(a,
                        "Align: the exponents are %d and %d, so %s moves %d place%s to the right; "
                        "%s: guard %d, round %d, sticky %d (1 if any later bit is).",
                        x->of[0].exponent, x->of[1].exponent, small, x->shift,
                        x->shift == 1 ? "" : "s", left, grs >> 2 & 1, grs >> 1 & 1, grs & 1));
}

static void say_sum(struct board *b)
{
    const struct addition *x = b->x;
    struct arena *a = b->arena;
    bool differ = x->of[0].negative != x->of[1].negative;
    const char *what = differ ? arena_printf(a,
                                             "Subtract, as the signs differ: the larger magnitude, "
                                             "%s, gives the sign",
                                             name_of(x->larger))
                              : "Add, as the signs are equal";
    say(b, arena_printf(a, "%s%s.", what,
                        x->sum.significand == 0
                            ? differ ? "; nothing is left, and zero is +0" : "; both are zero"
                            : ""));
}

static void say_normal(struct board *b)
{
    const struct addition *x = b->x;
    const struct number_format *n = &number_formats[x->format];
    struct arena *a = b->arena;
    bool subnormal = x->normal.significand < 1u << (n->fraction + ADD_EXTRA);
    if (x->moved < 0)
        say(b, "Normalize: there is a carry, two digits before the point, so the sum moves 1 place "
               "to the right and the exponent grows by 1.");
    else if (x->moved > 0)
        say(b, arena_printf(a,
                            "Normalize: the leading %s cancelled, so the sum moves %d place%s to "
                            "the left and zeros fill in.",
                            x->moved == 1 ? "bit" : "bits", x->moved, x->moved == 1 ? "" : "s"));
    else if (!subnormal)
        say(b, "Normalize: one digit before the point already.");
    if (subnormal && x->normal.significand)
        say(b, arena_printf(a, "%d is the smallest exponent: the sum is subnormal.", n->least));
}

static void say_rounding(struct board *b)
{
    const struct addition *x = b->x;
    const struct number_format *n = &number_formats[x->format];
    struct arena *a = b->arena;
    const char *grs = bits_text(x->normal.significand, ADD_EXTRA, a);
    uint32_t extra = x->normal.significand & ((1u << ADD_EXTRA) - 1);
    const char *why = extra == 0 ? "nothing to round"
                      : x->tie   ? arena_printf(a, "exactly half of the last place: a tie, so %s",
                                              x->up ? "up to the even neighbor"
                                                      : "the last bit, which is 0, stays even")
                      : x->up    ? "more than half of the last place, so up"
                                 : "less than half of the last place, so down";
    say(b, arena_printf(a, "Round: guard, round and sticky are %s, %s%s.", grs, why,
                        x->carried ? "; the carry runs through all digits, and the exponent grows "
                                     "by 1"
                                   : ""));
    if (x->overflow && n->saturates)
        say(b, arena_printf(a,
                            "Overflow: beyond the largest number, %.6g; %s saturates, so that is "
                            "the result.",
                            n->largest, n->conversion));
    else if (x->overflow)
        say(b, arena_printf(a, "Overflow: beyond the largest number, %s: the result is infinite.",
                            exact_text(n->largest, a)));
}

/* "a is lost": the smaller term changed nothing. */
static const char *lost_words(const struct addition *x, struct arena *a)
{
    double large = x->term[x->larger];
    if (x->result != large || x->term[!x->larger] == 0 || x->overflow) return "";
    return arena_printf(a,
                        " %s is lost: near %s neighboring numbers are %.6g apart, and %s is not "
                        "more than half of that.",
                        name_of(!x->larger), exact_text(large, a), number_spacing(x->format, large),
                        name_of(!x->larger));
}

static void say_result(struct board *b)
{
    const struct addition *x = b->x;
    struct arena *a = b->arena;
    double error = x->result - x->exact - x->rest, size = fabs(x->exact);
    const char *exact = x->rest != 0
                            ? arena_printf(a, "%s %c %s", exact_text(x->exact, a),
                                           x->rest < 0 ? '-' : '+', exact_text(fabs(x->rest), a))
                            : exact_text(x->exact, a);
    const char *off = error == 0 ? "no error"
                      : isinf(error) || size == 0
                          ? "an infinite error"
                          : arena_printf(a, "error %+.3g, relative %+.2g", error, error / size);
    say(b, arena_printf(a, "Result: %s; the exact sum of both is %s: %s.%s",
                        exact_text(x->result, a), exact, off, lost_words(x, a)));
}

static void say_special(struct board *b)
{
    const struct addition *x = b->x;
    const char *why = isnan(x->term[0]) || isnan(x->term[1]) ? "NaN plus anything is NaN"
                      : isnan(x->result) ? "infinity minus infinity has no value, so it is NaN"
                                         : "infinity plus a number is infinity";
    say(b, arena_printf(b->arena, "Result: %s; %s. Nothing is aligned or rounded.",
                        exact_text(x->result, b->arena), why));
}

static void write_steps(struct board *b)
{
    const struct addition *x = b->x;
    struct arena *a = b->arena;
    for (int i = 0; i < 2; i++) write_number(b, name_of(i), &x->of[i], 0);
    write_number(b, arena_printf(a, "%s aligned", name_of(!x->larger)), &x->aligned, ADD_EXTRA);
    write_number(b, "a + b", &x->sum, ADD_EXTRA);
    write_number(b, "normalized", &x->normal, ADD_EXTRA);
    write_number(b, "rounded", &x->rounded, 0);
    say_alignment(b);
    say_sum(b);
    say_normal(b);
    say_rounding(b);
    say_result(b);
}

static void add_stored(struct board *b)
{
    enum { TERM, BITS, HEX, OF_STORED };
    static const struct table_column of_stored[OF_STORED] = {
        {"number", "stored", "a, b or their sum", false},
        {"bits", "sign exponent fraction", "the bits", false},
        {"value", "value", "in decimal, exactly", true},
    };
    const struct addition *x = b->x;
    struct arena *a = b->arena;
    struct table *t = &sheet_add(b->sheet, NULL, of_stored, OF_STORED, 3, a)->table;
    static const char *const name[] = {"a", "b", "result"};
    const double value[] = {x->term[0], x->term[1], x->result};
    for (int i = 0; i < COUNT_OF(value); i++) {
        char text[NUMBER_TEXT];
        table_set_text(t, i, TERM, name[i]);
        table_set_text(t, i, BITS, arena_strdup(a, number_text(x->format, value[i], text)));
        *table_at(t, i, HEX) = (struct table_cell){exact_text(value[i], a), value[i]};
    }
}

void add_sheet(const struct addition *x, const char *const word[2], struct sheet *s,
               struct arena *a)
{
    enum { STEPS = 6 };
    struct board b = {.x = x, .sheet = s, .arena = a};
    *s = (struct sheet){.name = "add",
                        .title =
                            arena_printf(a, *word[1] == '-' ? "%s + (%s) in %s" : "%s + %s in %s",
                                         word[0], word[1], number_formats[x->format].dtype)};
    if (!x->special) b.table = &sheet_add(s, NULL, columns, COLUMNS, STEPS, a)->table;
    add_stored(&b);
    say_terms(&b, word);
    if (x->special)
        say_special(&b);
    else
        write_steps(&b);
    if (number_formats[x->format].saturates)
        sheet_note(s, "No GPU adds in fp8: it adds in a wider type and converts the sum, which "
                      "gives this result.");
    else if (x->format == NUMBER_TF32)
        sheet_note(s, "Only the inputs of tensor cores are tf32: they add in fp32. This is the "
                      "sum that an adder of tf32 would give.");
}
