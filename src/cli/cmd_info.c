/* strobe info: this build, this machine, and what can run on it. */
#include "base/isa.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/threads.h"
#include "check/ops_doc.h"
#include "cli/command.h"
#include "cli/version.h"
#include "view/info_view.h"

enum status cmd_info(int argc, char **argv)
{
    bool json = false, ops = false;
    const char *isa = "auto";
    const struct opt options[] = {
        {"json", OPT_FLAG, &json, NULL, "as one JSON object"},
        {"isa", OPT_TEXT, &isa, "SET", "the widest instruction set that kernels may use (auto)"},
        {"ops", OPT_FLAG, &ops, NULL, "print the operators and their kernels instead, as Markdown"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc) return fail(ST_USAGE, "info takes only options; found %s", argv[0]);
    struct str s = {0};
    if (ops) {
        ops_doc_print(&s);
        command_print(&s);
        return ST_OK;
    }
    TRY(isa_limit_word(isa));
    struct arena a = {0};
    struct environment e;
    environment_gather(&e, &a);
    e.version = version_number;
    e.commit = version_commit;
    e.mode = version_mode;
    e.threads = (int)threads_available();
    info_view_print(&e, json, &s, &a);
    command_print(&s);
    arena_release(&a);
    return ST_OK;
}
