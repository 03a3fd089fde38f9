/* strobe config: the configuration that a run would use, or the reference of all keys. */
#include "cli/command.h"
#include "model/model.h"

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
    command_print(&s);
    /* An invalid configuration is printed before it is refused, so that it can be read. */
    return reference ? ST_OK : model_check(&c);
}
