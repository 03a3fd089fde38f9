/* strobe lab bpe: text to tokens, each rung with one more idea. */
#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "data/source.h"
#include "data/tokenizers.h"
#include "lab/bpe/bpe.h"
#include "text/stream.h"
#include "view/bpe_view.h"

#include <string.h>

enum { TEXT_MOST = 1 << 26 };

struct arguments {
    const char *tokenizer, *from, *isa, *show;
    struct output output;
};

static enum status show_rung(const char *name)
{
    struct str names = {0};
    int64_t bytes;
    for (int i = 0; bpe_rungs[i].name; i++) {
        str_printf(&names, "%s%s", i ? ", " : "", bpe_rungs[i].name);
        if (strcmp(bpe_rungs[i].name, name)) continue;
        const char *source = lab_source(&bpe_rungs[i], &bytes);
        names.len = 0;
        str_append_bytes(&names, source, bytes);
        command_print(&names);
        return ST_OK;
    }
    enum status st = fail(ST_USAGE, "bpe has no rung %s; it has %s", name, str_text(&names));
    str_release(&names);
    return st;
}

/* The text, followed by bytes that may be read; at most 64 MiB of it. */
static enum status read_text(const struct arguments *args, struct bpe_options *o,
                             const char **ret_from, struct arena *a)
{
    struct source_text t;
    if (args->from)
        TRY(source_file(&t, args->from, a));
    else
        TRY(source_shakespeare(&t, NULL, false, a));
    o->bytes = min_i64(t.bytes, TEXT_MOST);
    char *text = arena_alloc(a, o->bytes + STREAM_PADDING);
    memcpy(text, t.text, (size_t)o->bytes);
    o->text = text;
    *ret_from = args->from ? args->from : "Tiny Shakespeare";
    return ST_OK;
}

static enum status run(const struct arguments *args, struct bpe_options o, struct arena *a)
{
    struct tokenizer t;
    struct bpe_run r;
    struct device d;
    struct outcome x;
    const char *from = NULL;
    o.tokenizer = &t;
    if (args->isa) TRY(isa_limit_word(args->isa));
    TRY(tokenizers_find(&t, args->tokenizer, a));
    TRY(read_text(args, &o, &from, a));
    TRY(device_of_word("cpu", &d));
    o.each = outcome_share;
    o.user = &x;
    outcome_begin(&x, "lab bpe", 1, &d);
    outcome_add(&x, bpe_run(&o, &r, a));
    if (outcome_end(&x)) {
        bpe_sheet(&r, arena_printf(a, "%s, %s", from, args->tokenizer), &x.sheet, a);
        if (r.wrong)
            x.wrong = arena_printf(a, "%d rung%s gave other ids; the table says which", r.wrong,
                                   r.wrong == 1 ? "" : "s");
    }
    return outcome_finish(&x, &args->output, a);
}

enum status cmd_lab_bpe(int argc, char **argv, struct arena *a)
{
    struct arguments args = {.tokenizer = "gpt2"};
    struct effort effort = {"samples", 20, 100000, 20, 1, 1000000};
    struct bpe_options o = {0};
    const struct opt options[] = {
        {"tokenizer", OPT_TEXT, &args.tokenizer, "NAME",
         "gpt2 (the default), or a folder with tokenizer.json or with vocab.json and merges.txt"},
        {"from", OPT_TEXT, &args.from, "FILE", "the text (Tiny Shakespeare), at most 64 MiB of it"},
        {"warm", OPT_FLAG, &o.warm, NULL, "the caches keep the words of the call before"},
        {"show", OPT_TEXT, &args.show, "RUNG", "print the file of a rung"},
        {"samples", OPT_INT, &effort.samples, "N", "samples of each rung (default: 20)"},
        {"limit", OPT_INT, &effort.limit, "SECONDS",
         "time for the timings of all rungs (default: 20)"},
        {"isa", OPT_TEXT, &args.isa, "SET", "use this instruction set at most, such as avx2"},
        {"svg", OPT_TEXT, &args.output.svg, "FILE", "write the bars as a picture"},
        {"save", OPT_TEXT, &args.output.save, "FILE",
         "write the result as JSON, for strobe report"},
        TABLE_FORM_OPTIONS(&args.output.form),
        {0}};
    args.output.command = command_text("lab bpe", argc, argv, a);
    TRY(command_options("lab bpe", options, argc, argv));
    TRY(output_check(&args.output));
    TRY(effort_read(&effort, &o.samples, &o.limit_ms, NULL));
    return args.show ? show_rung(args.show) : run(&args, o, a);
}
