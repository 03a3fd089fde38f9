/* Checkpoints that the system cannot read, once or always, are not treated as absent or damaged,
 * and not removed. This program replaces the system calls that fail. */
#include "train/checkpoint.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --- calls that fail -------------------------------------------------------------------------- */

static struct {
    /* Only calls on paths that contain `part` fail; READDIR: only readdir; NULL: all calls. */
    const char *part;
    int error;     /* 0: nothing fails */
    int nth, most; /* the first call that fails, counted from 1, and how many calls fail */
    int calls;
} fault;

static const char READDIR[] = "(readdir)"; /* part of no path */

static bool fails(const char *path)
{
    if (!fault.error || (fault.part && !(path && strstr(path, fault.part)))) return false;
    fault.calls++;
    bool now = fault.calls >= fault.nth && fault.calls < fault.nth + fault.most;
    if (now) errno = fault.error;
    return now;
}

static void set_fault(const char *part, int error, int nth, int most)
{
    fault.part = part;
    fault.error = error;
    fault.nth = nth;
    fault.most = most;
    fault.calls = 0;
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* A training saves this iteration and prunes, just before other tensors are opened; 0: none. */
static int64_t saves_next;
static void save_beside(const char *path);

int open(const char *path, int flags, ...)
{
    va_list args;
    save_beside(path);
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    if (fails(path)) return -1;
    return ((int (*)(const char *, int, ...))real("open"))(path, flags, mode);
}

/* With _FORTIFY_SOURCE, the C library's headers turn the calls into these. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags, 0);
}

ssize_t __read_chk(int fd, void *bytes, size_t n, size_t size);
ssize_t __read_chk(int fd, void *bytes, size_t n, size_t size)
{
    return read(fd, bytes, n < size ? n : size);
}

DIR *opendir(const char *path)
{
    return fails(path) ? NULL : ((DIR * (*)(const char *)) real("opendir"))(path);
}

struct dirent *readdir(DIR *dir)
{
    return fails(READDIR) ? NULL : ((struct dirent * (*)(DIR *)) real("readdir"))(dir);
}

ssize_t read(int fd, void *bytes, size_t n)
{
    return fails(NULL) ? -1 : ((ssize_t(*)(int, void *, size_t))real("read"))(fd, bytes, n);
}

/* --- the run ---------------------------------------------------------------------------------- */

enum { ELEMENTS = 4 };

static struct arena arena;
static struct lock run;

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    set_fault(NULL, 0, 0, 0);
    assert_int_equal(file_make_dirs(workdir_path("run")), ST_OK);
    assert_int_equal(lock_take(&run, workdir_path("run"), 0), ST_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    set_fault(NULL, 0, 0, 0);
    lock_release(&run);
    arena_release(&arena);
    workdir_close();
    return 0;
}

static enum status save(int64_t iter, double best_val_loss, int64_t best_iter)
{
    float values[ELEMENTS] = {(float)iter, 1, 2, 3};
    struct weights_tensor t = {.name = "w", .rank = 1, .dim = {ELEMENTS}, .weight = values};
    struct checkpoint_state s = {.iter = iter,
                                 .best_val_loss = best_val_loss,
                                 .best_iter = best_iter,
                                 .config = "n_layer = 6\n"};
    return checkpoint_save(&run, &t, 1, &s, &(struct checkpoint_written){0});
}

static void save_beside(const char *path)
{
    if (!saves_next || !strstr(path, "model.safetensors")) return;
    int64_t iter = saves_next;
    saves_next = 0;
    assert_int_equal(save(iter, 1. / (double)iter, iter), ST_OK);
    assert_int_equal(save(iter + 100, 1. / (double)iter, iter + 100), ST_OK);
}

static bool is_there(int64_t iter)
{
    char name[64];
    snprintf(name, sizeof name, "run/ckpt/%06d", (int)iter);
    return file_exists(workdir_path(name));
}

static enum status find(int64_t *ret_iter)
{
    struct checkpoint c;
    bool found = false;
    enum status st = checkpoint_find(run.path, false, &arena, &c, &found);
    *ret_iter = found ? c.state.iter : -1;
    return st;
}

/* --- the cases -------------------------------------------------------------------------------- */

static void test_missing_is_none(void **state)
{
    (void)state;
    int64_t iter;
    assert_int_equal(find(&iter), ST_OK);
    assert_int_equal(iter, -1);
}

/* A folder that cannot be listed does not count as empty; otherwise resuming would start over. */
static void test_unreadable_folder_is_not_empty(void **state)
{
    (void)state;
    static const int errors[] = {EACCES, EIO, EMFILE, ENOMEM, ELOOP, ENOTDIR};
    int64_t iter;
    assert_int_equal(save(100, 1, 100), ST_OK);
    for (int i = 0; i < COUNT_OF(errors); i++) {
        set_fault("ckpt", errors[i], 1, 1000);
        assert_int_equal(find(&iter), file_status(errors[i]));
        assert_non_null(strstr(fail_message(), strerror(errors[i])));
        assert_null(strstr(fail_message(), "--overwrite"));
    }
    set_fault(READDIR, EIO, 1, 1000);
    assert_int_equal(find(&iter), ST_IO);
    assert_non_null(strstr(fail_message(), strerror(EIO)));
    assert_true(fault.calls > 0);
    set_fault(READDIR, EIO, 1, 1); /* once: it is read again */
    assert_int_equal(find(&iter), ST_OK);
    assert_int_equal(iter, 100);
}

/* A running training prunes a checkpoint after this program listed it and before it reads it. */
static void test_pruned_while_it_is_found(void **state)
{
    (void)state;
    int64_t iter;
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(save(200, .5, 200), ST_OK);
    saves_next = 300;
    assert_int_equal(find(&iter), ST_OK);
    assert_int_equal(iter, 400);
    assert_false(is_there(200));
}

/* The user can fix permissions, so no older checkpoint is used and nothing is overwritten. */
static void test_permissions(void **state)
{
    (void)state;
    int64_t iter;
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(save(200, 1, 100), ST_OK);
    set_fault("000200/", EACCES, 1, 1000);
    assert_int_equal(find(&iter), ST_DENIED);
    assert_non_null(strstr(fail_message(), "Permission denied"));
    assert_non_null(strstr(fail_message(), "permission to read"));
    assert_null(strstr(fail_message(), "--overwrite"));
    assert_null(strstr(fail_message(), "damaged"));
}

/* The older checkpoint is used if the newest is unreadable; unreadable does not mean damaged. */
static void test_bad_disk(void **state)
{
    (void)state;
    int64_t iter;
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(save(200, 1, 100), ST_OK);
    set_fault("000200/model", EIO, 1, 1000);
    assert_int_equal(find(&iter), ST_OK);
    assert_int_equal(iter, 100);
    set_fault("/state.json", EIO, 1, 1000);
    assert_int_equal(find(&iter), ST_IO);
    assert_null(strstr(fail_message(), "--overwrite"));
    set_fault(NULL, 0, 0, 0);
    workdir_flip(workdir_path("run/ckpt/000100/model.safetensors"), 70, 1);
    workdir_flip(workdir_path("run/ckpt/000200/model.safetensors"), 70, 1);
    assert_int_equal(find(&iter), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "damaged"));
}

