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

/* The n-th and later calls of fsync fail with EIO; 0: no call fails. */
static int failing_sync;

int fsync(int fd)
{
    if (failing_sync && --failing_sync == 0) {
        failing_sync = 1;
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

static bool without_exchange;

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    if (without_exchange && flags) {
        errno = EINVAL;
        return -1;
    }
    return ((int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT, "renameat2"))(
        from_at, from, to_at, to, flags);
}

static int set_up(void **state)
{
    (void)state;
    failing_sync = 0;
    without_exchange = false;
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
    struct file_entries e;
    assert_int_equal(file_list(workdir_path("."), &a, &e), ST_OK);
    arena_release(&a);
    return e.count;
}

static void test_appears_on_commit(void **state)
{
    (void)state;
    struct folder_writer w;
    assert_int_equal(file_make_dirs(workdir_path("a/b")), ST_OK);
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
    assert_int_equal(folder_writer_commit(&w), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "is not a directory"));
    assert_int_equal(workdir_size(workdir_path("a")), 1);
    assert_int_equal(entries(), 1);
}

/* Only folders with Strobe's temporary names are removed; a.tmp belongs to the user. */
static void test_neighbors_are_kept(void **state)
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

/* A user adds a file to the old folder while the new one is written, or after the last check. */
static void test_a_foreign_file_is_kept(void **state)
{
    (void)state;
    struct folder_writer w;
    char kept[2048];
    for (int i = 0; i < 2; i++) { /* the second writer does not remove it as a leftover */
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
    assert_int_equal(folder_remove(workdir_path("a"), OWN_CHECKPOINT), ST_USAGE);
    assert_int_equal(workdir_size(workdir_path("a/notes")), 4);
    assert_int_equal(unlink(workdir_path("a/notes")), 0);
    assert_int_equal(folder_remove(workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    assert_int_equal(entries(), 1);
}

static void test_one_writer_at_a_time(void **state)
{
    (void)state;
    struct folder_writer one, two;
    assert_int_equal(folder_writer_open(&one, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    write_in(&one, "1");
    assert_int_equal(folder_writer_open(&two, workdir_path("a"), OWN_CHECKPOINT), ST_USAGE);
    assert_non_null(strstr(fail_message(), "another process is writing"));
    assert_int_equal(folder_writer_commit(&one), ST_OK);
    assert_int_equal(folder_writer_open(&two, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
    folder_writer_discard(&two);
    assert_int_equal(workdir_size(workdir_path("a/DONE")), 1);
    assert_int_equal(entries(), 1);
}

/* If the file system cannot exchange names, only a checkpoint is replaced. */
static void test_without_exchange(void **state)
{
    (void)state;
    struct folder_writer w;
    without_exchange = true;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_CHECKPOINT), ST_OK);
        write_in(&w, i ? "22" : "1");
        assert_int_equal(folder_writer_commit(&w), ST_OK);
        assert_int_equal(workdir_size(workdir_path("a/DONE")), 1 + i);
    }
    assert_int_equal(folder_writer_open(&w, workdir_path("a"), OWN_SET), ST_OK);
    assert_int_equal(folder_writer_commit(&w), ST_UNSUPPORTED);
    assert_non_null(strstr(fail_message(), "delete it first"));
    assert_int_equal(workdir_size(workdir_path("a/DONE")), 2);
    assert_int_equal(entries(), 1);
}

/* The directory is moved, and another one is created in its place: it stays empty. */
static void test_a_moved_directory(void **state)
{
    (void)state;
    struct folder_writer w;
    assert_int_equal(file_make_dirs(workdir_path("in")), ST_OK);
    assert_int_equal(folder_writer_open(&w, workdir_path("in/a"), OWN_CHECKPOINT), ST_OK);
    write_in(&w, "1");
    assert_int_equal(rename(workdir_path("in"), workdir_path("moved")), 0);
    assert_int_equal(file_make_dirs(workdir_path("in")), ST_OK);
    assert_int_equal(folder_writer_commit(&w), ST_ABSENT);
    assert_non_null(strstr(fail_message(), "was moved to"));
    assert_false(file_exists(workdir_path("in/a")) || file_exists(workdir_path("moved/a")));
}

/* After the exchange, the old folder has the temporary name. It stays if a crash could undo the
 * exchange; the next writer removes it. */
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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_appears_on_commit),
        TEST(test_replaces_whole),
        TEST(test_discard_keeps_old_folder_and_message),
        TEST(test_existing_file_is_an_error),
        TEST(test_neighbors_are_kept),
        TEST(test_a_foreign_file_is_kept),
        TEST(test_one_writer_at_a_time),
        TEST(test_without_exchange),
        TEST(test_failing_syncs_lose_nothing),
        TEST(test_a_moved_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
