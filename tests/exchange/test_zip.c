/* Zip files as zip_writer writes them, and as no one should. */
#include "exchange/zip.h"

#include "../support/workdir.h"
#include "exchange/crc32.h"
#include "exchange/zip_format.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    workdir_close();
    return 0;
}

static void expect_message(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

/* --- samples ---------------------------------------------------------------------------------- */

static const struct {
    const char *name, *data;
} sample[] = {
    {"x/aa", "twelve bytes"},
    {"x/ab", "another text, which is longer than the first one, and is the longest of these four"},
    {"x/ac", ""},
    {"x/data/0", "\1\2\3"},
};

/* A file of the sample; sizes and offsets from `narrow` on are written as zip64. */
static const char *write_sample(int64_t narrow)
{
    const char *path = workdir_path("x.zip");
    struct zip_writer w;
    assert_int_equal(zip_writer_open(&w, path, &arena), ST_OK);
    w.narrow = narrow;
    for (int i = 0; i < COUNT_OF(sample); i++)
        zip_writer_add(&w, sample[i].name, sample[i].data, (int64_t)strlen(sample[i].data));
    assert_int_equal(zip_writer_commit(&w), ST_OK);
    return path;
}

/* The sample in memory, to be damaged. */
struct image {
    char byte[4096];
    int64_t n;
};

static struct image image_of(int64_t narrow)
{
    struct image m;
    FILE *f = fopen(write_sample(narrow), "rb");
    m.n = (int64_t)fread(m.byte, 1, sizeof m.byte, f);
    fclose(f);
    return m;
}

/* Where the nth record of a kind begins. */
static int64_t find_record(const struct image *m, uint32_t signature, int nth)
{
    const char *at = m->byte, *end = m->byte + m->n;
    for (;; at++) {
        at = memmem(at, (size_t)(end - at), &signature, 4);
        assert_non_null(at);
        if (!nth--) return at - m->byte;
    }
}

static void set(struct image *m, int64_t at, int bytes, uint64_t number)
{
    for (int i = 0; i < bytes; i++) m->byte[at + i] = (char)(number >> 8 * i);
}

/* Releases what was opened before. */
static enum status open_image(const struct image *m, struct zip_file *z)
{
    arena_release(&arena);
    unlink(workdir_path("y.zip")); /* writing a new file waits for no disk */
    workdir_write(workdir_path("y.zip"), m->byte, m->n);
    return zip_open(z, workdir_path("y.zip"), &arena);
}

static void expect_refused(const struct image *m, enum status expected, const char *part)
{
    struct zip_file z = {};
    enum status st = open_image(m, &z);
    if (st != expected) fail_msg("%s: status %d", part, st);
    expect_message(part);
    expect_message("y.zip");
    assert_null(z.path);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_crc32(void **state)
{
    (void)state;
    static const char text[] = "123456789, and some more bytes than eight at a time";
    assert_int_equal(crc32_add(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc32_add(0, NULL, 0), 0);
    int64_t n = sizeof text - 1;
    uint32_t whole = crc32_add(0, text, n);
    for (int64_t i = 0; i <= n; i++)
        assert_int_equal(crc32_add(crc32_add(0, text, i), text + i, n - i), whole);
}

static const int64_t narrows[] = {ZIP_WIDE32, 1, 20, 200};

static void test_round_trip(void **state)
{
    (void)state;
    for (int k = 0; k < COUNT_OF(narrows); k++) {
        struct zip_file z;
        if (zip_open(&z, write_sample(narrows[k]), &arena) != ST_OK)
            fail_msg("%d: %s", k, fail_message());
        assert_int_equal(z.count, COUNT_OF(sample));
        for (int i = 0; i < COUNT_OF(sample); i++) {
            const struct zip_entry *e = zip_find(&z, sample[i].name);
            assert_non_null(e);
            assert_int_equal(e->bytes, strlen(sample[i].data));
            assert_int_equal(e->from % ZIP_ALIGNMENT, 0);
            char data[128];
            assert_int_equal(zip_read(&z, e, data), ST_OK);
            assert_memory_equal(data, sample[i].data, e->bytes);
            assert_int_equal(zip_check(&z, e), ST_OK);
        }
        assert_null(zip_find(&z, "x/a"));
        assert_null(zip_find(&z, "x/data/1"));
        zip_close(&z);
        zip_close(&z);
    }
}

/* With so many entries a zip64 end record is needed; with more than are read, none is. */
static void test_many_entries(void **state)
{
    (void)state;
    enum { MANY = UINT16_MAX + 1 };
    struct zip_writer w;
    const char *path = workdir_path("x.zip");
    assert_int_equal(zip_writer_open(&w, path, &arena), ST_OK);
    struct zip_entry *all = ARENA_NEW(&arena, struct zip_entry, MANY);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "x/%d", i);
        w.count = 0; /* so that names are not compared */
        zip_writer_add(&w, name, &i, sizeof i);
        all[i] = w.entry[0];
    }
    w.entry = all;
    w.count = MANY;
    assert_int_equal(zip_writer_commit(&w), ST_OK);
    struct zip_file z;
    if (zip_open(&z, path, &arena) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(z.count, MANY);
    int number = 0;
    assert_int_equal(zip_read(&z, zip_find(&z, "x/65535"), &number), ST_OK);
    assert_int_equal(number, 65535);
    zip_close(&z);
}

static void test_truncation(void **state)
{
    (void)state;
    for (int k = 0; k < COUNT_OF(narrows); k++) {
        struct image m = image_of(narrows[k]);
        while (m.n--) {
            struct zip_file z;
            if (open_image(&m, &z) == ST_OK) fail_msg("%d bytes", (int)m.n);
        }
    }
}

/* With any bit flipped it is refused, or what is read under a name is what was written. */
static void test_bit_flips(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct image m = image_of(narrows[k]);
        for (int64_t bit = 0; bit < 8 * m.n; bit++) {
            struct zip_file z;
            m.byte[bit / 8] ^= (char)(1 << bit % 8);
            enum status st = open_image(&m, &z);
            m.byte[bit / 8] ^= (char)(1 << bit % 8);
            if (st != ST_OK) continue;
            for (int i = 0; i < COUNT_OF(sample); i++) {
                const struct zip_entry *e = zip_find(&z, sample[i].name);
                char data[4096];
                if (!e || zip_read(&z, e, data) != ST_OK) continue;
                assert_int_equal(e->bytes, strlen(sample[i].data));
                assert_memory_equal(data, sample[i].data, e->bytes);
            }
            zip_close(&z);
        }
    }
}

/* One field of one record, changed. */
static const struct hostile {
    uint32_t signature;
    int nth, at, bytes;
    uint64_t number;
    enum status expected;
    const char *part;
} hostile[] = {
    {ZIP_DIRECTORY, 1, 10, 2, 8, ST_UNSUPPORTED, "x/ab is compressed; torch.save stores without"},
    {ZIP_DIRECTORY, 1, 8, 2, 1, ST_UNSUPPORTED, "x/ab is encrypted; torch.save does not"},
    {ZIP_DIRECTORY, 1, 8, 2, 64, ST_UNSUPPORTED, "encrypted"},
    {ZIP_DIRECTORY, 1, 34, 2, 1, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_END, 0, 4, 2, 1, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_END, 0, 6, 2, 1, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_END, 0, 8, 2, 3, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_END, 0, 8, 4, 3 | 3 << 16, ST_FORMAT, "more bytes than its entries"},
    {ZIP_END, 0, 8, 4, 5 | 5 << 16, ST_FORMAT, "not where the end record says"},
    {ZIP_END, 0, 8, 4, 0xffffffff, ST_FORMAT, "not where the end record says"},
    {ZIP_END, 0, 12, 4, 0xffffffff, ST_UNSUPPORTED, "more than the 131072 in 33554432 that are"},
    {ZIP_END, 0, 12, 4, 100, ST_FORMAT, "not where the end record says"},
    {ZIP_END, 0, 16, 4, 0xfffffff0, ST_FORMAT, "not where the end record says"},
    {ZIP_END, 0, 16, 4, 0, ST_FORMAT, "not where the end record says"},
    {ZIP_DIRECTORY, 1, 20, 4, 5, ST_FORMAT, "x/ab reaches beyond the file"},
    {ZIP_DIRECTORY, 1, 24, 4, 5, ST_FORMAT, "x/ab reaches beyond the file"},
    {ZIP_DIRECTORY, 1, 20, 8, 0xfffffffefffffffe, ST_FORMAT, "x/ab reaches beyond the file"},
    {ZIP_DIRECTORY, 1, 42, 4, 0xfffffffe, ST_FORMAT, "x/ab reaches beyond the file"},
    {ZIP_DIRECTORY, 1, 42, 4, 0xffffffff, ST_FORMAT, "x/ab has no zip64 sizes"},
    {ZIP_DIRECTORY, 1, 42, 4, 0, ST_FORMAT, "local header that disagrees"},
    {ZIP_DIRECTORY, 1, 28, 2, 0xffff, ST_FORMAT, "reaches beyond its directory"},
    {ZIP_DIRECTORY, 1, 28, 2, 0, ST_FORMAT, "has an absolute name, one with \"..\", or none"},
    {ZIP_DIRECTORY, 3, 30, 2, 0xffff, ST_FORMAT, "reaches beyond its directory"},
    {ZIP_DIRECTORY, 3, 32, 2, 1, ST_FORMAT, "reaches beyond its directory"},
    {ZIP_DIRECTORY, 2, 0, 1, 0, ST_FORMAT, "invalid record"},
    {ZIP_DIRECTORY, 1, 46, 1, '/', ST_FORMAT, "has an absolute name"},
    {ZIP_DIRECTORY, 1, 46, 1, '\\', ST_FORMAT, "has an absolute name"},
    {ZIP_DIRECTORY, 1, 46, 4, 'x' | '/' << 8 | '.' << 16 | '.' << 24, ST_FORMAT, "one with \"..\""},
    {ZIP_DIRECTORY, 1, 46, 3, '.' | '.' << 8 | '/' << 16, ST_FORMAT, "one with \"..\""},
    {ZIP_DIRECTORY, 1, 47, 1, 0, ST_FORMAT, "has an absolute name"},
    {ZIP_DIRECTORY, 1, 46, 1, 'y', ST_FORMAT, "local header that disagrees"},
    {ZIP_LOCAL, 1, 0, 1, 0, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 6, 2, 0, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 8, 2, 8, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 14, 4, 0, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 18, 4, 0, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 22, 4, 0, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 22, 4, 0xffffffff, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 26, 2, 3, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 3, 28, 2, 0xffff, ST_FORMAT, "x/data/0 reaches beyond the file"},
    {ZIP_LOCAL, 1, 33, 1, 'c', ST_FORMAT, "x/ab has a local header that disagrees"},
};

/* The same of a file with zip64 records. */
static const struct hostile hostile64[] = {
    {ZIP_LOCATOR64, 0, 4, 4, 1, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_LOCATOR64, 0, 16, 4, 2, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_LOCATOR64, 0, 8, 8, 1, ST_FORMAT, "not where the locator says"},
    {ZIP_LOCATOR64, 0, 8, 8, UINT64_MAX, ST_FORMAT, "its zip64 end record is beyond the file"},
    {ZIP_LOCATOR64, 0, 0, 1, 0, ST_UNSUPPORTED, "more than the 131072"},
    {ZIP_END64, 0, 0, 1, 0, ST_FORMAT, "not where the locator says"},
    {ZIP_END64, 0, 4, 8, 45, ST_FORMAT, "not where the locator says"},
    {ZIP_END64, 0, 16, 4, 1, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_END64, 0, 20, 4, 1, ST_UNSUPPORTED, "one part of a zip file of several"},
    {ZIP_END64, 0, 24, 8, 3, ST_FORMAT, "two end records disagree"},
    {ZIP_END64, 0, 32, 8, 1 << 18, ST_FORMAT, "two end records disagree"},
    {ZIP_END64, 0, 40, 8, 1ull << 40, ST_UNSUPPORTED, "more than the 131072"},
    {ZIP_END64, 0, 48, 8, UINT64_MAX - 10, ST_FORMAT, "not where the end record says"},
    {ZIP_END, 0, 8, 2, 3, ST_FORMAT, "two end records disagree"},
    {ZIP_END, 0, 10, 2, 3, ST_FORMAT, "two end records disagree"},
    {ZIP_END, 0, 12, 4, 3, ST_FORMAT, "two end records disagree"},
    {ZIP_END, 0, 16, 4, 3, ST_FORMAT, "two end records disagree"},
    {ZIP_DIRECTORY, 1, 50, 2, 2, ST_FORMAT, "x/ab has no zip64 sizes"},
    {ZIP_DIRECTORY, 1, 52, 2, 16, ST_FORMAT, "x/ab has no zip64 sizes"},
    {ZIP_DIRECTORY, 1, 52, 2, 25, ST_FORMAT, "x/ab has no zip64 sizes"},
    {ZIP_DIRECTORY, 1, 54, 8, UINT64_MAX, ST_FORMAT, "x/ab reaches beyond the file"},
    {ZIP_DIRECTORY, 1, 62, 8, 1, ST_FORMAT, "x/ab reaches beyond the file"},
    {ZIP_DIRECTORY, 1, 70, 8, 1ull << 63, ST_FORMAT, "x/ab reaches beyond the file"},
    {ZIP_LOCAL, 1, 34, 2, 2, ST_FORMAT, "x/ab has a local header that disagrees"},
    {ZIP_LOCAL, 1, 38, 8, 1, ST_FORMAT, "x/ab has a local header that disagrees"},
};

static void refuse_all(const struct hostile *h, int n, int64_t narrow)
{
    struct image good = image_of(narrow);
    for (int i = 0; i < n; i++) {
        struct image m = good;
        set(&m, find_record(&m, h[i].signature, h[i].nth) + h[i].at, h[i].bytes, h[i].number);
        expect_refused(&m, h[i].expected, h[i].part);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    refuse_all(hostile, COUNT_OF(hostile), ZIP_WIDE32);
}

static void test_hostile_zip64(void **state)
{
    (void)state;
    refuse_all(hostile64, COUNT_OF(hostile64), 1);
    struct image m = image_of(1);
    int64_t end64 = find_record(&m, ZIP_END64, 0), end = find_record(&m, ZIP_END, 0);
    set(&m, end64 + 24, 8, 1 << 18);
    set(&m, end64 + 32, 8, 1 << 18);
    set(&m, end + 8, 4, 0xffffffff);
    expect_refused(&m, ST_UNSUPPORTED, "its directory has 262144 entries");
}

static void test_duplicate_names(void **state)
{
    (void)state;
    struct image m = image_of(ZIP_WIDE32);
    set(&m, find_record(&m, ZIP_DIRECTORY, 1) + 49, 1, 'a');
    set(&m, find_record(&m, ZIP_LOCAL, 1) + 33, 1, 'a');
    expect_refused(&m, ST_FORMAT, "entry x/aa is there twice");
}

/* An entry whose header and data are part of the data of another one. */
static void test_overlap(void **state)
{
    (void)state;
    struct image m = image_of(ZIP_WIDE32);
    int64_t b = find_record(&m, ZIP_LOCAL, 1), d = find_record(&m, ZIP_DIRECTORY, 0);
    int64_t grown = b - find_record(&m, ZIP_LOCAL, 0) - ZIP_ALIGNMENT + 34;
    set(&m, d + 20, 4, (uint64_t)grown);
    set(&m, d + 24, 4, (uint64_t)grown);
    set(&m, 18, 4, (uint64_t)grown);
    set(&m, 22, 4, (uint64_t)grown);
    expect_refused(&m, ST_FORMAT, "entry x/ab overlaps another one");
}

static void test_wrong_checksum(void **state)
{
    (void)state;
    struct image m = image_of(ZIP_WIDE32);
    m.byte[ZIP_ALIGNMENT] ^= 1; /* the first byte of the first entry */
    struct zip_file z;
    char data[128];
    assert_int_equal(open_image(&m, &z), ST_OK);
    assert_int_equal(zip_read(&z, zip_find(&z, "x/aa"), data), ST_FORMAT);
    expect_message("entry x/aa has the checksum ");
    assert_int_equal(zip_check(&z, zip_find(&z, "x/aa")), ST_FORMAT);
    expect_message("the file is damaged");
    assert_int_equal(zip_read(&z, zip_find(&z, "x/ab"), data), ST_OK);
    zip_close(&z);
}

/* A comment at the end is no damage; other bytes there are. */
static void test_comment(void **state)
{
    (void)state;
    struct image m = image_of(ZIP_WIDE32);
    struct zip_file z;
    memcpy(m.byte + m.n, "hello", 5);
    m.n += 5;
    expect_refused(&m, ST_FORMAT, "it has no end record");
    set(&m, m.n - 7, 2, 5);
    assert_int_equal(open_image(&m, &z), ST_OK);
    zip_close(&z);
}

static void test_no_zip_file(void **state)
{
    (void)state;
    struct zip_file z = {};
    static const char *const texts[] = {"", "PK", "a text that is no zip file at all, of 50 bytes"};
    for (int i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(zip_open(&z, workdir_text("y.zip", texts[i]), &arena), ST_FORMAT);
        expect_message("is not a zip file, or it is truncated");
    }
    assert_int_equal(zip_open(&z, workdir_path("missing.zip"), &arena), ST_ABSENT);
    zip_close(&z);
}

static void test_cut_while_open(void **state)
{
    (void)state;
    struct zip_file z;
    char data[128];
    const char *path = write_sample(ZIP_WIDE32);
    assert_int_equal(zip_open(&z, path, &arena), ST_OK);
    workdir_truncate(path, ZIP_ALIGNMENT + 3);
    assert_int_equal(zip_read(&z, zip_find(&z, "x/aa"), data), ST_FORMAT);
    assert_int_equal(zip_check(&z, zip_find(&z, "x/aa")), ST_FORMAT);
    zip_close(&z);
}

/* Nothing is left of a file that could not be written, or was given up. */
static void test_full_disk(void **state)
{
    (void)state;
    static char large[200000];
    struct zip_writer w;
    const char *path = workdir_path("x.zip");
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(zip_writer_open(&w, path, &arena), ST_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 300000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    zip_writer_add(&w, "a", large, sizeof large);
    zip_writer_add(&w, "b", large, sizeof large);
    enum status st = zip_writer_commit(&w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, ST_IO);
    expect_message("x.zip: File too large");
    assert_false(file_exists(path));
    assert_int_equal(zip_writer_open(&w, path, &arena), ST_OK);
    zip_writer_add(&w, "a", large, sizeof large);
    zip_writer_discard(&w);
    assert_false(file_exists(path));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_crc32),          TEST(test_round_trip),      TEST(test_many_entries),
        TEST(test_truncation),     TEST(test_bit_flips),       TEST(test_hostile),
        TEST(test_hostile_zip64),  TEST(test_duplicate_names), TEST(test_overlap),
        TEST(test_wrong_checksum), TEST(test_comment),         TEST(test_no_zip_file),
        TEST(test_cut_while_open), TEST(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
