/* The list of suites, and their results for given arguments: consistent tables, and notes about
 * smaller variants. */
#include "suite/suite.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "base/arena.h"
#include "base/interrupt.h"
#include "base/str.h"
#include "base/threads.h"
#include "suite/announce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct sheet run_suite(const char *name, struct suite_request *r)
{
    const struct suite *s;
    struct sheet sheet;
    threads_set(1);
    hand_ok(suite_find(name, &s));
    if (suite_run(s, r, &sheet, &arena) != ST_OK) fail_msg("%s: %s", name, fail_message());
    return sheet;
}

static int column(const struct table *t, const char *id)
{
    for (int c = 0; c < t->columns; c++)
        if (!strcmp(t->column[c].id, id)) return c;
    fail_msg("no column %s", id);
    return -1;
}

static const char *text(const struct table *t, int row, const char *id)
{
    return table_at(t, row, column(t, id))->text;
}

static double number(const struct table *t, int row, const char *id)
{
    const struct table_cell *c = table_at(t, row, column(t, id));
    if (!c->text) fail_msg("nothing in row %d, %s", row, id);
    return c->number;
}

static bool has_note(const struct sheet *s, const char *words)
{
    for (int i = 0; i < s->notes; i++)
        if (strstr(s->note[i], words)) return true;
    return false;
}

static void test_the_list(void **state)
{
    (void)state;
    const struct suite *found;
    int n = 0;
    for (const struct suite *s = suites; s->name; s++, n++) {
        assert_true(s->run && *s->title && *s->text);
        hand_ok(suite_find(s->name, &found));
        assert_ptr_equal(found, s);
    }
    assert_int_equal(n, 10);
    assert_int_equal(suite_find("cs336-flesh", &found), ST_USAGE);
    assert_non_null(strstr(fail_message(), "did you mean cs336-flash?"));
}

/* Each size is a configuration file compiled into the program, independent of the working
 * directory; and each file is a size. */
static void test_sizes_are_files(void **state)
{
    (void)state;
    const struct suite_request r = {0}, named = {.size = "10b,xl2026"};
    const struct suite_size *size;
    int n = 0, kept;
    glob_t files;
    for (const struct suite_size *s = cs336_sizes; s->name; s++, n++) {
        struct config built_in, read;
        struct str x = {0}, y = {0};
        assert_string_equal(s->file, arena_printf(&arena, "cs336_%s.conf", s->name));
        config_init(&read);
        config_choose(&read, &(struct config_facts){0});
        hand_ok(config_read(&read, arena_printf(&arena, "configs/%s", s->file), &arena));
        hand_ok(suite_config(&r, s->file, s->words, NULL, &built_in, &arena));
        config_print(&read, &x);
        config_print(&built_in, &y);
        assert_string_equal(str_text(&x), str_text(&y));
        str_release(&x);
        str_release(&y);
    }
    assert_int_equal(glob("configs/cs336_*.conf", 0, NULL, &files), 0);
    assert_int_equal(files.gl_pathc, n);
    globfree(&files);
    hand_ok(suite_sizes(&r, cs336_sizes, &size, &kept, &arena));
    assert_true(kept == 5 && !strcmp(size[4].name, "2.7b"));
    hand_ok(suite_sizes(&named, cs336_sizes, &size, &kept, &arena));
    assert_true(kept == 2 && !strcmp(size[0].name, "10b"));
}

/* The user's keys apply to all cells; the user's list replaces the suite's. */
static void test_a_grid_and_its_arguments(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu", "--n_layer=1",    "--n_embd=16",
                     "--n_head=2",   "--block_size=8", "--dtype=bfloat16,float32"};
    struct suite_request r = {
        .word = words, .words = 6, .size = "d256,d128", .steps = 2, .warmup = "1", .phase = "step"};
    struct sheet s = run_suite("cs336-precision", &r);
    const struct table *t = &s.table[0].table;
    assert_true(s.tables == 1 && t->rows == 4);
    static const char *const sizes[] = {"d256", "d256", "d128", "d128"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(text(t, i, "config"), sizes[i]);
        assert_string_equal(text(t, i, "dtype"), i % 2 ? "float32" : "bfloat16");
        assert_string_equal(text(t, i, "phase"), "step");
        assert_true(number(t, i, "samples") == 2);
        if (i % 2) {
            double times = number(t, i - 1, "median_ms") / number(t, i, "median_ms");
            assert_float_equal(number(t, i, "times_first"), times, 0.5 * times); /* of 2 pairs */
        } else {
            assert_null(text(t, i, "times_first"));
        }
    }
    /* rows of the same arguments */
    assert_true(number(t, 0, "memory_bytes") == number(t, 2, "memory_bytes"));
    assert_true(has_note(&s, "The variant for CPUs. On") &&
                has_note(&s, "The cells were interleaved"));
    r.size = "d512";
    const struct suite *suite;
    hand_ok(suite_find("cs336-e2e", &suite));
    assert_int_equal(suite_run(suite, &r, &s, &arena), ST_USAGE);
    assert_non_null(strstr(fail_message(), "the sizes are d128, d256, d384"));
}

