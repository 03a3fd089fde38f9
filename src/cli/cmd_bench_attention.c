/* strobe bench attention: slow and flash attention over lengths, forward and backward; a table and a picture. */
#include "base/file.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/str.h"
#include "base/threads.h"
#include "cli/ceilings.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/table_form.h"
#include "measure/bench_attention.h"
#include "report/plot.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_TYPE,
    COLUMN_T,
    COLUMN_B,
    COLUMN_WAY,
    COLUMN_FORWARD,
    COLUMN_FORWARD_STD,
    COLUMN_BACKWARD,
    COLUMN_BACKWARD_STD,
    COLUMN_SAMPLES,
    COLUMN_FORWARD_RATE,
    COLUMN_BACKWARD_RATE,
    COLUMN_SPEEDUP,
    COLUMN_MEMORY,
    COLUMN_KERNELS,
    COLUMN_NOTE,
    COLUMNS
};

static const struct table_column columns[COLUMNS] = {
    [COLUMN_TYPE] = {"dtype", "type", "of q, k, v and of what comes out", false},
    [COLUMN_T] = {"T", "T", "tokens of a sequence", true},
    [COLUMN_B] = {"B", "B", "sequences", true},
    [COLUMN_WAY] = {"attention", "attention", "slow at a rung of fusion, or flash", false},
    [COLUMN_FORWARD] = {"forward_ms", "forward ms", "median", true},
    [COLUMN_FORWARD_STD] = {"forward_std", "std", "standard deviation", true},
    [COLUMN_BACKWARD] = {"backward_ms", "backward ms", "median", true},
    [COLUMN_BACKWARD_STD] = {"backward_std", "std", "standard deviation", true},
    [COLUMN_SAMPLES] = {"samples", "n", "samples taken", true},
    [COLUMN_FORWARD_RATE] = {"forward_gflop_per_s", "GFLOP/s fwd", "of attention's own work", true},
    [COLUMN_BACKWARD_RATE] = {"backward_gflop_per_s", "GFLOP/s bwd", "of attention's own work",
                              true},
    [COLUMN_SPEEDUP] = {"times_slow_op", "x slow op", "how many times as fast as slow op", true},
    [COLUMN_MEMORY] = {"bytes", "memory", "of the plan, inputs and outputs included", true},
    [COLUMN_KERNELS] = {"kernels", "kernels", "that one forward and backward pass runs", true},
    [COLUMN_NOTE] = {"note", "note", "why it was not run", false},
};

struct options {
    struct attention_options run;
    struct table_form form;
    const char *svg;
};

/* --- the table ----------------------------------------------------------------------------------- */

/* The cell of the same length and type that is attention as an eager framework runs it. */
static const struct attention_cell *slow_op_of(const struct attention_cell *c)
{
    return c - c->way + SLOW_OP;
}

static void set_times(struct table *t, int at, const struct attention_cell *c, struct arena *a)
{
    const struct attention_cell *slow = slow_op_of(c);
    table_set(t, at, COLUMN_FORWARD, 4, c->forward.median, a);
    table_set_std(t, at, COLUMN_FORWARD_STD, &c->forward, a);
    table_set(t, at, COLUMN_BACKWARD, 4, c->backward.median, a);
    table_set_std(t, at, COLUMN_BACKWARD_STD, &c->backward, a);
    table_set(t, at, COLUMN_SAMPLES, 0, c->both.n, a);
    table_form_set_flops(t, at, COLUMN_FORWARD_RATE, c->forward_flops / c->forward.median * 1e3, a);
    table_form_set_flops(t, at, COLUMN_BACKWARD_RATE, c->backward_flops / c->backward.median * 1e3,
                         a);
    if (!slow->reason) table_set(t, at, COLUMN_SPEEDUP, 3, slow->both.median / c->both.median, a);
}

