/* strobe help: the commands, or the options of one. */
#include "base/opt.h"
#include "cli/command.h"

#include <stdio.h>

enum status cmd_help(int argc, char **argv)
{
    TRY(opt_parse((struct opt[]){{0}}, &argc, argv, NULL));
    if (argc > 2)
        return fail(ST_USAGE, "help takes one command, of two words at most; found %s %s %s",
                    argv[0], argv[1], argv[2]);
    if (argc > 0) {
        const struct command *c = command_find(argv[0]);
        if (!c)
            return fail(ST_USAGE, "there is no command %s; the nearest is %s", argv[0],
                        command_nearest(argv[0])->name);
        if (argc > 1 && c->run != cmd_bench)
            return fail(ST_USAGE, "%s has no parts; `strobe help %s` has its options", c->name,
                        c->name);
        return argc > 1 ? command_run(c, 2, (char *[]){argv[1], "--help", NULL})
                        : command_run(c, 1, (char *[]){"--help", NULL});
    }
    printf("usage: strobe COMMAND [WORD ...]\n\n");
    for (int i = 0; command_at(i); i++)
        printf("  %-9s %s\n", command_at(i)->name, command_at(i)->help);
    printf("\n`strobe help COMMAND` has the options of one. The environment variable STROBE_LOG "
           "(error,\nwarning, info, debug) says how much is told on stderr.\n");
    return ST_OK;
}
