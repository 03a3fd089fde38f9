/* A kernel of the user's as a rung: its lines with @, the library that cc makes of it, and what a
 * probe finds. The process of its own and the emulated GPU: tests/e2e/test_lab_own.sh. */
#include "../support/cases.h"
#include "base/file.h"
#include "base/str.h"
#include "base/threads.h"
#include "lab/own.h"
#include "lab/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;

static const struct lab_ladder *ladder(const char *name)
{
    const struct lab_ladder *l = NULL;
    for (int i = 0; (l = lab_ladder_at(i)) && strcmp(l->name, name); i++) continue;
    assert_non_null(l);
    return l;
}

/* A file with that text; the caller removes it. */
static const char *written(const char *ending, const char *text)
{
    static int n;
    const char *base = getenv("TMPDIR");
    char *path =
        arena_printf(&arena, "%s/own-%d-%d%s", base ? base : "/tmp", (int)getpid(), n++, ending);
    assert_int_equal(file_write(path, text, (int64_t)strlen(text)), ST_OK);
    return path;
}

static enum status read_own(struct lab_own *o, const char *name, bool gpu, const char *text)
{
    text = arena_printf(&arena, "%s\n/* the function %s */\n", text, name);
    const char *path = written(gpu ? ".cu" : ".c", text);
    enum status st = lab_own_read(o, ladder(name), gpu, path, &arena);
    unlink(path);
    return st;
}

static void test_lines_make_a_shape(void **state)
{
    (void)state;
    struct lab_own o;
    struct kernel_shape s;
    struct lab_problem p = {.n = {100, 70, 9}, .processors = 132};
    assert_int_equal(read_own(&o, "matmul", true,
                              "// @blocks  (n + 31) / 32, min(m, processors)\n"
                              "  // @threads 32, 4, 2\r\n// @shared 4 * k\n//@zeroed\n"
                              "// @scratch 2 * (m + n)\n// an address@example.org\n"),
                     ST_OK);
    assert_int_equal(lab_own_shape(&o, &p, &s), ST_OK);
    assert_int_equal(s.grid[0], 3);
    assert_int_equal(s.grid[1], 100);
    assert_int_equal(s.grid[2], 1);
    assert_int_equal(s.block[0], 32);
    assert_int_equal(s.block[1], 4);
    assert_int_equal(s.block[2], 2);
    assert_int_equal(s.shared_bytes, 36);
    assert_int_equal(lab_own_scratch(&o, &p), 340);
    assert_true(o.rung.zeroed);
    arena_release(&arena);
}

static void test_wrong_lines_have_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } all[] = {
        {"// @threads 1\n", "has no line // @blocks"},
        {"// @blocks 1\n", "has no line // @threads"},
        {"\n// @bloks 1\n", ".cu:2: @bloks is unknown"},
        {"// @blocks 1, 2, 3, 4\n", ".cu:1: @blocks takes at most 3"},
        {"// @blocks 1\n\n// @threads rows\n", ".cu:3: @threads"},
        {"// @blocks (n\n", ".cu:1: @blocks"},
        {"// @blocks\n", ".cu:1: @blocks"},
        {"// @blocks 1     of the grid\n", ".cu:1: @blocks"},
        {"// @zeroed false\n", ".cu:1: @zeroed has no value"},
    };
    for (int i = 0; i < COUNT_OF(all); i++) {
        struct lab_own o;
        assert_int_equal(read_own(&o, "copy", true, all[i].text), ST_USAGE);
        if (!strstr(fail_message(), all[i].words))
            fail_msg("%s: \"%s\", not \"%s\"", all[i].text, fail_message(), all[i].words);
    }
    struct lab_own o;
    assert_int_equal(read_own(&o, "copy", false, "// @blocks 1\n"), ST_USAGE);
    assert_non_null(strstr(fail_message(), "@blocks is for kernels of a GPU"));
    arena_release(&arena);
}

static void test_values_that_a_gpu_cannot_have(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } all[] = {
        {"// @blocks n - 5\n// @threads 1\n", "line 1: @blocks is 0 for this size"},
        {"// @blocks 1\n// @threads 2048\n", "line 2: @threads is 2048"},
        {"// @blocks 1\n// @threads 64, 32\n", "blocks of 2048 threads"},
        {"// @blocks n / (n - 5)\n// @threads 1\n", "line 1: @blocks"},
        {"// @blocks 1\n// @threads 1\n// @scratch n - 6\n", "line 3: @scratch is -1"},
    };
    struct lab_problem p = {.n = {5}};
    for (int i = 0; i < COUNT_OF(all); i++) {
        struct lab_own o;
        struct kernel_shape s;
        assert_int_equal(read_own(&o, "copy", true, all[i].text), ST_OK);
        assert_int_equal(lab_own_shape(&o, &p, &s), ST_USAGE);
        if (!strstr(fail_message(), all[i].words))
            fail_msg("%s: \"%s\", not \"%s\"", all[i].text, fail_message(), all[i].words);
    }
    arena_release(&arena);
}

static struct device cpu(void)
{
    return (struct device){.backend = backend_find("cpu")};
}

/* Compiles and loads it. */
static void load(struct lab_own *o)
{
    const char *library;
    assert_int_equal(lab_own_compile(o, 0, &library, &arena), ST_OK);
    assert_int_equal(lab_own_open(o, library), ST_OK);
    lab_own_remove(library);
}

