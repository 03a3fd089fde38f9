/* strobe export: a trained model as another program's files. */
#include "base/shell.h"
#include "cli/command.h"
#include "cli/run_word.h"
#include "data/kind.h"
#include "exchange/exchange.h"

#include <stdlib.h>
#include <string.h>

/* exports/NAME-hf: NAME is that of the run, with the iteration if one checkpoint is named, or that
 * of a folder or file of another program. */
static const char *default_out(const struct saved_run *s, const struct exchange_format *f,
                               struct arena *a)
{
    char *found = realpath(s->run_dir, NULL);
    const char *path = found ? arena_strdup(a, found) : s->run_dir;
    const char *name = command_last_part(path), *ending = strrchr(name, '.');
    int64_t n = (int64_t)strlen(name);
    free(found);
    if (ending && ending > name && !strcmp(ending, ".pt")) n = ending - name;
    const char *iter = s->foreign || s->searched
                           ? ""
                           : arena_printf(a, "-%lld", (long long)s->checkpoint.state.iter);
    return arena_printf(a, "exports/%.*s%s%s", (int)n, name, iter, f->ending);
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
    if (f->states && m.states == 1)
        log_info("the state of SGD has no place in it: it has the weights and the iteration");
    if (s->vocabulary.kind == &data_tokens && !f->states)
        log_info("it has no tokenizer, because the texts of its tokens are not known");
    return ST_OK;
}

enum status cmd_export(int argc, char **argv, struct arena *a)
{
    bool best = false;
    const char *to = NULL, *out = NULL;
    const struct opt options[] = {
        {"to", OPT_TEXT, &to, "FORMAT",
         "hf: a folder with config.json, model.safetensors and tokenizer.json, which "
         "transformers opens; nanogpt: its ckpt.pt, with the state of the optimizer"},
        {"out", OPT_TEXT, &out, "PATH",
         "the folder or file to write (default: exports/NAME-FORMAT)"},
        {"best", OPT_FLAG, &best, NULL,
         "use the checkpoint with the lowest validation loss, not the last one"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    struct saved_run s;
    const struct exchange_format *f = to ? exchange_find_format(to) : NULL;
    if (!f)
        return fail(ST_USAGE, "--to takes %s; found %s", exchange_format_names(a),
                    to ? to : "nothing");
    TRY(run_word_open(&s, argc, argv, "export", best, a));
    return export(&s, f, out ? out : default_out(&s, f, a), a);
}
