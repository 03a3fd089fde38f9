/* strobe lab LADDER: runs a ladder (lab/run.h), with a kernel of the user's (lab/own.h) if there is
 * one. */
#include "base/interrupt.h"
#include "base/threads.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/lab_probe.h"
#include "cli/list.h"
#include "cli/output.h"
#include "lab/own.h"
#include "lab/probe.h"
#include "view/ceilings.h"
#include "view/lab_view.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t NOT_GIVEN = INT64_MIN;

struct arguments {
    const char *sizes, *dtype, *form, *rungs, *show, *ptx;
    const char *kernel, *library;
    char **argv; /* the whole command line, NULL-terminated, for processes that run a kernel */
    int64_t registers, shared, blocks, probe, watched;
    bool warm, template, watch, counters;
    struct place place;
    struct effort effort;
    struct output output;
};

static const struct lab_ladder *ladder; /* the ladder that cmd_lab_ladder found */

/* The product of a ladder's sizes is at most 2 to this power. */
static int exponent_of_sizes(void)
{
    return ladder->sizes[1] && ladder->sizes[2] ? 48 : 36;
}

/* Reads as many numbers as the ladder has sizes (list_size). */
static const char *read_one_size(const char *at, int64_t ret[LAB_SIZES])
{
    int64_t most = INT64_C(1) << exponent_of_sizes(); /* of the product */
    int n = 0;
    while (n < LAB_SIZES && ladder->sizes[n]) n++;
    at = list_size(at, n, ret);
    for (int i = 0; at && i < n; most /= ret[i++])
        if (ret[i] > most) return NULL;
    return at;
}

static enum status read_sizes(const char *words, int64_t ret[][LAB_SIZES], int *ret_n,
                              struct arena *a)
{
    const char *at = words, *wrong = words;
    for (*ret_n = 0; *ret_n < LAB_VIEW_SIZES; at++) {
        wrong = at;
        at = read_one_size(at, ret[*ret_n]);
        if (!at) break;
        ++*ret_n;
        if (!*at) return ST_OK;
    }
    int bytes = (int)strcspn(wrong, ",");
    if (*ret_n == LAB_VIEW_SIZES) bytes = (int)strlen(wrong = words);
    const char *names = "", *cpu = "", *gpu = "";
    for (int i = 0; i < LAB_SIZES && ladder->sizes[i]; i++) {
        names = arena_printf(a, "%s%s%s", names, i ? " x " : "", ladder->sizes[i]);
        cpu = arena_printf(a, "%s%s%lld", cpu, i ? "x" : "", (long long)ladder->cpu[i]);
        gpu = arena_printf(a, "%s%s%lld", gpu, i ? "x" : "", (long long)ladder->gpu[i]);
    }
    return fail(ST_USAGE,
                "--size takes up to %d sizes (%s; each number at least 1, their product at most "
                "2^%d), as in %s,%s; found %.*s",
                LAB_VIEW_SIZES, names, exponent_of_sizes(), cpu, gpu, bytes ? bytes : 7,
                bytes ? wrong : "nothing");
}

static enum status read_limit(const char *name, int64_t given, int64_t most, int64_t *ret)
{
    *ret = given == NOT_GIVEN ? 0 : given;
    return given == NOT_GIVEN ? ST_OK : command_within(name, given, 1, most);
}

/* The limits of a kernel on a GPU; on a CPU --threads are threads of the CPU. */
static enum status read_limits(const struct arguments *args, struct lab_options *o)
{
    bool gpu = o->device.backend->texts != NULL;
    if (!gpu && (args->registers != NOT_GIVEN || args->shared || args->blocks != NOT_GIVEN))
        return fail(ST_USAGE,
                    "--registers, --shared and --blocks limit kernels of a GPU; leave them out");
    o->limits.shared_bytes = args->shared;
    TRY(read_limit("registers", args->registers, 255, &o->limits.registers));
    TRY(read_limit("blocks", args->blocks, INT64_MAX, &o->limits.blocks));
    if (gpu) o->limits.threads = args->place.threads;
    return ST_OK;
}

