/* The training step and loop: what must not affect results, and errors that must be detected. */
#include "train/trainer.h"

#include "../support/cases.h"
#include "../support/small.h"
#include "../support/tiny.h"
#include "../support/workdir.h"
#include "base/clock.h"
#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- counts every allocation of this program -------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

#ifndef __SANITIZE_ADDRESS__
/* volatile: otherwise the compiler assumes that malloc does not write to them */
static volatile long allocations, in_libraries;

/* oneDNN, which is C++, allocates a map of its arguments whenever it executes a matmul, and LLVM's
 * OpenMP allocates in parallel regions, even of one thread; those are not counted. */
static void count(const void *caller)
{
    Dl_info facts;
    bool known = dladdr(caller, &facts) && facts.dli_fname;
    bool library = known && (strstr(facts.dli_fname, "libstdc++") ||
                             strstr(facts.dli_fname, "dnnl") || strstr(facts.dli_fname, "libomp"));
    __atomic_add_fetch(library ? &in_libraries : &allocations, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **ret_memory, size_t alignment, size_t size)
{
    count(__builtin_return_address(0));
    *ret_memory = __libc_memalign(alignment, size);
    return *ret_memory ? 0 : ENOMEM;
}
#endif

static void test_a_step_allocates_nothing(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    SKIP("AddressSanitizer has its own malloc, so calls of it are not counted");
#else
    struct config c = small_config();
    c.model.dropout = 0.2;
    c.train.gradient_accumulation_steps = 2;
    struct arena a = {0};
    struct learner l;
    struct learner_step s;
    small_learner(&l, &c, 0, &a);
    long before = allocations;
    void *volatile some = malloc(1); /* the counter works */
    free(some);
    assert_int_equal(allocations, before + 1);
    for (int64_t iter = 0; iter < 10; iter++) {
        before = allocations;
        in_libraries = 0;
        assert_int_equal(tiny_learn(&l, iter, &s), ST_OK);
        if (iter >= 3) assert_int_equal(allocations - before, 0);
    }
    print_message("of libraries: %ld in a step\n", in_libraries);
    learner_close(&l);
    arena_release(&a);
#endif
}

/* --- training --------------------------------------------------------------------------------- */

enum { STEPS = 20 };

/* Losses of the first steps, and the weights after them if requested. */
static void learn(const struct config *c, double loss[STEPS], float **ret_weights,
                  int64_t *ret_elements)
{
    struct arena a = {0};
    struct learner l;
    small_learner(&l, c, 0, &a);
    for (int i = 0; i < STEPS; i++) {
        struct learner_step s;
        assert_int_equal(tiny_learn(&l, i, &s), ST_OK);
        loss[i] = s.result.loss;
    }
    if (ret_weights) {
        int64_t bytes = l.engine.program.model.elements * (int64_t)sizeof(float);
        *ret_elements = l.engine.program.model.elements;
        *ret_weights = malloc((size_t)bytes);
        memcpy(*ret_weights, small_weights(&l), (size_t)bytes);
    }
    learner_close(&l);
    arena_release(&a);
}

static double largest_difference(const double *x, const double *y, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(x[i] - y[i]));
    return most;
}

static void test_it_learns(void **state)
{
    (void)state;
    struct config c = small_config();
    double loss[STEPS];
    learn(&c, loss, NULL, NULL);
    assert_true(fabs(loss[0] - log(SMALL_VOCABULARY)) < 0.05);
    assert_true(loss[STEPS - 1] < loss[0] - 0.2);
}

/* Dropout is off because its masks depend on the micro-step and the row of the batch. */
static void test_micro_batches_make_one_batch(void **state)
{
    (void)state;
    double whole[STEPS], parts[STEPS];
    struct config c = small_config();
    learn(&c, whole, NULL, NULL);
    const int64_t cuts[] = {2, 4};
    for (int i = 0; i < COUNT_OF(cuts); i++) {
        c.train.gradient_accumulation_steps = cuts[i];
        c.data.batch_size = 4 / cuts[i];
        learn(&c, parts, NULL, NULL);
        assert_true(largest_difference(whole, parts, STEPS) < 1e-5);
    }
    c.train.gradient_accumulation_steps = 1; /* the last split without the rest of the batch */
    learn(&c, parts, NULL, NULL);
    assert_true(largest_difference(whole, parts, STEPS) > 1e-3);
}

