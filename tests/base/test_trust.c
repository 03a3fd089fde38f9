#include "base/trust.h"

#include "../support/cases.h"
#include "../support/workdir.h"
#include "base/file.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* workdir/cache/strobe/kernels/a.cubin; only this user can write the file and its folders */
static char cache[256], folder[300], file[320];

static int setup(void **state)
{
    (void)state;
    const char *root = workdir_open();
    snprintf(cache, sizeof cache, "%s/cache", root);
    snprintf(folder, sizeof folder, "%s/strobe/kernels", cache);
    snprintf(file, sizeof file, "%s/a.cubin", folder);
    struct arena a = {0};
    const char *real;
    enum status st = trust_folder(folder, &a, &real);
    if (st == ST_OK) st = trust_write_json(json_object(), 0, file);
    arena_release(&a);
    return st != ST_OK;
}

static int teardown(void **state)
{
    (void)state;
    chmod(cache, 0700);
    workdir_close();
    return 0;
}

static enum status check(const char *path)
{
    struct arena a = {0};
    const char *real;
    enum status st = trust_check(path, &a, &real);
    arena_release(&a);
    return st;
}

static void expect_refused(const char *path, const char *because)
{
    assert_int_equal(check(path), ST_UNSUPPORTED);
    if (!strstr(fail_message(), because)) fail_msg("'%s' is not in '%s'", because, fail_message());
}

static void test_created_for_the_user_alone(void **state)
{
    (void)state;
    struct stat info;
    const char *const made[] = {cache, folder};
    for (int i = 0; i < COUNT_OF(made); i++) {
        assert_int_equal(stat(made[i], &info), 0);
        assert_int_equal(info.st_mode & 07777, 0700);
    }
    assert_int_equal(check(file), ST_OK);
    assert_int_equal(check(folder), ST_OK);
}

static void test_a_file_that_others_can_write(void **state)
{
    (void)state;
    static const mode_t bad[] = {0620, 0602, 0666};
    for (int i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(chmod(file, bad[i]), 0);
        expect_refused(file, "/a.cubin is not used, because other users can write ");
        assert_non_null(strstr(fail_message(), "`chmod go-w '"));
    }
    assert_int_equal(chmod(file, 0644), 0);
    assert_int_equal(check(file), ST_OK);
}

/* The file is private even if the umask allows a group or everyone to write. */
static void test_written_for_the_user_alone(void **state)
{
    (void)state;
    struct stat info;
    mode_t before = umask(0);
    assert_int_equal(chmod(file, 0666), 0);
    assert_int_equal(trust_write_json(json_pack("{s:i}", "a", 1), 0, file), ST_OK);
    assert_int_equal(umask(before), 0);
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(info.st_size, strlen("{\"a\": 1}"));
}

static void test_a_folder_above_that_others_can_write(void **state)
{
    (void)state;
    assert_int_equal(chmod(cache, 0777), 0);
    expect_refused(file, "/cache (mode 777); ");
    expect_refused(folder, "/cache (mode 777); ");
    assert_int_equal(chmod(cache, 01777), 0); /* others cannot rename its entries */
    assert_int_equal(check(file), ST_OK);
    expect_refused(cache, "/cache (mode 1777); "); /* but they can add to it */
    assert_int_equal(chmod(cache, 0755), 0);
    assert_int_equal(check(file), ST_OK);
}

static void test_a_missing_path(void **state)
{
    (void)state;
    char missing[512];
    snprintf(missing, sizeof missing, "%s/not/there", folder);
    assert_int_equal(check(missing), ST_OK);
    assert_int_equal(chmod(cache, 0770), 0);
    expect_refused(missing, "/cache (mode 770); ");
    struct arena a = {0};
    const char *real;
    assert_int_equal(trust_folder(missing, &a, &real), ST_UNSUPPORTED);
    assert_false(file_exists(missing)); /* nothing is created there */
    arena_release(&a);
}