static enum status read_type(const struct arguments *args, const struct device *d,
                             enum lab_type *ret)
{
    static const enum lab_type all[] = {LAB_F32, LAB_TF32, LAB_BF16};
    unsigned types = ladder->types ? ladder->types : LAB_F32 | LAB_BF16;
    *ret = d->backend->texts && ladder->type ? ladder->type : LAB_F32;
    if (!args->dtype) return ST_OK;
    int i = 0;
    while (i < COUNT_OF(all) && strcmp(args->dtype, lab_type_name(all[i]))) i++;
    if (i == COUNT_OF(all) || !(types & all[i]))
        return fail(ST_USAGE, "--dtype must be float32%s or bfloat16; found %s",
                    types & LAB_TF32 ? ", tf32" : "", *args->dtype ? args->dtype : "an empty word");
    *ret = all[i];
    if (*ret != LAB_F32 && !d->backend->texts)
        return fail(ST_UNSUPPORTED,
                    "the rungs for a CPU compute in float32; leave --dtype out, or use a GPU");
    return ST_OK;
}

static enum status read_form(const char *word, int *ret)
{
    int n = lab_forms(ladder);
    *ret = 0;
    if (!word) return ST_OK;
    if (!ladder->forms[0])
        return fail(ST_USAGE, "lab %s has one form only; leave --form out", ladder->name);
    while (*ret < n && strcmp(word, ladder->forms[*ret])) ++*ret;
    if (*ret < n) return ST_OK;
    return fail(ST_USAGE, "--form must be %s or %s; found %s", ladder->forms[0], ladder->forms[1],
                word);
}

/* The number of the rung of that name. */
static enum status find_rung(const char *name, const struct device *d, int *ret)
{
    int n;
    const struct lab_rung *r = lab_rungs(ladder, d, &n);
    struct str names = {0};
    for (*ret = 0; *ret < n && strcmp(r[*ret].name, name); ++*ret)
        str_printf(&names, "%s%s", *ret ? ", " : "", r[*ret].name);
    enum status st = ST_OK;
    const struct lab_rung *other = r == ladder->of_gpu ? ladder->of_cpu : ladder->of_gpu;
    if (*ret == n) {
        str_printf(&names, "; on a %s ", r == ladder->of_gpu ? "CPU" : "GPU");
        for (int i = 0; other[i].name; i++)
            str_printf(&names, "%s%s", i ? ", " : "", other[i].name);
        st = fail(ST_USAGE, "%s has no rung %s on this device; it has %s", ladder->name, name,
                  str_text(&names));
    }
    str_release(&names);
    return st;
}

static enum status show_template(const struct lab_options *o)
{
    struct str s = {0};
    bool gpu = o->device.backend->texts != NULL;
    lab_own_template(ladder, gpu, &s);
    command_print(&s);
    if (!isatty(STDOUT_FILENO))
        log_info("this template is in %s: run it with --kernel=FILE.%s; with --device=%s the "
                 "template is in %s",
                 gpu ? "CUDA for a GPU" : "C for a CPU", gpu ? "cu" : "c", gpu ? "cpu" : "cuda",
                 gpu ? "C" : "CUDA");
    return ST_OK;
}

/* A rung of this device or, if it has none of that name, of the other kind of device. */
static enum status show_rung(const struct arguments *args, const struct device *d)
{
    int i, n;
    int64_t bytes;
    struct str s = {0};
    enum status st = find_rung(args->show, d, &i);
    const struct lab_rung *r = lab_rungs(ladder, d, &n);
    if (st != ST_OK) {
        r = r == ladder->of_gpu ? ladder->of_cpu : ladder->of_gpu;
        for (i = 0; r[i].name && strcmp(r[i].name, args->show); i++) continue;
        if (!r[i].name) return st;
    }
    const char *source = lab_source(&r[i], &bytes);
    if (!source)
        return fail(ST_UNSUPPORTED, "%s has no file to show: it is %s", r[i].name, r[i].idea);
    if (r[i].options) str_printf(&s, "// compiled with %s\n", r[i].options);
    str_append_bytes(&s, source, bytes);
    const char *path, *text;
    for (int k = 0; lab_header(&r[i], k, &path, &text); k++)
        str_printf(&s, "\n/* --- src/lab/%s --- */\n\n%s", path, text);
    command_print(&s);
    return ST_OK;
}

