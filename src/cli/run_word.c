#include "cli/run_word.h"

#include "config/config.h"

enum status run_word_open(struct saved_run *s, int argc, char **argv, const char *command,
                          bool best, struct arena *a)
{
    const char *run = NULL;
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        if (config_is_override(argv[i])) {
            argv[kept++] = argv[i];
            continue;
        }
        if (run) return fail(ST_USAGE, "found two runs, %s and %s; name only one", run, argv[i]);
        run = argv[i];
    }
    if (!run)
        return fail(ST_USAGE,
                    "no run given; name one, for example strobe %s runs/shakespeare_char_cpu",
                    command);
    TRY(saved_open(s, run, best, a));
    return saved_override(s, kept, argv, a);
}
