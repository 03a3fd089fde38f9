/* Tuning tables: entries, requests, the file. */
#include "base/file.h"
#include "tuning/tuning.h"

#include "../support/hand.h"
#include "../support/workdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct target gpu = {.name = "a GPU",
                                  .arch = 90,
                                  .processors = 132,
                                  .shared_bytes = 1000,
                                  .l2_bytes = 2000,
                                  .bytes = 3000,
                                  .tensor_maps = true,
                                  .library = 130001};

static const char algorithm[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void set(struct tuning *t, const char *key, double library_us, double own_us)
{
    struct tuning_entry e = {.n = 2};
    snprintf(e.key, sizeof e.key, "%s", key);
    e.candidate[0] = (struct tuning_candidate){.variant = "cublaslt", .us = library_us};
    memcpy(e.candidate[0].algorithm, algorithm, sizeof algorithm);
    e.candidate[1] =
        (struct tuning_candidate){.variant = "wgmma", .us = own_us, .launch = "0011223344556677"};
    e.candidate[1].tile = (struct tuning_tile){128, 256, 16};
    tuning_set(t, &e);
}

/* In any order of insertion: entries are sorted by key, candidates by time. */
static void test_tables_are_sorted(void **state)
{
    (void)state;
    struct arena a = {0};
    struct tuning t;
    tuning_init(&t, &gpu, &a);
    assert_null(tuning_find(&t, "b"));
    assert_null(tuning_find(NULL, "b"));
    set(&t, "c", 1, 2);
    set(&t, "a", 2, 1);
    set(&t, "b", 3.00049, 3.0004);
    set(&t, "a", 5, 4);
    assert_int_equal(t.n, 3);
    for (int i = 0; i < t.n; i++) assert_int_equal(t.entry[i].key[0], 'a' + i);
    assert_string_equal(tuning_find(&t, "a")->candidate[0].variant, "wgmma");
    assert_true(tuning_find(&t, "a")->candidate[0].us == 4);
    assert_string_equal(tuning_find(&t, "c")->candidate[0].variant, "cublaslt");
    assert_string_equal(tuning_find(&t, "b")->candidate[0].variant, "cublaslt"); /* a tie in ns */
    assert_true(tuning_candidate(tuning_find(&t, "c"), "wgmma")->us == 2);
    assert_null(tuning_candidate(tuning_find(&t, "c"), "separate"));
    assert_null(tuning_candidate(NULL, "wgmma"));
    arena_release(&a);
}

/* A table that was read selects the same candidates, and is written again byte for byte. */
static void test_files_keep_all(void **state)
{
    (void)state;
    struct arena a = {0};
    struct tuning t, read;
    const char *why, *path;
    char *first, *second;
    int64_t n, m;
    workdir_open();
    path = workdir_path("t.json");
    tuning_init(&t, &gpu, &a);
    snprintf(t.driver, sizeof t.driver, "580.1");
    set(&t, "a \"quoted\" key", 12.345678, 0.1234567);
    hand_ok(tuning_write(path, &t));
    hand_ok(file_read(path, &a, &first, &n));
    hand_ok(tuning_read(path, &read, &a));
    assert_true(tuning_holds(&read, &gpu, &why));
    assert_int_equal(read.target.bytes, gpu.bytes);
    assert_string_equal(read.driver, "580.1");
    assert_int_equal(read.n, 1);
    assert_memory_equal(&read.entry[0], &t.entry[0], sizeof t.entry[0]);
    hand_ok(tuning_write(workdir_path("again.json"), &read));
    hand_ok(file_read(workdir_path("again.json"), &a, &second, &m));
    assert_int_equal(n, m);
    assert_memory_equal(first, second, (size_t)n);
    arena_release(&a);
    workdir_close();
}

/* Both programs read the file before either writes. */
static void test_two_programs_keep_the_results_of_both(void **state)
{
    (void)state;
    struct arena a = {0};
    struct tuning t;
    int ended = -1;
    workdir_open();
    const char *path = arena_strdup(&a, workdir_path("t.json"));
    tuning_init(&t, &gpu, &a);
    pid_t other = fork();
    if (other == 0) {
        set(&t, "theirs", 1, 2);
        set(&t, "of both", 3, 4);
        _exit(tuning_write(path, &t) == ST_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(other, &ended, 0), other);
    assert_int_equal(ended, 0);
    set(&t, "of both", 5, 6);
    hand_ok(tuning_write(path, &t));
    hand_ok(tuning_read(path, &t, &a));
    assert_int_equal(t.n, 2);
    assert_non_null(tuning_find(&t, "theirs"));
    assert_true(tuning_find(&t, "of both")->candidate[0].us == 5);
    arena_release(&a);
    workdir_close();
}

/* A table that cannot be read is not replaced by the new results alone; a damaged one is. */
static void test_an_unreadable_file_stays(void **state)
{
    (void)state;
    struct arena a = {0};
    struct tuning t;
    struct stat info;
    workdir_open();
    const char *path = arena_strdup(&a, workdir_path("t.json"));
    tuning_init(&t, &gpu, &a);
    set(&t, "ours", 1, 2);
    assert_int_equal(symlink("t.json", path), 0);
    assert_int_equal(tuning_write(path, &t), ST_FORMAT);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(path), 0);
    hand_ok(file_write(path, "{", 1));
    hand_ok(tuning_write(path, &t));
    hand_ok(tuning_read(path, &t, &a));
    assert_int_equal(t.n, 1);
    arena_release(&a);
    workdir_close();
}

static void refuse(const char *text, const char *words)
{
    struct arena a = {0};
    struct tuning t;
    const char *path = workdir_path("damaged.json");
    hand_ok(file_write(path, text, (int64_t)strlen(text)));
    assert_int_equal(tuning_read(path, &t, &a), ST_FORMAT);
    if (!strstr(fail_message(), words) || !strstr(fail_message(), "damaged.json"))
        fail_msg("'%s' is refused by '%s'", text, fail_message());
    arena_release(&a);
}

#define HEADER                                                                    \
    "\"device\":{\"name\":\"g\",\"arch\":90,\"processors\":1,\"shared_bytes\":1," \
    "\"l2_bytes\":1,\"bytes\":1,\"tensor_maps\":true},\"library\":1,\"driver\":\"\","
#define FILE_OF(entries) "{\"v\":1," HEADER "\"matmuls\":{" entries "}}"

static void test_damage_is_refused(void **state)
{
    (void)state;
    struct arena a = {0};
    struct tuning t;
    workdir_open();
    hand_ok(file_write(workdir_path("good.json"), FILE_OF(""), strlen(FILE_OF(""))));
    hand_ok(tuning_read(workdir_path("good.json"), &t, &a));
    refuse("{", "is not a tuning file: line 1");
    refuse("[]", "version 1");
    refuse("{\"v\":1}", "damaged");
    refuse("{\"v\":2," HEADER "\"matmuls\":{}}", "version 1");
    refuse("{\"v\":1," HEADER "\"matmuls\":[]}", "damaged");
    refuse(FILE_OF("\"k\":{}"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"x\"}]"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"x\",\"us\":0}]"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"x\",\"us\":-1}]"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"a name far too long\",\"us\":1}]"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"x\",\"us\":1,\"algorithm\":\"00\"}]"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"x\",\"us\":1,\"tile\":[128,256]}]"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"x\",\"us\":1,\"tile\":[128,256,0]}]"), "damaged");
    refuse(FILE_OF("\"k\":[{\"variant\":\"x\",\"us\":1,\"launch\":\"001122334455667g\"}]"),
           "damaged");
    arena_release(&a);
    workdir_close();
}

static void test_tables_of_other_devices_are_not_used(void **state)
{
    (void)state;
    struct arena a = {0};
    struct tuning t;
    struct target other = gpu;
    const char *why;
    tuning_init(&t, &gpu, &a);
    assert_true(tuning_holds(&t, &gpu, &why));
    other.library = 130002;
    assert_false(tuning_holds(&t, &other, &why));
    assert_non_null(strstr(why, "cuBLASLt"));
    other = gpu;
    other.processors = 114;
    assert_false(tuning_holds(&t, &other, &why));
    other = gpu;
    other.name[0] = 'b';
    assert_false(tuning_holds(&t, &other, &why));
    assert_non_null(strstr(why, "device"));
    other = gpu;
    other.bytes++; /* other programs may use some of it, so no kernel depends on it */
    assert_true(tuning_holds(&t, &other, &why));
    arena_release(&a);
}

static void test_requests_are_recorded_once(void **state)
{
    (void)state;
    struct arena a = {0};
    struct tuning t;
    struct tuning_lookups q = {.arena = &a};
    tuning_init(&t, &gpu, &a);
    set(&t, "y", 1, 2);
    assert_null(tuning_lookup_find(&q, "x"));
    tuning_lookup_add(&q, "x");
    tuning_lookup_add(&q, "y")->entry = tuning_find(&t, "y");
    assert_non_null(tuning_lookup_find(&q, "x"));
    assert_int_equal(q.n, 2);
    assert_int_equal(tuning_missing(&q), 1);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_are_sorted),
        cmocka_unit_test(test_files_keep_all),
        cmocka_unit_test(test_two_programs_keep_the_results_of_both),
        cmocka_unit_test(test_an_unreadable_file_stays),
        cmocka_unit_test(test_damage_is_refused),
        cmocka_unit_test(test_tables_of_other_devices_are_not_used),
        cmocka_unit_test(test_requests_are_recorded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
