/* Every rung of every ladder on a CPU, at each instruction set, at odd sizes; and what makes the
 * runner refuse a rung: a wrong number, a number that is missing, a write beyond the output, a time
 * that the memory cannot have. */
#include "../support/cases.h"
#include "base/str.h"
#include "base/threads.h"
#include "lab/describe_errors.h"
#include "lab/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct device *cpu(void)
{
    static struct device d;
    d.backend = backend_find("cpu");
    return &d;
}

/* Opening the device tells oneDNN the limit, which cannot change afterwards: it is opened once. */
static void check_size(const struct lab_bench *b, const int64_t n[LAB_SIZES])
{
    struct lab_trial t;
    assert_int_equal(lab_trial_open(&t, b, n, 1), ST_OK);
    for (int isa = ISA_AUTO + 1; isa < ISA_COUNT; isa++) {
        if (isa_check((enum isa)isa, isa_widest()) != ST_OK) continue;
        assert_int_equal(isa_limit((enum isa)isa), ST_OK);
        for (int r = 0; r < b->rungs; r++) {
            struct lab_where where = {0};
            double error, most = b->ladder->tolerance(&t.problem);
            if (b->rung[r].variant) continue; /* src/check has them */
            assert_int_equal(lab_trial_check(&t, r, 0, &error, &where, &t.arena), ST_OK);
            if (!(error <= most))
                fail_msg("%s %s (%s), %lld: error %g, allowed %g; %s", b->ladder->name,
                         b->rung[r].name, isa_words[isa], (long long)n[0], error, most,
                         where.words);
        }
    }
    assert_int_equal(isa_limit(ISA_AUTO), ST_OK);
    lab_trial_close(&t);
}

static void test_every_rung_is_right(void **state)
{
    (void)state;
    const struct lab_ladder *l;
    threads_set(2);
    for (int i = 0; (l = lab_ladder_at(i)); i++)
        for (int form = 0; form < lab_forms(l); form++) {
            struct lab_bench b;
            assert_int_equal(lab_bench_open(&b, l, cpu(), LAB_F32, form, NULL, NULL), ST_OK);
            for (int k = 0; k < LAB_ODD && l->odd[k][0]; k++) check_size(&b, l->odd[k]);
            lab_bench_close(&b);
        }
}

static void test_files_begin_with_their_idea(void **state)
{
    (void)state;
    const struct lab_ladder *l;
    char idea[200];
    for (int i = 0; (l = lab_ladder_at(i)); i++)
        for (int gpu = 0; gpu < 2; gpu++)
            for (const struct lab_rung *r = gpu ? l->of_gpu : l->of_cpu; r->name; r++) {
                int64_t bytes;
                assert_true(strlen(lab_idea(r, idea, sizeof idea)) > 5);
                if (!r->file) continue;
                const char *source = lab_source(r, &bytes), *name = strrchr(r->file, '/') + 1;
                assert_memory_equal(source, "/* ", 3);
                assert_memory_equal(source + 3, name, strlen(name));
                assert_int_equal(source[bytes - 1], '\n');
            }
}

/* --- what is refused -------------------------------------------------------------------------- */

static void problem(struct lab_problem *p)
{
    p->in[0] = p->out = p->n[0];
    p->bytes = 8.0 * (double)p->n[0];
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    memcpy(out, in[0], sizeof *out * (size_t)p->n[0]);
    return 1;
}

static double exact(const struct lab_problem *)
{
    return 0;
}

static void copy(const struct lab_call *c)
{
    memcpy(c->out, c->in[0], sizeof(float) * (size_t)c->n[0]);
}

static void one_bit_off(const struct lab_call *c)
{
    copy(c);
    ((uint32_t *)c->out)[c->n[0] / 2] ^= 1;
}

static void last_is_missing(const struct lab_call *c)
{
    memcpy(c->out, c->in[0], sizeof(float) * (size_t)(c->n[0] - 1));
}

