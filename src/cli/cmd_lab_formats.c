/* strobe lab formats, add, products: number formats, and what rounding does to sums. */
#include "base/log.h"
#include "base/own.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/lab_output.h"
#include "lab/add.h"
#include "lab/products.h"
#include "present/markup.h"
#include "present/sheet.h"
#include "present/table_form.h"
#include "view/add_view.h"
#include "view/formats_view.h"
#include "view/products_view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
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
    enum number_kind format = number_find(dtype);
    if (format == NUMBER_KINDS)
        return fail(ST_USAGE,
                    "--dtype must be float16, bfloat16, tf32, float32, e4m3 or e5m2; found %s",
                    *dtype ? dtype : "an empty word");
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

/* --- lab products ----------------------------------------------------------------------------- */

enum { SIDE_MOST = 32768, SAMPLES = 20 };

static enum status read_size(const char *word, int64_t ret[3])
{
    long long n[3];
    int end = -1;
    bool fits = sscanf(word, "%lldx%lldx%lld%n", &n[0], &n[1], &n[2], &end) == 3 && !word[end];
    for (int i = 0; fits && i < 3; i++) {
        fits = n[i] >= 1 && n[i] <= SIDE_MOST;
        ret[i] = n[i];
    }
    return fits ? ST_OK
                : fail(ST_USAGE, "--size takes MxNxK, each 1 to %d, as in 512x512x512; found %s",
                       SIDE_MOST, word);
}

static enum status run_products(struct products_options *o, const char *command,
                                const struct lab_output *output, struct arena *a)
{
    struct products_run r;
    struct lab_series s;
    struct sheet sheet;
    o->each = lab_series_share;
    o->user = &s;
    lab_series_begin(&s, "lab products", 1);
    lab_series_add(&s, products_run(o, &r, a));
    lab_series_end(&s);
    if (!s.done) return lab_series_status(&s, ST_OK);
    const struct lab_origin from = {&o->device, command, load_others(&s.load)};
    products_sheet(&r, &sheet, a);
    return lab_series_status(&s, lab_output_finish(output, &from, &sheet, NULL, a));
}

enum status cmd_lab_products(int argc, char **argv)
{
    static const int64_t of_cpu[] = {512, 512, 512}, of_gpu[] = {4096, 4096, 4096};
    const char *size = NULL, *device = NULL;
    int64_t limit = 10;
    struct lab_output output = {0};
    struct products_options o = {.samples = SAMPLES};
    const struct opt options[] = {
        {"size", OPT_TEXT, &size, "MxNxK",
         "of A (M,K) times B (K,N) (512x512x512; on a GPU 4096x4096x4096)"},
        DEVICE_OPTION(&device),
        {"limit", OPT_INT, &limit, "SECONDS", "time for all timings together (10)"},
        TABLE_FORM_OPTIONS(&output.form),
        {0}};
    struct arena a = {0};
    const char *command = command_text("lab products", argc, argv, &a);
    enum status st = opt_parse(options, &argc, argv, NULL);
    if (st == ST_OK && argc)
        st = fail(ST_USAGE, "lab products takes only options; found %s", argv[0]);
    if (st == ST_OK) st = lab_output_check(&output);
    if (st == ST_OK && (limit < 1 || limit > 1000000))
        st = fail(ST_USAGE, "--limit must be 1 to 1000000 seconds");
    if (st == ST_OK) st = device_of_word(device, &o.device);
    for (int i = 0; st == ST_OK && i < 3; i++)
        o.size[i] = (o.device.backend->host_memory ? of_cpu : of_gpu)[i];
    if (st == ST_OK && size) st = read_size(size, o.size);
    o.limit_ms = 1e3 * (double)limit;
    if (st == ST_OK) st = run_products(&o, command, &output, &a);
    arena_release(&a);
    return st;
}
