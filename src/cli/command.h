/* command.h - what a command of the program is, and THE table of them.
 *
 * A new command:
 *   1. src/cli/cmd_NAME.c: cmd_NAME() parses its options with command_options or
 *      opt_parse (base/opt.h, which also handles -h), calls functions of other folders, and prints.
 *      It has no logic of its own. Results go to stdout, everything else to stderr. Add --json if
 *      programs may read the output.
 *   2. Its declaration below, its row in commands.c.
 *   3. If it measures for long, its name in `measuring` of commands.c.
 *   4. `make test T=cli` runs the help of every row of the table. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/* Every command has options, prints and logs. */
#include "base/arena.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "graph/op.h"

struct config;
struct device;
struct environment;
struct json_t;
struct sheet;
struct table_form;

/* argv: the words after the name. `a` lives until the command has ended. On ST_HELP, command_run
 * prints the help of the command's row. */
typedef enum status command_function(int argc, char **argv, struct arena *a);

struct command {
    const char *name;
    command_function *run;
    const char *usage; /* "CONFIG [--key=value ...]" */
    const char *help;  /* one line */
    const char *keys;  /* keys that its help explains: "start top_k"; NULL: none */
    const char *example;
};

/* Row i of the table, NULL after the last. */
const struct command *command_at(int i);
/* NULL if there is no command of that name. */
const struct command *command_find(const char *name);
/* The command with the most similar name; never NULL. */
const struct command *command_nearest(const char *name);
/* Runs a command. If it returns ST_HELP, prints usage, meaning and options to stdout. */
enum status command_run(const struct command *c, int argc, char **argv);

/* Parses the options of a command that takes no other words. */
enum status command_options(const char *name, const struct opt *options, int argc, char **argv);

/* "strobe NAME WORD ...", quoted for a shell. */
const char *command_text(const char *name, int argc, char *const *argv, struct arena *a);
/* What `strobe` without a command prints: the first steps. */
extern const char command_welcome[];

/* Finds the word that names CONFIG: the only one that is no override, else a folder whose name
 * looks like one, such as the run flash=true of a comparison. *ret is -1 if there is none. */
enum status command_find_config(int argc, char *const *argv, int *ret);
/* Reads one CONFIG and overrides, in any order: what most commands have left after
 * opt_parse(..., config_is_key). CONFIG may be a run directory, which stands for its config.conf.
 * `config_needed`: a missing CONFIG is an error. The caller runs model_check. */
enum status command_read_config(struct config *c, int argc, char **argv, bool config_needed,
                                struct arena *a);

/* "runs/x" -> "x" */
const char *command_last_part(const char *path);
/* Refuses a number of an option that is not from `least` to `most`. */
enum status command_within(const char *option, int64_t given, int64_t least, int64_t most);
/* Both print to stdout and release what they print. */
void command_print(struct str *s);
void command_print_json(struct json_t *j);
/* What environment_gather knows, and the version of this program. */
void command_environment(struct environment *e, struct arena *a);
/* Says in a sheet what it was measured on, when, and by which command of which version. */
enum status command_name_machine(struct sheet *s, const struct device *d, const char *command,
                                 struct arena *a);
/* Prints a sheet to stdout in one of its forms. */
void command_print_sheet(const struct sheet *s, const struct table_form *f);

/* Finds an operator by name, ignoring case; OP_COUNT if `name` is NULL. */
enum status command_find_op(const char *name, enum op *ret_op);

/* Parts of bench and of lab are rows of the tables in cmd_bench.c and cmd_lab.c. */
command_function cmd_bench, cmd_bench_attention, cmd_bench_kernels, cmd_check, cmd_compare,
    cmd_config, cmd_data, cmd_detokenize, cmd_eval, cmd_export, cmd_graph, cmd_help, cmd_info,
    cmd_lab, cmd_lab_accumulate, cmd_lab_add, cmd_lab_bpe, cmd_lab_formats, cmd_lab_kernel,
    cmd_lab_launch, cmd_lab_memory, cmd_lab_occupancy, cmd_lab_products, cmd_ladder, cmd_machine,
    cmd_memory, cmd_plan, cmd_profile, cmd_report, cmd_sample, cmd_tokenize, cmd_train, cmd_tune,
    cmd_version;
/* strobe lab NAME; false: there is no ladder of that name. */
bool cmd_lab_ladder(const char *name, int argc, char **argv, enum status *ret, struct arena *a);

#endif
