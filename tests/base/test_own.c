#include "base/own.h"

#include "../support/workdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    workdir_close();
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[1024];
    strcpy(path, workdir_path(name));
    assert_int_equal(file_make_parent(path), ST_OK);
    assert_int_equal(file_write(path, text, (int64_t)strlen(text)), ST_OK);
}

static void expect_refused(enum status st, const char *words)
{
    assert_int_equal(st, ST_USAGE);
    if (!strstr(fail_message(), words)) fail_msg("%s: %s", words, fail_message());
}

static enum status check(const char *name, enum own_folder kind)
{
    return own_check(workdir_path(name), kind);
}

static void test_a_set_with_nothing_foreign(void **state)
{
    (void)state;
    assert_int_equal(check("set", OWN_SET), ST_OK); /* missing */
    put("set/train.bin", "ab");
    put("set/val.bin", "ab");
    expect_refused(check("set", OWN_SET), "set has no meta.json that Strobe wrote");
    put("set/meta.json", "{\"vocab_size\":65}");
    expect_refused(check("set", OWN_SET), "set has no meta.json that Strobe wrote");
    put("set/meta.json", "{\"v\":1,\"kind\":\"characters\"");
    assert_int_equal(check("set", OWN_SET), ST_OK);
    put("set/train.bin.0123456789ab.tmp", "ab");
    assert_int_equal(check("set", OWN_SET), ST_OK);
    put("set/train.bin.final.tmp", "mine");
    expect_refused(check("set", OWN_SET), "set/train.bin.final.tmp was not written by Strobe");
    assert_int_equal(unlink(workdir_path("set/train.bin.final.tmp")), 0);
    put("set/prepare.py", "x");
    expect_refused(check("set", OWN_SET), "set/prepare.py was not written by Strobe");
    assert_int_equal(unlink(workdir_path("set/prepare.py")), 0);
    assert_int_equal(mkdir(workdir_path("set/val.bin.0123456789ab.tmp"), 0777), 0);
    expect_refused(check("set", OWN_SET), "was not written by Strobe");
}

static void test_links_are_not_followed(void **state)
{
    (void)state;
    put("set/meta.json", "{\"v\":1,\"kind\":\"characters\"");
    put("mine", "mine");
    assert_int_equal(symlink("../mine", workdir_path("set/train.bin")), 0);
    expect_refused(check("set", OWN_SET), "set/train.bin was not written");
    assert_int_equal(unlink(workdir_path("set/train.bin")), 0);
    assert_int_equal(symlink("set", workdir_path("link")), 0);
    expect_refused(check("link", OWN_SET), "link is a symbolic link");
    assert_int_equal(symlink("mine", workdir_path("page.html")), 0);
    expect_refused(own_check_file(workdir_path("page.html"), OWN_PAGE), "is a symbolic link");
}

/* A report follows no link to a file that it reads. */
static void test_links_in_a_run(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool read;
    } all[] = {{"samples.txt", true}, {"log.jsonl", true}, {"plan.txt", false}, {"ckpt", false}};
    char run[1024], link[1100];
    put("run/config.conf", "# run ");
    put("mine", "mine");
    strcpy(run, workdir_path("run"));
    for (int i = 0; i < COUNT_OF(all); i++) {
        snprintf(link, sizeof link, "%s/%s", run, all[i].name);
        assert_int_equal(own_check_links(run, true), ST_OK);
        assert_int_equal(symlink("../mine", link), 0);
        expect_refused(own_check_links(run, true), all[i].name);
        enum status st = own_check_links(run, false);
        if (all[i].read)
            expect_refused(st, all[i].name);
        else
            assert_int_equal(st, ST_OK);
        assert_int_equal(unlink(link), 0);
    }
}

static void test_checkpoints(void **state)
{
    (void)state;
    put("ckpt/000010/DONE", "");
    put("ckpt/000020.0123456789ab.tmp/DONE", "");
    assert_int_equal(check("ckpt", OWN_CHECKPOINTS), ST_OK);
    put("ckpt/000010/notes", "mine");
    expect_refused(check("ckpt", OWN_CHECKPOINTS), "ckpt/000010/notes was not written by Strobe");
    expect_refused(check("ckpt/000010", OWN_CHECKPOINT), "000010/notes was not written by Strobe");
    assert_int_equal(unlink(workdir_path("ckpt/000010/notes")), 0);
    put("ckpt/model.pt", "mine");
    expect_refused(check("ckpt", OWN_CHECKPOINTS), "ckpt/model.pt was not written by Strobe");
    assert_int_equal(unlink(workdir_path("ckpt/model.pt")), 0);
    put("ckpt/000030/model.safetensors", "of another program");
    expect_refused(check("ckpt/000030", OWN_CHECKPOINT), "000030 has no state.json that Strobe");
    expect_refused(check("ckpt", OWN_CHECKPOINTS), "ckpt/000030/model.safetensors was not written");
}

static struct own_found look(struct arena *a)
{
    struct own_found f;
    assert_int_equal(own_look(workdir_path("run"), OWN_RUN, a, &f), ST_OK);
    return f;
}

static void test_a_run(void **state)
{
    (void)state;
    struct arena a = {};
    put("run/config.conf", "learning = 1");
    struct own_found f = look(&a);
    assert_true(!f.recognized && !f.foreign);
    assert_string_equal(f.by_name, "config.conf");
    put("run/ckpt/000010/state.json", "{\"v\":1,\"iter\":10");
    assert_true(look(&a).recognized);
    put("run/notes", "mine");
    f = look(&a);
    assert_true(f.recognized);
    assert_string_equal(f.foreign, "notes");
    arena_release(&a);
}

static void test_a_file_is_replaced_by_one_of_its_kind(void **state)
{
    (void)state;
    static const char picture[] =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart-picture\" viewBox";
    static const char other[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox";
    char path[1024];
    strcpy(path, workdir_path("a.svg"));
    assert_int_equal(own_write(path, OWN_PICTURE, picture, sizeof picture), ST_OK);
    assert_int_equal(own_write(path, OWN_PICTURE, picture, sizeof picture), ST_OK);
    expect_refused(own_write(path, OWN_PAGE, "x", 1), "is not a page of Strobe's");
    put("a.svg", "");
    assert_int_equal(own_check_writable(path, OWN_PICTURE), ST_OK);
    put("a.svg", other);
    expect_refused(own_write(path, OWN_PICTURE, picture, sizeof picture), "is not a picture of");
    own_remove(path, OWN_PICTURE);
    assert_true(file_exists(path));
    put("a.svg", picture);
    own_remove(path, OWN_PICTURE);
    assert_false(file_exists(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_set_with_nothing_foreign, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_links_are_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_links_in_a_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_checkpoints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_is_replaced_by_one_of_its_kind, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
