/* strobe bench attention: flash and unfused attention over lengths, head sizes and masks,
 * forward and backward; a table and a picture. */
#include "base/own.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/list.h"
#include "cli/output.h"
#include "cli/version.h"
#include "view/attention_view.h"
#include "view/ceilings.h"

#include <stdio.h>
#include <string.h>

struct options {
    struct attention_options run;
    struct output output;
};

/* --- options ---------------------------------------------------------------------------------- */

static enum status parse_lengths(struct attention_options *o, const char *words)
{
    o->lengths = list_numbers(words, o->length, ATTENTION_LENGTHS);
    if (!o->lengths)
        return fail(ST_USAGE, "--T takes up to %d lengths, as in 64,128,256; found %s",
                    ATTENTION_LENGTHS, words);
    for (int i = 0; i < o->lengths; i++) {
        long long T = o->length[i];
        if (i && T <= o->length[i - 1])
            return fail(ST_USAGE, "--T takes increasing lengths; %lld follows %lld", T,
                        (long long)o->length[i - 1]);
        if (o->tokens % T)
            return fail(ST_USAGE,
                        "%lld tokens are not a multiple of sequence length %lld; change --tokens "
                        "or --T",
                        (long long)o->tokens, T);
    }
    return ST_OK;
}

static enum status parse_sizes(struct attention_options *o, const char *words)
{
    o->head_sizes = list_numbers(words, o->head_size, ATTENTION_SIZES);
    bool ok = o->head_sizes > 0;
    for (int i = 0; ok && i < o->head_sizes; i++) {
        ok = o->head_size[i] <= 1024;
        for (int k = 0; k < i; k++) ok &= o->head_size[k] != o->head_size[i];
    }
    if (ok) return ST_OK;
    return fail(ST_USAGE,
                "--head_size takes up to %d different sizes of 1 to 1024, as in 64,128; found %s",
                ATTENTION_SIZES, words);
}

/* Reads true, false or both, in any order, into a mask of 1 << false and 1 << true. */
static enum status parse_bools(const char *key, const char *words, unsigned *ret)
{
    static const char *const known[] = {"false", "true"};
    int index[2] = {0}, n = list_words(words, known, 2, index);
    *ret = 0;
    for (int i = 0; i < n; i++) *ret |= 1u << index[i];
    if (n) return ST_OK;
    return fail(ST_USAGE, "--%s takes true, false or both, as in true,false; found %s", key, words);
}

static enum status parse_dtypes(struct attention_options *o, const char *words)
{
    static const char *const known[] = {"float32", "tfloat32", "bfloat16"};
    static const enum machine_precision types[] = {MACHINE_F32, MACHINE_TF32, MACHINE_BF16};
    int index[COUNT_OF(known)] = {0};
    o->precisions = list_words(words, known, COUNT_OF(known), index);
    for (int i = 0; i < o->precisions; i++) o->precision[i] = types[index[i]];
    if (o->precisions) return ST_OK;
    return fail(ST_USAGE,
                "--dtype takes float32, bfloat16 and, on a GPU, tfloat32, as in float32,bfloat16; "
                "found %s",
                words);
}

/* Options before they are parsed and have defaults. */
struct words {
    const char *lengths, *sizes, *causal, *dtypes, *hopper, *deterministic, *check;
    bool flash_only;
    int64_t tokens, heads;
    struct place place;
    struct effort effort;
};

static const int64_t NOT_GIVEN = INT64_MIN;

/* GPU defaults are the shapes of the FlashAttention papers: 2048 columns, 16384 tokens, bf16. */
static void set_defaults(struct attention_options *o, struct words *w)
{
    bool gpu = !o->device.backend->host_memory;
    if (!w->lengths)
        w->lengths = gpu ? "512,1024,2048,4096,8192,16384" : "64,128,256,512,1024,2048,4096,8192";
    if (!w->sizes) w->sizes = gpu ? "64,128" : "64";
    if (!w->dtypes) w->dtypes = gpu ? "bfloat16" : "float32,bfloat16";
    if (!w->check) w->check = gpu ? "true" : "false";
    if (w->tokens == NOT_GIVEN) w->tokens = gpu ? 16384 : 8192;
    if (w->heads == NOT_GIVEN) w->heads = gpu ? 0 : 6, o->columns = gpu ? 2048 : 0;
    o->tokens = w->tokens;
    o->heads = w->heads;
}

