#include "train/checkpoint.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TENSORS = 3, LARGEST = 12 };

static struct arena arena;
static float values[TENSORS][3][LARGEST];

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    workdir_close();
    return 0;
}

static const struct weights_tensor *tensors_of(float store[TENSORS][3][LARGEST])
{
    static struct weights_tensor t[TENSORS];
    t[0] = (struct weights_tensor){.name = "wte.weight", .rank = 2, .dim = {3, 4}};
    t[1] = (struct weights_tensor){.name = "h.0.ln_1.weight", .rank = 1, .dim = {4}};
    t[2] = (struct weights_tensor){.name = "h.0.attn.c_attn.weight", .rank = 2, .dim = {4, 3}};
    for (int i = 0; i < TENSORS; i++) {
        t[i].weight = store[i][0];
        t[i].state[0].suffix = ".m", t[i].state[0].data = store[i][1];
        t[i].state[1].suffix = ".v", t[i].state[1].data = store[i][2];
    }
    return t;
}

static int length_of(int tensor)
{
    return tensor == 1 ? 4 : 12;
}

/* Values that differ for every element and iteration. */
static float value_at(int64_t iter, int i, int k, int j)
{
    return rng_normal(1, RNG_TEST, (uint32_t)iter, (uint64_t)(i * 100 + k * 20 + j));
}

/* The run directory; the first save creates it. */
static const char *run_dir(void)
{
    return workdir_path("run");
}

/* False if there is no checkpoint, or none that can be used. */
static bool find(bool best, struct checkpoint *ret)
{
    bool found;
    return checkpoint_find(run_dir(), best, &arena, ret, &found) == ST_OK && found;
}

static bool any_exist(void)
{
    struct checkpoint c;
    bool found;
    return checkpoint_find(run_dir(), false, &arena, &c, &found) != ST_OK || found;
}

static enum status save(int64_t iter, double best_val_loss, int64_t best_iter)
{
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < 3; k++)
            for (int j = 0; j < length_of(i); j++) values[i][k][j] = value_at(iter, i, k, j);
    struct checkpoint_state s = {.iter = iter,
                                 .seed = 1337,
                                 .best_val_loss = best_val_loss,
                                 .best_iter = best_iter,
                                 .train_batches = 3 * iter,
                                 .eval_batches = 7,
                                 .config = "n_layer = 6\nout_dir = \"a\\b\"\n"};
    assert_int_equal(file_make_dirs(workdir_path("run")), ST_OK);
    static struct checkpoint_written written;
    struct lock run;
    assert_int_equal(lock_take(&run, run_dir(), 0), ST_OK);
    enum status st = checkpoint_save(&run, tensors_of(values), TENSORS, &s, &written);
    lock_release(&run);
    return st;
}

static void expect_loads(const struct checkpoint *c, int64_t iter)
{
    float loaded[TENSORS][3][LARGEST] = {};
    assert_int_equal(c->state.iter, iter);
    assert_int_equal(checkpoint_load(c, tensors_of(loaded), TENSORS), ST_OK);
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < 3; k++)
            for (int j = 0; j < length_of(i); j++)
                assert_true(loaded[i][k][j] == value_at(iter, i, k, j));
}

static void expect_last(int64_t iter)
{
    struct checkpoint c;
    if (!find(false, &c)) fail_msg("none, not %d", (int)iter);
    expect_loads(&c, iter);
}

static bool is_there(int64_t iter)
{
    char name[64];
    snprintf(name, sizeof name, "run/ckpt/%06d", (int)iter);
    return file_exists(workdir_path(name));
}

static const char *part_of(int64_t iter, const char *file)
{
    char name[128];
    snprintf(name, sizeof name, "run/ckpt/%06d/%s", (int)iter, file);
    return workdir_path(name);
}

static void test_round_trip(void **state)
{
    (void)state;
    assert_false(any_exist());
    struct checkpoint c;
    assert_false(find(false, &c));
    assert_int_equal(save(250, 0.1 + 0.2, 250), ST_OK);
    assert_true(any_exist());
    assert_true(find(false, &c));
    expect_loads(&c, 250);
    assert_true(c.state.best_val_loss == 0.1 + 0.2);
    assert_int_equal(c.state.best_iter, 250);
    assert_int_equal(c.state.seed, 1337);
    assert_int_equal(c.state.train_batches, 750);
    assert_int_equal(c.state.eval_batches, 7);
    assert_string_equal(c.state.config, "n_layer = 6\nout_dir = \"a\\b\"\n");

    assert_int_equal(save(251, INFINITY, -1), ST_OK);
    assert_true(find(false, &c));
    assert_true(isinf(c.state.best_val_loss));
    assert_int_equal(c.state.best_iter, -1);
}

