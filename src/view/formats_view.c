#include "view/formats_view.h"

#include "lab/number_format.h"
#include "present/svg.h"
#include "present/table_cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *exact_text(double x, struct arena *a)
{
    enum { DIGITS = 800, LONGEST = 32 };
    char text[DIGITS + 32];
    int exponent;
    snprintf(text, sizeof text, "%.*g", DIGITS, x);
    if (isnan(x)) return "nan";
    if (strlen(text) <= LONGEST) return arena_strdup(a, text);
    int64_t m = (int64_t)ldexp(frexp(x, &exponent), 53);
    for (exponent -= 53; m % 2 == 0; m /= 2) exponent++;
    return arena_printf(a, "%lld x 2^%d", (long long)m, exponent);
}

/* The relative error to two digits, or to more digits if two would round it to -1. */
static const char *error_text(double y, double x, struct arena *a)
{
    enum { MOST = 15 };
    double error = (y - x) / x, kept = fabs(y / x);
    int digits = error < -0.9 && kept > 0 ? (int)fmax(2, fmin(ceil(-log10(kept)), MOST)) : 2;
    return x == y ? "0" : arena_printf(a, "%+.*g", digits, error);
}

/* "█ ▓▓▓▓▓ ░░░░░░░░░░" */
static const char *layout_text(const struct number_format *n, struct arena *a)
{
    const char *bar = "█ ";
    for (int i = 0; i < n->exponent; i++) bar = arena_printf(a, "%s▓", bar);
    for (int i = 0; i < n->fraction; i++) bar = arena_printf(a, "%s%s", bar, i ? "░" : " ░");
    return bar;
}

/* --- the tables ------------------------------------------------------------------------------- */

/* clang-format off */
#define LAYOUT_COLUMNS(X) \
    X("format", "format", "name of the format", TEXT, n->name) \
    X("layout", "█ sign, ▓ exponent, ░ fraction", "one character for each bit", TEXT, layout_text(n, row.arena)) \
    X("exponent_bits", "exponent", "bits of the exponent", NUMBER, true, 0, n->exponent) \
    X("fraction_bits", "fraction", "bits of the fraction", NUMBER, true, 0, n->fraction) \
    X("decimal_digits", "digits", "decimal digits of the significand", FORMAT, true, "%.1f", (n->fraction + 1) * log10(2))
#define RANGE_COLUMNS(X) \
    X("format", "format", "name of the format", TEXT, n->name) \
    X("largest", "largest", "largest number", FORMAT, true, "%.5g", n->largest) \
    X("smallest_normal", "least normal", "smallest with a full significand", FORMAT, true, "%.5g", number_smallest_normal(f)) \
    X("smallest_subnormal", "least subnormal", "smallest above 0", FORMAT, true, "%.5g", number_smallest(f)) \
    X("epsilon", "epsilon", "distance from 1 to the next number", FORMAT, true, "%.5g", number_spacing(f, 1)) \
    X("beyond", "overflow gives", "by the hardware's conversion", TEXT, n->saturates ? "the largest" : "infinity")
#define VALUE_COLUMNS(X) \
    X("format", "format", "name of the format", TEXT, n->name) \
    X("value", "becomes, exactly", "the nearest number", SHOWN, true, exact_text(y, row.arena), y) \
    X("relative_error", "rel. error", "(value - given number) / given number", SHOWN, x == y || (isfinite(y) && isfinite(x)), error_text(y, x, row.arena), x == y ? 0 : (y - x) / x) \
    X("spacing", "spacing", "distance to the next number of larger magnitude", FORMAT, !isnan(number_spacing(f, y)), "%.5g", number_spacing(f, y)) \
    X("hex", "hex", "the bits", SHOWN, true, arena_printf(row.arena, "%0*x", (number_width(f) + 3) / 4, number_bits(f, y)), number_bits(f, y))
#define BITS_COLUMNS(X) \
    X("format", "format", "name of the format", TEXT, n->name) \
    X("bits", "sign exponent fraction", "the bits of the value", TEXT, arena_strdup(row.arena, number_text(f, y, text)))
/* clang-format on */

static void add_tables(double x, const char *word, struct sheet *s, struct arena *a)
{
    static const struct table_column layout[] = {LAYOUT_COLUMNS(TABLE_COLUMN)},
                                     range[] = {RANGE_COLUMNS(TABLE_COLUMN)},
                                     value[] = {VALUE_COLUMNS(TABLE_COLUMN)},
                                     bits[] = {BITS_COLUMNS(TABLE_COLUMN)};
    const struct {
        const char *title;
        const struct table_column *column;
        int columns;
    } table[] = {{NULL, layout, COUNT_OF(layout)},
                 {NULL, range, COUNT_OF(range)},
                 {arena_printf(a, "%s in each format", word), value, COUNT_OF(value)},
                 {NULL, bits, COUNT_OF(bits)}};
    for (int i = 0; i < COUNT_OF(table); i++) {
        struct table_row row = {.arena = a};
        row.table =
            &sheet_add(s, table[i].title, table[i].column, table[i].columns, NUMBER_KINDS, a)
                 ->table;
        for (int f = 0; f < NUMBER_KINDS; f++, table_next_row(&row)) {
            const struct number_format *n = &number_formats[f];
            char text[NUMBER_TEXT];
            double y = number_round(f, x);
            switch (i) {
            case 0:
                LAYOUT_COLUMNS(TABLE_CELL) break;
            case 1:
                RANGE_COLUMNS(TABLE_CELL) break;
            case 2:
                VALUE_COLUMNS(TABLE_CELL) break;
            default:
                BITS_COLUMNS(TABLE_CELL)
            }
        }
    }
}

