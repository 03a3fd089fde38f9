/* strobe info: this build, this machine, and what can run on it; or what a model's file is. */
#include "base/isa.h"
#include "base/threads.h"
#include "check/ops_doc.h"
#include "cli/command.h"
#include "cli/device.h"
#include "exchange/published.h"
#include "present/table_form.h"
#include "train/origin.h"
#include "view/info_view.h"
#include "view/lab_memory_view.h"

static enum status info_of(const char *word, bool json, struct arena *a)
{
    struct str s = {0};
    struct exchange_model m;
    const struct published *p = exchange_is_path(word, a) ? NULL : published_find(word);
    const char *remote;
    if (p && published_is_remote(p, &remote, a)) return fail(ST_ABSENT, "%s", remote);
    TRY(origin_find(&m, word, a));
    if (json)
        json_print(exchange_json(&m), &s);
    else
        exchange_print(&m, &s);
    exchange_close(&m);
    command_print(&s);
    return ST_OK;
}

enum status cmd_info(int argc, char **argv, struct arena *a)
{
    bool json = false, ops = false;
    const char *isa = "auto";
    const struct opt options[] = {
        {"json", OPT_FLAG, &json, NULL, "as one JSON object"},
        {"isa", OPT_TEXT, &isa, "SET",
         "the widest instruction set that kernels may use (default: auto)"},
        {"ops", OPT_FLAG, &ops, NULL, "print the operators and their kernels instead, as Markdown"},
        {0},
    };
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc > 1) return fail(ST_USAGE, "info takes one file or folder; found %s, too", argv[1]);
    if (argc) return info_of(argv[0], json, a);
    struct str s = {0};
    if (ops) {
        ops_doc_print(&s);
        command_print(&s);
        return ST_OK;
    }
    TRY(isa_limit_word(isa));
    struct environment e;
    command_environment(&e, a);
    e.threads = (int)threads_available();
    info_view_print(&e, json, &s, a);
    struct device device;
    struct machine m;
    if (!json && device_of_word(NULL, &device) == ST_OK &&
        machine_identify(&m, &device, a) == ST_OK)
        lab_memory_record(&m, &s, a);
    command_print(&s);
    return ST_OK;
}
