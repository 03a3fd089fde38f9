/* strobe lab kernel FORMULA: any pointwise formula, as separate kernels and as fused ones. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/list.h"
#include "cli/output.h"
#include "lab/formula_run.h"
#include "view/formula_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 16 };
static const int64_t SIZE_MOST = INT64_C(1) << 34;

struct words {
    const char *formula, *set, *sizes, *dtype;
    bool show, ptx;
    struct place place;
    struct effort effort;
    struct output output;
};

/* The names of a formula and their values: first x, y and z. */
struct names {
    const char *name[FORMULA_NAMES];
    double value[FORMULA_NAMES];
    int n;
};

/* --- words ------------------------------------------------------------------------------------ */

static bool is_name(const char *s)
{
    if (!*s || (*s >= '0' && *s <= '9')) return false;
    return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] == 0;
}

static bool is_function(const char *s)
{
    for (int k = FORMULA_FUNCTIONS; k < FORMULA_KINDS; k++)
        if (!strcmp(formula_kind_name((enum formula_kind)k), s)) return true;
    return false;
}

/* Adds one constant, "a=1.5". */
static enum status add_constant(struct names *n, char *word)
{
    char *equals = strchr(word, '='), *end = NULL;
    if (equals) *equals = 0;
    double x = equals ? strtod(equals + 1, &end) : NAN;
    if (!equals || !is_name(word) || end == equals + 1 || *end || !isfinite(x))
        return fail(ST_USAGE, "--set takes constants as a=1.5,b=2; found %s%s%s",
                    *word || equals ? word : "nothing", equals ? "=" : "",
                    equals ? equals + 1 : "");
    for (int i = 0; i < n->n; i++)
        if (!strcmp(n->name[i], word))
            return fail(ST_USAGE, "--set: %s is %s; choose another name", word,
                        i < FORMULA_TENSORS ? "a tensor" : "set twice");
    if (is_function(word))
        return fail(ST_USAGE, "--set: %s is a function; choose another name", word);
    if (n->n == FORMULA_NAMES)
        return fail(ST_USAGE, "--set takes at most %d constants", FORMULA_NAMES - FORMULA_TENSORS);
    n->value[n->n] = x;
    n->name[n->n++] = word;
    return ST_OK;
}

static enum status read_names(struct names *n, const char *set, struct arena *a)
{
    for (int i = 0; i < FORMULA_TENSORS; i++) n->name[n->n++] = formula_tensor_name(i, false);
    if (!set) return ST_OK;
    for (char *word = arena_strdup(a, set); word;) {
        char *comma = strchr(word, ',');
        if (comma) *comma++ = 0;
        TRY(add_constant(n, word));
        word = comma;
    }
    return ST_OK;
}

static enum status read_sizes(const char *words, int64_t *ret, int *ret_n)
{
    *ret_n = list_numbers(words, ret, SIZES);
    bool ok = *ret_n > 0;
    for (int i = 0; i < *ret_n; i++) ok &= ret[i] <= SIZE_MOST;
    if (ok) return ST_OK;
    return fail(ST_USAGE,
                "--size takes up to %d numbers of elements, each at most 2^34, as in "
                "65536,1048576; found %s",
                SIZES, *words ? words : "nothing");
}

static enum status read_type(const char *word, const struct device *d, enum dtype *ret)
{
    struct target target;
    *ret = DT_F32;
    if (word && !strcmp(word, "bfloat16"))
        *ret = DT_BF16;
    else if (word && strcmp(word, "float32") != 0)
        return fail(ST_USAGE, "--dtype must be float32 or bfloat16; found %s",
                    *word ? word : "an empty word");
    TRY(backend_target(d->backend, d->number, &target));
    const char *why =
        d->backend->devices.refuses ? d->backend->devices.refuses(&target, *ret, false) : NULL;
    return why ? fail(ST_UNSUPPORTED, "--dtype=%s: %s", word, why) : ST_OK;
}

