/* strobe lab formats, add, products: number formats, and what rounding does to sums. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/list.h"
#include "cli/output.h"
#include "lab/add.h"
#include "lab/products.h"
#include "view/add_view.h"
#include "view/formats_view.h"
#include "view/products_view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether the word is a number that begins with a dash, which would otherwise be an option. */
static bool is_negative(const char *word)
{
    char *end;
    strtod(word, &end);
    return word[0] == '-' && end != word && !*end;
}

/* Reads options and up to `most` numbers, in any order. */
static enum status read_words(const char *name, const struct opt *options, int argc, char **argv,
                              int most, const char **ret_words, int *ret_n, struct arena *a)
{
    char **rest = ARENA_NEW(a, char *, argc + 1);
    int kept = 0;
    *ret_n = 0;
    for (int i = 0; i < argc; i++) rest[kept++] = is_negative(argv[i]) ? argv[i] + 1 : argv[i];
    TRY(opt_parse(options, &kept, rest, NULL));
    for (int i = 0, k = 0; i < kept; i++) {
        /* What remains is in order, without its dash. */
        while (argv[k] != rest[i] && argv[k] + 1 != rest[i]) k++;
        if (*ret_n == most)
            return fail(ST_USAGE, "%s takes %s; found one more: %s", name,
                        most == 1 ? "one number" : "two numbers", argv[k]);
        ret_words[(*ret_n)++] = argv[k++];
    }
    return ST_OK;
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

enum status cmd_lab_formats(int argc, char **argv, struct arena *a)
{
    const char *word = "1", *svg = NULL;
    double x;
    int n;
    struct table_form f = {0};
    const struct opt options[] = {
        {"svg", OPT_TEXT, &svg, "FILE", "also draw the bits as a picture"},
        TABLE_FORM_OPTIONS(&f),
        {0}};
    TRY(read_words("lab formats", options, argc, argv, 1, &word, &n, a));
    TRY(table_form_check(&f));
    TRY(read_number(word, &x));
    if (svg && !*svg) return fail(ST_USAGE, "--svg takes the path of a file");
    struct sheet s;
    struct markup m = {0};
    formats_sheet(x, word, &s, a);
    command_print_sheet(&s, &f);
    if (!svg) return ST_OK;
    formats_print_svg(x, word, &m, a);
    return output_draw(svg, &m, true);
}

/* --- lab add ---------------------------------------------------------------------------------- */

enum status cmd_lab_add(int argc, char **argv, struct arena *a)
{
    const char *word[2] = {0}, *dtype = "float16";
    double x[2];
    int n;
    struct table_form f = {0};
    const struct opt options[] = {{"dtype", OPT_TEXT, &dtype, "NAME",
                                   "float16 (default), bfloat16, tf32, float32, e4m3 or e5m2"},
                                  TABLE_FORM_OPTIONS(&f),
                                  {0}};
    TRY(read_words("lab add", options, argc, argv, 2, word, &n, a));
    TRY(table_form_check(&f));
    if (n != 2)
        return fail(ST_USAGE, "lab add takes two numbers, as in strobe lab add 1000 0.01; found %d",
                    n);
    enum number_kind format = number_find(dtype);
    if (format == NUMBER_KINDS)
        return fail(ST_USAGE,
                    "--dtype must be float16, bfloat16, tf32, float32, e4m3 or e5m2; found %s",
                    *dtype ? dtype : "an empty word");
    for (int i = 0; i < 2; i++) TRY(read_number(word[i], &x[i]));
    struct addition sum;
    struct sheet s;
    add_numbers(format, x[0], x[1], &sum);
    add_sheet(&sum, word, &s, a);
    command_print_sheet(&s, &f);
    return ST_OK;
}

/* --- lab products ----------------------------------------------------------------------------- */

enum { SIDE_MOST = 32768 };

static enum status read_size(const char *word, int64_t ret[3])
{
    const char *end = list_size(word, 3, ret);
    bool fits = end && !*end;
    for (int i = 0; fits && i < 3; i++) fits = ret[i] <= SIDE_MOST;
    return fits ? ST_OK
                : fail(ST_USAGE, "--size takes MxNxK, each 1 to %d, as in 512x512x512; found %s",
                       SIDE_MOST, word);
}

static enum status run_products(struct products_options *o, const struct output *output,
                                struct arena *a)
{
    struct products_run r;
    struct outcome x;
    o->each = outcome_share;
    o->user = &x;
    outcome_begin(&x, "lab products", 1, &o->device);
    outcome_add(&x, products_run(o, &r, a));
    if (outcome_end(&x)) products_sheet(&r, &x.sheet, a);
    return outcome_finish(&x, output, a);
}

enum status cmd_lab_products(int argc, char **argv, struct arena *a)
{
    static const int64_t of_cpu[] = {512, 512, 512}, of_gpu[] = {4096, 4096, 4096};
    const char *size = NULL, *device = NULL;
    int64_t limit = 10;
    struct output output = {.command = command_text("lab products", argc, argv, a)};
    struct products_options o = {.samples = EFFORT_SAMPLES};
    const struct opt options[] = {
        {"size", OPT_TEXT, &size, "MxNxK",
         "of A (M,K) times B (K,N) (default: 512x512x512; on a GPU 4096x4096x4096)"},
        DEVICE_OPTION(&device),
        {"limit", OPT_INT, &limit, "SECONDS", "time for all timings together (default: 10)"},
        TABLE_FORM_OPTIONS(&output.form),
        {0}};
    TRY(command_options("lab products", options, argc, argv));
    TRY(output_check(&output));
    if (limit < 1 || limit > 1000000) return fail(ST_USAGE, "--limit must be 1 to 1000000 seconds");
    TRY(device_of_word(device, &o.device));
    memcpy(o.size, o.device.backend->host_memory ? of_cpu : of_gpu, sizeof of_cpu);
    if (size) TRY(read_size(size, o.size));
    o.limit_ms = 1e3 * (double)limit;
    return run_products(&o, &output, a);
}
