#include "data/source.h"

#include "../support/cases.h"
#include "../support/workdir.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/dataset.h"
#include "data/download.h"
#include "data/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;

/* Tests neither read the user's cache nor reach the network: requests go through a proxy that does
 * not exist. */
static int set_up(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", workdir_open(), 1);
    setenv("https_proxy", "http://127.0.0.1:9", 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    workdir_close();
    return 0;
}

static void assert_message_has(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

static void test_own_file_is_used_unchanged(void **state)
{
    (void)state;
    struct source_text t;
    workdir_write(workdir_path("own.txt"), "to be\r\n", 7);
    assert_int_equal(source_shakespeare(&t, workdir_path("own.txt"), false, &arena), ST_OK);
    assert_int_equal(t.bytes, 7);
    assert_string_equal(t.text, "to be\r\n");
    assert_string_equal(t.from, workdir_path("own.txt"));
    assert_int_equal(source_shakespeare(&t, workdir_path("none.txt"), true, &arena), ST_ABSENT);
    assert_message_has("none.txt");
    workdir_write(workdir_path("empty.txt"), "", 0);
    assert_int_equal(source_file(&t, workdir_path("empty.txt"), &arena), ST_FORMAT);
}

/* A cached file of the right length but with other contents must not be used. */
static void test_network_error_suggests_remedy(void **state)
{
    (void)state;
    struct source_text t = {.bytes = -1};
    assert_int_equal(file_make_dirs(workdir_path("strobe")), ST_OK);
    workdir_write(workdir_path("strobe/tinyshakespeare.txt"), "First Citizen:\n", 15);
    assert_int_not_equal(source_shakespeare(&t, NULL, false, &arena), ST_OK);
    assert_int_equal(t.bytes, -1);
    assert_message_has("--from FILE");
    assert_message_has("--fall_back");
}

#ifdef HAVE_CURL
static void test_download_rejects_wrong_contents(void **state)
{
    (void)state;
    char text[1000], digest[HASH_HEX], url[1100];
    for (int i = 0; i < (int)sizeof text; i++) text[i] = (char)('a' + i % 26);
    hash_bytes(text, sizeof text, digest);
    workdir_write(workdir_path("there"), text, sizeof text);
    snprintf(url, sizeof url, "file://%s", workdir_path("there"));
    struct remote_file f = {.url = url, .sha256 = digest, .bytes = sizeof text};
    const char *here = workdir_path("here");
    assert_int_equal(download(&f, here), ST_OK);
    char *got;
    int64_t bytes;
    assert_int_equal(file_read(here, &arena, &got, &bytes), ST_OK);
    assert_int_equal(bytes, sizeof text);
    assert_memory_equal(got, text, sizeof text);
    remove(here);

    workdir_flip(workdir_path("there"), 500, 3);
    assert_int_equal(download(&f, here), ST_FORMAT);
    char part[32];
    snprintf(part, sizeof part, "%.12s", digest);
    assert_message_has(part);
    workdir_flip(workdir_path("there"), 500, 3);

    workdir_truncate(workdir_path("there"), 999);
    assert_int_equal(download(&f, here), ST_FORMAT);
    assert_message_has("999 bytes");
    workdir_truncate(workdir_path("there"), 1001);
    assert_int_equal(download(&f, here), ST_FORMAT);
    assert_message_has("is longer than");
    remove(workdir_path("there"));
    assert_int_equal(download(&f, here), ST_IO);
    assert_false(file_exists(here));
}
#endif

/* STROBE_TEST_TEXT names a copy of Tiny Shakespeare, if the machine has one. The expected numbers
 * are those that nanoGPT's prepare.py prints. */
static void test_the_real_text(void **state)
{
    (void)state;
    const char *path = getenv("STROBE_TEST_TEXT");
    if (!path) {
        SKIP("STROBE_TEST_TEXT names no copy of Tiny Shakespeare");
    }
    struct source_text t;
    assert_int_equal(source_file(&t, path, &arena), ST_OK);
    assert_int_equal(file_make_dirs(workdir_path("strobe")), ST_OK);
    workdir_write(workdir_path("strobe/tinyshakespeare.txt"), t.text, t.bytes);
    assert_int_equal(source_shakespeare(&t, NULL, false, &arena), ST_OK);
    assert_non_null(strstr(t.from, "the cache"));
    struct dataset_facts facts;
    const struct dataset_text text = {&data_characters, t.text, t.bytes, t.from};
    assert_int_equal(dataset_write(workdir_path("data"), "shakespeare_char", &text, false, &facts),
                     ST_OK);
    assert_int_equal(facts.vocabulary, 65);
    assert_int_equal(facts.count[SPLIT_TRAIN], 1003854);
    assert_int_equal(facts.count[SPLIT_VAL], 111540);
    struct dataset d;
    assert_int_equal(dataset_open(&d, workdir_path("data"), "shakespeare_char", &arena), ST_OK);
    int32_t *ids;
    int64_t count;
    assert_int_equal(vocabulary_encode(&d.vocabulary, "\n Aa", &arena, &ids, &count), ST_OK);
    const int32_t expected[] = {0, 1, 13, 39};
    assert_memory_equal(ids, expected, sizeof expected);
    dataset_close(&d);
}

/* Where the package of the fall-back text is not installed, the message names it. */
static void test_fall_back_that_is_not_installed(void **state)
{
    (void)state;
    struct source_text t = {.bytes = -1};
    char *path = strdup(getenv("PATH"));
    setenv("PATH", workdir_path(""), 1);
    enum status st = source_shakespeare(&t, NULL, true, &arena);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(st, ST_IO);
    assert_int_equal(t.bytes, -1);
    assert_message_has("no Tiny Shakespeare (");
    assert_message_has("apt install bible-kjv");
}

static void test_fall_back_is_the_bible(void **state)
{
    (void)state;
    struct source_text t;
    if (system("command -v bible >/dev/null") != 0) {
        SKIP("the package bible-kjv is not installed");
    }
    assert_int_equal(source_shakespeare(&t, NULL, true, &arena), ST_OK);
    assert_non_null(strstr(t.from, "King James Bible"));
    assert_true(t.bytes > 4000000);
    static const char first[] = "Ge1:1 In the beginning God created the heaven and the earth.\n";
    assert_memory_equal(t.text, first, strlen(first));
    struct dataset_facts facts;
    const struct dataset_text text = {&data_characters, t.text, t.bytes, t.from};
    assert_int_equal(dataset_write(workdir_path("data"), "kjv", &text, false, &facts), ST_OK);
    assert_int_equal(facts.tokens, t.bytes);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_own_file_is_used_unchanged),
        TEST(test_network_error_suggests_remedy),
#ifdef HAVE_CURL
        TEST(test_download_rejects_wrong_contents),
#endif
        TEST(test_the_real_text),
        TEST(test_fall_back_that_is_not_installed),
        TEST(test_fall_back_is_the_bible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