/* Compiles a kernel of copy and probes it at 100 elements; what it finds. */
static const char *probed(const char *body)
{
    static const int64_t size[LAB_SIZES] = {100};
    struct lab_own o;
    struct lab_bench b;
    struct lab_trial t;
    struct device d = cpu();
    const char *found;
    const char *path = written(
        ".c", arena_printf(&arena,
                           "#include <stdint.h>\n// @scratch 8 * n\n"
                           "void copy(float *to, const float *from, int64_t n, int threads, void "
                           "*scratch)\n{\n%s\n}\n",
                           body));
    assert_int_equal(lab_own_read(&o, ladder("copy"), false, path, &arena), ST_OK);
    load(&o);
    assert_int_equal(lab_bench_open(&b, o.ladder, &d, LAB_F32, 0, "", &o.rung), ST_OK);
    assert_int_equal(b.rungs, 1);
    assert_int_equal(lab_trial_open(&t, &b, size, 0), ST_OK);
    assert_int_equal(lab_trial_run(&t, 0), ST_OK);
    assert_int_equal(lab_trial_written(&t, &found, &arena), ST_OK);
    lab_trial_close(&t);
    lab_bench_close(&b);
    lab_own_close(&o);
    unlink(path);
    return found;
}

static void test_probes_find_every_foreign_write(void **state)
{
    (void)state;
    static const struct {
        const char *body, *found;
    } all[] = {
        {"for (int64_t i = 0; i < n; i++) to[i] = from[i];", NULL},
        {"((double *)scratch)[0] = ((double *)scratch)[n - 1] = threads;", NULL},
        {"for (int64_t i = 0; i <= n; i++) to[i] = from[i];",
         "it wrote element 100 of the output, which ends with element 99"},
        {"to[n + 100000] = 0;", "it wrote element 100100 of the output"},
        {"to[-1] = 0;", "it wrote element -1 of the output, before its beginning"},
        {"to[-3] = to[-2] = to[-1] = from[0];", "it wrote element -3 of the output"},
        {"((float *)from)[7] = 0;", "it changed element 7 of input 1, which is const"},
        {"((float *)from)[n] = to[0];", "it wrote element 100 of input 1"},
        {"((float *)from)[-2] = 0;", "it wrote element -2 of input 1"},
        {"((char *)scratch)[8 * n] = 0;", "it wrote element 800 of scratch"},
    };
    for (int i = 0; i < COUNT_OF(all); i++) {
        const char *found = probed(all[i].body);
        if (!found != !all[i].found || (found && !strstr(found, all[i].found)))
            fail_msg("%s: \"%s\"", all[i].body, found ? found : "nothing");
    }
    arena_release(&arena);
}

/* Every template compiles and is right; the runner has it as the last rung. */
static void test_templates_are_right(void **state)
{
    (void)state;
    const struct lab_ladder *l;
    threads_set(2);
    for (int i = 0; (l = lab_ladder_at(i)); i++) {
        struct str s = {0};
        struct lab_own o;
        struct lab_bench b;
        struct device d = cpu();
        lab_own_template(l, false, &s);
        const char *path = written(".c", str_text(&s));
        str_release(&s);
        assert_int_equal(lab_own_read(&o, l, false, path, &arena), ST_OK);
        load(&o);
        assert_int_equal(lab_bench_open(&b, l, &d, LAB_F32, 0, "", &o.rung), ST_OK);
        for (int k = 0; k < LAB_ODD && l->odd[k][0]; k++) {
            struct lab_trial t;
            struct lab_where where = {0};
            double error;
            assert_int_equal(lab_trial_open(&t, &b, l->odd[k], 1), ST_OK);
            assert_int_equal(lab_trial_check(&t, 0, 0, &error, &where, &arena), ST_OK);
            if (!(error <= l->tolerance(&t.problem)))
                fail_msg("%s: error %g; %s", l->name, error, where.words);
            lab_trial_close(&t);
        }
        lab_bench_close(&b);
        lab_own_close(&o);
        unlink(path);
        lab_own_template(l, true, &s);
        path = written(".cu", str_text(&s));
        str_release(&s);
        assert_int_equal(lab_own_read(&o, l, true, path, &arena), ST_OK);
        unlink(path);
    }
    arena_release(&arena);
}

static void test_what_does_not_compile(void **state)
{
    (void)state;
    struct lab_own o;
    const char *path = written(".c", "void other(void) {} /* no copy */\n");
    int kept = dup(STDERR_FILENO); /* cc's message */
    assert_non_null(freopen("/dev/null", "w", stderr));
    assert_int_equal(lab_own_read(&o, ladder("copy"), false, path, &arena), ST_OK);
    const char *library;
    enum status st = lab_own_compile(&o, 0, &library, &arena);
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(st, ST_FORMAT);
    assert_non_null(strstr(fail_message(), "does not compile"));
    unlink(path);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_make_a_shape),
        cmocka_unit_test(test_wrong_lines_have_a_number),
        cmocka_unit_test(test_values_that_a_gpu_cannot_have),
        cmocka_unit_test(test_probes_find_every_foreign_write),
        cmocka_unit_test(test_templates_are_right),
        cmocka_unit_test(test_what_does_not_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