static void one_too_many(const struct lab_call *c)
{
    copy(c);
    ((float *)c->out)[c->n[0]] = 1;
}

static void wrong_if_long(const struct lab_call *c)
{
    copy(c);
    if (c->n[0] > 1000) ((float *)c->out)[1000] += 1;
}

static int calls_so_far;
static void tires(const struct lab_call *c)
{
    if (calls_so_far++ < 3) copy(c);
}

#define ROW(name)                                                   \
    {                                                               \
#name, "copy/cpu/03_floats.c", .run = {[ISA_PLAIN] = name } \
    }
static const struct lab_rung rungs[] = {ROW(copy),
                                        ROW(one_bit_off),
                                        ROW(last_is_missing),
                                        ROW(one_too_many),
                                        ROW(wrong_if_long),
                                        ROW(tires),
                                        {0}};

static const struct lab_ladder faulty = {.name = "faulty",
                                         .question = "",
                                         .sizes = {"n"},
                                         .cpu = {5000},
                                         .odd = {{1}, {33}},
                                         .problem = problem,
                                         .reference = reference,
                                         .tolerance = exact,
                                         .of_gpu = rungs,
                                         .of_cpu = rungs};

static void run_ladder(struct lab_run *r, const struct machine *m, struct arena *a)
{
    static struct lab_options o;
    o = (struct lab_options){.ladder = &faulty, .device = *cpu(), .type = LAB_F32, .warm = true};
    o.samples = 3;
    o.limit_ms = 50;
    o.machine = m;
    calls_so_far = 0;
    assert_int_equal(lab_run(&o, r, a), ST_OK);
}

static void test_wrong_rungs_get_no_time(void **state)
{
    (void)state;
    struct arena a = {0};
    struct lab_run r;
    run_ladder(&r, NULL, &a);
    assert_int_equal(r.results, 6);
    assert_null(r.result[0].left_out);
    assert_true(r.result[0].error == 0 && r.result[0].time.total.median > 0);
    assert_null(r.result[0].why); /* a small problem in the caches: memory does not explain it */
    for (int i = 1; i < r.results; i++) {
        print_message("%s: %s\n", r.result[i].rung->name, r.result[i].left_out);
        assert_true(r.result[i].wrong);
        assert_non_null(strstr(r.result[i].left_out, "wrong at n "));
    }
    assert_int_equal(r.wrong, 5);
    assert_non_null(strstr(r.result[1].left_out, "n 33:")); /* the size that tells most */
    assert_non_null(strstr(r.result[1].left_out, "; element 16 is "));
    assert_non_null(strstr(r.result[1].left_out, "1 of 33 elements are wrong"));
    assert_non_null(
        strstr(r.result[2].left_out, "element 32 is NaN, perhaps never written, instead of "));
    assert_non_null(strstr(r.result[3].left_out, "it wrote after the end of the output"));
    assert_true(isinf(r.result[2].error) && isinf(r.result[3].error));
    assert_non_null(strstr(r.result[4].left_out, "n 5000:"));
    assert_true(r.result[5].time.taken > 0); /* it was right before the timing, not after it */
    arena_release(&a);
}

static void test_impossible_times(void **state)
{
    (void)state;
    struct arena a = {0};
    struct lab_run r;
    /* A machine whose fastest copy moves a byte a second. */
    struct machine slow = {.copies = 1, .copy = {{1 << 20, 1, 1}}};
    run_ladder(&r, &slow, &a);
    assert_false(r.result[0].wrong);
    assert_non_null(r.result[0].left_out);
    assert_non_null(strstr(r.result[0].left_out, "not believed"));
    arena_release(&a);
}

/* A rung that is slower than a sample needs makes one call for each; the next call is on the next
 * set all the same, also of the next rung. */
enum { SEEN = 256 };
static const void *seen[SEEN];
static int calls_seen;
static void notes_its_set(const struct lab_call *c)
{
    copy(c);
    usleep(300);
    if (c->n[0] == 5000 && calls_seen < SEEN) seen[calls_seen++] = c->out;
}

