/* strobe config: the configuration that a run would use, or the reference of all keys. */
#include "base/file.h"
#include "base/threads.h"
#include "base/visible.h"
#include "cli/command.h"
#include "machine/machine.h"
#include "model/model.h"

#include <string.h>

/* How the run began from which a new run would take its keys, as a comment. */
static void print_origin(int argc, char **argv, struct str *s, struct arena *a)
{
    struct config of_run;
    for (int i = 0; i < argc; i++) {
        const char *path = arena_printf(a, "%s/config.conf", argv[i]);
        config_init(&of_run);
        if (config_is_override(argv[i]) || !file_exists(path)) continue;
        if (config_read(&of_run, path, a) != ST_OK || !config_origin(&of_run)) continue;
        str_append(s, "\n# The run itself began with init_from = ");
        visible_append(s, config_origin(&of_run));
        str_append(s, "\n");
    }
}

/* The values that this machine would choose for keys that are left at auto, as a comment. */
static enum status print_chosen(const struct config *c, struct str *s, struct arena *a)
{
    static const char *const keys[] = {"dtype", "replay", "pad_vocab"};
    struct config chosen = *c;
    bool any = false;
    threads_set(c->plan.threads);
    TRY(machine_choose(&chosen, NULL, false, a));
    for (int i = 0; i < COUNT_OF(keys); i++) {
        if (strcmp(config_value_text(c, keys[i], a), "auto") != 0) continue;
        str_printf(s, "%s %s = %s", any ? "," : "\n# here auto means", keys[i],
                   config_value_text(&chosen, keys[i], a));
        any = true;
    }
    if (any) str_append(s, "\n");
    return ST_OK;
}

enum status cmd_config(int argc, char **argv, struct arena *a)
{
    bool json = false, reference = false, markdown = false;
    const struct opt options[] = {
        {"json", OPT_FLAG, &json, NULL, "as one JSON object"},
        {"reference", OPT_FLAG, &reference, NULL,
         "print every key with its default, range and meaning"},
        {"markdown", OPT_FLAG, &markdown, NULL, "the reference as Markdown"},
        {0},
    };
    struct str s = {0};
    struct config c;
    TRY(opt_parse(options, &argc, argv, config_is_key));
    if (markdown && !reference)
        return fail(ST_USAGE, "--markdown is a form of the reference; add --reference");
    TRY(command_read_config(&c, argc, argv, false, a));
    if (reference && markdown)
        config_print_reference_markdown(&s);
    else if (reference)
        config_print_reference(&s);
    else if (json)
        config_print_json(&c, &s);
    else
        config_print(&c, &s);
    if (!json && !reference) print_origin(argc, argv, &s, a);
    if (!json && !reference && print_chosen(&c, &s, a) != ST_OK) log_warning("%s", fail_message());
    command_print(&s);
    /* An invalid configuration is printed before it is refused, so that it can be read. */
    return reference ? ST_OK : model_check(&c);
}