static struct table make_table(const struct options *o, const struct attention_cell *cell,
                               int cells, struct arena *a)
{
    int every = o->run.ways ? ATTENTION_WAYS : 1; /* flash is the last way */
    struct table t = {.column = columns, .columns = COLUMNS, .rows = cells / every};
    t.cell = ARENA_NEW(a, struct table_cell, t.rows * COLUMNS);
    if (!o->run.device.backend->host_memory) table_form_tera(&t, a);
    for (int i = 0; i < t.rows; i++) {
        const struct attention_cell *c = &cell[i * every + every - 1];
        char bytes[32];
        table_set_text(&t, i, COLUMN_TYPE, machine_precision_name(c->precision));
        table_set(&t, i, COLUMN_T, 0, (double)c->T, a);
        table_set(&t, i, COLUMN_B, 0, (double)c->B, a);
        table_set_text(&t, i, COLUMN_WAY, attention_way_name(c->way));
        if (c->bytes) {
            *table_at(&t, i, COLUMN_MEMORY) = (struct table_cell){
                arena_strdup(a, str_bytes(bytes, (double)c->bytes)), (double)c->bytes};
            table_set(&t, i, COLUMN_KERNELS, 0, c->kernels, a);
        }
        if (c->reason)
            table_set_text(&t, i, COLUMN_NOTE, c->reason);
        else
            set_times(&t, i, c, a);
    }
    return t;
}

/* --- the picture --------------------------------------------------------------------------------- */

struct picture {
    struct plot_line line[2][ATTENTION_WAYS * ATTENTION_DTYPES]; /* time, memory */
    int lines;
};

/* One way of one type: every cell of it, by length. */
static void add_lines(struct picture *p, const struct options *o, const struct attention_cell *cell,
                      int d, int way, struct arena *a)
{
    int n = o->run.lengths, stride = o->run.precisions * ATTENTION_WAYS;
    struct plot_point *time = ARENA_NEW(a, struct plot_point, n);
    struct plot_point *memory = ARENA_NEW(a, struct plot_point, n);
    for (int i = 0; i < n; i++) {
        const struct attention_cell *c = &cell[i * stride + d * ATTENTION_WAYS + way];
        time[i] = (struct plot_point){(double)c->T, c->both.median, false};
        memory[i] = (struct plot_point){(double)c->T, (double)c->bytes, c->reason != NULL};
    }
    const char *name = arena_printf(a, "%s, %s", attention_way_name((enum attention_way)way),
                                    machine_precision_name(o->run.precision[d]));
    p->line[0][p->lines] = (struct plot_line){name, way, d > 0, time, n};
    p->line[1][p->lines++] = (struct plot_line){name, way, d > 0, memory, n};
}

static const char *words_of_groups(const struct attention_options *o, struct arena *a)
{
    if (!o->kv_heads || o->kv_heads == o->heads) return "";
    return arena_printf(a, " over %lld of keys and values", (long long)o->kv_heads);
}

static enum status draw(const struct options *o, const struct attention_cell *cell,
                        const char *note, struct arena *a)
{
    struct picture p = {0};
    struct str s = {0};
    for (int d = 0; d < o->run.precisions; d++)
        for (int way = 0; way < ATTENTION_WAYS; way++)
            if (way == FLASH || !o->run.ways) add_lines(&p, o, cell, d, way, a);
    struct plot_panel panel[] = {
        {.title = "time, forward and backward", .unit = PLOT_MILLISECONDS, .line = p.line[0]},
        {.title = "memory of the plan", .unit = PLOT_BYTES, .line = p.line[1]},
    };
    for (int i = 0; i < COUNT_OF(panel); i++) {
        panel[i].x_title = "T, tokens of a sequence";
        panel[i].lines = p.lines;
    }
    if (o->run.room > 0) {
        panel[1].level = (double)o->run.room;
        panel[1].level_name = "free memory";
    }
    plot_print_svg(arena_printf(a, "Attention, %lld heads of %lld%s, %lld tokens in all",
                                (long long)o->run.heads, (long long)o->run.head_size,
                                words_of_groups(&o->run, a), (long long)o->run.tokens),
                   note, panel, COUNT_OF(panel), &s);
    enum status st = file_write(o->svg, s.data, s.len);
    str_release(&s);
    return st;
}

/* --- the words ----------------------------------------------------------------------------------- */