static void test_calls_go_through_all_sets(void **state)
{
    (void)state;
    static const struct lab_rung slow[] = {
        ROW(notes_its_set),
        {.name = "again", .file = "copy/cpu/03_floats.c", .run = {[ISA_PLAIN] = notes_its_set}},
        {0}};
    struct lab_ladder ladder = faulty;
    struct lab_options o = {.ladder = &ladder, .device = *cpu(), .type = LAB_F32};
    struct arena a = {0};
    struct lab_run r;
    int distinct = 0;
    ladder.of_cpu = slow;
    o.samples = 40;
    o.limit_ms = 1000;
    calls_seen = 0;
    assert_int_equal(lab_run(&o, &r, &a), ST_OK);
    if (r.sets < 8) skip(); /* no cache is known here */
    for (int i = 0; i < calls_seen; i++) {
        bool is_new = true;
        for (int k = 0; k < i; k++) is_new &= seen[k] != seen[i];
        distinct += is_new;
    }
    assert_true(calls_seen >= 80 && distinct >= (r.sets < 40 ? r.sets / 2 : 20));
    arena_release(&a);
}

/* Four rows of five, of which the last two columns of the last two rows are wrong. */
static void test_words_say_where(void **state)
{
    (void)state;
    struct arena a = {0};
    double expected[20], y[20];
    for (int i = 0; i < 20; i++) y[i] = expected[i] = i;
    y[13] = y[14] = y[18] = 0;
    y[19] = NAN;
    struct lab_problem p = {.out = 20, .columns = 5};
    assert_string_equal(lab_describe_errors(&p, y, expected, 1, 0, &a).words,
                        "row 2, column 3 is 0 instead of 13; 4 of 20 elements are wrong, all in "
                        "rows from 2 on, all in columns from 3 on: is the last tile guarded?");
    p.columns = 0;
    assert_string_equal(lab_describe_errors(&p, y, expected, 1, 0, &a).words,
                        "element 13 is 0 instead of 13; 4 of 20 elements are wrong, all in "
                        "elements from 13 on: is the last tile guarded?");
    memcpy(y, expected, sizeof y);
    y[3] += 0.1;
    assert_string_equal(lab_describe_errors(&p, y, expected, 50, 0.01, &a).words,
                        "no single element stands out: all are a little off");
    y[3] += 1;
    assert_string_equal(lab_describe_errors(&p, y, expected, 50, 0.01, &a).words,
                        "element 3 is 4.1 instead of 3; 1 of 20 elements are wrong");
    arena_release(&a);
}

/* Ratios by hand: a rung half way, by ratios, between the first and the ceiling. */
static void test_ceiling_is_the_faster_of_two(void **state)
{
    (void)state;
    struct arena a = {0};
    struct lab_run r;
    struct machine fast = {.copies = 1, .copy = {{1 << 20, 1e15, 1e15}}};
    run_ladder(&r, &fast, &a);
    assert_null(r.result[0].left_out);
    assert_non_null(strstr(r.ceiling, "strobe machine"));
    assert_true(fabs(r.ceiling_ms / (8.0 * 5000 / 1e15 * 1e3) - 1) < 1e-9);
    double ms = r.result[0].time.total.median;
    assert_true(fabs(r.result[0].share * ms / r.ceiling_ms - 1) < 1e-9);
    assert_true(fabs(r.result[0].rate * ms / (8.0 * 5000 * 1e3) - 1) < 1e-9);
    assert_true(r.result[0].score == 0);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rung_is_right),
        cmocka_unit_test(test_files_begin_with_their_idea),
        cmocka_unit_test(test_wrong_rungs_get_no_time),
        cmocka_unit_test(test_words_say_where),
        cmocka_unit_test(test_impossible_times),
        cmocka_unit_test(test_calls_go_through_all_sets),
        cmocka_unit_test(test_ceiling_is_the_faster_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
