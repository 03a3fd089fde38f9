/* The program as users see it: command lines, printed text and exit codes. */
#include "cli/command.h"

#include "../support/cases.h"
#include "../support/program.h"
#include "../support/workdir.h"
#include "base/file.h"
#include "base/isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int strobe(const char *words)
{
    return program_run("", words);
}

static void assert_fails(const char *words, int code, const char *sentence)
{
    assert_int_equal(strobe(words), code);
    assert_string_equal(program_stderr, sentence);
}

static void test_welcome(void **state)
{
    (void)state;
    assert_int_equal(strobe(""), 0);
    assert_string_equal(program_stdout, command_welcome);
    int lines = 0;
    for (const char *p = program_stdout; (p = strchr(p, '\n')); p++) lines++;
    assert_in_range(lines, 5, 12);
    assert_non_null(strstr(program_stdout, "strobe train configs/shakespeare_char_cpu.conf"));
    assert_true(file_exists("configs/shakespeare_char_cpu.conf"));
}

static void test_help_of_every_command(void **state)
{
    (void)state;
    assert_int_equal(strobe("help"), 0);
    const char *all = program_stdout;
    assert_int_equal(strobe("--help"), 0);
    assert_string_equal(program_stdout, all);
    for (int i = 0; command_at(i); i++) {
        const struct command *c = command_at(i);
        assert_true(command_find(c->name) == c);
        assert_non_null(strstr(all, arena_printf(&arena, "\n  %-9s %s\n", c->name, c->help)));

        const char *usage = arena_printf(&arena, "usage: strobe %s%s%s\n\n%s\n", c->name,
                                         *c->usage ? " " : "", c->usage, c->help);
        assert_int_equal(strobe(arena_printf(&arena, "help %s", c->name)), 0);
        assert_string_equal(program_stderr, "");
        assert_memory_equal(program_stdout, usage, strlen(usage));
        const char *help = program_stdout;
        if (!strcmp(c->name, "config")) assert_non_null(strstr(help, "\n  --json  "));
        if (!strcmp(c->name, "sample")) assert_non_null(strstr(help, "\n  --temperature=0.8\n"));
        assert_non_null(strstr(help, arena_printf(&arena, "\nexample: strobe %s", c->name)));
        assert_int_equal(strobe(arena_printf(&arena, "%s -h", c->name)), 0);
        assert_string_equal(program_stdout, help);
        assert_int_equal(strobe(arena_printf(&arena, "%s word --json --help", c->name)), 0);
        assert_string_equal(program_stdout, help);
    }
}

static void test_unknown_words(void **state)
{
    (void)state;
    assert_fails("confg", 2,
                 "strobe: there is no command confg; did you mean config? `strobe help` lists them "
                 "all\n");
    assert_fails("help confg", 2, "strobe: there is no command confg; did you mean config?\n");
    assert_fails("help a b c", 2,
                 "strobe: help takes one command of at most two words; found a b c\n");
    assert_fails("help train b", 2,
                 "strobe: train has no subcommands; `strobe help train` lists its options\n");
    assert_fails("bench kernles", 2,
                 "strobe: bench has no subcommand kernles; did you mean kernels?\n");
    assert_fails("help bench kernles", 2,
                 "strobe: bench has no subcommand kernles; did you mean kernels?\n");
    assert_fails("version now", 2, "strobe: version takes only options; found now\n");
    assert_fails("info --jsno", 2, "strobe: unknown option --jsno; did you mean --json?\n");
    assert_fails(
        "check --device=cpu --op=ADD --row=nosuch", 2,
        "strobe: no kernel row nosuch was tested; `strobe check` without --row lists them\n");
    assert_fails("config --n_laier=3", 2,
                 "strobe: there is no key n_laier; the nearest is n_layer\n");
    assert_fails("report x --csv=t.csv", 2,
                 "strobe: --csv must be true or false, not t.csv; it prints to stdout, which the "
                 "shell writes to a file with > FILE\n");
    assert_fails("config --jsn", 2, "strobe: unknown option --jsn; did you mean --json?\n");
    assert_fails("config --n_layer=0", 2,
                 "strobe: n_layer must be a whole number, 1 to 1024; got 0\n");
    assert_fails("config a.conf b.conf", 2,
                 "strobe: found two configurations, a.conf and b.conf; name only one\n");
    assert_fails("config nowhere.conf", 1,
                 "strobe: there is no file or folder nowhere.conf; try "
                 "configs/shakespeare_char_cpu.conf\n");
    assert_fails("config --n_head=7", 2,
                 "strobe: n_embd = 768 is not divisible by n_head = 7; change one of them\n");
    assert_fails("config --dtype=tfloat32 --device=cpu", 1,
                 "strobe: dtype=tfloat32 needs a CUDA device; add --device=cuda, or use "
                 "dtype=float32\n");
}

