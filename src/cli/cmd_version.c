/* strobe version: which build this is. */
#include "base/opt.h"
#include "cli/command.h"
#include "cli/version.h"

#include <stdio.h>

enum status cmd_version(int argc, char **argv)
{
    TRY(opt_parse((struct opt[]){{0}}, &argc, argv, NULL));
    if (argc) return fail(ST_USAGE, "version takes no words; found %s", argv[0]);
    printf("strobe %s (%s, %s)\n", version_number, version_commit, version_mode);
    return ST_OK;
}