static enum status parse_ways(struct attention_options *o, const struct words *w)
{
    unsigned hopper, deterministic;
    TRY(parse_bools("hopper", w->hopper, &hopper));
    TRY(parse_bools("deterministic", w->deterministic, &deterministic));
    if (o->device.backend->host_memory && (hopper != 2 || deterministic != 1))
        return fail(ST_UNSUPPORTED, "--hopper and --deterministic choose between GPU kernels; "
                                    "leave them out on a CPU");
    for (int i = 0; i < 4; i++) {
        bool portable = i & 1, same = i >> 1;
        if ((hopper >> !portable & 1) && (deterministic >> same & 1)) o->ways |= 1u << (FLASH + i);
    }
    if (!w->flash_only) o->ways |= 1u << SLOW_PRIMITIVE | 1u << SLOW_OP | 1u << SLOW_FULL;
    return ST_OK;
}

static enum status parse_masks(struct attention_options *o, const char *words)
{
    unsigned causal;
    TRY(parse_bools("causal", words, &causal));
    if (causal >> true & 1) o->causal[o->masks++] = true;
    if (causal >> false & 1) o->causal[o->masks++] = false;
    return ST_OK;
}

static enum status check_heads(const struct attention_options *o)
{
    if (o->heads < 0 || o->heads > 1024 || (!o->heads && !o->columns))
        return fail(ST_USAGE, "--heads must be 1 to 1024");
    for (int i = 0; i < o->head_sizes; i++) {
        int64_t heads = o->heads ? o->heads : o->columns / o->head_size[i];
        if (o->kv_heads < 0 || (o->kv_heads && heads % o->kv_heads))
            return fail(ST_USAGE, "--heads=%lld is not divisible by --kv_heads=%lld",
                        (long long)heads, (long long)o->kv_heads);
    }
    return ST_OK;
}

static enum status parse(struct attention_options *o, struct words *w)
{
    unsigned check;
    set_defaults(o, w);
    if (o->tokens < 1 || o->tokens > 1 << 24)
        return fail(ST_USAGE, "--tokens must be 1 to 16777216");
    TRY(effort_read(&w->effort, &o->samples, &o->limit_ms, &o->go_on));
    TRY(parse_sizes(o, w->sizes));
    TRY(check_heads(o));
    TRY(parse_lengths(o, w->lengths));
    TRY(parse_masks(o, w->causal));
    TRY(parse_dtypes(o, w->dtypes));
    TRY(parse_ways(o, w));
    TRY(parse_bools("check", w->check, &check));
    if (check == 3) return fail(ST_USAGE, "--check takes true or false; found %s", w->check);
    o->check = check == 1u << true;
    for (int i = 0; i < o->precisions && o->device.backend->host_memory; i++)
        if (o->precision[i] == MACHINE_TF32)
            return fail(ST_UNSUPPORTED,
                        "--dtype=tfloat32 needs a CUDA device; use float32 on a CPU");
    return ST_OK;
}

/* --- the run ---------------------------------------------------------------------------------- */

static void show(void *user, double done, double all, const struct attention_cell *c)
{
    struct progress *p = user;
    char text[64];
    if (!p->what) progress_start(p, "bench attention", 0, (int64_t)all);
    snprintf(text, sizeof text, "%s, D %lld%s, T %lld", machine_precision_name(c->precision),
             (long long)c->D, c->causal ? "" : ", full", (long long)c->T);
    progress_show(p, (int64_t)done, text);
}

static enum status run(struct options *o, struct arena *a)
{
    struct machine m, now; /* m: with peaks, maybe measured earlier; now: of this run */
    struct progress progress = {0};
    struct attention_cell *cell;
    struct attention_view v = {.o = &o->run, .machine = &m, .now = &now, .svg = o->output.svg};
    v.command = o->output.command;
    v.version = version_number;
    v.commit = version_commit;
    struct str s = {0};
    struct markup picture = {0};
    TRY(ceilings_get(&m, &o->run.device, a));
    o->run.memory_limit = device_room(&o->run.device);
    o->run.each = show;
    o->run.user = &progress;
    enum status st = bench_attention_run(&o->run, &cell, &v.cells, a);
    if (progress.what) progress_end(&progress);
    v.stopped = st == ST_INTERRUPTED;
    if (!v.stopped) TRY(st);
    v.cell = cell;
    TRY(machine_identify(&now, &o->run.device, a));
    struct table t = attention_table(&v, a);
    attention_view_print(&v, &t, &o->output.form, &s, a);
    command_print(&s);
    fflush(stdout);
    attention_picture(&v, &picture, a);
    TRY(output_draw(v.svg, &picture, true));
    return output_conclude(&t, v.stopped);
}