static void test_through_a_link(void **state)
{
    (void)state;
    char there[256];
    const char *real;
    struct arena a = {0};
    snprintf(there, sizeof there, "%s", workdir_path("link"));
    assert_int_equal(symlink(folder, there), 0);
    assert_int_equal(trust_folder(there, &a, &real), ST_OK);
    assert_non_null(strstr(real, "/cache/strobe/kernels"));
    assert_int_equal(chmod(cache, 0777), 0);
    expect_refused(there, "/cache (mode 777); ");
    assert_int_equal(chmod(cache, 0700), 0);
    char one[512];
    snprintf(one, sizeof one, "%s.json", there);
    workdir_write(workdir_path("mine"), "mine", 4);
    assert_int_equal(symlink("mine", one), 0);
    expect_refused(one, "it is a symbolic link");
    arena_release(&a);
}

/* *ret_real leads to the checked file, even if a link in the path is changed afterwards. */
static void test_the_path_without_links(void **state)
{
    (void)state;
    struct arena a = {0};
    const char *link = arena_strdup(&a, workdir_path("link")), *real, *again;
    const char *const below[] = {"a.cubin", "missing", "missing/too"};
    bool warned = false;
    assert_int_equal(symlink(folder, link), 0);
    for (int i = 0; i < COUNT_OF(below); i++) {
        const char *path = arena_printf(&a, "%s//%s", link, below[i]);
        assert_int_equal(trust_check(path, &a, &real), ST_OK);
        assert_non_null(strstr(real, arena_printf(&a, "/cache/strobe/kernels/%s", below[i])));
        assert_null(strstr(real, "link"));
        assert_true(trust_path(path, &warned, &a, &again));
        assert_string_equal(real, again);
        assert_int_equal(trust_parent(path, &a, &again), ST_OK);
        assert_string_equal(real, again);
    }
    assert_int_equal(trust_check("/missing of root", &a, &real), ST_OK);
    assert_string_equal(real, "/missing of root");
    arena_release(&a);
}

/* The working directory has been removed, so a relative path names nothing. */
static void test_no_working_directory(void **state)
{
    (void)state;
    int ended = -1;
    pid_t child = fork();
    if (child == 0) {
        const char *gone = workdir_path("gone");
        alarm(10);
        bool is_gone = mkdir(gone, 0700) == 0 && chdir(gone) == 0 && rmdir(gone) == 0;
        _exit(is_gone && check("a.json") == ST_ABSENT && check("a/b.json") == ST_ABSENT ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

static void test_another_owner(void **state)
{
    (void)state;
    enum { ANOTHER = 54321 };
    if (chown(file, ANOTHER, (gid_t)-1) != 0) SKIP("only root can give a file away");
    expect_refused(file, "belongs to another user (uid 54321), who could change it; set ");
    assert_int_equal(chown(file, geteuid(), (gid_t)-1), 0);
    assert_int_equal(chown(cache, ANOTHER, (gid_t)-1), 0);
    expect_refused(file, "/cache belongs to another user (uid 54321)");
    assert_int_equal(chown(cache, geteuid(), (gid_t)-1), 0);
    assert_int_equal(check(file), ST_OK);
}

static void test_warns_once(void **state)
{
    (void)state;
    bool warned = false;
    struct arena a = {0};
    const char *real;
    assert_true(trust_path(file, &warned, &a, &real));
    assert_false(warned);
    assert_int_equal(chmod(file, 0666), 0);
    assert_false(trust_path(file, &warned, &a, &real));
    assert_true(warned);
    assert_false(trust_path(file, &warned, &a, &real));
    arena_release(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_created_for_the_user_alone),
        TEST(test_a_file_that_others_can_write),
        TEST(test_written_for_the_user_alone),
        TEST(test_a_folder_above_that_others_can_write),
        TEST(test_a_missing_path),
        TEST(test_through_a_link),
        TEST(test_the_path_without_links),
        TEST(test_no_working_directory),
        TEST(test_another_owner),
        TEST(test_warns_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
