#include "base/folder.h"

#include "../support/workdir.h"
#include "base/arena.h"
#include "base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The calls from the n-th on that fail with EIO; 0: none. */
static int failing_sync, failing_open;

int fsync(int fd)
{
    if (failing_sync && --failing_sync == 0) {
        failing_sync = 1;
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int openat(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    if (failing_open && strstr(path, "0123456789ab.tmp")) {
        errno = EMFILE;
        return -1;
    }
    return ((int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat"))(at, path, flags,
                                                                              mode);
}

/* What the C library's headers make of it with _FORTIFY_SOURCE. */
int __openat_2(int at, const char *path, int flags);
int __openat_2(int at, const char *path, int flags)
{
    return openat(at, path, flags, 0);
}

static int set_up(void **state)
{
    (void)state;
    failing_sync = failing_open = 0;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    workdir_close();
    return 0;
}

static void write_in(const struct folder_writer *w, const char *text)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/DONE", w->temporary);
    workdir_write(path, text, (int64_t)strlen(text));
}

static int entries(void)
{
    struct arena a = {0};
    struct dir_entries e;
    assert_int_equal(dir_list(NULL, workdir_path("."), &a, &e), ST_OK);
    arena_release(&a);
    return e.count;
}

static void test_appears_on_commit(void **state)
{
    (void)state;
    struct folder_writer w;
    assert_int_equal(folder_writer_open(&w, workdir_path("a/b/c/"), OWN_CHECKPOINT), ST_OK);
    write_in(&w, "1");
    assert_false(file_exists(workdir_path("a/b/c")));
    assert_int_equal(folder_writer_commit(&w), ST_OK);
    assert_int_equal(workdir_size(workdir_path("a/b/c/DONE")), 1);
    assert_int_equal(entries(), 1);
}

static void test_replaces_whole(void **state)
{
    (void)state;
    struct folder_writer w;
    assert_int_equal(file_make_dirs(workdir_path("a")), ST_OK);
    workdir_write(workdir_path("a/model.safetensors"), "x", 1);
    assert_int_equal(file_make_dirs(workdir_path("a.0123456789ab.tmp")), ST_OK);
    workdir_write(workdir_path("a.0123456789ab.tmp/state.json"), "x", 1);
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    write_in(&w, "22");
    assert_true(file_exists(workdir_path("a/model.safetensors")));
    assert_int_equal(folder_writer_commit(&w), ST_OK);
    assert_false(file_exists(workdir_path("a/model.safetensors")));
    assert_false(file_exists(workdir_path("a/state.json")));
    assert_int_equal(workdir_size(workdir_path("a/DONE")), 2);
    assert_int_equal(entries(), 1);
}

static void test_discard_keeps_old_folder_and_message(void **state)
{
    (void)state;
    struct folder_writer w;
    assert_int_equal(file_make_dirs(workdir_path("a")), ST_OK);
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    write_in(&w, "1");
    /* parentheses because cmocka defines a macro fail */
    assert_int_equal((fail)(ST_IO, "the words"), ST_IO);
    folder_writer_discard(&w);
    assert_string_equal(fail_message(), "the words");
    assert_true(file_exists(workdir_path("a")));
    assert_false(file_exists(workdir_path("a/DONE")));
    assert_int_equal(entries(), 1);
}

static void test_existing_file_is_an_error(void **state)
{
    (void)state;
    struct folder_writer w;
    workdir_write(workdir_path("a"), "x", 1);
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    assert_int_equal(folder_writer_commit(&w), ST_IO);
    assert_non_null(strstr(fail_message(), "is not a directory"));
    assert_int_equal(workdir_size(workdir_path("a")), 1);
    assert_int_equal(entries(), 1);
}

/* Only private names are removed: a folder named a.tmp is the user's. */
static void test_neighbours_are_kept(void **state)
{
    (void)state;
    static const char *const names[] = {"a.tmp", "a.old.tmp", "ab.0123456789ab.tmp"};
    struct folder_writer w;
    for (int i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(file_make_dirs(workdir_path(names[i])), ST_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
        assert_int_equal(folder_writer_commit(&w), ST_OK);
    }
    for (int i = 0; i < COUNT_OF(names); i++) assert_true(file_exists(workdir_path(names[i])));
    assert_int_equal(entries(), 1 + COUNT_OF(names));
}

/* A file that a user puts into the old folder while the new one is written, or when it is looked at
 * no more. */
static void test_a_foreign_file_is_kept(void **state)
{
    (void)state;
    struct folder_writer w;
    char kept[2048];
    for (int i = 0; i < 2; i++) { /* the second writer does not take it for a leftover */
        assert_int_equal(file_make_dirs(workdir_path("a")), ST_OK);
        assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
        write_in(&w, "1");
        if (i == 0) {
            workdir_write(workdir_path("a/notes"), "mine", 4);
            snprintf(kept, sizeof kept, "%s/notes", w.temporary);
        }
        assert_int_equal(folder_writer_commit(&w), ST_OK);
        assert_int_equal(workdir_size(workdir_path("a/DONE")), 1);
        assert_int_equal(workdir_size(kept), 4);
    }
    workdir_write(workdir_path("a/notes"), "mine", 4);
    assert_int_equal(folder_remove_at(NULL, workdir_path("a"), OWN_CHECKPOINT), ST_USAGE);
    assert_int_equal(workdir_size(workdir_path("a/notes")), 4);
    assert_int_equal(unlink(workdir_path("a/notes")), 0);
    assert_int_equal(folder_remove_at(NULL, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    assert_int_equal(entries(), 1);
}

static void test_two_writers(void **state)
{
    (void)state;
    struct folder_writer one, two;
    assert_int_equal(folder_writer_open(&one, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    assert_int_equal(folder_writer_open(&two, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    write_in(&one, "1");
    write_in(&two, "22");
    assert_int_equal(folder_writer_commit(&two), ST_OK);
    assert_int_equal(folder_writer_commit(&one), ST_OK);
    assert_int_equal(workdir_size(workdir_path("a/DONE")), 1);
    assert_int_equal(entries(), 1);
}

/* A writer was killed between two renames, or just after the second. */
static void test_set_aside_is_put_back(void **state)
{
    (void)state;
    const char *aside = workdir_path("a.0123456789ab.old.tmp");
    assert_int_equal(file_make_dirs(aside), ST_OK);
    workdir_write(workdir_path("a.0123456789ab.old.tmp/DONE"), "333", 3);
    bool interrupted = false;
    assert_int_equal(folder_is_interrupted(workdir_path("a"), &interrupted), ST_OK);
    assert_true(interrupted);
    assert_int_equal(folder_restore_at(NULL, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    assert_int_equal(workdir_size(workdir_path("a/DONE")), 3);
    assert_int_equal(folder_is_interrupted(workdir_path("a"), &interrupted), ST_OK);
    assert_false(interrupted);
    assert_int_equal(file_make_dirs(aside), ST_OK);
    assert_int_equal(folder_restore_at(NULL, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    assert_int_equal(workdir_size(workdir_path("a/DONE")), 3);
    assert_int_equal(entries(), 1);
}

/* After the exchange, the temporary name is that of the old folder. It stays if the exchange may be
 * undone by a crash, and goes with the next writer. */
static void test_failing_syncs_lose_nothing(void **state)
{
    (void)state;
    struct folder_writer w;
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    write_in(&w, "1");
    assert_int_equal(folder_writer_commit(&w), ST_OK);
    for (int nth = 1; nth <= 3; nth++) {
        assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
        write_in(&w, "22");
        failing_sync = nth;
        assert_int_equal(folder_writer_commit(&w), ST_IO);
        failing_sync = 0;
        assert_non_null(strstr(fail_message(), "Input/output error"));
        assert_int_equal(workdir_size(workdir_path("a/DONE")), nth < 3 ? 1 : 2);
        assert_int_equal(entries(), nth < 3 ? 1 : 2);
    }
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    folder_writer_discard(&w);
    assert_int_equal(entries(), 1);
}

/* What cannot be opened may be a living writer's. */
static void test_leftovers_that_cannot_be_opened_stay(void **state)
{
    (void)state;
    struct folder_writer w;
    const char *left = workdir_path("a.0123456789ab.tmp");
    assert_int_equal(file_make_dirs(left), ST_OK);
    failing_open = 1;
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    folder_writer_discard(&w);
    assert_true(file_is_dir(left));
    failing_open = 0;
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    folder_writer_discard(&w);
    assert_int_equal(entries(), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_appears_on_commit),
        TEST(test_replaces_whole),
        TEST(test_discard_keeps_old_folder_and_message),
        TEST(test_existing_file_is_an_error),
        TEST(test_neighbours_are_kept),
        TEST(test_a_foreign_file_is_kept),
        TEST(test_two_writers),
        TEST(test_set_aside_is_put_back),
        TEST(test_failing_syncs_lose_nothing),
        TEST(test_leftovers_that_cannot_be_opened_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