/* A single failed call, whichever it is, neither hides the newest checkpoint nor loses one. */
static void test_one_failed_call_while_finding(void **state)
{
    (void)state;
    static const int errors[] = {EIO, EMFILE, EINTR, ENOMEM};
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(save(200, 1, 100), ST_OK);
    for (int i = 0; i < COUNT_OF(errors); i++)
        for (int n = 1;; n++) {
            int64_t iter;
            set_fault(NULL, errors[i], n, 1);
            enum status st = find(&iter);
            if (st != ST_OK) fail_msg("call %d: %s", n, fail_message());
            assert_int_equal(iter, 200);
            if (fault.calls < n) {
                assert_true(n > 10);
                break;
            }
        }
}

static void test_one_failed_call_while_pruning(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        set_fault(NULL, 0, 0, 0);
        assert_int_equal(file_remove_dir(workdir_path("run/ckpt")), ST_OK);
        assert_int_equal(save(100, 1, 100), ST_OK); /* the best */
        assert_int_equal(save(200, 1, 100), ST_OK);
        set_fault(NULL, EIO, n, 1);
        enum status st = save(300, 1, 100);
        int calls = fault.calls;
        set_fault(NULL, 0, 0, 0);
        assert_true(is_there(100) && is_there(200));
        assert_true(is_there(300) || st == ST_IO);
        if (calls < n) {
            assert_true(n > 10);
            break;
        }
    }
}