static void test_log_level(void **state)
{
    (void)state;
    assert_int_equal(program_run("STROBE_LOG=loud", "version"), 2);
    assert_string_equal(program_stderr,
                        "strobe: STROBE_LOG must be error, warning, info or debug; found loud\n");
    assert_int_equal(program_run("STROBE_LOG=debug", "config --n_laier=3"), 2);
    assert_non_null(strstr(program_stderr, "the nearest is n_layer\ndebug: via cli/"));
}

static void test_version(void **state)
{
    (void)state;
    assert_int_equal(strobe("version"), 0);
    assert_memory_equal(program_stdout, "strobe ", 7);
    const char *version = program_stdout;
    assert_int_equal(strobe("--version"), 0);
    assert_string_equal(program_stdout, version);
}

static void test_info(void **state)
{
    (void)state;
    assert_int_equal(strobe("info"), 0);
    assert_non_null(strstr(program_stdout, "\nbackends   cpu"));
    const char *gpu = strstr(program_stdout, "\ngpu        ");
    assert_non_null(gpu);
    assert_int_equal(strobe("info --json"), 0);
    json_t *j = json_loads(program_stdout, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    assert_int_equal(json_integer_value(json_object_get(j, "v")), 1);
    assert_true(json_integer_value(json_object_get(j, "threads")) > 0);
    assert_true(json_integer_value(json_object_get(j, "memory_bytes")) > 1 << 20);
    assert_string_equal(json_string_value(json_array_get(json_object_get(j, "backends"), 0)),
                        "cpu");
    /* "none", with the reason, if no device is listed */
    bool none = !strncmp(json_string_value(json_object_get(j, "gpu")), "none: ", 6);
    assert_true(none == (json_array_size(json_object_get(j, "gpus")) == 0));
    assert_true(none == !strncmp(gpu + 12, "none: ", 6));
    assert_true(json_is_object(json_object_get(j, "gpu_libraries")));
    const char *dtype = json_string_value(json_object_get(j, "fastest_dtype"));
    assert_true(!strcmp(dtype, "float32") || !strcmp(dtype, "bfloat16"));
    json_decref(j);
}

/* The number of threads does not depend on binding, although OpenMP binds the first thread before
 * main. */
static void test_info_on_bound_threads(void **state)
{
    (void)state;
    static const char *const environments[] = {
        "", "env -u GOMP_SPINCOUNT OMP_PROC_BIND=close",
        "env -u GOMP_SPINCOUNT OMP_PROC_BIND=spread OMP_PLACES=cores",
        "GOMP_SPINCOUNT=5000 OMP_PROC_BIND=true OMP_PLACES=threads"};
    long long threads[COUNT_OF(environments)];
    for (int i = 0; i < COUNT_OF(environments); i++) {
        assert_int_equal(program_run(environments[i], "info --json"), 0);
        json_t *j = json_loads(program_stdout, 0, NULL);
        threads[i] = json_integer_value(json_object_get(j, "threads"));
        json_decref(j);
        assert_int_equal(threads[i], threads[0]);
    }
}

[[gnu::weak]] void kmp_set_blocktime(int); /* a function that only LLVM's OpenMP has */

/* libgomp uses the spin count that main.c sets, unless the user sets one; PATH is restored. LLVM's
 * threads spin for 1 ms. */
static void test_threads_spin_less(void **state)
{
    (void)state;
    static const struct {
        const char *environment, *count;
    } runs[] = {{"env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY", NULL},
                {"env -u OMP_WAIT_POLICY GOMP_SPINCOUNT=77", "77"},
                {"env -u GOMP_SPINCOUNT OMP_WAIT_POLICY=passive", "0"},
                {"env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY -u PATH", "300000"}};
    for (int i = 0; i < COUNT_OF(runs); i++) {
        const char *environment =
            arena_printf(&arena, "%s OMP_DISPLAY_ENV=verbose", runs[i].environment);
        assert_int_equal(program_run(environment, "version"), 0);
        const char *line = strstr(program_stderr, "GOMP_SPINCOUNT = '");
        if (!line) skip(); /* another OpenMP library */
        int count = atoi(line + strlen("GOMP_SPINCOUNT = '"));
        if (runs[i].count)
            assert_int_equal(count, atoi(runs[i].count));
        else
            assert_true(count == 5000 || count == 20000);
    }
    if (!kmp_set_blocktime) return;
    assert_int_equal(program_run("env -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose", "info"), 0);
    assert_non_null(strstr(program_stderr, "KMP_BLOCKTIME='1'"));
}

/* --isa limits the program to one set and the narrower ones; the wider ones are listed as
 * missing. */
static void test_info_on_instruction_sets(void **state)
{
    (void)state;
    for (enum isa i = isa_widest(); i < ISA_COUNT; i++) {
        if (!isa_exists(i)) continue;
        assert_int_equal(strobe(arena_printf(&arena, "info --json --isa=%s", isa_words[i])), 0);
        json_t *j = json_loads(program_stdout, 0, NULL), *sets = json_object_get(j, "isa_sets");
        json_t *fp32 = json_object_get(json_object_get(j, "kernels"), "float32");
        assert_string_equal(json_string_value(json_object_get(sets, "used")), isa_words[i]);
        bool library = json_is_string(json_object_get(sets, "onednn"));
        assert_int_equal(library, json_object_get(fp32, "onednn") != NULL);
        json_t *missing = json_object_get(sets, "without");
        for (enum isa k = ISA_AUTO + 1; k < ISA_COUNT; k++)
            assert_int_equal(json_object_get(missing, isa_words[k]) != NULL,
                             k < i && isa_exists(k));
        if (i >= ISA_AVX512) /* the kernels of this set are selected */
            assert_true(json_integer_value(json_object_get(fp32, isa_words[i])) > 40);
        if (i == ISA_PLAIN) assert_false(library);
        if (i > ISA_AVX512_BF16)
            assert_string_equal(json_string_value(json_object_get(j, "fastest_dtype")), "float32");
        json_decref(j);
    }
    assert_int_equal(strobe("info --isa=plain"), 0);
    assert_non_null(strstr(program_stdout, "\nmatmuls    built-in kernels\n"));
    assert_int_equal(strobe("info --isa=avx"), 2);
}

static void test_config_round_trip(void **state)
{
    (void)state;
    assert_int_equal(strobe("config configs/shakespeare_char_cpu.conf --n_layer=3 "
                            "'--start=To be # or \"not\"'"),
                     0);
    const char *printed = program_stdout;
    assert_non_null(strstr(printed, "\nn_embd = 128\n"));
    assert_non_null(strstr(printed, "n_layer = 3\n"));
    workdir_text("again.conf", printed);
    assert_int_equal(strobe(arena_printf(&arena, "config %s", workdir_path("again.conf"))), 0);
    assert_string_equal(program_stdout, printed);
    assert_int_equal(
        strobe(arena_printf(&arena, "config --n_layer=3 %s --json", workdir_path("again.conf"))),
        0);
    json_t *j = json_loads(program_stdout, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(j, "n_layer")), 3);
    assert_string_equal(json_string_value(json_object_get(j, "start")), "To be # or \"not\"");
    json_decref(j);
}