/* A published size that --size names runs on a CPU: with the batch that fits, unless the command
 * line sets one. */
static void test_a_published_size_on_a_cpu(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu", "--n_layer=1",     "--n_embd=16",    "--n_head=2",
                     "--d_ff=32",    "--vocab_size=64", "--block_size=8", "--batch_size=4"};
    struct suite_request r = {
        .word = words, .words = 7, .size = "small", .steps = 2, .warmup = "1", .phase = "step"};
    struct sheet s = run_suite("cs336-e2e", &r);
    const struct table *t = &s.table[0].table;
    assert_string_equal(text(t, 0, "config"), "small");
    assert_false(has_note(&s, "The variant for CPUs") || has_note(&s, "batch_size"));
    double whole = number(t, 0, "memory_bytes");
    r.limit = (int64_t)whole - 1;
    s = run_suite("cs336-e2e", &r);
    t = &s.table[0].table;
    assert_true(number(t, 0, "samples") == 2 && number(t, 0, "memory_bytes") < whole);
    assert_true(has_note(&s, "small: batch_size=3 instead of 4, the largest that fits in "));
    r.words = 8;
    s = run_suite("cs336-e2e", &r);
    assert_non_null(strstr(text(&s.table[0].table, 0, "note"), "batch_size=3 is the largest"));
    assert_false(has_note(&s, "instead of"));
    /* a smaller variant keeps its batch */
    r.words = 7;
    r.size = "d128";
    s = run_suite("cs336-e2e", &r);
    assert_non_null(text(&s.table[0].table, 0, "note"));
    assert_true(has_note(&s, "The variant for CPUs") && !has_note(&s, "instead of"));
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *words;
    } cases[] = {{0.001, "about 1 second"}, {1.6, "about 2 seconds"},  {89, "about 89 seconds"},
                 {90, "about 2 minutes"},   {185, "about 3 minutes"},  {5000, "about 83 minutes"},
                 {5400, "about 2 hours"},   {86400, "about 24 hours"}, {864000, "about 10 days"}};
    for (int i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(announce_duration(1e3 * cases[i].seconds, &arena), cases[i].words);
}

/* Taken from plans: at the published size, on any machine. */
static void test_memory(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu", "--block_size=128,256", "--dtype=float32"};
    struct suite_request r = {.word = words, .words = 3, .size = "small", .limit = 2LL << 30};
    struct sheet s = run_suite("cs336-memory", &r);
    const struct table *t = &s.table[0].table;
    assert_true(s.tables == 3 && t->rows == 6);
    for (int i = 0; i < 6; i++) {
        static const char *const phases[] = {"inference", "forward of a step", "step"};
        int phase = i % 3;
        assert_string_equal(text(t, i, "phase"), phases[phase]);
        assert_true(number(t, i, "T") == (i < 3 ? 128 : 256));
        assert_true(number(t, i, "residual_bytes") == 4.0 * number(t, i, "T") * 768 * 4);
        assert_true(number(t, i, "peak_bytes") <= number(t, i, "total_bytes"));
        bool fits = number(t, i, "total_bytes") <= (double)r.limit;
        assert_string_equal(text(t, i, "fits"), fits ? "yes" : "no");
        if (phase < 2) continue;
        double alone = number(t, i - 2, "peak_bytes"), saving = number(t, i - 1, "peak_bytes");
        double step = number(t, i, "peak_bytes");
        assert_true(step > 3 * alone && saving > 3 * alone && saving <= step);
        assert_non_null(text(t, i - 1, "saved_bytes"));
    }
    /* the bytes that a block saves: shares of the total, and the remainder */
    const struct table *saved = &s.table[1].table;
    double sum = 0;
    for (int i = 0; i + 1 < saved->rows; i++) sum += number(saved, i, "percent");
    assert_true(sum > 99.9999 && sum < 100.0001);
    const double weights = 4.0 * (4.0 * 768 * 768 + 3.0 * 768 * 3072 + 2 * 768);
    assert_true(number(saved, saved->rows - 1, "bytes") == weights);
    const struct table *variants = &s.table[2].table;
    assert_string_equal(text(variants, 0, "recompute"), "none");
    for (int i = 1; i < variants->rows; i++)
        assert_true(number(variants, i, "saved_bytes") < number(variants, 0, "saved_bytes"));
}