static enum status show_ptx(const struct arguments *args, const struct lab_options *o,
                            struct arena *a)
{
    int i, at = 0;
    struct lab_bench b;
    struct str s = {0};
    if (!o->device.backend->texts)
        return fail(ST_UNSUPPORTED, "--ptx shows what the compiler makes of a kernel for a GPU; "
                                    "use --show for a CPU");
    bool own = o->own && !strcmp(args->ptx, o->own->name);
    if (!own) TRY(find_rung(args->ptx, &o->device, &i));
    enum status st =
        lab_bench_open(&b, ladder, &o->device, o->type, o->form, NULL, own ? o->own : NULL);
    while (at < b.rungs && strcmp(b.rung[at].name, args->ptx)) at++;
    const char *why = st != ST_OK          ? NULL
                      : at == b.rungs      ? "does not exist in this type; choose another --dtype"
                      : b.rung[at].variant ? "has no file to compile"
                                           : lab_bench_refuses(&b, at, a);
    if (why) st = fail(ST_UNSUPPORTED, "%s %s", args->ptx, why);
    if (st == ST_OK) st = lab_bench_assembly(&b, at, &s);
    lab_bench_close(&b);
    if (st == ST_OK)
        command_print(&s);
    else
        str_release(&s);
    return st;
}

/* What is wrong with the results, in a sentence; NULL: nothing. */
static const char *wrong_of(const struct lab_run *const *r, int runs, struct arena *a)
{
    int wrong = 0;
    for (int i = 0; i < runs; i++) {
        wrong += r[i]->wrong;
        for (int k = 0; k < r[i]->results; k++) {
            const struct lab_result *x = &r[i]->result[k];
            if (x->rung->own && x->left_out)
                return arena_printf(a, "%s: %s", x->rung->name, x->left_out);
        }
    }
    return wrong ? arena_printf(a, "the results of %d rung%s are wrong; the table shows which",
                                wrong, wrong == 1 ? "" : "s")
                 : NULL;
}

static void conclude(struct outcome *x, const struct lab_run *const *r, struct arena *a)
{
    char words[LOAD_WORDS];
    bool busy = load_words(x->others, words) != NULL;
    lab_sheet(r, x->done, !busy, &x->sheet, a);
    if (busy)
        sheet_note(
            &x->sheet,
            "The table does not say what limits each rung, because other programs were busy.");
    x->wrong = wrong_of(r, x->done, a);
}

/* `left_out`: why the user's kernel cannot run; NULL: it can, or there is none. */
static enum status run_ladder(const struct arguments *args, const struct lab_options *o,
                              int64_t size[][LAB_SIZES], int sizes, const char *left_out,
                              struct arena *a)
{
    struct machine m;
    const struct lab_run *done[LAB_VIEW_SIZES];
    struct outcome x;
    bool known = true;
    if (o->device.backend->texts)
        known = ceilings_find(&m, &o->device, a);
    else
        TRY(ceilings_get(&m, &o->device, a));
    outcome_begin(&x, "lab", sizes, &o->device);
    while (outcome_goes_on(&x)) {
        struct lab_options *one = ARENA_NEW(a, struct lab_options, 1);
        struct lab_run *r = ARENA_NEW(a, struct lab_run, 1);
        *one = *o;
        one->own_left_out = left_out;
        one->limit_ms /= sizes;
        one->machine = known ? &m : NULL;
        one->each = outcome_share;
        one->user = &x;
        memcpy(one->n, size[x.done], sizeof one->n);
        done[x.done] = r;
        outcome_add(&x, lab_run(one, r, a));
    }
    if (outcome_end(&x)) conclude(&x, done, a);
    return outcome_finish(&x, &args->output, a);
}