/* Wherever a configuration may be named, a run may be: it stands for its config.conf. */
static void test_a_run_in_place_of_a_configuration(void **state)
{
    (void)state;
    const char *run = workdir_path("run");
    assert_int_equal(mkdir(run, 0700), 0);
    assert_fails(
        arena_printf(&arena, "config %s", run), 2,
        arena_printf(&arena,
                     "strobe: %s is a folder without config.conf, so it is not a run; name a "
                     "configuration, for example configs/shakespeare_char_cpu.conf, or a "
                     "run\n",
                     run));
    workdir_text("run/config.conf", "n_layer = 3\nout_dir = elsewhere\ninit_from = resume\n");
    assert_int_equal(strobe(arena_printf(&arena, "config %s --n_head 4", run)), 0);
    assert_non_null(strstr(program_stdout, "\nn_layer = 3\n"));
    assert_non_null(strstr(program_stdout, "\nn_head = 4\n"));
    assert_non_null(strstr(program_stdout, "\ninit_from = scratch\n"));
    assert_non_null(strstr(program_stdout, arena_printf(&arena, "\nout_dir = %s\n", run)));
}

static void test_reference_has_every_key(void **state)
{
    (void)state;
    assert_int_equal(strobe("config"), 0);
    const char *printed = program_stdout;
    assert_int_equal(strobe("config --reference"), 0);
    const char *plain = program_stdout;
    for (const char *line = plain; *line; line = strchr(line, '\n') + 1)
        assert_true(strcspn(line, "\n") <= 80 && *line != '|');
    assert_int_equal(strobe("config --markdown"), 2);
    assert_int_equal(strobe("config --reference --markdown"), 0);
    int keys = 0;
    for (const char *line = printed; *line; line = strchr(line, '\n') + 1) {
        int n = (int)strcspn(line, " \n");
        if (n == 0 || *line == '#') continue;
        assert_non_null(strstr(program_stdout, arena_printf(&arena, "\n| `%.*s` | ", n, line)));
        assert_non_null(strstr(plain, arena_printf(&arena, "\n  %.*s = ", n, line)));
        keys++;
    }
    assert_in_range(keys, 40, 100);
}

static void test_lost_output_is_a_failure(void **state)
{
    (void)state;
    if (!file_exists("/dev/full")) SKIP("there is no /dev/full");
    const char *program = getenv("STROBE");
    int status = system(arena_printf(&arena, "%s info >/dev/full 2>%s",
                                     program ? program : "./strobe", workdir_path("err")));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_string_equal(program_text(workdir_path("err")),
                        "strobe: the results could not be written to stdout\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_welcome, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_help_of_every_command, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_unknown_words, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_log_level, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_version, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_info, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_threads_spin_less, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_info_on_bound_threads, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_info_on_instruction_sets, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_config_round_trip, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_a_run_in_place_of_a_configuration, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_reference_has_every_key, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_lost_output_is_a_failure, program_setup,
                                        program_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
