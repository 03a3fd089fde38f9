#include "cli/run_word.h"

#include "base/file.h"
#include "base/threads.h"
#include "config/config.h"
#include "machine/machine.h"

#include <string.h>

const char *run_word_path(const char *word)
{
    if (!strncmp(word, "--out_dir=", 10)) return word + 10;
    if (!strncmp(word, "--init_from=", 12) && strcmp(word + 12, INIT_RESUME) != 0) return word + 12;
    if (config_is_override(word) && (word[0] == '-' || !file_is_dir(word))) return NULL;
    return word;
}

enum status run_word_open(struct saved_run *s, int argc, char **argv, const char *command,
                          bool best, struct arena *a)
{
    const char *run = NULL;
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        const char *named = run_word_path(argv[i]);
        if (!named) {
            argv[kept++] = argv[i];
            continue;
        }
        if (run) return fail(ST_USAGE, "found two runs, %s and %s; name only one", run, named);
        run = named;
    }
    if (!run)
        return fail(ST_USAGE,
                    "no run given; name one, for example strobe %s runs/shakespeare_char_cpu",
                    command);
    TRY(saved_open(s, run, best, a));
    struct config c = s->config;
    for (int i = 0; i < kept; i++) TRY(config_set(&c, argv[i], a));
    threads_set(c.plan.threads);
    TRY(machine_choose(&c, s->foreign ? NULL : &s->config, false, a));
    return saved_override(s, &c);
}