static enum status prepare(const struct words *w, struct formula_options *o, int64_t *size,
                           int *ret_n)
{
    static const int64_t of_gpu[] = {1 << 16, 1 << 20, 1 << 23, 1 << 26};
    static const int64_t of_cpu[] = {1 << 12, 1 << 16, 1 << 20, 1 << 22};
    TRY(output_check(&w->output));
    TRY(place_open(&w->place, &o->device));
    TRY(read_type(w->dtype, &o->device, &o->dtype));
    *ret_n = COUNT_OF(of_cpu);
    memcpy(size, o->device.backend->texts ? of_gpu : of_cpu, sizeof of_cpu);
    if (w->sizes) TRY(read_sizes(w->sizes, size, ret_n));
    TRY(effort_read(&w->effort, &o->samples, &o->limit_ms, &o->go_on));
    o->limit_ms /= *ret_n;
    return ST_OK;
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Fills in the result. */
static void conclude(struct outcome *x, const struct formula_run *const *r, struct arena *a)
{
    int wrong = 0;
    formula_sheet(r, x->done, &x->sheet, a);
    for (int i = 0; i < x->done; i++) wrong += r[i]->wrong;
    if (!wrong) return;
    x->wrong = arena_printf(a, "%d %s from double precision; the table says where", wrong,
                            wrong == 1 ? "result differs" : "results differ");
}

static enum status run(const struct words *w, const struct formula_options *o, const int64_t *size,
                       int sizes, struct arena *a)
{
    const struct formula_run *done[SIZES];
    struct outcome x;
    outcome_begin(&x, "lab kernel", sizes, &o->device);
    while (outcome_goes_on(&x)) {
        struct formula_options *one = ARENA_NEW(a, struct formula_options, 1);
        struct formula_run *r = ARENA_NEW(a, struct formula_run, 1);
        *one = *o;
        one->n = size[x.done];
        one->each = outcome_share;
        one->user = &x;
        done[x.done] = r;
        outcome_add(&x, formula_run(one, r, a));
    }
    if (outcome_end(&x)) conclude(&x, done, a);
    return outcome_finish(&x, &w->output, a);
}

static enum status show(const struct words *w, struct formula_options *o, int64_t n)
{
    struct str s = {0};
    o->n = n;
    enum status st = formula_show(o, w->ptx, &s);
    if (st == ST_OK)
        command_print(&s);
    else
        str_release(&s);
    return st;
}

static enum status run_words(const struct words *w, struct arena *a)
{
    struct names names = {0};
    struct formula f;
    struct formula_uses uses;
    struct formula_options o = {.formula = &f, .values = names.value};
    int64_t size[SIZES];
    int sizes = 0;
    if (!w->formula)
        return fail(ST_USAGE, "lab kernel needs a formula of x, y and z, as in strobe lab kernel "
                              "'x * exp(-y)'");
    TRY(read_names(&names, w->set, a));
    TRY(formula_parse(&f, w->formula, names.name, names.n, a));
    TRY(formula_check(&f, names.value, &uses));
    TRY(prepare(w, &o, size, &sizes));
    return w->show || w->ptx ? show(w, &o, size[sizes - 1]) : run(w, &o, size, sizes, a);
}

/* Removes the first word with a single dash: a formula that begins with a minus sign, no option. */
static const char *take_signed(int *argc, char **argv)
{
    for (int i = 0; i < *argc; i++) {
        char *word = argv[i];
        if (word[0] != '-' || !word[1] || word[1] == '-' || !strcmp(word, "-h")) continue;
        memmove(argv + i, argv + i + 1, (size_t)(--*argc - i) * sizeof *argv);
        return word;
    }
    return NULL;
}

enum status cmd_lab_kernel(int argc, char **argv, struct arena *a)
{
    struct words w = {.effort = {"samples", EFFORT_OPEN, 100000, 15, 1, 1000000}};
    const struct opt options[] = {
        {"set", OPT_TEXT, &w.set, "NAME=X,...", "constants of the formula, as in --set=a=1.5,b=2"},
        DEVICE_OPTION(&w.place.device),
        {"size", OPT_TEXT, &w.sizes, "N,N,...", "elements of each tensor (four sizes)"},
        {"dtype", OPT_TEXT, &w.dtype, "NAME", "float32 (the default) or bfloat16"},
        {"show", OPT_FLAG, &w.show, NULL, "print the fused kernels, and run nothing"},
        {"ptx", OPT_FLAG, &w.ptx, NULL,
         "print the PTX of the fused kernels, compiled for this GPU"},
        {"samples", OPT_INT, &w.effort.samples, "N",
         "timings of each variant (20, and more while the order is uncertain)"},
        {"limit", OPT_INT, &w.effort.limit, "SECONDS", "time for all timings together (15)"},
        {"threads", OPT_INT, &w.place.threads, "N",
         "CPU threads (default: all that this process may use)"},
        {"isa", OPT_TEXT, &w.place.isa, "SET",
         "widest instruction set: avx512, avx2, sse2, neon or plain"},
        OUTPUT_OPTIONS(&w.output, "also write the bars, or the curves, as a picture"),
        {0},
    };
    w.output.command = command_text("lab kernel", argc, argv, a);
    w.formula = take_signed(&argc, argv);
    TRY(opt_parse(options, &argc, argv, NULL));
    if (!w.formula && argc) w.formula = argv[0], argc--, argv++;
    if (argc)
        return fail(ST_USAGE, "lab kernel takes one formula, in quotes; found also %s", argv[0]);
    return run_words(&w, a);
}
