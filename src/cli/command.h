/* command.h - what a command of the program is, and THE table of them.
 *
 * A new command:
 *   1. src/cli/cmd_NAME.c: cmd_NAME() parses its options with opt_parse (base/opt.h, which also
 *      handles -h), calls functions of other folders, and prints. It has no logic of its own.
 *      Results go to stdout, everything else to stderr. Add --json if programs may read the output.
 *   2. Its declaration below, its row in commands.c.
 *   3. If it measures for long, its name in `measuring` of commands.c.
 *   4. `make test T=cli` runs the help of every row of the table. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/arena.h"
#include "graph/op.h"

struct config;
struct device;
struct json_t;
struct sheet;
struct str;
struct table_form;

struct command {
    const char *name;
    /* argv: the words after the name. On ST_HELP, command_run prints the help of this row. */
    enum status (*run)(int argc, char **argv);
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

/* "strobe NAME WORD ...", quoted for a shell. */
const char *command_text(const char *name, int argc, char *const *argv, struct arena *a);
/* What `strobe` without a command prints: the first steps. */
extern const char command_welcome[];

/* Reads one CONFIG and overrides, in any order: what most commands have left after
 * opt_parse(..., config_is_key). CONFIG may be a run directory, which stands for its config.conf.
 * `config_needed`: a missing CONFIG is an error. The caller runs model_check. */
enum status command_read_config(struct config *c, int argc, char **argv, bool config_needed,
                                struct arena *a);

/* Reads the value of an option, "80GiB", in bytes; NULL: it was not given. */
enum status command_read_size(const char *option, const char *text, int64_t *ret);
/* Both print to stdout and release what they print. */
void command_print(struct str *s);
void command_print_json(struct json_t *j);
/* Says in a sheet what it was measured on, when, and by which command of which version. */
enum status command_name_machine(struct sheet *s, const struct device *d, const char *command,
                                 struct arena *a);
/* Prints a sheet to stdout in one of its forms. */
void command_print_sheet(const struct sheet *s, const struct table_form *f);

/* Finds an operator by name, ignoring case; OP_COUNT if `name` is NULL. */
enum status command_find_op(const char *name, enum op *ret_op);

enum status cmd_bench(int argc, char **argv);
/* Parts of bench: rows of the table in cmd_bench.c. */
enum status cmd_bench_attention(int argc, char **argv);
enum status cmd_bench_kernels(int argc, char **argv);
enum status cmd_check(int argc, char **argv);
enum status cmd_compare(int argc, char **argv);
enum status cmd_config(int argc, char **argv);
enum status cmd_data(int argc, char **argv);
enum status cmd_eval(int argc, char **argv);
enum status cmd_export(int argc, char **argv);
enum status cmd_graph(int argc, char **argv);
enum status cmd_help(int argc, char **argv);
enum status cmd_info(int argc, char **argv);
enum status cmd_lab(int argc, char **argv);
/* strobe lab NAME; false: there is no ladder of that name. */
bool cmd_lab_ladder(const char *name, int argc, char **argv, enum status *ret);
enum status cmd_ladder(int argc, char **argv);
enum status cmd_machine(int argc, char **argv);
enum status cmd_memory(int argc, char **argv);
enum status cmd_plan(int argc, char **argv);
enum status cmd_profile(int argc, char **argv);
enum status cmd_report(int argc, char **argv);
enum status cmd_sample(int argc, char **argv);
enum status cmd_lab_bpe(int argc, char **argv);
enum status cmd_lab_accumulate(int argc, char **argv);
enum status cmd_lab_formats(int argc, char **argv);
enum status cmd_lab_add(int argc, char **argv);
enum status cmd_lab_products(int argc, char **argv);
enum status cmd_lab_kernel(int argc, char **argv);
enum status cmd_lab_memory(int argc, char **argv);
enum status cmd_lab_occupancy(int argc, char **argv);
enum status cmd_lab_launch(int argc, char **argv);
enum status cmd_tokenize(int argc, char **argv);
enum status cmd_detokenize(int argc, char **argv);
enum status cmd_train(int argc, char **argv);
enum status cmd_tune(int argc, char **argv);
enum status cmd_version(int argc, char **argv);

#endif
