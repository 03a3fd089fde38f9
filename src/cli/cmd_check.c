/* strobe check: compares every kernel row with the reference, every gradient with finite
 * differences and every operator with its expansion. */
#include "cli/command.h"
#include "cli/device.h"
#include "view/check_view.h"

enum status cmd_check(int argc, char **argv, struct arena *a)
{
    const char *name = NULL;
    struct place place = {.isa = "auto"};
    struct check_scope scope = {.op = OP_COUNT};
    bool json = false, kernels = false;
    const struct opt options[] = {
        {"op", OPT_TEXT, &name, "NAME", "only this operator"},
        {"row", OPT_TEXT, &scope.variant, "NAME", "only kernel rows of this name, as in wgmma"},
        {"kernels", OPT_FLAG, &kernels, NULL, "only kernels, neither gradients nor expansions"},
        {"small", OPT_TEXT, &scope.small, "NAME,...",
         "kernel rows of these names only on cases of few FLOPs, for an emulated GPU"},
        DEVICE_OPTION(&place.device),
        {"isa", OPT_TEXT, &place.isa, "SET",
         "the widest instruction set that kernels may use (default: auto)"},
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
    TRY(place_open(&place, &device));
    TRY(check_run(&lines, &device, &scope, kernels));
    check_lines_print(&lines, json, &s);
    command_print(&s);
    if (!lines.failed) return ST_OK;
    return fail(ST_NUMERIC, "%d of %d rows failed; the table lists the failing case of each",
                lines.failed, lines.lines);
}
