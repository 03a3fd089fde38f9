/* strobe config: the values that a run would have, or every key there is. */
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "model/model.h"

#include <stdio.h>

enum status cmd_config(int argc, char **argv)
{
    bool json = false, reference = false;
    const struct opt options[] = {
        {"json", OPT_FLAG, &json, NULL, "as one JSON object"},
        {"reference", OPT_FLAG, &reference, NULL, "every key with its default, range and meaning"},
        {0},
    };
    struct arena a = {0};
    struct str s = {0};
    struct config c;
    enum status st = ST_OK;
    TRY(opt_parse(options, &argc, argv, config_is_key));
    TRY_OUT(st, command_read_config(&c, argc, argv, false, &a));
    if (reference)
        config_print_reference(&s);
    else if (json)
        config_print_json(&c, &s);
    else
        config_print(&c, &s);
    fputs(str_text(&s), stdout);
    /* A configuration that could not run is shown all the same: to see is what the command is for. */
    if (!reference) TRY_OUT(st, model_check(&c));
out:
    str_release(&s);
    arena_release(&a);
    return st;
}
