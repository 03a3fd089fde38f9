/* strobe lab formats, add, products: number formats, and what rounding does to sums. */
#include "base/log.h"
#include "base/opt.h"
#include "base/own.h"
#include "cli/command.h"
#include "lab/add.h"
#include "present/markup.h"
#include "present/sheet.h"
#include "present/table_form.h"
#include "view/add_view.h"
#include "view/formats_view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Whether the word is a number that begins with a dash, which would otherwise be an option. */
static bool is_negative(const char *word)
{
    char *end;
    strtod(word, &end);
    return word[0] == '-' && end != word && !*end;
}

/* Reads options and up to `most` numbers, in any order. */
static enum status read_words(const char *name, const struct opt *options, int argc, char **argv,
                              int most, const char **ret_words, int *ret_n)
{
    struct arena a = {0};
    char **rest = ARENA_NEW(&a, char *, argc + 1);
    int kept = 0;
    *ret_n = 0;
    enum status st = ST_OK;
    for (int i = 0; i < argc; i++) rest[kept++] = is_negative(argv[i]) ? argv[i] + 1 : argv[i];
    st = opt_parse(options, &kept, rest, NULL);
    for (int i = 0, k = 0; i < kept && st == ST_OK; i++) {
        /* What remains is in order, without its dash. */
        while (argv[k] != rest[i] && argv[k] + 1 != rest[i]) k++;
        if (*ret_n == most)
            st = fail(ST_USAGE, "%s takes %s; found one more: %s", name,
                      most == 1 ? "one number" : "two numbers", argv[k]);
        else
            ret_words[(*ret_n)++] = argv[k++];
    }
    arena_release(&a);
    return st;
}

static enum status read_number(const char *word, double *ret)
{
    char *end;
    errno = 0;
    *ret = strtod(word, &end);
    if (end == word || *end)
        return fail(ST_USAGE, "%s is not a number; write it as 0.1, 1e-5, 0x1p-10, inf or nan",
                    word);
    if (errno == ERANGE && (*ret == 0 || isinf(*ret)))
        return fail(ST_USAGE, "%s is beyond the range of double; write %s", word,
                    *ret == 0 ? "0" : "inf for infinity");
    return ST_OK;
}

/* --- lab formats ------------------------------------------------------------------------------ */

static enum status draw(double x, const char *word, const char *path, struct arena *a)
{
    struct markup m = {0};
    formats_print_svg(x, word, &m, a);
    enum status st = own_write(path, OWN_PICTURE, markup_text(&m), markup_bytes(&m));
    markup_release(&m);
    if (st == ST_OK) log_info("picture: %s", path);
    return st;
}

enum status cmd_lab_formats(int argc, char **argv)
{
    const char *word = "1", *svg = NULL;
    double x;
    int n;
    struct table_form f = {0};
    const struct opt options[] = {
        {"svg", OPT_TEXT, &svg, "FILE", "also draw the bits as a picture"},
        TABLE_FORM_OPTIONS(&f),
        {0}};
    TRY(read_words("lab formats", options, argc, argv, 1, &word, &n));
    TRY(table_form_check(&f));
    TRY(read_number(word, &x));
    if (svg && !*svg) return fail(ST_USAGE, "--svg takes the path of a file");
    struct arena a = {0};
    struct sheet s;
    formats_sheet(x, word, &s, &a);
    command_print_sheet(&s, &f);
    enum status st = svg ? draw(x, word, svg, &a) : ST_OK;
    arena_release(&a);
    return st;
}

/* --- lab add ---------------------------------------------------------------------------------- */

enum status cmd_lab_add(int argc, char **argv)
{
    const char *word[2] = {0}, *dtype = "float16";
    double x[2];
    int n;
    struct table_form f = {0};
    const struct opt options[] = {{"dtype", OPT_TEXT, &dtype, "NAME",
                                   "float16 (default), bfloat16, tf32, float32, e4m3 or e5m2"},
                                  TABLE_FORM_OPTIONS(&f),
                                  {0}};
    TRY(read_words("lab add", options, argc, argv, 2, word, &n));
    TRY(table_form_check(&f));
    if (n != 2)
        return fail(ST_USAGE, "lab add takes two numbers, as in strobe lab add 1000 0.01; found %d",
                    n);
    enum narrow format = narrow_find(dtype);
    if (format == NARROW_FORMATS)
        return fail(ST_USAGE,
                    "--dtype must be float16, bfloat16, tf32, float32, e4m3 or e5m2; found %s",
                    dtype);
    for (int i = 0; i < 2; i++) TRY(read_number(word[i], &x[i]));
    struct arena a = {0};
    struct addition sum;
    struct sheet s;
    add_numbers(format, x[0], x[1], &sum);
    add_sheet(&sum, word, &s, &a);
    command_print_sheet(&s, &f);
    arena_release(&a);
    return ST_OK;
}
