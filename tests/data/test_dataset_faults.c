/* Data sets on disk that something went wrong with: killed and concurrent writers, damaged fields,
 * what is no file. */
#include "data/dataset.h"

#include "../support/cases.h"
#include "../support/workdir.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/own.h"
#include "data/kind.h"
#include "data/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;

/* --- what others do at an unlucky moment ------------------------------------------------------ */

/* Called once, before a file of this name is opened, or before the second time that tokens are
 * read. */
static void (*before_open)(void), (*before_second_read)(void);
static int reads;
static const char *opened_name;

static void call_once(void (**hook)(void))
{
    void (*f)(void) = *hook;
    *hook = NULL;
    if (f) f();
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    const char *slash = strrchr(path, '/');
    if (before_open && strcmp(slash ? slash + 1 : path, opened_name) == 0) call_once(&before_open);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* What the C library's header makes of it with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags, 0);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    if (before_second_read && ++reads == 2) call_once(&before_second_read);
    return syscall(SYS_pread64, fd, bytes, n, at);
}

ssize_t __pread_chk(int fd, void *bytes, size_t n, off_t at, size_t size);
ssize_t __pread_chk(int fd, void *bytes, size_t n, off_t at, size_t size)
{
    return pread(fd, bytes, n < size ? n : size, at);
}

/* --- sets ------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    log_set_level(LOG_ERROR);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    workdir_close();
    return 0;
}

static enum status write_from(const char *name, const char *text, bool replace)
{
    struct dataset_facts facts;
    const struct dataset_text t = {&data_characters, text, (int64_t)strlen(text), text};
    return dataset_write(workdir_path("data"), name, &t, replace, &facts);
}

static enum status open_named(struct dataset *d, const char *name)
{
    return dataset_open(d, workdir_path("data"), name, &arena);
}

static void expect_set(const char *name, const char *text)
{
    struct dataset d;
    enum status st = open_named(&d, name);
    if (st != ST_OK) fail_msg("%s: %s", name, fail_message());
    assert_string_equal(d.source, text);
    dataset_close(&d);
}

static void assert_message_has(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
    assert_null(strchr(fail_message(), '\n'));
}

static void expect_refused(enum status expected, const char *part)
{
    struct dataset d;
    enum status st = open_named(&d, "mytext");
    if (st != expected) fail_msg("status %d instead of %d: %s", st, expected, fail_message());
    assert_message_has(part);
}

static const char first[] = "to be, or not to be", second[] = "that is the question";

/* --- writers ---------------------------------------------------------------------------------- */