/* Every phase of a step by wall clock and by profiler; the optimizer is a phase. */
static void test_profile(void **state)
{
    (void)state;
    static const char *const phases[] = {"forward", "backward, alone", "forward + backward",
                                         "update", "step"};
    char *words[] = {"--device=cpu", "--n_layer=1", "--block_size=8"};
    struct suite_request r = {.word = words, .words = 3, .size = "d128", .steps = 2};
    struct sheet s = run_suite("cs336-profile", &r);
    const struct table *t = &s.table[0].table;
    assert_int_equal(t->rows, COUNT_OF(phases));
    for (int i = 0; i < t->rows; i++) {
        assert_string_equal(text(t, i, "phase"), phases[i]);
        assert_true(number(t, i, "clock_ms") > 0 && number(t, i, "profiler_ms") > 0);
        assert_non_null(text(t, i, "kernel"));
    }
    assert_null(strstr(text(t, 3, "kernel"), "MATMUL")); /* the update has none */
    double whole = number(t, 2, "profiler_ms") + number(t, 3, "profiler_ms");
    assert_true(fabs(whole - number(t, 4, "profiler_ms")) < 1e-3 * whole);

    /* Softmax at each rung: the same matmuls; the T x T scores are passed over less often. */
    static const char *const rungs[] = {"primitive", "op", "full"};
    const struct table *in = &s.table[1].table;
    assert_int_equal(in->rows, COUNT_OF(rungs));
    double scores = number(in, 0, "products_written_bytes");
    for (int i = 0; i < in->rows; i++) {
        assert_string_equal(text(in, i, "fusion"), rungs[i]);
        assert_true(number(in, i, "products_ms") > 0 && number(in, i, "softmax_ms") > 0);
        assert_true(number(in, i, "products_gflop") == number(in, 0, "products_gflop"));
        assert_true(number(in, i, "products_written_bytes") == scores);
        assert_true(number(in, i, "softmax_over_products_flops") < 1);
        assert_string_equal(text(in, i, "verdict"), "cannot tell"); /* of two steps */
        if (i) assert_true(number(in, i, "softmax_passes") < number(in, i - 1, "softmax_passes"));
    }
    /* max, subtract, exp, sum, divide, and scale and mask before: 7 reads and 5 writes of T x T */
    double moved = number(in, 0, "softmax_read_bytes") + number(in, 0, "softmax_written_bytes");
    enum { B = 4, H = 2, T = 8 };
    double matrix = (double)B * H * T * T * sizeof(float);
    assert_true(fabs(number(in, 0, "softmax_passes") - moved / matrix) < 1e-9);
    assert_true(has_note(&s, "d128, T 8: softmax takes "));
}