/* Probes the user's kernel. On a CPU, then runs the whole ladder in a second process, so that a
 * kernel that crashes or hangs after its first calls ends only that process. */
static enum status run_own(const struct arguments *args, const struct lab_options *o,
                           int64_t size[][LAB_SIZES], int sizes, struct arena *a)
{
    struct progress progress;
    const char *left_out = NULL, *name = o->own->name, *library = NULL;
    double limit_s = 1e-3 * o->limit_ms;
    bool cpu = !o->device.backend->texts, done = false;
    char **words = args->argv;
    enum status st = ST_OK;
    if (cpu) st = lab_own_compile(o->own->own, o->form, &library, a);
    if (interrupt_noted()) st = fail(ST_INTERRUPTED, "stopped while %s was compiled", name);
    if (library) words = job_with_word(words, arena_printf(a, "--library=%s", library), a);
    if (st == ST_OK) {
        progress_start(&progress, "lab", 0, PROGRESS_WHOLE);
        progress_share(&progress, 0, "your kernel, in a process of its own");
        st = lab_probe(words, name, limit_s, &left_out, a);
        progress_end(&progress);
    }
    if (st == ST_OK && !left_out && cpu) {
        st = lab_watch(words, name, limit_s, &left_out, a);
        done = !left_out;
    }
    if (library) lab_own_remove(library);
    return st != ST_OK || done ? st : run_ladder(args, o, size, sizes, left_out, a);
}

/* Runs in the process that run_own starts. The parent reports its errors. */
static enum status run_watched(const struct arguments *args, const struct lab_options *o,
                               struct lab_own *own, int64_t size[][LAB_SIZES], int sizes,
                               struct arena *a)
{
    struct lab_watched *shared;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a call without an end would outlive the parent */
    TRY(lab_watched_open((int)args->watched, &shared));
    own->since_ns = &shared->since_ns;
    enum status st = lab_own_open(own, args->library);
    if (st == ST_OK) st = run_ladder(args, o, size, sizes, NULL, a);
    if (st != ST_OK) snprintf(shared->message, sizeof shared->message, "%s", fail_message());
    own->since_ns = NULL;
    shared->status = st;
    shared->ended = true;
    return ST_OK;
}

/* A kernel of C needs a CPU, and one of CUDA a GPU. */
static enum status find_device(const struct arguments *args, struct device *ret)
{
    const char *ending = args->kernel ? strrchr(args->kernel, '.') : NULL;
    bool c = ending && !strcmp(ending, ".c"), cuda = ending && !strcmp(ending, ".cu");
    if (args->kernel && !c && !cuda)
        return fail(ST_USAGE,
                    "--kernel takes a file of CUDA, as in mine.cu, or of C, as in "
                    "mine.c; found %s",
                    *args->kernel ? args->kernel : "nothing");
    struct device_facts f;
    TRY(device_of_word(args->place.device ? args->place.device
                       : c                ? "cpu"
                       : cuda             ? "cuda"
                                          : NULL,
                       ret));
    if (args->kernel && cuda != (ret->backend->texts != NULL))
        return fail(ST_USAGE, "%s is for a %s; choose another --device", args->kernel,
                    cuda ? "GPU" : "CPU");
    char why[256];
    enum status st = cuda ? ret->backend->devices.describe(ret->number, &f) : ST_OK;
    snprintf(why, sizeof why, "%s", st == ST_OK ? "" : fail_message());
    if (st != ST_OK)
        return fail(st,
                    "%s is CUDA, but %s. For a kernel in C: strobe lab %s --template --device=cpu "
                    "> mine.c",
                    args->kernel, why, ladder->name);
    return ST_OK;
}