static void test_other_sets_are_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"a",      "a.tmp",     "a.old",     "a.old.tmp",
                                        "a.lock", "a.tmp.tmp", "a.old.old", "a.lock.lock"};
    for (int i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(write_from(names[i], names[i][1] ? first : second, true), ST_OK);
    for (int i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(write_from(names[i], first, true), ST_OK);
    for (int i = 0; i < COUNT_OF(names); i++) expect_set(names[i], first);
    /* The last one is a name that a writer of "a" may use and remove. */
    static const char *const refused[] = {"",    ".",    "..",     ".a",
                                          "a/b", "a\nb", "a\033b", "a.0123456789ab.tmp"};
    for (int i = 0; i < COUNT_OF(refused); i++)
        assert_int_equal(write_from(refused[i], first, true), ST_USAGE);
    char long_name[300];
    memset(long_name, 'a', sizeof long_name);
    long_name[200] = '\0';
    assert_int_equal(write_from(long_name, first, true), ST_OK);
    long_name[200] = 'a';
    long_name[201] = '\0';
    assert_int_equal(write_from(long_name, first, true), ST_USAGE);
}

static void test_one_writer_at_a_time(void **state)
{
    (void)state;
    struct lock lock;
    assert_int_equal(write_from("mytext", first, false), ST_OK);
    assert_int_equal(lock_take(&lock, workdir_path("data"), 0), ST_OK);
    pid_t child = fork();
    if (child == 0) {
        bool refused = write_from("mytext", second, true) == ST_USAGE &&
                       strstr(fail_message(), "another process is writing");
        struct dataset d;
        bool read = open_named(&d, "mytext") == ST_OK;
        _exit(!refused + 2 * !read);
    }
    int end;
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
    lock_release(&lock);
    expect_set("mytext", first);
    assert_int_equal(write_from("mytext", second, true), ST_OK);
    expect_set("mytext", second);
}

static void test_a_lock_is_never_held_twice(void **state)
{
    (void)state;
    enum { CHILDREN = 8, TIMES = 200 };
    pid_t child[CHILDREN];
    int failed = 0;
    const char *held = workdir_path("held");
    for (int i = 0; i < CHILDREN; i++) {
        child[i] = fork();
        if (child[i]) continue;
        for (int k = 0; k < TIMES; k++) {
            struct lock lock;
            if (lock_take(&lock, workdir_path(""), 0) != ST_OK) continue;
            if (mkdir(held, 0777) != 0 || rmdir(held) != 0) _exit(1);
            lock_release(&lock);
        }
        _exit(0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        int end;
        waitpid(child[i], &end, 0);
        failed += end != 0;
    }
    assert_int_equal(failed, 0);
}

/* Both have the same token numbers: the checksums of one set fit the files of the other. */
static const char *const texts[] = {"ab ab ab ab", "cd cd cd cd"};

static void replace_set(void)
{
    assert_int_equal(write_from("mytext", texts[1], true), ST_OK);
}

/* The set is replaced after meta.json was read, before one of its files is opened. */
static void test_replaced_while_it_is_opened(void **state)
{
    (void)state;
    static const char *const names[] = {"meta.json", "train.bin", "val.bin"};
    for (int i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(write_from("mytext", texts[0], true), ST_OK);
        opened_name = names[i];
        before_open = replace_set;
        struct dataset d;
        assert_int_equal(open_named(&d, "mytext"), ST_OK);
        assert_null(before_open);
        assert_string_equal(d.source, texts[1]);
        assert_string_equal(vocabulary_text(&d.vocabulary, 1), "c");
        dataset_close(&d);
    }
}

/* A reader beside a writer gets one whole set. */
static void test_reading_beside_a_writer(void **state)
{
    (void)state;
    assert_int_equal(write_from("mytext", texts[0], true), ST_OK);
    pid_t child = fork();
    if (child == 0)
        for (int i = 1;; i++)
            if (write_from("mytext", texts[i % 2], true) != ST_OK) _exit(1);
    for (int i = 0; i < 100; i++) {
        struct dataset d;
        enum status st = open_named(&d, "mytext");
        if (st != ST_OK) kill(child, SIGKILL);
        if (st != ST_OK) fail_msg("reader %d: %s", i, fail_message());
        bool whole = vocabulary_text(&d.vocabulary, 1)[0] == d.source[0];
        dataset_close(&d);
        assert_true(whole);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* --- what is no file -------------------------------------------------------------------------- */

static void test_pipes_devices_and_folders(void **state)
{
    (void)state;
    static const char *const names[] = {"meta.json", "train.bin", "val.bin"};
    alarm(20); /* reading a pipe would wait for ever */
    for (int i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(write_from("mytext", first, true), ST_OK);
        const char *path = workdir_path(arena_printf(&arena, "data/mytext/%s", names[i]));
        remove(path);
        assert_int_equal(mkfifo(path, 0666), 0);
        expect_refused(ST_FORMAT, "is a FIFO, not a regular file");
        remove(path);
        assert_int_equal(symlink("/dev/zero", path), 0);
        expect_refused(ST_FORMAT, "is a device, not a regular file");
        remove(path);
        assert_int_equal(mkdir(path, 0777), 0);
        expect_refused(ST_FORMAT, "is a directory, not a regular file");
        rmdir(path);
        if (i == 0) remove(workdir_path("data/mytext/val.bin")); /* else it is one of nanoGPT */
        expect_refused(ST_ABSENT, i == 0 ? "under another name" : "recreate it with");
        assert_int_equal(file_remove_dir(workdir_path("data/mytext")), ST_OK);
    }
    alarm(0);
    workdir_write(workdir_path("data/file"), "x", 1);
    struct dataset d;
    assert_int_equal(open_named(&d, "file"), ST_FORMAT);
    assert_message_has("Not a directory");
}

static void test_an_unreadable_set_is_not_missing(void **state)
{
    (void)state;
    if (geteuid() == 0) SKIP("as root every folder can be read");
    assert_int_equal(write_from("mytext", first, true), ST_OK);
    assert_int_equal(chmod(workdir_path("data"), 0), 0);
    expect_refused(ST_DENIED, "Permission denied");
    assert_int_equal(chmod(workdir_path("data"), 0777), 0);
}

/* --- meta.json -------------------------------------------------------------------------------- */

static void change_meta(const char *field, const char *below, json_t *value)
{
    const char *path = workdir_path("data/mytext/meta.json");
    json_t *root = json_load_file(path, 0, NULL);
    json_t *o = below ? json_object_get(root, field) : root;
    const char *key = below ? below : field;
    assert_non_null(o);
    assert_int_equal(value ? json_object_set_new(o, key, value) : json_object_del(o, key), 0);
    char *text = json_dumps(root, JSON_COMPACT);
    workdir_write(path, text, (int64_t)strlen(text)); /* json_write would sync it */
    free(text);
    json_decref(root);
}

static json_t *wrong_value(int i)
{
    switch (i) {
    case 0:
        return json_null();
    case 1:
        return json_integer(-1);
    case 2:
        return json_integer(0);
    case 3:
        return json_integer(INT64_MAX);
    case 4:
        return json_real(1e300);
    case 5:
        return json_string("");
    case 6:
        return json_string("0123456789012345678901234567890123456789012345678901234567890123");
    case 7:
        return json_array();
    case 8:
        return json_pack("[[[]]]");
    case 9:
        return json_object();
    case 10:
        return json_true();
    default:
        return NULL; /* removed */
    }
}

static void test_every_field_of_meta(void **state)
{
    (void)state;
    static const struct {
        const char *field, *below, *part;
    } fields[] = {{"v", NULL, "\"v\" is not 1"},
                  {"kind", NULL, "\"kind\""},
                  {"vocabulary", NULL, "\"vocabulary\" is not a list"},
                  {"vocabulary_sha256", NULL, "SHA-256 does not match"},
                  {"train", NULL, "\"train\" has no"},
                  {"val", NULL, "\"val\" has no"},
                  {"train", "tokens", ""},
                  {"val", "tokens", ""},
                  {"train", "sha256", ""},
                  {"val", "sha256", ""}};
    char *whole;
    int64_t bytes;
    const char *path = workdir_path("data/mytext/meta.json");
    assert_int_equal(write_from("mytext", first, true), ST_OK);
    assert_int_equal(file_read(path, &arena, &whole, &bytes), ST_OK);
    for (int f = 0; f < COUNT_OF(fields); f++)
        for (int i = 0; i <= 11; i++) {
            workdir_write(path, whole, bytes);
            change_meta(fields[f].field, fields[f].below, wrong_value(i));
            struct dataset d;
            enum status st = open_named(&d, "mytext");
            if (st != ST_FORMAT && st != ST_UNSUPPORTED)
                fail_msg("%s with value %d: status %d", fields[f].field, i, st);
            assert_message_has(i == 8 && f == 2 ? "is not a single character" : fields[f].part);
            if (st == ST_FORMAT)
                assert_message_has(strstr(fail_message(), "not a data set that Strobe can replace")
                                       ? "under another name"
                                       : "recreate it with `strobe data mytext");
            bool known = own_check(workdir_path("data/mytext"), OWN_SET) == ST_OK;
            assert_true(known || f < 2); /* by these two fields */
        }
    workdir_write(path, whole, bytes);
    change_meta("train", "tokens", json_integer(0));
    expect_refused(ST_FORMAT, "\"train\" has 0 tokens");
    for (int i = 0; i <= 11; i++) { /* the source is for readers only */
        workdir_write(path, whole, bytes);
        change_meta("source", NULL, wrong_value(i));
        struct dataset d;
        assert_int_equal(open_named(&d, "mytext"), ST_OK);
        dataset_close(&d);
    }
}

static void test_strange_meta_files(void **state)
{
    (void)state;
    const char *path = workdir_path("data/mytext/meta.json");
    assert_int_equal(write_from("mytext", first, true), ST_OK);
    char *deep = arena_alloc(&arena, 1000001);
    memset(deep, '[', 1000000);
    workdir_write(path, deep, 1000000);
    expect_refused(ST_FORMAT, "is not valid JSON");
    workdir_write(path, "{\"v\":1,\"kind\":\"a\\u0000b\"}", 24);
    expect_refused(ST_FORMAT, "is not valid JSON");
    workdir_write(path, "\xff\xfe{\0}\0", 6);
    expect_refused(ST_FORMAT, "is not valid JSON");
    workdir_write(path, "{\"v\":99999999999999999999999}", 29);
    expect_refused(ST_FORMAT, "is not valid JSON");
    workdir_truncate(path, 1ll << 40); /* it would not fit into memory */
    expect_refused(ST_FORMAT, "has 1099511627776 bytes");
    memset(deep, 'k', 1000000);
    const char *kind = arena_printf(&arena, "{\"v\":1,\"kind\":\"%.900000s\"}", deep);
    workdir_write(path, kind, (int64_t)strlen(kind));
    expect_refused(ST_UNSUPPORTED, "the known ones are");
}

static uint16_t good_tokens[17];

static void mend_tokens(void)
{
    workdir_write(workdir_path("data/mytext/train.bin"), good_tokens, sizeof good_tokens);
}

/* A set whose checksums are right, but whose tokens are not those of its vocabulary. That the file
 * is mended after it was read does not make what was read right. */
static void test_tokens_out_of_range(void **state)
{
    (void)state;
    assert_int_equal(write_from("mytext", first, true), ST_OK);
    struct dataset d;
    uint16_t token[17];
    int32_t ids[17];
    assert_int_equal(open_named(&d, "mytext"), ST_OK);
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, 0, 17, ids), ST_OK);
    for (int i = 0; i < 17; i++) token[i] = (uint16_t)ids[i];
    int size = d.vocabulary.size;
    memcpy(good_tokens, token, sizeof token);
    token[11] = (uint16_t)size;
    char digest[HASH_HEX];
    hash_bytes(token, sizeof token, digest);
    workdir_write(workdir_path("data/mytext/train.bin"), token, sizeof token);
    change_meta("train", "sha256", json_string(digest));
    reads = 0;
    before_second_read = mend_tokens;
    expect_refused(ST_FORMAT, arena_printf(&arena,
                                           "train.bin: token 11 is %d, but the vocabulary "
                                           "has only %d tokens; recreate it with",
                                           size, size));
    before_second_read = NULL;
    dataset_close(&d);
}

/* --- texts ------------------------------------------------------------------------------------ */

static void test_short_sets(void **state)
{
    (void)state;
    assert_int_equal(write_from("mytext", "a", true), ST_USAGE);
    assert_message_has("too few");
    assert_int_equal(write_from("mytext", "ab", true), ST_OK); /* one token each */
    struct dataset d;
    struct loader l;
    assert_int_equal(open_named(&d, "mytext"), ST_OK);
    assert_int_equal(loader_init(&l, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 1, 1, 1), ST_USAGE);
    assert_message_has("has 1 tokens, but block_size = 1 needs 2");
    assert_int_equal(loader_init(&l, &d, SPLIT_VAL, RNG_TRAIN_BATCH, 1, 1, INT32_MAX), ST_USAGE);
    dataset_close(&d);
}

static void test_source_that_is_not_utf8(void **state)
{
    (void)state;
    struct dataset_facts facts;
    const struct dataset_text t = {&data_characters, first, (int64_t)strlen(first),
                                   "caf\xe9 \xc3\xa9.txt"};
    assert_int_equal(dataset_write(workdir_path("data"), "mytext", &t, false, &facts), ST_OK);
    expect_set("mytext", "caf\\xe9 \xc3\xa9.txt");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_other_sets_are_left_alone),
        TEST(test_one_writer_at_a_time),
        TEST(test_a_lock_is_never_held_twice),
        TEST(test_replaced_while_it_is_opened),
        TEST(test_reading_beside_a_writer),
        TEST(test_pipes_devices_and_folders),
        TEST(test_an_unreadable_set_is_not_missing),
        TEST(test_every_field_of_meta),
        TEST(test_strange_meta_files),
        TEST(test_tokens_out_of_range),
        TEST(test_short_sets),
        TEST(test_source_that_is_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