static void test_tensors_carry_the_names_of_gpt2(void **state)
{
    (void)state;
    assert_int_equal(save(1, 1, 1), ST_OK);
    struct safetensors s;
    assert_int_equal(safetensors_open(&s, part_of(1, "model.safetensors"), &arena), ST_OK);
    assert_int_equal(s.count, TENSORS);
    assert_non_null(safetensors_find(&s, "h.0.attn.c_attn.weight"));
    safetensors_close(&s);
    assert_int_equal(safetensors_open(&s, part_of(1, "optimizer.safetensors"), &arena), ST_OK);
    assert_int_equal(s.count, 2 * TENSORS);
    assert_non_null(safetensors_find(&s, "wte.weight.m"));
    assert_non_null(safetensors_find(&s, "wte.weight.v"));
    safetensors_close(&s);
}

static void test_weights_alone_can_be_loaded(void **state)
{
    (void)state;
    assert_int_equal(save(5, 1, 5), ST_OK);
    struct checkpoint c;
    assert_true(find(false, &c));
    float loaded[TENSORS][3][LARGEST] = {};
    struct weights_tensor t[TENSORS];
    memcpy(t, tensors_of(loaded), sizeof t);
    for (int i = 0; i < TENSORS; i++) t[i].state[0].data = t[i].state[1].data = NULL;
    assert_int_equal(checkpoint_load(&c, t, TENSORS), ST_OK);
    assert_true(loaded[2][0][11] == value_at(5, 2, 0, 11));
    assert_true(loaded[2][1][11] == 0);
}