/* --- what happens beyond the range ------------------------------------------------------------ */

/* Whether x rounds to the largest number of the format, ties to even, without saturation. */
static bool rounds_to_largest(enum number_kind f, double x)
{
    double largest = number_formats[f].largest, tie = largest + number_spacing(f, largest) / 2;
    return fabs(x) < tie || (fabs(x) == tie && number_bits(f, largest) % 2 == 0);
}

static const char *overflow_words(enum number_kind f, double x, const char *word, struct arena *a)
{
    const struct number_format *n = &number_formats[f];
    const char *none = isinf(x) && !n->infinities ? " (the format has no infinity)" : "";
    const char *beyond = arena_printf(a, "%s: %s is beyond the largest number, %.6g%s", n->name,
                                      word, n->largest, none);
    if (isinf(number_round(f, x)))
        return arena_printf(a, "%s: overflow, %s gives infinity", beyond, n->conversion);
    if (!n->saturates || rounds_to_largest(f, x))
        return arena_printf(a, "%s, but rounds to it", beyond);
    return arena_printf(a, "%s, and %s saturates: it gives the largest number", beyond,
                        n->conversion);
}

/* What is special about x in the format; NULL: nothing. */
static const char *words_of(enum number_kind f, double x, const char *word, struct arena *a)
{
    const struct number_format *n = &number_formats[f];
    double y = fabs(number_round(f, x));
    if (isnan(x) || x == 0 || (isinf(x) && isinf(y))) return NULL;
    if (fabs(x) > n->largest) return overflow_words(f, x, word, a);
    if (y == 0)
        return arena_printf(a,
                            "%s: underflow: %s becomes 0, because its magnitude is at most half "
                            "of the smallest number above 0, %.5g",
                            n->name, word, number_smallest(f));
    if (y < number_smallest_normal(f))
        return arena_printf(a, "%s: subnormal: %d of the %d bits of a significand are left",
                            n->name, ilogb(y) - ilogb(number_smallest(f)) + 1, n->fraction + 1);
    return NULL;
}

void formats_sheet(double x, const char *word, struct sheet *s, struct arena *a)
{
    *s = (struct sheet){.name = "formats",
                        .title = arena_printf(a, "Number formats, and %s in each format", word)};
    add_tables(x, word, s, a);
    for (int f = 0; f < NUMBER_KINDS; f++) {
        const char *words = words_of(f, x, word, a);
        if (words) sheet_note(s, words);
    }
    sheet_note(s, "Values are rounded to the nearest number, ties to even, as a GPU converts: "
                  "cvt.rn; to fp8 cvt.rn.satfinite, which gives the largest number for anything "
                  "beyond it, infinity too, and keeps NaN.");
    sheet_note(s,
               "tf32 has 19 bits in a register of 32. cvt.rna.tf32, the only conversion to tf32 "
               "before compute capability 9.0, rounds ties away from zero; tensor cores that are "
               "given plain fp32 ignore its last 13 bits.");
}

/* --- the picture ------------------------------------------------------------------------------ */

enum { LEFT = 64, HEAD = 84, ROW = 46, CELL = 16, CELL_HEIGHT = 22, VALUE_WIDTH = 240 };
enum { BITS = 32, WIDTH = LEFT + BITS * CELL + VALUE_WIDTH };

static const struct {
    const char *name, *color;
} parts[] = {{"sign", "run-1"}, {"exponent", "run-0"}, {"fraction", "run-2"}};

static void print_cell(struct markup *m, double x, double y, int part, const char *text)
{
    markup_printf(m,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" "
                  "style=\"fill: var(--%s); fill-opacity: .3; stroke: var(--paper)\"/>\n",
                  x, y, CELL, CELL_HEIGHT, parts[part].color);
    svg_text(m, "", x + CELL / 2.0, y + CELL_HEIGHT - 7, "middle", text);
}

static void print_row(struct markup *m, enum number_kind f, double x, double top, struct arena *a)
{
    const struct number_format *n = &number_formats[f];
    uint32_t bits = number_bits(f, x);
    int width = number_width(f);
    svg_text(m, "chart-head", LEFT - 10, top + CELL_HEIGHT - 7, "end", n->name);
    for (int i = 0; i < width; i++) {
        int part = i == 0 ? 0 : i <= n->exponent ? 1 : 2;
        print_cell(m, LEFT + i * CELL, top, part, bits >> (width - 1 - i) & 1 ? "1" : "0");
    }
    svg_text(m, "", LEFT + width * CELL + 10, top + CELL_HEIGHT - 7, "start", exact_text(x, a));
    svg_text(m, "chart-soft", LEFT, top + CELL_HEIGHT + 13, "start",
             arena_printf(a, "1 + %d + %d bits, up to %.5g, digits: %.1f", n->exponent, n->fraction,
                          n->largest, (n->fraction + 1) * log10(2)));
}

void formats_print_svg(double x, const char *word, struct markup *m, struct arena *a)
{
    const char *title = arena_printf(a, "%s in six number formats", word);
    svg_open(m, 0, WIDTH, HEAD + ROW * NUMBER_KINDS, title);
    svg_text(m, "chart-title", LEFT, 28, "start", title);
    for (int i = 0; i < COUNT_OF(parts); i++) {
        double left = LEFT + 100 * i;
        print_cell(m, left, 42, i, "");
        svg_text(m, "chart-soft", left + CELL + 6, 42 + CELL_HEIGHT - 7, "start", parts[i].name);
    }
    for (int f = 0; f < NUMBER_KINDS; f++) print_row(m, f, number_round(f, x), HEAD + ROW * f, a);
    svg_close(m);
}
