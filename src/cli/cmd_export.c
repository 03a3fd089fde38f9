/* strobe export: a trained model as another program's files. */
#include "base/log.h"
#include "base/opt.h"
#include "base/shell.h"
#include "cli/command.h"
#include "cli/run_word.h"
#include "data/kind.h"
#include "exchange/exchange.h"

#include <string.h>

/* exports/NAME-hf, by the last folder or file of the model's path. */
static const char *default_out(const struct saved_run *s, const struct exchange_format *f,
                               struct arena *a)
{
    const char *path = s->run_dir;
    int64_t n = (int64_t)strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    int64_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    return arena_printf(a, "exports/%.*s%s", (int)(n - begin), path + begin, f->ending);
}

static enum status export(const struct saved_run *s, const struct exchange_format *f,
                          const char *out, struct arena *a) {
    struct exchange_model m;
    TRY(exchange_open(&m, s->foreign ? s->foreign : s->checkpoint.path, a));
    enum status st = exchange_write(&m, &s->vocabulary, f, out, a);
    exchange_close(&m);
    if (st != ST_OK) return st;
    log_info("%s%s, as %s: %s", s->checkpoint.path,
             m.iter ? arena_printf(a, " (iteration %lld)", (long long)m.iter) : "", f->what,
             shell_word(out, a));
    if (s->vocabulary.kind == &data_tokens)
        log_info("it has no tokenizer, because the texts of its tokens are not known");
    return ST_OK;
}

enum status cmd_export(int argc, char **argv)
{
    bool best = false;
    const char *to = NULL, *out = NULL;
    struct arena a = {0};
    const struct opt options[] = {
        {"to", OPT_TEXT, &to, "FORMAT",
         "hf: a folder with config.json, model.safetensors and tokenizer.json, which "
         "transformers opens; nanogpt: its ckpt.pt, with the state of the optimizer"},
        {"out", OPT_TEXT, &out, "PATH", "the folder or file to write (exports/NAME-FORMAT)"},
        {"best", OPT_FLAG, &best, NULL,
         "use the checkpoint with the lowest validation loss, not the last one"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    struct saved_run s;
    const struct exchange_format *f = to ? exchange_find_format(to) : NULL;
    enum status st = f ? ST_OK
                       : fail(ST_USAGE, "--to takes %s; found %s", exchange_format_names(&a),
                              to ? to : "nothing");
    if (st == ST_OK) st = run_word_open(&s, argc, argv, "export", best, &a);
    if (st == ST_OK) st = export(&s, f, out ? out : default_out(&s, f, &a), &a);
    arena_release(&a);
    return st;
}
