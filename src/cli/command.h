/* command.h - what a command of the program is, and THE table of them.
 *
 * A new command:
 *   1. src/cli/cmd_NAME.c: cmd_NAME(), which takes its options by opt_parse (base/opt.h; -h comes free),
 *      does its work by calls into other folders, and prints. No logic of its own; results go to stdout,
 *      all else to stderr; --json where a program may want to read the output.
 *   2. Its declaration below, its row in commands.c.
 *   3. `make test T=cli` runs the help of every row. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/arena.h"
#include "graph/op.h"

struct config;

struct command {
    const char *name;
    /* The words behind the command's name. ST_HELP: command_run prints the help of this row. */
    enum status (*run)(int argc, char **argv);
    const char *usage; /* "CONFIG [--key=value ...]" */
    const char *help;  /* one line */
};

/* Number i of the table, NULL after the last. */
const struct command *command_at(int i);
/* NULL if there is none of that name. */
const struct command *command_find(const char *name);
/* The command that `name` may have meant; never NULL. */
const struct command *command_nearest(const char *name);
/* Runs a command. Where it ends in ST_HELP, usage, meaning and options are printed to stdout. */
enum status command_run(const struct command *c, int argc, char **argv);

/* "strobe NAME WORD ...", quoted as a shell takes it. */
const char *command_text(const char *name, int argc, char *const *argv, struct arena *a);
/* What `strobe` alone prints: the first steps, in a dozen lines. */
extern const char command_welcome[];

/* Reads what most commands take after opt_parse(..., config_is_key): one CONFIG, and overrides before
 * or behind it. `config_needed`: refuses to go on without the file. Not checked (model_check). */
enum status command_read_config(struct config *c, int argc, char **argv, bool config_needed,
                                struct arena *a);

/* The operator of a name in any case; OP_COUNT where there is no name. */
enum status command_find_op(const char *name, enum op *ret_op);

enum status cmd_bench(int argc, char **argv);
enum status cmd_bench_attention(int argc, char **argv); /* parts of bench: rows of its own table */
enum status cmd_bench_kernels(int argc, char **argv);
enum status cmd_check(int argc, char **argv);
enum status cmd_compare(int argc, char **argv);
enum status cmd_config(int argc, char **argv);
enum status cmd_data(int argc, char **argv);
enum status cmd_eval(int argc, char **argv);
enum status cmd_graph(int argc, char **argv);
enum status cmd_help(int argc, char **argv);
enum status cmd_info(int argc, char **argv);
enum status cmd_lab(int argc, char **argv);
enum status cmd_ladder(int argc, char **argv);
enum status cmd_machine(int argc, char **argv);
enum status cmd_memory(int argc, char **argv);
enum status cmd_plan(int argc, char **argv);
enum status cmd_profile(int argc, char **argv);
enum status cmd_report(int argc, char **argv);
enum status cmd_sample(int argc, char **argv);
enum status cmd_train(int argc, char **argv);
enum status cmd_tune(int argc, char **argv);
enum status cmd_version(int argc, char **argv);

#endif
