#include "base/file.h"

#include "../support/workdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int make(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    workdir_close();
    return 0;
}

static int entries(void)
{
    int n = 0;
    DIR *d = opendir(workdir_path("."));
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void test_write_and_read(void **state)
{
    (void)state;
    struct arena a = {0};
    char *data;
    int64_t size;
    const char *path = workdir_path("x.bin");
    assert_false(file_exists(path));
    assert_int_equal(file_write(path, "a\0b", 3), ST_OK);
    assert_true(file_exists(path));
    assert_false(file_is_dir(path));
    assert_int_equal(file_read(path, &a, &data, &size), ST_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b\0", 4);
    assert_int_equal(file_write(path, "", 0), ST_OK); /* replaces */
    assert_int_equal(file_read(path, &a, &data, &size), ST_OK);
    assert_int_equal(size, 0);
    assert_int_equal(entries(), 1);
    arena_release(&a);
}

/* Files in /proc report a size of 0, so file_read must grow its buffer. */
static void test_read_file_without_size(void **state)
{
    (void)state;
    struct arena a = {0};
    char *data;
    int64_t size;
    assert_int_equal(file_read("/proc/self/smaps", &a, &data, &size), ST_OK);
    assert_true(size > 8192);
    assert_int_equal(strlen(data), size);
    arena_release(&a);
}

static void test_failures_name_the_path(void **state)
{
    (void)state;
    struct arena a = {0};
    char *data;
    int64_t size = 77;
    const char *missing = workdir_path("missing");
    assert_int_equal(file_read(missing, &a, &data, &size), ST_ABSENT);
    assert_non_null(strstr(fail_message(), missing));
    assert_non_null(strstr(fail_message(), "No such file"));
    assert_int_equal(size, 77);
    assert_int_equal(file_read(workdir_path("."), &a, &data, &size), ST_FORMAT);
    assert_int_equal(file_write(workdir_path("no/such/dir"), "x", 1), ST_ABSENT);
    arena_release(&a);
}

static void test_ranges(void **state)
{
    (void)state;
    const char *path = workdir_text("m", "ranges");
    char text[8] = "";
    int64_t size;
    int fd;
    assert_int_equal(file_open(path, &fd, &size), ST_OK);
    assert_int_equal(size, 6);
    assert_int_equal(file_read_range(fd, path, 2, 4, text), ST_OK);
    assert_string_equal(text, "nges");
    assert_int_equal(file_read_range(fd, path, 2, 5, text), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "was cut to 6 bytes"));
    close(fd);
    assert_int_equal(file_read_range(fd, path, 2, 4, text), ST_IO);
}

static void test_directories(void **state)
{
    (void)state;
    assert_int_equal(file_make_dirs(workdir_path("a//b/c/")), ST_OK);
    assert_true(file_is_dir(workdir_path("a/b/c")));
    assert_int_equal(file_make_dirs(workdir_path("a/b/c")), ST_OK);
    assert_int_equal(file_make_parent(workdir_path("a/d/f")), ST_OK);
    assert_true(file_is_dir(workdir_path("a/d")) && !file_exists(workdir_path("a/d/f")));
    assert_int_equal(file_make_parent("f"), ST_OK);
    workdir_text("a/b/c/f", "x");
    workdir_text("kept", "x");
    assert_int_equal(symlink(workdir_path("kept"), workdir_path("a/link")), 0);
    assert_int_equal(file_make_dirs(workdir_path("kept/d")), ST_FORMAT);
    assert_int_equal(file_remove_dir(workdir_path("kept")), ST_FORMAT);
    assert_int_equal(file_remove_dir(workdir_path("a")), ST_OK);
    assert_false(file_exists(workdir_path("a")));
    assert_true(file_exists(workdir_path("kept"))); /* removes a symbolic link, not its target */
    assert_int_equal(file_remove_dir(workdir_path("a")), ST_OK);
}

static void test_writer_is_all_or_nothing(void **state)
{
    (void)state;
    struct arena a = {0};
    struct file_writer w;
    char *data;
    int64_t size;
    const char *path = workdir_text("w", "old");
    assert_int_equal(file_writer_open(&w, path), ST_OK);
    fprintf(w.stream, "new");
    fflush(w.stream);
    assert_int_equal(file_read(path, &a, &data, &size), ST_OK);
    assert_string_equal(data, "old");
    file_writer_discard(&w);
    assert_int_equal(entries(), 1);

    assert_int_equal(file_writer_open(&w, path), ST_OK);
    fprintf(w.stream, "new");
    assert_int_equal(file_writer_commit(&w), ST_OK);
    file_writer_discard(&w); /* no effect after a commit */
    assert_int_equal(file_read(path, &a, &data, &size), ST_OK);
    assert_string_equal(data, "new");
    assert_int_equal(entries(), 1);
    arena_release(&a);
}

/* A limit on the file size simulates a full disk: early writes reach the system and fail there. */
static void test_full_disk(void **state)
{
    (void)state;
    static char large[1 << 20];
    struct arena a = {0};
    char *data;
    int64_t size;
    const char *path = workdir_text("w", "old");
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum status st = file_write(path, large, sizeof large);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, ST_IO);
    assert_non_null(strstr(fail_message(), path));
    assert_non_null(strstr(fail_message(), "File too large")); /* the message contains the reason */
    assert_int_equal(file_read(path, &a, &data, &size), ST_OK);
    assert_string_equal(data, "old");
    assert_int_equal(entries(), 1);
    arena_release(&a);
}