static enum status prepare(const struct arguments *args, struct lab_options *o,
                           int64_t size[][LAB_SIZES], int *ret_sizes, struct arena *a)
{
    TRY(output_check(&args->output));
    TRY(place_check(&args->place));
    TRY(find_device(args, &o->device));
    if (!o->device.backend->texts) threads_set(args->place.threads);
    TRY(read_type(args, &o->device, &o->type));
    TRY(read_form(args->form, &o->form));
    TRY(read_limits(args, o));
    *ret_sizes = 1;
    memcpy(size[0], o->device.backend->texts ? ladder->gpu : ladder->cpu, sizeof size[0]);
    if (args->sizes) TRY(read_sizes(args->sizes, size, ret_sizes, a));
    if (args->watch && !args->kernel)
        return fail(ST_USAGE, "--watch needs --kernel=FILE, the file to watch");
    TRY(effort_read(&args->effort, &o->samples, &o->limit_ms, &o->go_on));
    o->warm = args->warm;
    o->counters = args->counters;
    o->only = args->rungs;
    return ST_OK;
}

static enum status run_once(const struct arguments *args, struct lab_options o,
                            int64_t size[][LAB_SIZES], int sizes)
{
    struct arena a = {0};
    struct lab_own own = {0};
    bool gpu = o.device.backend->texts != NULL;
    enum status st = ST_OK;
    if (args->kernel) {
        st = lab_own_read(&own, ladder, gpu, args->kernel, &a);
        o.own = &own.rung;
    }
    if (st == ST_OK)
        st = args->probe >= 0 ? probe_run(&o, &own, args->library, size, sizes, (int)args->probe)
             : args->template ? show_template(&o)
             : args->show     ? show_rung(args, &o.device)
             : args->ptx      ? show_ptx(args, &o, &a)
             : args->watched >= 0 ? run_watched(args, &o, &own, size, sizes, &a)
             : args->kernel       ? run_own(args, &o, size, sizes, &a)
                                  : run_ladder(args, &o, size, sizes, NULL, &a);
    lab_own_close(&own);
    arena_release(&a);
    return st;
}

/* Waits until the file has changed since *seen. ST_INTERRUPTED: Ctrl-C was pressed first. */
static enum status wait_for_change(const char *path, struct stat *seen)
{
    enum { LOOK_US = 200000 };
    struct stat now = *seen;
    while (!interrupt_noted() &&
           (stat(path, &now) != 0 ||
            (now.st_mtim.tv_sec == seen->st_mtim.tv_sec && now.st_size == seen->st_size &&
             now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec && now.st_ino == seen->st_ino)))
        usleep(LOOK_US);
    bool stopped = interrupt_noted();
    *seen = now;
    return stopped ? fail(ST_INTERRUPTED, "stopped watching %s", path) : ST_OK;
}

static enum status watch(const struct arguments *args, const struct lab_options *o,
                         int64_t size[][LAB_SIZES], int sizes)
{
    struct stat seen;
    enum status st;
    if (stat(args->kernel, &seen) != 0) seen = (struct stat){0};
    do {
        st = run_once(args, *o, size, sizes);
        if (st == ST_INTERRUPTED) return st;
        if (st != ST_OK) log_warning("%s", fail_message());
        log_info("waiting until %s changes; Ctrl-C ends it", args->kernel);
        st = wait_for_change(args->kernel, &seen);
    } while (st == ST_OK);
    return st;
}

