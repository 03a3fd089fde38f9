#include "cli/command.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "cli/version.h"
#include "config/config.h"
#include "engine/environment.h"
#include "present/sheet.h"
#include "present/table_form.h"
#include "train/origin.h"
#include "view/ceilings.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* In the order in which a new user needs them. */
/* clang-format off */
static const struct command commands[] = {
    {"data",    cmd_data,    "NAME [--from FILE]",             "make a data set from a text, or verify one",
     NULL, "strobe data mine --from book.txt"},
    {"train",   cmd_train,   "CONFIG|RUN [--key=value ...]",   "train a model, or continue a run",
     NULL, "strobe train configs/shakespeare_char_cpu.conf --max_iters=500 --flash=false"},
    {"eval",    cmd_eval,    "RUN|CKPT|MODEL ... [--key=value ...]", "show the loss, perplexity and bits per byte of a checkpoint on both splits of its data; of several models, a table",
     "eval_iters batch_size device", "strobe eval runs/shakespeare_char_cpu --best"},
    {"sample",  cmd_sample,  "RUN|CKPT|MODEL [--key=value ...]",     "generate text with a checkpoint, or with a model of another program (gpt2, a folder of Hugging Face, ckpt.pt)",
     "start num_samples max_new_tokens temperature top_k top_p seed device", "strobe sample runs/shakespeare_char_cpu --start='O ' --num_samples=2"},
    {"tokenize", cmd_tokenize, "--tokenizer=gpt2|FOLDER [FILE]", "turn text into the ids of a tokenizer, byte for byte as GPT-2's",
     NULL, "strobe tokenize --tokenizer=gpt2 book.txt"},
    {"detokenize", cmd_detokenize, "--tokenizer=gpt2|FOLDER [FILE]", "turn ids back into text",
     NULL, "strobe detokenize --tokenizer=gpt2 ids.txt"},
    {"export",  cmd_export,  "RUN|CKPT|MODEL --to=hf|nanogpt", "write a model for other programs: a folder that Hugging Face's transformers opens, or nanoGPT's ckpt.pt",
     NULL, "strobe export runs/shakespeare_char_cpu --to=hf"},
    {"compare", cmd_compare, "CONFIG|RUN --key=a,b [--key=value ...]", "train once for each value and compare the runs",
     NULL, "strobe compare configs/shakespeare_char_cpu.conf --flash=false,true --max_iters=200"},
    {"report",  cmd_report,  "RUN|FILE ...",                   "tables, curves and kernels of runs, profiles, and results of bench and lab",
     NULL, "strobe report runs/demo/*"},
    {"check",   cmd_check,   "[--op=NAME]",                    "compare every kernel and gradient with the reference",
     NULL, "strobe check --op=ATTENTION"},
    {"graph",   cmd_graph,   "CONFIG|RUN [--key=value ...]",       "show the graph of a step, after all passes or one of them",
     NULL, "strobe graph configs/shakespeare_char_cpu.conf --after=expand --flash=false"},
    {"plan",    cmd_plan,    "CONFIG|RUN [--key=value ...]",       "show every kernel of a training step, its FLOPs and bytes",
     NULL, "strobe plan configs/gpt2_124m.conf --dtype=bfloat16"},
    {"tune",    cmd_tune,    "CONFIG|RUN ... [--key=value ...]",    "measure on a GPU which variant of each matmul is fastest, and keep it for all runs",
     NULL, "strobe tune configs/gpt2_124m.conf --dtype=bfloat16"},
    {"memory",  cmd_memory,  "CONFIG|RUN [--key=value ...]",       "show where the memory of training goes",
     NULL, "strobe memory configs/gpt2_124m.conf --limit=24GiB"},
    {"profile", cmd_profile, "CONFIG|RUN [--key=value ...]",       "show where the time of a training step goes, kernel by kernel, and its lower bound; with --key=a,b in turns, and what changed",
     NULL, "strobe profile configs/shakespeare_char_cpu.conf --by=family"},
    {"ladder",  cmd_ladder,  "CONFIG|RUN [--key=value ...]",       "time a training step at each rung: fusion, bf16, flash attention, padded vocabulary; on a GPU TF32 and replay, too; with --ranks=N the ways to sum gradients",
     NULL, "strobe ladder configs/shakespeare_char_cpu.conf"},
    {"machine", cmd_machine, "[--quick]",                      "measure the peak speed of matmuls and copies on this machine, in about 3 minutes",
     NULL, "strobe machine --quick"},
    {"bench",   cmd_bench,   "CONFIG|RUN ...|--suite=NAME|kernels|attention [--key=value,...]", "time a training step and its matmuls alone; a grid of steps and their parts; a suite of an assignment; or kernels or attention alone",
     NULL, "strobe bench configs/shakespeare_char_cpu.conf --block_size=64,128 --phase=forward,backward"},
    {"lab",     cmd_lab,     "[LADDER|PART]",         "one problem, one kernel after the other, each with one more idea: run, checked, timed, explained; without a LADDER: the list; strobe lab LADDER --help explains its options",
     NULL, "strobe lab copy"},
    {"config",  cmd_config,  "[CONFIG|RUN] [--key=value ...]",     "show the values that a run would have",
     NULL, "strobe config configs/shakespeare_char_cpu.conf --n_layer=8"},
    {"info",    cmd_info,    "[MODEL]",                        "show this build, this machine, and what can run here; or what a model is: a run, a checkpoint, a folder of Hugging Face, nanoGPT's ckpt.pt",
     NULL, "strobe info --json"},
    {"version", cmd_version, "",                               "show the version",
     NULL, "strobe version"},
    {"help",    cmd_help,    "[COMMAND]",                      "show the commands, or the options of one",
     NULL, "strobe help train"},
};
/* clang-format on */