/* The same model with different kernels; with dropout, so the masks must agree too. */
static void test_rungs_agree(void **state)
{
    (void)state;
    double first[STEPS], loss[STEPS];
    struct config c = small_config();
    c.model.dropout = 0.2;
    c.model.bias = true;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            c.plan.fusion = (enum fusion)fusion;
            c.plan.flash = flash;
            bool is_first = fusion == FUSION_PRIMITIVE && !flash;
            learn(&c, is_first ? first : loss, NULL, NULL);
            if (is_first) continue;
            double most = largest_difference(first, loss, STEPS);
            if (most >= 1e-5) fail_msg("fusion %d, flash %d: off by %g", fusion, flash, most);
        }
    c.model.dropout = 0; /* otherwise the test above would not depend on the masks */
    learn(&c, loss, NULL, NULL);
    assert_true(largest_difference(first, loss, STEPS) > 1e-3);
}

/* The placement of values and old memory contents do not affect results. */
static void test_memory_does_not_matter(void **state)
{
    (void)state;
    double plain[STEPS], other[STEPS];
    struct config c = small_config();
    c.model.dropout = 0.2;
    learn(&c, plain, NULL, NULL);
    c.plan.reuse = false;
    learn(&c, other, NULL, NULL);
    assert_memory_equal(plain, other, sizeof plain);
    c.plan.reuse = c.plan.poison = true;
    learn(&c, other, NULL, NULL);
    assert_memory_equal(plain, other, sizeof plain);
}

/* --- the loop --------------------------------------------------------------------------------- */

static struct run_summary train(const struct config *c, float *ret_weights, int64_t elements)
{
    struct arena a = {0};
    struct trainer t;
    struct trainer_options o = {.overwrite = true};
    if (trainer_open(&t, c, &o, &a) != ST_OK) fail_msg("%s", fail_message());
    if (trainer_run(&t) != ST_OK) fail_msg("%s", fail_message());
    struct run_summary summary = t.summary;
    assert_true(elements <= t.learner.engine.program.model.elements);
    if (ret_weights)
        memcpy(ret_weights, small_weights(&t.learner), (size_t)elements * sizeof(float));
    trainer_close(&t);
    arena_release(&a);
    return summary;
}

static void test_evaluating_more_often_changes_nothing(void **state)
{
    (void)state;
    enum { SOME = 3000 };
    static float seldom[SOME], often[SOME];
    struct config c = small_config();
    c.model.dropout = 0.2;
    c.train.eval_interval = 20;
    struct run_summary s = train(&c, seldom, SOME);
    c.train.eval_interval = 3;
    struct run_summary o = train(&c, often, SOME);
    assert_memory_equal(seldom, often, sizeof seldom);
    assert_true(fabs(s.final_val_loss - (o.final_val_loss)) <= 0);
    assert_true(fabs(s.final_train_loss - (o.final_train_loss)) <= 0);
    assert_int_equal(s.iters, 20);
    assert_true(s.complete && s.best_val_loss < 2);
}

/* The loop makes exactly max_iters updates: weights equal those after as many bare steps. */
static void test_the_loop_makes_the_steps(void **state)
{
    (void)state;
    enum { SOME = 3000 };
    static float looped[SOME];
    float *stepped;
    int64_t elements;
    double loss[STEPS];
    struct config c = small_config();
    c.train.max_iters = STEPS;
    train(&c, looped, SOME);
    learn(&c, loss, &stepped, &elements);
    assert_memory_equal(looped, stepped, sizeof looped);
    free(stepped);
}