static enum status parse_lengths(struct attention_options *o, const char *words)
{
    char *end;
    for (const char *at = words;; at = end + 1) {
        long long T = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',') || T < 1 || o->lengths == ATTENTION_LENGTHS)
            return fail(ST_USAGE, "--T takes up to %d lengths, as in 64,128,256; not %s",
                        ATTENTION_LENGTHS, words);
        if (o->lengths && T <= o->length[o->lengths - 1])
            return fail(ST_USAGE, "--T takes lengths that rise; %lld follows %lld", T,
                        (long long)o->length[o->lengths - 1]);
        if (o->tokens % T)
            return fail(ST_USAGE,
                        "%lld tokens are no whole number of sequences of %lld; change "
                        "--tokens or --T",
                        (long long)o->tokens, T);
        o->length[o->lengths++] = T;
        if (!*end) return ST_OK;
    }
}

static enum status parse_dtypes(struct attention_options *o, const char *words)
{
    static const struct {
        const char *name;
        enum machine_precision precision;
    } known[] = {{"float32", MACHINE_F32}, {"tfloat32", MACHINE_TF32}, {"bfloat16", MACHINE_BF16}};
    for (const char *at = words;; at++) {
        size_t n = strcspn(at, ",");
        int i = 0;
        while (i < COUNT_OF(known) && (strlen(known[i].name) != n || strncmp(at, known[i].name, n)))
            i++;
        bool twice = false;
        for (int k = 0; k < o->precisions && i < COUNT_OF(known); k++)
            twice |= o->precision[k] == known[i].precision;
        if (i == COUNT_OF(known) || twice)
            return fail(ST_USAGE,
                        "--dtype takes float32, bfloat16 or both, as in float32,bfloat16, and on a "
                        "GPU tfloat32; not %s",
                        words);
        o->precision[o->precisions++] = known[i].precision;
        at += n;
        if (!*at) return ST_OK;
    }
}

static enum status check(const struct options *o, int64_t samples, int64_t limit)
{
    const struct attention_options *r = &o->run;
    if (r->heads < 1 || r->heads > 1024 || r->head_size < 1 || r->head_size > 1024)
        return fail(ST_USAGE, "--heads and --head_size are 1 to 1024");
    if (r->kv_heads < 0 || (r->kv_heads && r->heads % r->kv_heads))
        return fail(ST_USAGE, "--heads=%lld is not divisible by --kv_heads=%lld",
                    (long long)r->heads, (long long)r->kv_heads);
    if (r->tokens < 1 || r->tokens > 1 << 24) return fail(ST_USAGE, "--tokens is 1 to 16777216");
    if (samples < 1 || samples > 100000 || limit < 0 || limit > 1000000)
        return fail(ST_USAGE, "--samples is 1 to 100000, --limit 0 to 1000000");
    return ST_OK;
}

static void show(void *user, double done, double all, enum machine_precision precision, int64_t T)
{
    struct progress *p = user;
    char text[64];
    if (!p->what) progress_start(p, "bench attention", 0, (int64_t)all);
    snprintf(text, sizeof text, "%s, T %lld", machine_precision_name(precision), (long long)T);
    progress_show(p, (int64_t)done, text);
}

static const char flops_note[] =
    "FLOPs: attention's own, 4 B H T^2 D / 2 forward, as it is causal, and "
    "2.5 times that backward, whatever a way calculates besides";

static json_t *make_json(const struct options *o, const struct machine *m, const struct table *t)
{
    return json_pack("{s:i, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:s}", "v", 1, "heads",
                     (json_int_t)o->run.heads, "kv_heads",
                     (json_int_t)(o->run.kv_heads ? o->run.kv_heads : o->run.heads), "head_size",
                     (json_int_t)o->run.head_size, "tokens", (json_int_t)o->run.tokens, "formula",
                     flops_note, "machine", machine_json(m), "rows", table_json(t), "svg", o->svg);
}