/* In a shared folder, another user could create a link with a temporary name, if guessed. */
static void test_temporary_names_follow_no_link(void **state)
{
    (void)state;
    struct arena a = {0};
    char *data;
    int64_t size;
    const char *path = workdir_text("w", "old"), *victim = workdir_text("victim", "precious");
    const char *guess = arena_printf(&a, "%s.%d.tmp", path, (int)getpid());
    assert_int_equal(symlink(victim, guess), 0);
    assert_int_equal(file_write(path, "new", 3), ST_OK);
    assert_int_equal(file_read(victim, &a, &data, &size), ST_OK);
    assert_string_equal(data, "precious");
    assert_int_equal(file_read(path, &a, &data, &size), ST_OK);
    assert_string_equal(data, "new");
    arena_release(&a);
}

static void test_temporary_names(void **state)
{
    (void)state;
    char one[FILE_TEMPORARY], two[FILE_TEMPORARY];
    assert_int_equal(file_temporary_name("log.jsonl", one), ST_OK);
    assert_int_equal(file_temporary_name("log.jsonl", two), ST_OK);
    assert_string_not_equal(one, two);
    assert_int_equal(file_temporary_of(one), 9);
    assert_int_equal(file_temporary_of("log.jsonl.1234.tmp"), 0); /* may be the user's */
    assert_int_equal(file_temporary_of("log.jsonl"), 0);
    assert_int_equal(file_temporary_of("foo.tmp"), 0);
    assert_int_equal(file_temporary_of("notes.final.tmp"), 0);
    assert_int_equal(file_temporary_of("foo.bad.tmp"), 0);
    assert_int_equal(file_temporary_of(".tmp"), 0);
}

/* Each errno maps to one status. */
static void test_status_of_errors(void **state)
{
    (void)state;
    static const struct {
        int error;
        enum status st;
    } cases[] = {{ENOENT, ST_ABSENT}, {EACCES, ST_DENIED}, {EMFILE, ST_BUSY}, {ENOMEM, ST_BUSY},
                 {EINTR, ST_BUSY},    {ENOSPC, ST_FULL},   {EIO, ST_IO},      {ENOTDIR, ST_FORMAT}};
    for (int i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(file_fail("x", cases[i].error), cases[i].st);
        assert_non_null(strstr(fail_message(), strerror(cases[i].error)));
    }
}

/* Reading a FIFO without a writer would hang, reading /dev/zero would fill the memory. */
static void test_only_regular_files_are_read(void **state)
{
    (void)state;
    struct arena a = {0};
    char *data;
    int64_t size;
    const char *fifo = workdir_path("fifo");
    assert_int_equal(mkfifo(fifo, 0666), 0);
    alarm(20); /* ends the program if a call hangs */
    assert_int_equal(file_read(fifo, &a, &data, &size), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "is a FIFO, not a regular file"));
    assert_int_equal(file_read("/dev/null", &a, &data, &size), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "is a device"));
    assert_int_equal(file_write(fifo, "x", 1), ST_FORMAT);
    assert_int_equal(file_write("/dev/null", "x", 1), ST_FORMAT);
    alarm(0);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_write_and_read, make, unmake),
        cmocka_unit_test_setup_teardown(test_read_file_without_size, make, unmake),
        cmocka_unit_test_setup_teardown(test_failures_name_the_path, make, unmake),
        cmocka_unit_test_setup_teardown(test_ranges, make, unmake),
        cmocka_unit_test_setup_teardown(test_directories, make, unmake),
        cmocka_unit_test_setup_teardown(test_writer_is_all_or_nothing, make, unmake),
        cmocka_unit_test_setup_teardown(test_full_disk, make, unmake),
        cmocka_unit_test_setup_teardown(test_temporary_names_follow_no_link, make, unmake),
        cmocka_unit_test_setup_teardown(test_temporary_names, make, unmake),
        cmocka_unit_test(test_status_of_errors),
        cmocka_unit_test_setup_teardown(test_only_regular_files_are_read, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
