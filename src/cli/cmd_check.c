/* strobe check: compares every kernel row with the reference, every gradient with finite
 * differences and every operator with its expansion. */
#include "base/isa.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/device.h"
#include "view/check_view.h"

#include <stdio.h>

enum status cmd_check(int argc, char **argv, struct arena *a)
{
    const char *name = NULL, *word = NULL, *isa = "auto";
    struct check_scope scope = {.op = OP_COUNT};
    bool json = false, kernels = false;
    const struct opt options[] = {
        {"op", OPT_TEXT, &name, "NAME", "only this operator"},
        {"row", OPT_TEXT, &scope.variant, "NAME", "only kernel rows of this name, as in wgmma"},
        {"kernels", OPT_FLAG, &kernels, NULL, "only kernels, neither gradients nor expansions"},
        {"small", OPT_TEXT, &scope.small, "NAME,...",
         "kernel rows of these names only on cases of few FLOPs, for an emulated GPU"},
        DEVICE_OPTION(&word),
        {"isa", OPT_TEXT, &isa, "SET", "the widest instruction set that kernels may use (auto)"},
        {"json", OPT_FLAG, &json, NULL, "as JSON"},
        {0},
    };
    struct str s = {0};
    struct check_lines lines = {.arena = a};
    struct device device;
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc > 0)
        return fail(ST_USAGE, "check takes only options; found %s. See `strobe check --help`",
                    argv[0]);
    TRY(command_find_op(name, &scope.op));
    TRY(isa_limit_word(isa));
    TRY(device_of_word(word, &device));
    enum status st = check_run(&lines, &device, &scope, kernels);
    if (st == ST_OK) {
        check_lines_print(&lines, json, &s);
        fputs(str_text(&s), stdout);
    }
    if (st == ST_OK && lines.failed)
        st = fail(ST_NUMERIC, "%d of %d rows failed; the table lists the failing case of each",
                  lines.failed, lines.lines);
    str_release(&s);
    return st;
}