static enum status prepare(struct options *o, struct words *w)
{
    TRY(table_form_check(&o->output.form));
    TRY(place_open(&w->place, &o->run.device));
    TRY(parse(&o->run, w));
    return own_check_writable(o->output.svg,
                              OWN_PICTURE); /* before minutes are spent on measuring */
}

/* Ignores --layout=packed, an option of earlier versions: packed is the only layout. */
static void drop_layout(int *argc, char **argv)
{
    int kept = 0;
    for (int i = 0; i < *argc; i++)
        if (strcmp(argv[i], "--layout=packed") != 0) argv[kept++] = argv[i];
    *argc = kept;
}

enum status cmd_bench_attention(int argc, char **argv, struct arena *a)
{
    struct options o = {.output.svg = "attention.svg"};
    struct words w = {.causal = "true", .hopper = "true", .deterministic = "false"};
    w.tokens = w.heads = NOT_GIVEN;
    w.effort = (struct effort){"samples", EFFORT_OPEN, 100000, 240, 0, 1000000};
    const struct opt options[] = {
        DEVICE_OPTION(&w.place.device),
        {"T", OPT_TEXT, &w.lengths, "N,N,...",
         "sequence lengths (default: 64,128,256,512,1024,2048,4096,8192; on a GPU 512 to 16384)"},
        {"tokens", OPT_INT, &w.tokens, "N",
         "tokens of a batch, the same at every length (default: 8192; on a GPU 16384)"},
        {"heads", OPT_INT, &w.heads, "N", "query heads (default: 6; on a GPU 2048 / head_size)"},
        {"kv_heads", OPT_INT, &o.run.kv_heads, "N",
         "key and value heads (default: as many as heads)"},
        {"head_size", OPT_TEXT, &w.sizes, "N,N,...",
         "columns of a head (default: 64; on a GPU 64,128)"},
        {"causal", OPT_TEXT, &w.causal, "true,false",
         "true: a query attends to keys up to its own position; false: to all keys (default: "
         "true)"},
        {"dtype", OPT_TEXT, &w.dtypes, "NAME,...",
         "types to time (default: float32,bfloat16; on a GPU bfloat16)"},
        {"flash_only", OPT_FLAG, &w.flash_only, NULL, "leave out unfused attention"},
        {"hopper", OPT_TEXT, &w.hopper, "true,false",
         "flash attention with the kernels for compute capability 9.0, without them (`flash "
         "portable`), or both (default: true)"},
        {"deterministic", OPT_TEXT, &w.deterministic, "true,false",
         "flash attention with the same bits in every run, without that promise, or both (default: "
         "false)"},
        {"check", OPT_TEXT, &w.check, "true|false",
         "report the error of each variant against double precision (default: false; on a GPU "
         "true)"},
        {"samples", OPT_INT, &w.effort.samples, "N",
         "timings of each cell (default: 20; more while the order is uncertain)"},
        {"limit", OPT_INT, &w.effort.limit, "SECONDS",
         "time for all cells together: slow ones get fewer samples, the slowest are skipped "
         "(default: 240)"},
        {"threads", OPT_INT, &w.place.threads, "N",
         "CPU threads (default: all that this process may use)"},
        {"isa", OPT_TEXT, &w.place.isa, "SET",
         "widest instruction set: amx, avx512_bf16, avx512, avx2, sse2, neon or plain"},
        {"svg", OPT_TEXT, &o.output.svg, "FILE", "path of the picture (default: attention.svg)"},
        TABLE_FORM_OPTIONS(&o.output.form),
        {0},
    };
    o.output.command = command_text("bench attention", argc, argv, a);
    drop_layout(&argc, argv);
    TRY(command_options("bench attention", options, argc, argv));
    TRY(prepare(&o, &w));
    return run(&o, a);
}