static void test_the_run_directory(void **state)
{
    (void)state;
    struct config c = small_config(), back;
    struct arena a = {0};
    train(&c, NULL, 0);
    const char *const files[] = {"config.conf",  "log.jsonl",   "plan.txt",        "plan.json",
                                 "summary.json", "samples.txt", "vocabulary.json", "ckpt/000020"};
    for (int i = 0; i < COUNT_OF(files); i++)
        if (!file_exists(arena_printf(&a, "%s/%s", c.train.out_dir, files[i])))
            fail_msg("no %s", files[i]);
    config_init(&back);
    assert_int_equal(config_read(&back, arena_printf(&a, "%s/config.conf", c.train.out_dir), &a),
                     ST_OK);
    assert_int_equal(back.train.max_iters, c.train.max_iters);
    assert_int_equal(back.model.n_embd, c.model.n_embd);
    char *text;
    int64_t bytes;
    assert_int_equal(
        file_read(arena_printf(&a, "%s/samples.txt", c.train.out_dir), &a, &text, &bytes), ST_OK);
    assert_int_equal(bytes, 1 + 300 + 1); /* the prompt is a line feed */
    arena_release(&a);
}

/* Each part of the wall time covers its own work; the parts add up to the training's time. */
static void test_wall_time_is_accounted_for(void **state)
{
    (void)state;
    struct config c = small_config();
    c.train.eval_interval = c.train.max_iters;
    c.train.eval_iters = 1;
    int64_t start_ns = clock_ns();
    struct run_summary few = train(&c, NULL, 0);
    double all_s = 1e-3 * clock_ms(start_ns, clock_ns()), sum_s = 0;
    for (int i = 0; i < WALL_PARTS; i++) {
        assert_true(few.wall_s[i] >= 0);
        sum_s += few.wall_s[i];
    }
    assert_true(sum_s <= all_s && sum_s > 0.8 * all_s); /* closing it comes after */
    assert_true(few.wall_s[WALL_STEPS] > 0 && few.wall_s[WALL_EVALUATION] > 0);
    assert_true(few.wall_s[WALL_STARTUP] > 0 && few.wall_s[WALL_CHECKPOINTS] > 0);
    assert_true(few.wall_s[WALL_TURNS] == 0 && few.wall_s[WALL_SAMPLES] > 0);
    c.train.eval_iters = 200;
    struct run_summary many = train(&c, NULL, 0);
    assert_true(many.wall_s[WALL_EVALUATION] > 20 * few.wall_s[WALL_EVALUATION]);
    char text[WALL_TEXT];
    assert_non_null(strstr(run_summary_wall(&many, text), " s = startup "));
    assert_null(strstr(text, "turns"));
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)); p++) n++;
    return n;
}

/* Samples of the processor are in the log, in order, and in the summary; with sampling disabled
 * they are not. */
static void test_samples_of_the_device(void **state)
{
    (void)state;
    struct config c = small_config();
    struct arena a = {0};
    char *text;
    int64_t bytes;
    c.train.sample_interval = 1;
    c.train.max_iters = 200;
    c.train.eval_interval = 100;
    struct run_summary s = train(&c, NULL, 0);
    assert_true(s.gauges.samples >= 2 && s.gauges.seconds > 0);
    assert_true(s.gauges.value[GAUGE_UTILIZATION].mean > 0);
    assert_true(s.gauges.seconds < 1.2 * s.seconds && isnan(s.gauges.joules_per_token));
    const char *path = arena_printf(&a, "%s/log.jsonl", c.train.out_dir);
    assert_int_equal(file_read(path, &a, &text, &bytes), ST_OK);
    assert_true(count_of(text, "\"steady\":true") >= 2);
    assert_true(count_of(text, "\"steady\":false") >= 2); /* evaluations, and the first steps */
    assert_non_null(strstr(text, "\"iter\":199,\"ms\":"));
    const char *last = strrchr(strstr(text, "\"iter\":200,\"train_loss\""), '}');
    assert_string_equal(last, "}\n"); /* the last line is whole */
    c.train.sample_interval = 0;
    s = train(&c, NULL, 0);
    assert_int_equal(s.gauges.samples, 0);
    assert_int_equal(file_read(path, &a, &text, &bytes), ST_OK);
    assert_null(strstr(text, "\"steady\":"));
    arena_release(&a);
}

