/* strobe version: prints version, commit and build mode. */
#include "cli/command.h"
#include "cli/version.h"

#include <stdio.h>

enum status cmd_version(int argc, char **argv, struct arena *)
{
    bool json = false;
    const struct opt options[] = {
        {"json", OPT_FLAG, &json, NULL, "as one JSON object"},
        {0},
    };
    TRY(command_options("version", options, argc, argv));
    if (json)
        printf("{\"v\":1,\"version\":\"%s\",\"commit\":\"%s\",\"mode\":\"%s\"}\n", version_number,
               version_commit, version_mode);
    else
        printf("strobe %s (%s, %s)\n", version_number, version_commit, version_mode);
    return ST_OK;
}