static enum status run_command(int argc, char **argv, struct arena *a)
{
    struct arguments args = {.effort = {"samples", EFFORT_OPEN, 100000, 15, 1, 1000000},
                             .registers = NOT_GIVEN,
                             .blocks = NOT_GIVEN,
                             .probe = -1,
                             .watched = -1};
    const struct opt options[] = {
        DEVICE_OPTION(&args.place.device),
        {"size", OPT_TEXT, &args.sizes, "N,N,...",
         "sizes of the problem: 4096, 4096x1024 (rows x columns), 512x512x512 (matmul: m x n x k; "
         "attention: batch x heads x tokens); several sizes are drawn as curves (default: the one "
         "that the table shows)"},
        {"dtype", OPT_TEXT, &args.dtype, "NAME",
         "float32 or, on a GPU, bfloat16; for matmul on a GPU also tf32 (default: float32; for "
         "matmul and attention on a GPU bfloat16)"},
        {"form", OPT_TEXT, &args.form, "NAME",
         "for attention: causal, or full, where queries see all keys (default: causal)"},
        {"rungs", OPT_TEXT, &args.rungs, "NAME,...", "run only these rungs (default: all)"},
        {"warm", OPT_FLAG, &args.warm, NULL, "leave the data in the caches from call to call"},
        {"counters", OPT_FLAG, &args.counters, NULL,
         "GPU: show the bytes that hardware counters measure beside the computed ones"},
        {"show", OPT_TEXT, &args.show, "RUNG", "print the file of a rung, and run nothing"},
        {"ptx", OPT_TEXT, &args.ptx, "RUNG", "print the PTX that a rung compiles to on this GPU"},
        {"kernel", OPT_TEXT, &args.kernel, "FILE",
         "one more rung: your kernel, of CUDA (mine.cu) or of C (mine.c); it runs in a process of "
         "its own first"},
        {"template", OPT_FLAG, &args.template, NULL,
         "print a kernel to begin from, and run nothing"},
        {"watch", OPT_FLAG, &args.watch, NULL,
         "with --kernel: run again whenever the file changes"},
        {"registers", OPT_INT, &args.registers, "N",
         "GPU: leave out kernels with more registers in a thread"},
        {"shared", OPT_SIZE, &args.shared, "SIZE",
         "GPU: leave out kernels with more shared memory in a block, as in 16KiB"},
        {"blocks", OPT_INT, &args.blocks, "N",
         "GPU: leave out kernels with more blocks in the grid"},
        {"probe", OPT_INT, &args.probe, NULL, NULL},
        {"watched", OPT_INT, &args.watched, NULL, NULL},
        {"library", OPT_TEXT, &args.library, NULL, NULL},
        {"samples", OPT_INT, &args.effort.samples, "N",
         "timings of each rung (default: 20; more while the order is uncertain)"},
        {"limit", OPT_INT, &args.effort.limit, "SECONDS",
         "time for all timings together, and for each call of your kernel (default: 15)"},
        {"threads", OPT_INT, &args.place.threads, "N",
         "CPU threads (default: all that this process may use); GPU: leave out kernels with more "
         "threads in a block"},
        {"isa", OPT_TEXT, &args.place.isa, "SET",
         "widest instruction set: avx512, avx2, sse2, neon or plain"},
        OUTPUT_OPTIONS(&args.output, "also write the bars, or the curves, as a picture"),
        {0},
    };
    struct lab_options o = {.ladder = ladder};
    int64_t size[LAB_VIEW_SIZES][LAB_SIZES] = {0};
    int sizes = 0;
    const char *name = arena_printf(a, "lab %s", ladder->name);
    args.output.command = command_text(name, argc, argv, a);
    args.argv = ARENA_NEW(a, char *, argc + 4);
    args.argv[0] = "strobe", args.argv[1] = "lab", args.argv[2] = (char *)ladder->name;
    for (int i = 0; i <= argc; i++) args.argv[3 + i] = i < argc ? argv[i] : NULL;
    TRY(command_options(name, options, argc, argv));
    TRY(prepare(&args, &o, size, &sizes, a));
    bool child = args.probe >= 0 || args.watched >= 0;
    return args.watch && !child ? watch(&args, &o, size, sizes) : run_once(&args, o, size, sizes);
}

/* --- the command ------------------------------------------------------------------------------ */

bool cmd_lab_ladder(const char *name, int argc, char **argv, enum status *ret, struct arena *a)
{
    for (int i = 0; (ladder = lab_ladder_at(i)) && strcmp(name, ladder->name); i++) continue;
    if (!ladder) return false;
    const struct command c = {.name = arena_printf(a, "lab %s", name),
                              .run = run_command,
                              .usage = "",
                              .help = ladder->question,
                              .example = arena_printf(a, "strobe lab %s --device=cpu", name)};
    *ret = command_run(&c, argc, argv);
    return true;
}