static void test_attention(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu", "--block_size=16,64", "--n_embd=8,16"};
    struct suite_request r = {.word = words, .words = 3, .steps = 2};
    struct sheet s = run_suite("cs336-attention", &r);
    const struct table *t = &s.table[0].table;
    assert_int_equal(t->rows, 2 * 2 * 3);
    for (int i = 0; i < t->rows; i += 3) {
        assert_string_equal(text(t, i, "attention"), "slow primitive");
        assert_string_equal(text(t, i + 2, "attention"), "flash");
        assert_true(number(t, i, "d") == (i < 6 ? 8 : 16) &&
                    number(t, i, "T") == (i / 3 % 2 ? 64 : 16));
        assert_true(number(t, i, "kept_bytes") < number(t, i, "memory_bytes"));
        assert_true(number(t, i + 2, "kept_bytes") < number(t, i, "kept_bytes"));
        double both = number(t, i, "forward_ms") + number(t, i, "backward_ms");
        assert_true(both > 0.999 * number(t, i, "both_ms") &&
                    both < 1.001 * number(t, i, "both_ms"));
    }
    assert_true(has_note(&s, "The variant for CPUs: 25 seconds in total instead of 300."));
    /* the plan's memory, plus its inputs q, k, v and the gradient */
    r.limit = (int64_t)number(t, t->rows - 1, "memory_bytes") + 4LL * 8 * 64 * (3 * 16 + 16);
    s = run_suite("cs336-attention", &r);
    t = &s.table[0].table;
    assert_non_null(strstr(text(t, t->rows - 3, "note"), ", the limit is "));
    assert_null(text(t, t->rows - 1, "note"));
    words[1] = "--block_size=64,16";
    const struct suite *suite;
    hand_ok(suite_find("cs336-attention", &suite));
    assert_int_equal(suite_run(suite, &r, &s, &arena), ST_USAGE);
    words[1] = "--n_layer=1,2";
    assert_int_equal(suite_run(suite, &r, &s, &arena), ST_USAGE);
    assert_non_null(strstr(fail_message(), "takes only one value of it"));
    words[1] = "--dtype=bfloat16,float8";
    assert_int_equal(suite_run(suite, &r, &s, &arena), ST_USAGE);
    assert_non_null(strstr(fail_message(), "no float8 matmuls; use bfloat16"));
}

/* Totals of forward and backward, and notes about the sizes that ran. */
static void test_block(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu", "--block_size=8,12", "--batch_size=2", "--n_head=2"};
    struct suite_request r = {.word = words, .words = 4, .steps = 2};
    struct sheet s = run_suite("attention-block", &r);
    const struct table *t = &s.table[0].table;
    assert_true(s.tables == 6 && t->rows == 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(text(t, i, "attention"), i % 2 ? "flash" : "slow");
        assert_true(number(t, i, "T") == (i < 2 ? 8 : 12));
        double both = number(t, i, "both_ms"), sum = 0;
        double apart = both - number(t, i, "forward_ms") - number(t, i, "backward_ms");
        assert_true(fabs(apart) < 1e-9 * both);
        if (i % 2)
            assert_string_equal(text(t, i, "verdict"), "cannot tell"); /* of two pairs */
        else
            assert_null(text(t, i, "times_slow"));
        if (i % 2) assert_true(number(t, i, "times_slow") > 0);
        const struct table *k = &s.table[1].table;
        for (int row = 0; row < k->rows; row++)
            if (number(k, row, "T") == number(t, i, "T") &&
                !strcmp(text(k, row, "attention"), text(t, i, "attention")))
                sum += number(k, row, "ms_per_step");
        assert_true(sum > 0.5 * both && sum < 1.0001 * both); /* only long kernels are listed */
    }
    const struct table *w = &s.table[5].table;
    double shares = 0;
    for (int row = 0; row < w->rows; row++)
        if (!strcmp(text(w, row, "thread"), "main")) shares += number(w, row, "percent");
    assert_true(fabs(shares - 4 * 100) < 1e-6);
    assert_true(has_note(&s, "2 heads of size 128, batch 2, float32"));
    assert_true(has_note(&s, "The variant for CPUs. On a GPU"));
}

static void test_block_at_its_own_sizes(void **state)
{
    (void)state;
    if (SANITIZED) SKIP("these sizes take a minute with sanitizers");
    char *words[] = {"--device=cpu"};
    struct suite_request r = {.word = words, .words = 1, .steps = 1};
    struct sheet s = run_suite("attention-block", &r);
    assert_true(has_note(&s, "1 head of size 256, batch 32, float32"));
    assert_true(has_note(&s, "CPUs: T 100 and 300 instead of 100 and 1000. On"));
}

static void stop(void *user, double share, const char *what)
{
    double *at = user;
    (void)what;
    if (share >= *at && !interrupt_noted()) raise(SIGINT);
}

static enum status run_until(const char *name, double share, struct suite_request *r,
                             struct sheet *ret)
{
    const struct suite *suite;
    threads_set(1);
    hand_ok(suite_find(name, &suite));
    r->each = stop;
    r->user = &share;
    interrupt_catch();
    enum status st = suite_run(suite, r, ret, &arena);
    interrupt_release();
    return st;
}

