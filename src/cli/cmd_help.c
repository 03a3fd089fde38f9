/* strobe help: lists the commands, or the options of one command. */
#include "cli/command.h"

#include <stdio.h>

enum status cmd_help(int argc, char **argv, struct arena *)
{
    TRY(opt_parse((struct opt[]){{0}}, &argc, argv, NULL));
    if (argc > 2)
        return fail(ST_USAGE, "help takes one command of at most two words; found %s %s %s",
                    argv[0], argv[1], argv[2]);
    if (argc > 0) {
        const struct command *c = command_find(argv[0]);
        if (!c)
            return fail(ST_USAGE, "there is no command %s; did you mean %s?", argv[0],
                        command_nearest(argv[0])->name);
        if (argc > 1 && c->run != cmd_bench && c->run != cmd_lab)
            return fail(ST_USAGE, "%s has no subcommands; `strobe help %s` lists its options",
                        c->name, c->name);
        return argc > 1 ? command_run(c, 2, (char *[]){argv[1], "--help", NULL})
                        : command_run(c, 1, (char *[]){"--help", NULL});
    }
    printf("usage: strobe COMMAND [WORD ...]\n\n");
    for (int i = 0; command_at(i); i++)
        printf("  %-9s %s\n", command_at(i)->name, command_at(i)->help);
    printf(
        "\n`strobe help COMMAND` lists the options of a command. The environment variable "
        "STROBE_LOG\n(error, warning, info or debug) sets which messages are printed on stderr.\n");
    return ST_OK;
}