static enum status run(struct options *o, struct arena *a)
{
    struct machine m;
    struct progress progress = {0};
    struct attention_cell *cell;
    int cells;
    TRY(ceilings_get(&m, &o->run.device, a));
    int64_t room = o->run.device.backend->room(o->run.device.number);
    o->run.room = room < 0 ? -1 : room / 10 * 9; /* the rest is for what else wants some */
    o->run.each = show;
    o->run.user = &progress;
    enum status st = bench_attention_run(&o->run, &cell, &cells, a);
    if (progress.what) progress_end(&progress);
    TRY(st);
    struct table t = make_table(o, cell, cells, a);
    struct str s = {0};
    const char *machine = ceilings_words(&m, a);
    if (o->form.json) {
        json_print(make_json(o, &m, &t), &s);
    } else {
        table_form_print(&o->form, &t, &s);
        table_form_note(&o->form, arena_printf(a, "%s\n%s", flops_note, machine), &s);
    }
    fputs(str_text(&s), stdout);
    fflush(stdout);
    str_release(&s);
    TRY(machine_identify(&m, &o->run.device, a)); /* the record is of another day */
    TRY(draw(o, cell,
             arena_printf(a, "%.10s, %s. Hollow points: known from the plan, not run.", m.date,
                          ceilings_who(&m, a)),
             a));
    log_info("picture: %s", o->svg);
    return ST_OK;
}

enum status cmd_bench_attention(int argc, char **argv)
{
    struct options o = {.svg = "attention.svg",
                        .run = {.heads = 6, .head_size = 64, .tokens = 8192}};
    const char *lengths = "64,128,256,512,1024,2048,4096,8192", *dtypes = "float32,bfloat16";
    const char *isa = NULL, *word = NULL;
    bool flash_only = false;
    int64_t samples = 20, limit = 240, threads = 0;
    const struct opt options[] = {
        DEVICE_OPTION(&word),
        {"T", OPT_TEXT, &lengths, "N,N,...",
         "lengths of sequences (64,128,256,512,1024,2048,4096,8192)"},
        {"tokens", OPT_INT, &o.run.tokens, "N",
         "of all sequences together, at every length (8192)"},
        {"heads", OPT_INT, &o.run.heads, "N", "(6)"},
        {"kv_heads", OPT_INT, &o.run.kv_heads, "N", "of keys and values (as many as heads)"},
        {"head_size", OPT_INT, &o.run.head_size, "N", "(64)"},
        {"dtype", OPT_TEXT, &dtypes, "NAME,...", "(float32,bfloat16)"},
        {"flash_only", OPT_FLAG, &flash_only, NULL, "not the slow ways"},
        {"samples", OPT_INT, &samples, "N", "of each cell; the median counts (20)"},
        {"limit", OPT_INT, &limit, "SECONDS",
         "for all together: slow cells give fewer samples; what would take too long is left out "
         "(240)"},
        {"threads", OPT_INT, &threads, "N", "as many as this process may use, unless given"},
        {"isa", OPT_TEXT, &isa, "SET",
         "nothing wider than amx, avx512_bf16, avx512, avx2, sse2 or plain"},
        {"svg", OPT_TEXT, &o.svg, "FILE", "the picture (attention.svg)"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc) return fail(ST_USAGE, "bench attention takes options only; found %s", argv[0]);
    TRY(table_form_check(&o.form));
    TRY(check(&o, samples, limit));
    TRY(parse_lengths(&o.run, lengths));
    TRY(parse_dtypes(&o.run, dtypes));
    if (threads < 0 || threads > 4096) return fail(ST_USAGE, "--threads is 0 to 4096");
    if (isa) TRY(isa_limit_word(isa));
    TRY(device_of_word(word, &o.run.device));
    TRY(file_check_writable(o.svg)); /* before minutes of measuring */
    for (int i = 0; i < o.run.precisions && o.run.device.backend->host_memory; i++)
        if (o.run.precision[i] == MACHINE_TF32)
            return fail(ST_UNSUPPORTED, "--dtype=tfloat32 is of CUDA devices; use float32");
    threads_set(threads);
    if (flash_only) o.run.ways = 1u << FLASH;
    o.run.samples = (int)samples;
    o.run.limit_ms = 1e3 * (double)limit;
    struct arena a = {0};
    enum status st = run(&o, &a);
    arena_release(&a);
    return st;
}