const char command_welcome[] =
    "Strobe: a laboratory for the speed of GPT training. First steps:\n"
    "\n"
    "  strobe data shakespeare_char                        download a text, turn it into tokens\n"
    "  strobe train configs/shakespeare_char_cpu.conf      train a small GPT in minutes\n"
    "  strobe sample runs/shakespeare_char_cpu             generate text with it\n"
    "  strobe report runs/shakespeare_char_cpu             see where the time went\n"
    "\n"
    "  strobe help             list the commands\n"
    "  strobe help train       explain one command\n";

const struct command *command_at(int i)
{
    return i >= 0 && i < COUNT_OF(commands) ? &commands[i] : NULL;
}

const struct command *command_find(const char *name)
{
    for (int i = 0; i < COUNT_OF(commands); i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

/* Appends a word, quoted for a shell. A quote inside the word becomes '\''. */
static void add_word(struct str *s, const char *word)
{
    bool plain = *word && !strpbrk(word, " \t\n\"'\\$`*?[]{}()<>|&;#~!");
    str_append(s, plain ? " " : " '");
    for (; *word; word++) {
        if (*word == '\'')
            str_append(s, "'\\''");
        else
            str_printf(s, "%c", *word);
    }
    if (!plain) str_append(s, "'");
}

const char *command_text(const char *name, int argc, char *const *argv, struct arena *a)
{
    struct str s = {0};
    str_printf(&s, "strobe %s", name);
    for (int i = 0; i < argc; i++) add_word(&s, argv[i]);
    const char *text = arena_strdup(a, str_text(&s));
    str_release(&s);
    return text;
}

const struct command *command_nearest(const char *name)
{
    const struct command *nearest = commands;
    for (int i = 1; i < COUNT_OF(commands); i++)
        if (str_distance(name, commands[i].name) < str_distance(name, nearest->name))
            nearest = &commands[i];
    return nearest;
}

static void print_help(const struct command *c)
{
    printf("usage: strobe %s%s%s\n\n%s\n", c->name, *c->usage ? " " : "", c->usage, c->help);
    if (*opt_help()) printf("\n%s", opt_help());
    if (c->keys) {
        struct str s = {0};
        config_print_keys(c->keys, &s);
        printf("\nkeys of a configuration that matter here, with their defaults:\n%s",
               str_text(&s));
        str_release(&s);
    }
    if (strstr(c->usage, "key=value"))
        printf("\nEvery configuration key can be set here, as in --batch_size=8; "
               "`strobe config --reference`\nlists them.\n");
    printf("\nexample: %s\n", c->example);
}

/* "--batch_size 8" becomes "--batch_size=8". Returns the number of words. */
static int join_words(int argc, char **argv, struct arena *a)
{
    int words = 0;
    bool plain = false; /* after a lone "--" nothing is an option */
    for (int i = 0; i < argc; i++) {
        plain |= !strcmp(argv[i], "--");
        if (!plain && i + 1 < argc && config_takes(argv[i], argv[i + 1])) {
            argv[words++] = arena_printf(a, "%s=%s", argv[i], argv[i + 1]);
            i++;
        } else {
            argv[words++] = argv[i];
        }
    }
    argv[words] = NULL;
    return words;
}

/* For these Ctrl-C is a flag that they poll (base/interrupt.h): they print what they have. */
static const char *const measuring[] = {"profile", "ladder", "machine", "bench", "lab"};

static bool is_measuring(const struct command *c)
{
    for (int i = 0; i < COUNT_OF(measuring); i++)
        if (!strcmp(c->name, measuring[i])) return true;
    return false;
}

static enum status run_until_stopped(const struct command *c, int argc, char **argv,
                                     struct arena *a)
{
    interrupt_catch();
    enum status st = c->run(argc, argv, a);
    if (st == ST_OK && interrupt_noted() && interrupt_noted() != SIGPIPE)
        st = fail(ST_INTERRUPTED, "stopped: the results are those of what was measured so far");
    interrupt_release();
    return st;
}

enum status command_run(const struct command *c, int argc, char **argv)
{
    struct arena a = {0};
    int words = join_words(argc, argv, &a);
    enum status st =
        is_measuring(c) ? run_until_stopped(c, words, argv, &a) : c->run(words, argv, &a);
    arena_release(&a);
    if (st != ST_HELP) return st;
    print_help(c);
    return ST_OK;
}

enum status command_options(const char *name, const struct opt *options, int argc, char **argv)
{
    TRY(opt_parse(options, &argc, argv, NULL));
    return argc ? fail(ST_USAGE, "%s takes only options; found %s", name, argv[0]) : ST_OK;
}

/* `path` if it exists, else the copy in PREFIX/share/strobe (the program is in PREFIX/bin). */
static const char *find_config(const char *path, struct arena *a)
{
    char self[4096];
    if (file_exists(path)) return path;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash) return path;
    *slash = '\0';
    const char *installed = arena_printf(a, "%s/../share/strobe/%s", self, path);
    return file_exists(installed) ? installed : path;
}

/* The configuration that `path` names: a file, or a run directory, which has config.conf. */
static enum status read_named(struct config *c, const char *path, struct arena *a)
{
    const char *found = find_config(path, a);
    if (!file_exists(found))
        return fail(ST_IO, "there is no file or folder %s; try configs/shakespeare_char_cpu.conf",
                    path);
    size_t n = strlen(found);
    bool nanogpt = n > 3 && !strcmp(found + n - 3, ".py");
    if (nanogpt) c->data.dataset = "openwebtext"; /* the default there */
    if (!file_is_dir(found)) return config_read(c, found, a);
    const char *of_run = arena_printf(a, "%s/config.conf", found);
    if (!file_exists(of_run))
        return fail(ST_USAGE,
                    "%s is a folder without config.conf, so it is not a run; name a configuration, "
                    "for example configs/shakespeare_char_cpu.conf, or a run",
                    path);
    TRY(config_read(c, of_run, a));
    c->train.init_from = INIT_SCRATCH; /* how the run began is not part of what it computes */
    c->train.out_dir = arena_strdup(a, found); /* it may have been moved */
    return ST_OK;
}

static enum status read_words(struct config *c, const char *path, int argc, char **argv,
                              struct arena *a)
{
    if (path) TRY(read_named(c, path, a));
    for (int i = 0; i < argc; i++)
        if (argv[i] != path) TRY(config_set(c, argv[i], a));
    return ST_OK;
}

/* Those of the run that is continued, as far as its config.conf can be read. */
static enum status follow_run(struct config *c, const char *path, int argc, char **argv,
                              struct arena *a)
{
    struct config run;
    const char *of_run = arena_printf(a, "%s/config.conf", c->train.out_dir);
    config_init(&run);
    if (!file_exists(of_run) || config_read(&run, of_run, a) != ST_OK) return ST_OK;
    config_init(c);
    c->model = run.model;
    return read_words(c, path, argc, argv, a);
}

/* The keys of the model follow the weights that init_from names, unless they are set. */
static enum status follow_origin(struct config *c, const char *path, int argc, char **argv,
                                 struct arena *a)
{
    const char *origin = config_origin(c);
    struct config_model model;
    if (config_resumes(c)) return follow_run(c, path, argc, argv, a);
    if (!origin) return ST_OK;
    TRY(file_check_place("init_from", origin));
    enum status st = origin_config(origin, &model, a);
    if (st == ST_USAGE) return fail_in(st, "init_from is scratch, resume, a run or a model");
    TRY(st);
    config_init(c);
    c->model = model;
    TRY(read_words(c, path, argc, argv, a));
    return origin_check_keys(origin, &model, c);
}

enum status command_find_config(int argc, char *const *argv, int *ret)
{
    int folder = -1;
    *ret = -1;
    for (int i = 0; i < argc; i++) {
        bool plain = argv[i][0] != '-', override = config_is_override(argv[i]);
        if (plain && override && folder < 0 && file_is_dir(argv[i])) folder = i;
        if (override) continue;
        if (*ret >= 0)
            return fail(ST_USAGE, "found two configurations, %s and %s; name only one", argv[*ret],
                        argv[i]);
        *ret = i;
    }
    if (*ret < 0) *ret = folder;
    return ST_OK;
}

enum status command_read_config(struct config *c, int argc, char **argv, bool config_needed,
                                struct arena *a)
{
    int at;
    config_init(c);
    TRY(command_find_config(argc, argv, &at));
    const char *path = at < 0 ? NULL : argv[at];
    if (!path && config_needed)
        return fail(
            ST_USAGE,
            "no configuration given; name one, for example configs/shakespeare_char_cpu.conf");
    TRY(read_words(c, path, argc, argv, a));
    return follow_origin(c, path, argc, argv, a);
}

const char *command_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

enum status command_within(const char *option, int64_t given, int64_t least, int64_t most)
{
    if (given >= least && given <= most) return ST_OK;
    return fail(ST_USAGE, "--%s must be %lld to %lld; found %lld", option, (long long)least,
                (long long)most, (long long)given);
}

void command_print(struct str *s)
{
    fputs(str_text(s), stdout);
    str_release(s);
}

void command_print_json(struct json_t *j)
{
    struct str s = {0};
    json_print(j, &s);
    command_print(&s);
}

void command_environment(struct environment *e, struct arena *a)
{
    environment_gather(e, a);
    e->version = version_number;
    e->commit = version_commit;
    e->mode = version_mode;
}

enum status command_name_machine(struct sheet *s, const struct device *d, const char *command,
                                 struct arena *a)
{
    struct machine m;
    TRY(machine_identify(&m, d, a));
    s->device = ceilings_who(&m, a);
    s->date = m.date;
    s->version = version_number;
    s->commit = version_commit;
    s->command = command;
    sheet_note(s, arena_printf(a, "%.10s, %s, strobe %s (%s).", m.date, s->device, version_number,
                               version_commit));
    return ST_OK;
}

void command_print_sheet(const struct sheet *s, const struct table_form *f)
{
    struct str out = {0};
    if (f->json)
        json_print(sheet_json(s), &out);
    else
        table_form_sheet(f, s, &out);
    command_print(&out);
}

enum status command_find_op(const char *name, enum op *ret_op)
{
    *ret_op = OP_COUNT;
    if (!name) return ST_OK;
    for (int op = 0; op < OP_COUNT; op++)
        if (strcasecmp(op_def((enum op)op)->name, name) == 0) {
            *ret_op = (enum op)op;
            return ST_OK;
        }
    return fail(ST_USAGE, "there is no operator %s; docs/OPS.md lists them", name);
}
