/* A checkpoint written by a thread is complete; saver_wait reports a failure with its message; the
 * previous checkpoint is not read again unless its files changed. */
#include "../support/workdir.h"
#include "base/file.h"
#include "train/saver.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { ELEMENTS = 1 << 18 };
static float values[ELEMENTS];
static const struct weights_tensor tensor = {
    .name = "w", .rank = 1, .dim = {ELEMENTS}, .weight = values};

static struct checkpoint_state state_at(int64_t iter)
{
    return (struct checkpoint_state){
        .iter = iter, .best_val_loss = INFINITY, .best_iter = -1, .config = "n_layer = 1\n"};
}

static struct lock open_run(const char *name)
{
    struct lock l;
    assert_int_equal(file_make_dirs(workdir_path(name)), ST_OK);
    assert_int_equal(lock_take(&l, workdir_path(name), 0), ST_OK);
    return l;
}

static enum status save(struct saver *s, const struct lock *run, int64_t iter,
                        struct checkpoint_written *written)
{
    struct checkpoint_state state = state_at(iter);
    int64_t done;
    saver_start(s, run, &tensor, 1, &state, written);
    enum status st = saver_wait(s, &done);
    assert_int_equal(done, iter);
    assert_false(saver_done(s));
    return st;
}

static void test_whole(void **state)
{
    (void)state;
    struct lock run = open_run("whole");
    struct arena a = {0};
    struct saver s = {0};
    struct checkpoint_written written = {0};
    struct checkpoint c;
    bool found;
    int64_t done;
    for (int i = 0; i < ELEMENTS; i++) values[i] = (float)i;
    assert_int_equal(saver_wait(&s, &done), ST_OK); /* nothing to wait for */
    assert_int_equal(done, -1);
    assert_int_equal(save(&s, &run, 7, &written), ST_OK);
    memset(values, 0, sizeof values);
    assert_int_equal(checkpoint_find(run.path, false, &a, &c, &found), ST_OK);
    assert_true(found);
    assert_int_equal(c.state.iter, 7);
    assert_int_equal(checkpoint_load(&c, &tensor, 1), ST_OK);
    for (int i = 0; i < ELEMENTS; i++) assert_true(values[i] == (float)i);
    arena_release(&a);
}

/* A file stands where the folder of checkpoints should be. */
static void test_failure_arrives(void **state)
{
    (void)state;
    struct lock run = open_run("failure");
    struct saver s = {0};
    struct checkpoint_written written = {0};
    workdir_write(workdir_path("failure/ckpt"), "x", 1);
    assert_int_not_equal(save(&s, &run, 7, &written), ST_OK);
    assert_non_null(strstr(fail_message(), "the checkpoint of iteration 7 was not saved"));
    assert_int_equal(remove(workdir_path("failure/ckpt")), 0);
    assert_int_equal(save(&s, &run, 8, &written), ST_OK); /* the saver can be used again */
}

/* Bytes that this process has read so far. */
static long long bytes_read(void)
{
    char text[512] = "";
    FILE *f = fopen("/proc/self/io", "r");
    if (!f) return -1;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    long long bytes = -1;
    return n && sscanf(text, "rchar: %lld", &bytes) == 1 ? bytes : -1;
}

static void test_the_one_before_is_read_only_if_it_changed(void **state)
{
    (void)state;
    enum { FILE_BYTES = ELEMENTS * (int)sizeof(float) };
    struct lock run = open_run("again");
    struct saver s = {0};
    struct checkpoint_written written = {0};
    if (bytes_read() < 0) skip();
    assert_int_equal(save(&s, &run, 1, &written), ST_OK);
    long long before = bytes_read();
    assert_int_equal(save(&s, &run, 2, &written), ST_OK);
    assert_true(bytes_read() - before < FILE_BYTES / 2);
    /* A byte of the previous checkpoint changes: it is read, found damaged, and removed. */
    workdir_flip(workdir_path("again/ckpt/000002/model.safetensors"), FILE_BYTES / 2, 3);
    before = bytes_read();
    assert_int_equal(save(&s, &run, 3, &written), ST_OK);
    assert_true(bytes_read() - before >= FILE_BYTES);
    struct stat info;
    assert_int_not_equal(stat(workdir_path("again/ckpt/000002"), &info), 0);
    assert_int_equal(stat(workdir_path("again/ckpt/000001"), &info), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_failure_arrives),
        cmocka_unit_test(test_the_one_before_is_read_only_if_it_changed),
    };
    workdir_open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    workdir_close();
    return failed;
}