static void test_ctrl_c_keeps_results(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu", "--block_size=16,64", "--n_embd=8,16"};
    struct suite_request r = {.word = words, .words = 3, .steps = 2};
    struct sheet s;
    assert_int_equal(run_until("cs336-attention", 0, &r, &s), ST_INTERRUPTED);
    assert_non_null(strstr(fail_message(), "so there is no table"));
    hand_ok(run_until("cs336-attention", 0.25, &r, &s));
    assert_true(s.table[0].table.rows > 0 && s.table[0].table.rows < 12);
    char *memory[] = {"--device=cpu", "--dtype=float32", "--block_size=32,64"};
    struct suite_request m = {.word = memory, .words = 3, .size = "small"};
    hand_ok(run_until("cs336-memory", 0.1, &m, &s));
    assert_true(s.tables == 3 && s.table[0].table.rows == 3);
    assert_true(s.table[1].table.rows == 0 && s.table[2].table.rows == 0);
    char *model[] = {"--device=cpu", "--n_layer=1", "--block_size=8,16"};
    struct suite_request p = {.word = model, .words = 3, .size = "d128", .steps = 1};
    hand_ok(run_until("cs336-profile", 0.5, &p, &s));
    assert_non_null(text(&s.table[0].table, 0, "clock_ms"));
    assert_non_null(
        strstr(text(&s.table[0].table, s.table[0].table.rows - 1, "note"), "not reached"));
}

/* The number of commands started, and the one during which Ctrl-C arrives, which itself does not
 * see the signal. */
static int commands, stopped_command, overwrites, resumes, choices;

static enum status run_command(void *user, char *const *word, int words, bool quiet)
{
    (void)user, (void)quiet;
    assert_true(words > 0 && word[0]);
    for (int i = 0; i < words; i++) {
        overwrites += !strcmp(word[i], "--overwrite");
        resumes += !strcmp(word[i], "--init_from=resume");
        choices += !strcmp(word[i], "--dtype=float32") || !strcmp(word[i], "--replay=false") ||
                   !strcmp(word[i], "--pad_vocab=0");
    }
    if (commands++ == stopped_command) raise(SIGINT);
    return ST_OK;
}

static void test_no_command_after_ctrl_c(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu"};
    struct suite_request r = {.word = words, .words = 1, .out_dir = "nowhere", .iters = 1};
    struct sheet s;
    r.command = run_command;
    for (int i = 0; i < 2; i++) {
        commands = choices = 0;
        stopped_command = i;
        assert_int_equal(run_until("nanogpt-attention", 2, &r, &s), ST_INTERRUPTED);
        assert_int_equal(commands, i + 1);
        assert_int_equal(choices, 3 * commands); /* nothing is left at auto */
        assert_non_null(strstr(fail_message(), "the runs so far are in nowhere"));
        assert_non_null(strstr(fail_message(), "--init_from=resume"));
    }
}

/* The printed advice works: trainings resume, and a profile, which has nothing to resume, does not
 * get the option. */
static void test_resumes_as_advised(void **state)
{
    (void)state;
    char *words[] = {"--device=cpu", "--init_from=resume"};
    struct suite_request r = {.word = words, .out_dir = "nowhere", .iters = 1};
    struct sheet s;
    r.command = run_command;
    for (int resumed = 0; resumed < 2; resumed++) {
        commands = overwrites = resumes = 0;
        stopped_command = 1; /* the first profile */
        r.words = 1 + resumed;
        assert_int_equal(run_until("nanogpt-attention", 2, &r, &s), ST_INTERRUPTED);
        assert_true(commands == 2 && overwrites == !resumed && resumes == resumed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_the_list, release),
        cmocka_unit_test_teardown(test_sizes_are_files, release),
        cmocka_unit_test_teardown(test_a_grid_and_its_arguments, release),
        cmocka_unit_test_teardown(test_a_published_size_on_a_cpu, release),
        cmocka_unit_test_teardown(test_durations, release),
        cmocka_unit_test_teardown(test_memory, release),
        cmocka_unit_test_teardown(test_profile, release),
        cmocka_unit_test_teardown(test_attention, release),
        cmocka_unit_test_teardown(test_block, release),
        cmocka_unit_test_teardown(test_block_at_its_own_sizes, release),
        cmocka_unit_test_teardown(test_ctrl_c_keeps_results, release),
        cmocka_unit_test_teardown(test_no_command_after_ctrl_c, release),
        cmocka_unit_test_teardown(test_resumes_as_advised, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