static void test_existing_run_is_protected(void **state)
{
    (void)state;
    struct config c = small_config();
    c.train.max_iters = 2;
    train(&c, NULL, 0);
    struct arena a = {0};
    struct trainer t;
    struct trainer_options o = {0};
    assert_int_equal(trainer_open(&t, &c, &o, &a), ST_USAGE);
    assert_non_null(strstr(fail_message(), "already contains a run, which finished after 2 iter"));
    assert_non_null(strstr(fail_message(), "--init_from=resume --max_iters=MORE`"));
    c.train.init_from = INIT_RESUME;
    c.model.n_embd = 32;
    assert_int_equal(trainer_open(&t, &c, &o, &a), ST_USAGE);
    assert_non_null(strstr(fail_message(), "n_embd = 16, not 32"));
    c.model.n_embd = 16;
    c.train.max_iters = 1;
    assert_int_equal(trainer_open(&t, &c, &o, &a), ST_USAGE);
    assert_non_null(strstr(fail_message(), "has already done 2 iterations"));
    c.train.max_iters = 2;
    c.train.out_dir = workdir_path("nowhere");
    assert_int_equal(trainer_open(&t, &c, &o, &a), ST_USAGE);
    assert_non_null(strstr(fail_message(), "contains no run to continue"));
    arena_release(&a);
}

static void test_run_directory_is_locked(void **state)
{
    (void)state;
    struct config c = small_config();
    struct arena a = {0};
    struct trainer first, second;
    struct trainer_options o = {.overwrite = true};
    c.train.max_iters = 2;
    assert_int_equal(trainer_open(&first, &c, &o, &a), ST_OK);
    assert_int_equal(trainer_open(&second, &c, &o, &a), ST_USAGE);
    assert_non_null(strstr(fail_message(), "another training run is using"));
    /* The directory is read only after it is locked, because it may change until then. */
    assert_int_equal(trainer_open(&second, &c, &(struct trainer_options){0}, &a), ST_USAGE);
    assert_non_null(strstr(fail_message(), "another training run is using"));
    assert_int_equal(trainer_run(&first), ST_OK);
    trainer_close(&first);
    assert_int_equal(trainer_open(&second, &c, &o, &a), ST_OK);
    trainer_close(&second);
    arena_release(&a);
}

static bool find_best(const struct config *c, struct arena *a, struct checkpoint *ret)
{
    bool found;
    return checkpoint_find(c->train.out_dir, true, a, ret, &found) == ST_OK && found;
}

static bool struck;

/* Presses Ctrl-C during the last evaluation. */
static void strike(void *user, const struct plan *p, int step)
{
    (void)p, (void)step;
    const struct trainer *t = user;
    if (struck || t->iter != t->config->train.max_iters) return;
    struck = true;
    raise(SIGINT);
}

/* After resuming, the evaluation is repeated and its checkpoint is marked as the best. */
static void test_interrupted_evaluation_is_repeated(void **state)
{
    (void)state;
    struct config c = small_config();
    struct arena a = {0};
    struct trainer t;
    struct checkpoint best;
    c.train.max_iters = 20;
    c.train.eval_interval = 10;
    if (trainer_open(&t, &c, &(struct trainer_options){.overwrite = true}, &a) != ST_OK)
        fail_msg("%s", fail_message());
    t.evaluator.hooks = (struct plan_hooks){.user = &t, .before = strike};
    assert_int_equal(trainer_run(&t), ST_INTERRUPTED);
    trainer_close(&t);
    assert_true(find_best(&c, &a, &best));
    assert_int_equal(best.state.iter, 10);
    c.train.init_from = INIT_RESUME;
    if (trainer_open(&t, &c, &(struct trainer_options){0}, &a) != ST_OK)
        fail_msg("%s", fail_message());
    assert_int_equal(t.begun, 20);
    assert_int_equal(trainer_run(&t), ST_OK);
    trainer_close(&t);
    assert_true(find_best(&c, &a, &best));
    assert_int_equal(best.state.iter, 20);
    arena_release(&a);
}

/* --- a disk that does not keep the log -------------------------------------------------------- */

static int failing_syncs; /* this many of the next fdatasync calls fail */