static void expect_load_fails(const struct weights_tensor *t, int count, const char *part)
{
    struct checkpoint c;
    assert_true(find(false, &c));
    assert_int_equal(checkpoint_load(&c, t, count), ST_FORMAT);
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

static void test_other_model_is_rejected(void **state)
{
    (void)state;
    assert_int_equal(save(5, 1, 5), ST_OK);
    struct weights_tensor t[TENSORS];
    memcpy(t, tensors_of(values), sizeof t);
    expect_load_fails(t, TENSORS - 1, "3 tensors, but this model has 2");
    t[1].name = "h.1.ln_1.weight";
    expect_load_fails(t, TENSORS, "no tensor h.1.ln_1.weight");
    memcpy(t, tensors_of(values), sizeof t);
    t[0].dim[0] = 4, t[0].dim[1] = 3;
    expect_load_fails(t, TENSORS, "wte.weight is F32 (3,4), but this model needs F32 (4,3)");
}

static void test_keeps_last_previous_and_best(void **state)
{
    (void)state;
    static const struct {
        int iter, best;
    } saves[] = {{100, 100}, {200, 200}, {300, 200}, {400, 200},
                 {500, 200}, {600, 600}, {700, 600}};
    for (int i = 0; i < COUNT_OF(saves); i++) {
        assert_int_equal(save(saves[i].iter, 10.0 - saves[i].best * 1e-3, saves[i].best), ST_OK);
        for (int k = 0; k <= i; k++)
            assert_int_equal(is_there(saves[k].iter), k >= i - 1 || saves[k].iter == saves[i].best);
    }
    struct checkpoint c;
    assert_true(find(true, &c));
    expect_loads(&c, 600);
    expect_last(700);
    workdir_flip(part_of(600, "model.safetensors"), 300, 0);
    assert_false(find(true, &c));
}

/* A run that restarts earlier (because newer checkpoints are corrupt, or from iteration 0) removes
 * later checkpoints. */
static void test_later_checkpoints_are_removed(void **state)
{
    (void)state;
    assert_int_equal(save(100, 3, 100), ST_OK);
    assert_int_equal(save(500, 2, 500), ST_OK);
    assert_int_equal(save(300, 2.5, 300), ST_OK);
    assert_false(is_there(500));
    expect_last(300);
    assert_int_equal(save(300, 2.5, 300), ST_OK); /* overwrites itself */
    expect_last(300);
}

static void test_spare_is_intact(void **state)
{
    (void)state;
    assert_int_equal(save(100, 1, 1), ST_OK);
    assert_int_equal(save(200, 1, 1), ST_OK);
    workdir_flip(part_of(200, "optimizer.safetensors"), 700, 1);
    assert_int_equal(save(300, 1, 1), ST_OK);
    assert_false(is_there(200));
    workdir_flip(part_of(300, "model.safetensors"), 300, 1);
    expect_last(100);
}

static const char *const files[] = {"model.safetensors", "optimizer.safetensors", "state.json",
                                    "DONE"};

/* If any bit of the newest checkpoint is flipped, the previous one is used. */
static void test_every_flipped_bit_is_detected(void **state)
{
    (void)state;
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(save(200, 1, 100), ST_OK);
    for (int f = 0; f < COUNT_OF(files); f++) {
        const char *path = part_of(200, files[f]);
        int64_t bytes = workdir_size(path);
        for (uint64_t i = 0; i < 60; i++) {
            int64_t bit = rng_below(9, RNG_TEST, (uint32_t)f, i, bytes * 8);
            workdir_flip(path, bit / 8, (int)(bit % 8));
            expect_last(100);
            workdir_flip(path, bit / 8, (int)(bit % 8));
        }
        arena_release(&arena);
    }
    expect_last(200);
}

static void test_truncated_and_missing_files_are_detected(void **state)
{
    (void)state;
    assert_int_equal(save(100, 1, 100), ST_OK);
    for (int f = 0; f < COUNT_OF(files); f++) {
        assert_int_equal(save(200, 1, 100), ST_OK);
        const char *path = part_of(200, files[f]);
        int64_t bytes = workdir_size(path);
        const int64_t cuts[] = {bytes - 1, bytes - 2, bytes / 2, 64, 9, 8, 7, 1, 0};
        for (int i = 0; i < COUNT_OF(cuts); i++) {
            if (cuts[i] >= bytes) continue;
            workdir_truncate(path, cuts[i]);
            expect_last(100);
        }
        remove(path);
        expect_last(100);
    }
    for (int f = 0; f < COUNT_OF(files); f++) remove(part_of(200, files[f]));
    expect_last(100);
    for (int f = 0; f < COUNT_OF(files); f++) remove(part_of(100, files[f]));
    struct checkpoint c;
    assert_false(find(false, &c));
}

static void test_other_files_are_kept(void **state)
{
    (void)state;
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(file_make_dirs(workdir_path("run/ckpt/notes")), ST_OK);
    assert_int_equal(file_make_dirs(workdir_path("run/ckpt/000900.tmp")), ST_OK);
    assert_int_equal(file_make_dirs(workdir_path("run/ckpt/9")), ST_OK);
    expect_last(100);
    assert_int_equal(save(200, 1, 200), ST_OK);
    assert_true(file_exists(workdir_path("run/ckpt/notes")));
    assert_true(file_exists(workdir_path("run/ckpt/9")));
    assert_true(file_exists(workdir_path("run/ckpt/000900.tmp")));
    /* A folder that was renamed by hand does not match the iteration in its state. */
    assert_int_equal(rename(workdir_path("run/ckpt/000200"), workdir_path("run/ckpt/000300")), 0);
    expect_last(100);
}

/* A limit on the file size simulates a full disk: the write fails halfway. */
static void test_full_disk_loses_nothing(void **state)
{
    (void)state;
    assert_int_equal(save(100, 1, 100), ST_OK);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    int64_t largest = workdir_size(part_of(100, "optimizer.safetensors"));
    for (int64_t bytes = 10; bytes < largest; bytes += 90) {
        small = (struct rlimit){.rlim_cur = (rlim_t)bytes, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        enum status st = save(200, 1, 200);
        char words[1024];
        snprintf(words, sizeof words, "%s", fail_message());
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(st, ST_IO);
        assert_non_null(strstr(words, "iteration 200 was not saved"));
        assert_non_null(strstr(words, "File too large"));
        assert_false(is_there(200));
        assert_false(file_exists(workdir_path("run/ckpt/000200.tmp")));
        expect_last(100);
    }
    assert_int_equal(save(200, 1, 200), ST_OK);
    expect_last(200);
}

/* Saves in a loop and is killed at some time: the newest checkpoint must be intact and not older
 * than the last one reported as saved. */
static void test_kill_at_any_time(void **state)
{
    (void)state;
    for (int round = 0; round < 25; round++) {
        int said[2];
        assert_int_equal(pipe(said), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int64_t iter = round * 1000 + 1;; iter++)
                if (save(iter, 1, 1) != ST_OK || write(said[1], &iter, sizeof iter) < 0) _exit(1);
        }
        close(said[1]);
        int64_t saved = 0, iter;
        int first_few = 1 + round % 3;
        for (int i = 0; i < first_few; i++)
            assert_int_equal(read(said[0], &saved, sizeof saved), sizeof saved);
        usleep((useconds_t)rng_below(5, RNG_TEST, 0, (uint64_t)round, 4000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(said[0], &iter, sizeof iter) == sizeof iter) saved = iter;
        close(said[0]);
        struct checkpoint c;
        assert_true(find(false, &c));
        assert_in_range(c.state.iter, saved, saved + 1);
        expect_loads(&c, c.state.iter);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_tensors_carry_the_names_of_gpt2),
        TEST(test_weights_alone_can_be_loaded),
        TEST(test_other_model_is_rejected),
        TEST(test_keeps_last_previous_and_best),
        TEST(test_later_checkpoints_are_removed),
        TEST(test_spare_is_intact),
        TEST(test_every_flipped_bit_is_detected),
        TEST(test_truncated_and_missing_files_are_detected),
        TEST(test_other_files_are_kept),
        TEST(test_full_disk_loses_nothing),
        TEST(test_kill_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
