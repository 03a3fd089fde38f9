/* strobe help: the commands, or the options of one. */
#include "base/opt.h"
#include "cli/command.h"

#include <stdio.h>

enum status cmd_help(int argc, char **argv)
{
    TRY(opt_parse((struct opt[]){{0}}, &argc, argv, NULL));
    if (argc > 1)
        return fail(ST_USAGE, "help takes one command; found %s and %s", argv[0], argv[1]);
    if (argc == 1) {
        const struct command *c = command_find(argv[0]);
        if (!c)
            return fail(ST_USAGE, "there is no command %s; the nearest is %s", argv[0],
                        command_nearest(argv[0])->name);
        return command_run(c, 1, (char *[]){"--help", NULL});
    }
    printf("usage: strobe COMMAND [WORD ...]\n\n");
    for (int i = 0; command_at(i); i++)
        printf("  %-9s %s\n", command_at(i)->name, command_at(i)->help);
    printf("\n`strobe help COMMAND` has the options of one. The environment variable STROBE_LOG "
           "(error,\nwarning, info, debug) says how much is told on stderr.\n");
    return ST_OK;
}