int fdatasync(int fd)
{
    if (failing_syncs > 0) {
        failing_syncs--;
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

/* One error is tolerated. If errors persist, the weights are saved and the training ends. */
static void test_log_that_cannot_be_synced(void **state)
{
    (void)state;
    for (int persists = 0; persists < 2; persists++) {
        struct config c = small_config();
        struct arena a = {0};
        struct trainer t;
        struct checkpoint best;
        c.train.max_iters = 20;
        c.train.eval_interval = 10;
        if (trainer_open(&t, &c, &(struct trainer_options){.overwrite = true}, &a) != ST_OK)
            fail_msg("%s", fail_message());
        failing_syncs = persists ? 1000 : 1;
        assert_int_equal(trainer_run(&t), persists ? ST_IO : ST_OK);
        failing_syncs = 0;
        assert_int_equal(t.iter, persists ? 10 : 20);
        assert_true(strstr(fail_message(), "the checkpoint is saved") || !persists);
        trainer_close(&t);
        assert_true(find_best(&c, &a, &best));
        arena_release(&a);
    }
}

/* --- NaN and infinity ------------------------------------------------------------------------- */

static void poison(struct learner *l, const char *name)
{
    for (int i = 0; i < l->engine.program.model.parameters; i++) {
        const struct parameter *p = &l->engine.program.model.parameter[i];
        if (strcmp(p->name, name) != 0) continue;
        float *weights = l->engine.storage.base[STORAGE_WEIGHTS];
        weights[p->offset + 5] = NAN;
        return;
    }
    fail_msg("no parameter %s", name);
}

static void test_nan_is_found(void **state)
{
    (void)state;
    struct config c = small_config();
    c.plan.fusion = FUSION_OP;
    for (int check = 0; check < 2; check++) {
        c.train.check_nan = check;
        struct arena a = {0};
        struct learner l;
        struct learner_step s;
        small_learner(&l, &c, 0, &a);
        assert_int_equal(tiny_learn(&l, 7, &s), ST_OK);
        poison(&l, "h.1.mlp.c_fc.weight");
        assert_int_equal(tiny_learn(&l, 8, &s), ST_NUMERIC);
        const char *words = fail_message();
        assert_non_null(strstr(words, "iteration 8"));
        if (check) {
            assert_non_null(strstr(words, "MATMUL h.1.mlp.c_fc f32 ("));
            assert_non_null(strstr(words, ": element 5 of"));
            assert_non_null(strstr(words, "forward pass"));
        } else {
            assert_non_null(strstr(words, "--check_nan=true"));
        }
        learner_close(&l);
        arena_release(&a);
    }
}

/* Masks are -infinity, which is not an error on any rung. */
static void test_masks_are_not_errors(void **state)
{
    (void)state;
    struct config c = small_config();
    c.train.check_nan = true;
    c.model.pad_vocab = 64;
    c.plan.fusion = FUSION_PRIMITIVE;
    c.plan.flash = false;
    double loss[STEPS];
    learn(&c, loss, NULL, NULL);
    assert_true(loss[STEPS - 1] < loss[0]);
}

static int make(void **state)
{
    (void)state;
    small_make();
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    small_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_allocates_nothing),
        cmocka_unit_test(test_it_learns),
        cmocka_unit_test(test_micro_batches_make_one_batch),
        cmocka_unit_test(test_rungs_agree),
        cmocka_unit_test(test_memory_does_not_matter),
        cmocka_unit_test(test_evaluating_more_often_changes_nothing),
        cmocka_unit_test(test_the_loop_makes_the_steps),
        cmocka_unit_test(test_the_run_directory),
        cmocka_unit_test(test_wall_time_is_accounted_for),
        cmocka_unit_test(test_samples_of_the_device),
        cmocka_unit_test(test_existing_run_is_protected),
        cmocka_unit_test(test_run_directory_is_locked),
        cmocka_unit_test(test_interrupted_evaluation_is_repeated),
        cmocka_unit_test(test_log_that_cannot_be_synced),
        cmocka_unit_test(test_nan_is_found),
        cmocka_unit_test(test_masks_are_not_errors),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