/* A checkpoint that was never read is never removed, however often the disk fails. */
static void test_unreadable_is_kept(void **state)
{
    (void)state;
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(save(200, 1, 100), ST_OK);
    set_fault("000100/", EIO, 1, 1000000);
    for (int64_t iter = 300; iter < 600; iter += 100) assert_int_equal(save(iter, 2, -1), ST_OK);
    assert_true(is_there(100));
    assert_false(is_there(200)); /* other checkpoints are removed as usual */
    assert_false(is_there(300));
    set_fault(NULL, 0, 0, 0);
    assert_int_equal(save(600, 1, 100), ST_OK);
    assert_true(is_there(100)); /* still the best */
    assert_int_equal(save(700, 0.5, 700), ST_OK);
    assert_false(is_there(100));
}

/* The message must not claim that older checkpoints are kept if there are none. */
static void test_failed_save_says_what_is_left(void **state)
{
    (void)state;
    set_fault("000100.", EACCES, 1, 1000);
    assert_int_equal(save(100, 1, 100), ST_DENIED);
    assert_non_null(strstr(fail_message(), "was not saved (there is no older one)"));
    set_fault(NULL, 0, 0, 0);
    assert_int_equal(save(100, 1, 100), ST_OK);
    set_fault("000200.", EACCES, 1, 1000);
    assert_int_equal(save(200, 1, 100), ST_DENIED);
    assert_non_null(strstr(fail_message(), "was not saved (older ones are kept)"));
}

/* Nothing is saved into a run that was moved, or into another run in its place. */
static void test_moved_run(void **state)
{
    (void)state;
    assert_int_equal(save(100, 1, 100), ST_OK);
    assert_int_equal(lock_check(&run), ST_OK);
    assert_int_equal(rename(workdir_path("run"), workdir_path("moved")), 0);
    assert_int_equal(lock_check(&run), ST_ABSENT);
    assert_non_null(strstr(fail_message(), "was moved to"));
    assert_non_null(strstr(fail_message(), "/moved while"));
    assert_int_equal(file_make_dirs(workdir_path("run")), ST_OK); /* another one takes its place */
    assert_int_equal(save(200, 1, 100), ST_ABSENT);
    assert_non_null(strstr(fail_message(), "200 was not saved: "));
    assert_true(file_exists(workdir_path("moved/ckpt/000100/DONE")));
    assert_false(file_exists(workdir_path("moved/ckpt/000200")));
    assert_false(file_exists(workdir_path("run/ckpt")));
    assert_int_equal(file_remove_dir(workdir_path("moved")), ST_OK);
    assert_int_equal(lock_check(&run), ST_ABSENT);
    assert_non_null(strstr(fail_message(), "was deleted"));
    assert_int_equal(save(300, 1, 100), ST_ABSENT);
    assert_false(file_exists(workdir_path("run/ckpt")));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_missing_is_none),
        TEST(test_unreadable_folder_is_not_empty),
        TEST(test_pruned_while_it_is_found),
        TEST(test_permissions),
        TEST(test_bad_disk),
        TEST(test_one_failed_call_while_finding),
        TEST(test_one_failed_call_while_pruning),
        TEST(test_unreadable_is_kept),
        TEST(test_failed_save_says_what_is_left),
        TEST(test_moved_run),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
