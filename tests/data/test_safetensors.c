#include "data/safetensors.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

static void assert_message_has(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

static const float weight[6] = {1.5f, -2.0f, 0.0f, 1e-30f, 3e30f, -0.0f};
static const double scalar = 0.1;
static const int32_t ids[3] = {7, -1, 1 << 30};
static const uint16_t halves[2] = {0x3f80, 0xc049}; /* 1, -3.140625 */

static const struct safetensor tensors[] = {
    {.name = "h.0.weight", .type = SAFETENSORS_F32, .rank = 2, .dim = {2, 3}, .data = weight},
    {.name = "scalar", .type = SAFETENSORS_F64, .data = &scalar},
    {.name = "empty", .type = SAFETENSORS_F32, .rank = 3, .dim = {4, 0, 5}},
    {.name = "a \"name\" of \xc3\xb6", .type = SAFETENSORS_I32, .rank = 1, .dim = {3}, .data = ids},
    {.name = "halves", .type = SAFETENSORS_BF16, .rank = 1, .dim = {2}, .data = halves},
};

static const char *write_sample(void)
{
    const char *path = workdir_path("sample.safetensors");
    assert_int_equal(safetensors_write(path, tensors, COUNT_OF(tensors), NULL), ST_OK);
    return path;
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = workdir_path("sample.safetensors");
    struct safetensors_facts facts;
    assert_int_equal(safetensors_write(path, tensors, COUNT_OF(tensors), &facts), ST_OK);
    struct safetensors s;
    assert_int_equal(safetensors_open(&s, path, &arena), ST_OK);
    assert_int_equal(s.count, COUNT_OF(tensors));
    for (int i = 0; i < COUNT_OF(tensors); i++) {
        const struct safetensor *t = safetensors_find(&s, tensors[i].name);
        assert_non_null(t);
        assert_int_equal(t->type, tensors[i].type);
        assert_int_equal(t->rank, tensors[i].rank);
        assert_memory_equal(t->dim, tensors[i].dim, sizeof t->dim);
        char data[64];
        assert_true(t->bytes <= (int64_t)sizeof data);
        assert_int_equal(safetensors_read(&s, t, data), ST_OK);
        if (t->bytes) assert_memory_equal(data, tensors[i].data, t->bytes);
    }
    assert_null(safetensors_find(&s, "h.0"));
    assert_int_equal(s.tensor[0].from % 64, 0);
    char shape[128];
    assert_string_equal(safetensors_shape(&s.tensor[0], shape), "(2,3)");
    safetensors_close(&s);

    char *bytes, digest[HASH_HEX];
    int64_t n;
    assert_int_equal(file_read(path, &arena, &bytes, &n), ST_OK);
    assert_int_equal(n, facts.bytes);
    hash_bytes(bytes, n, digest);
    assert_string_equal(digest, facts.sha256);
}

static void test_no_tensors_at_all(void **state)
{
    (void)state;
    struct safetensors s;
    const char *path = workdir_path("none.safetensors");
    assert_int_equal(safetensors_write(path, NULL, 0, NULL), ST_OK);
    assert_int_equal(safetensors_open(&s, path, &arena), ST_OK);
    assert_int_equal(s.count, 0);
    safetensors_close(&s);
}

static void test_every_truncation_is_detected(void **state)
{
    (void)state;
    const char *path = write_sample();
    struct safetensors s;
    for (int64_t n = workdir_size(path) - 1; n >= 0; n--) {
        workdir_truncate(path, n);
        if (safetensors_open(&s, path, &arena) != ST_FORMAT) fail_msg("cut to %d bytes", (int)n);
        assert_message_has("sample.safetensors");
    }
    remove(path);
    assert_int_equal(safetensors_open(&s, path, &arena), ST_ABSENT);
    write_sample();
    workdir_truncate(path, workdir_size(path) + 1);
    assert_int_equal(safetensors_open(&s, path, &arena), ST_FORMAT);
}

/* The format has no checksum, so a flipped bit may go unnoticed (in a name or a number). It must
 * never yield a tensor outside of the file. */
static void test_header_bit_flips_are_safe(void **state)
{
    (void)state;
    const char *path = write_sample();
    uint64_t header;
    char *bytes;
    int64_t n;
    assert_int_equal(file_read(path, &arena, &bytes, &n), ST_OK);
    memcpy(&header, bytes, sizeof header);
    int refused = 0, taken = 0;
    for (int64_t bit = 0; bit < 8 * (8 + (int64_t)header); bit++) {
        workdir_flip(path, bit / 8, (int)(bit % 8));
        struct safetensors s;
        if (safetensors_open(&s, path, &arena) == ST_OK) {
            taken++;
            for (int i = 0; i < s.count; i++) {
                assert_true(s.tensor[i].bytes >= 0 && s.tensor[i].from >= 0);
                assert_true(s.tensor[i].from <= n - s.tensor[i].bytes);
            }
            safetensors_close(&s);
        } else {
            refused++;
        }
        workdir_flip(path, bit / 8, (int)(bit % 8));
        arena_release(&arena);
    }
    assert_true(refused > taken);
}

static const char *write_raw(uint64_t length, const char *header, int data_bytes)
{
    char file[4096] = {0};
    memcpy(file, &length, 8);
    memcpy(file + 8, header, strlen(header));
    const char *path = workdir_path("raw.safetensors");
    workdir_write(path, file, 8 + (int64_t)strlen(header) + data_bytes);
    return path;
}

static void test_wrong_headers_are_rejected(void **state)
{
    (void)state;
#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
    static const struct {
        const char *header;
        int data_bytes;
        enum status st;
        const char *part;
    } cases[] = {
        {"{" A "}", 8, ST_OK, ""},
        {"{" A "}   ", 8, ST_OK, ""},
        {"{" A "}", 7, ST_FORMAT, "truncated"},
        {"{" A "}", 9, ST_FORMAT, "truncated"},
        {" {" A "}", 8, ST_FORMAT, "begin with {"},
        {"[]", 0, ST_FORMAT, "begin with {"},
        {"{" A, 8, ST_FORMAT, "corrupt"},
        {"{" A "," A "}", 8, ST_FORMAT, "corrupt"},
        {"{\"a\":3}", 0, ST_FORMAT, "no \"dtype\""},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, ST_UNSUPPORTED, "F4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, ST_FORMAT,
         "\"shape\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, ST_FORMAT,
         "\"shape\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, ST_FORMAT,
         "\"shape\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
         ST_FORMAT, "\"shape\""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, ST_FORMAT,
         "does not match"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         ST_FORMAT, "does not match"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, ST_FORMAT,
         "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, ST_FORMAT,
         "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, ST_FORMAT,
         "begins at 4"},
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, ST_FORMAT,
         "begins at 4"},
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}", 16, ST_FORMAT,
         "begins at 12"},
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, ST_FORMAT,
         "begins at 0"},
        {"{\"__metadata__\":{\"k\":\"v\"}," A "}", 8, ST_OK, ""},
        {"{\"__metadata__\":{\"k\":1}," A "}", 8, ST_FORMAT, "__metadata__"},
        {"{\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[8,10]}," A "}", 10, ST_OK, ""},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct safetensors s = {};
        const char *path = write_raw(strlen(cases[i].header), cases[i].header, cases[i].data_bytes);
        enum status st = safetensors_open(&s, path, &arena);
        if (st != cases[i].st) fail_msg("case %d: status %d: %s", i, (int)st, fail_message());
        if (st != ST_OK)
            assert_message_has(cases[i].part);
        else
            safetensors_close(&s);
    }
    static const uint64_t lengths[] = {0,         1, 56, 100, 1u << 31, UINT64_MAX, UINT64_MAX - 7,
                                       1ull << 63};
    for (int i = 0; i < COUNT_OF(lengths); i++) {
        struct safetensors s;
        const char *path = write_raw(lengths[i], "{" A "}", 8);
        assert_int_equal(safetensors_open(&s, path, &arena), ST_FORMAT);
        if (lengths[i] >= 100) assert_message_has("claims");
    }
}

/* Writes `header` with its length before it, followed by zeros; not limited as write_raw is. */
static const char *write_header(const char *header, int64_t data_bytes)
{
    uint64_t length = strlen(header);
    char *file = arena_alloc(&arena, 8 + (int64_t)length + data_bytes);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    const char *path = workdir_path("hostile.safetensors");
    workdir_write(path, file, 8 + (int64_t)length + data_bytes);
    return path;
}

static const char *repeat(const char *part, int times)
{
    size_t n = strlen(part);
    char *text = arena_alloc(&arena, (int64_t)n * times + 1);
    for (int i = 0; i < times; i++) memcpy(text + (size_t)i * n, part, n);
    return text;
}

/* Each is refused in one sentence that fits a message, however long the texts in the file are. */
static void test_hostile_headers_are_refused(void **state)
{
    (void)state;
#define TENSOR "\"a\":{\"dtype\":\"U8\",\"shape\":%s,\"data_offsets\":[%s]}"
    static const struct {
        const char *shape, *offsets;
        int64_t bytes;
        const char *part;
    } numbers[] = {
        {"[9223372036854775807]", "0,9223372036854775807", 8, "the file has 8"},
        {"[9223372036854775807]", "8,9223372036854775807", 8, "does not match"},
        {"[9223372036854775807,2,0]", "0,0", 0, "does not match"},
        {"[4294967296,4294967296,4294967296]", "0,0", 0, "does not match"},
        {"[3037000500,3037000500]", "0,8", 8, "does not match"},
        {"[8]", "-9223372036854775808,-9223372036854775800", 8, "data_offsets"},
        {"[8]", "9223372036854775800,9223372036854775808", 8, "corrupt"},
        {"[18446744073709551616]", "0,8", 8, "corrupt"},
        {"[8]", "0.0,8.0", 8, "data_offsets"},
        {"[8]", "\"0\",\"8\"", 8, "data_offsets"},
        {"[[8]]", "0,8", 8, "\"shape\""},
        {"{\"0\":8}", "0,8", 8, "\"shape\""},
        {"[8]", "0,8],\"shape\":[4", 8, "corrupt"}, /* a field twice */
    };
    struct safetensors s = {};
    for (int i = 0; i < COUNT_OF(numbers); i++) {
        const char *header =
            arena_printf(&arena, "{" TENSOR "}", numbers[i].shape, numbers[i].offsets);
        const char *path = write_header(header, numbers[i].bytes);
        enum status st = safetensors_open(&s, path, &arena);
        if (st != ST_FORMAT) fail_msg("case %d: status %d", i, (int)st);
        assert_message_has(numbers[i].part);
    }
    const struct {
        const char *header, *part;
        enum status st;
    } texts[] = {
        {arena_printf(&arena, "{\"a\":%s", repeat("[", 1000000)), "corrupt", ST_FORMAT},
        {arena_printf(&arena, "{\"a\":%s", repeat("{\"a\":", 1000000)), "corrupt", ST_FORMAT},
        {arena_printf(&arena, "{" TENSOR "}", arena_printf(&arena, "[%s1]", repeat("1,", 1000000)),
                      "0,8"),
         "\"shape\"", ST_FORMAT},
        {arena_printf(&arena, "{\"%s\":{\"dtype\":\"%s\"}}", repeat("a", 3000), repeat("b", 3000)),
         "is not supported", ST_UNSUPPORTED},
        {arena_printf(&arena, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[4,12]}}",
                      repeat("a", 3000)),
         "the previous one ends at 0", ST_FORMAT},
        {"{\"a\\u0000b\":{}}", "corrupt", ST_FORMAT},
        {"{\"\xff\":{}}", "corrupt", ST_FORMAT},
        {arena_printf(&arena, "{%s}", repeat(" ", 1 << 24)), "more than the 16777216 that are read",
         ST_UNSUPPORTED},
    };
    for (int i = 0; i < COUNT_OF(texts); i++) {
        enum status st = safetensors_open(&s, write_header(texts[i].header, 8), &arena);
        if (st != texts[i].st) fail_msg("text %d: status %d: %s", i, (int)st, fail_message());
        assert_message_has(texts[i].part);
    }
}

static void test_no_file_is_refused(void **state)
{
    (void)state;
    struct safetensors s;
    alarm(20);
    assert_int_equal(mkfifo(workdir_path("pipe"), 0666), 0);
    assert_int_equal(safetensors_open(&s, workdir_path("pipe"), &arena), ST_FORMAT);
    assert_message_has("is a FIFO");
    assert_int_equal(safetensors_open(&s, "/dev/zero", &arena), ST_FORMAT);
    assert_message_has("is a device");
    assert_int_equal(safetensors_open(&s, workdir_path(""), &arena), ST_FORMAT);
    assert_message_has("is a directory");
    alarm(0);
}

/* Files of other writers may lack padding, so tensors may be misaligned. */
static void test_unaligned_data_is_read(void **state)
{
    (void)state;
    char file[200] = {0};
    const char *header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}} ";
    uint64_t length = strlen(header);
    if ((8 + length) % 2 == 0) length--;
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, weight, 8);
    workdir_write(workdir_path("odd"), file, (int64_t)(16 + length));
    struct safetensors s;
    assert_int_equal(safetensors_open(&s, workdir_path("odd"), &arena), ST_OK);
    float data[2];
    assert_int_equal(s.tensor[0].from % 2, 1);
    assert_int_equal(safetensors_read(&s, &s.tensor[0], data), ST_OK);
    assert_memory_equal(data, weight, 8);
    safetensors_close(&s);
}

/* A mapped file would end the process with SIGBUS here. */
static void test_cut_while_open_is_an_error(void **state)
{
    (void)state;
    const char *path = write_sample();
    struct safetensors s;
    char data[64];
    assert_int_equal(safetensors_open(&s, path, &arena), ST_OK);
    workdir_truncate(path, s.tensor[0].from + 1);
    assert_int_equal(safetensors_read(&s, &s.tensor[0], data), ST_FORMAT);
    assert_message_has("was cut to ");
    safetensors_close(&s);
}

/* A limit on the file size simulates a full disk. */
static void test_full_disk_is_an_error(void **state)
{
    (void)state;
    static float large[100000];
    const struct safetensor t[2] = {
        {.name = "a", .type = SAFETENSORS_F32, .rank = 1, .dim = {COUNT_OF(large)}, .data = large},
        {.name = "b", .type = SAFETENSORS_F32, .rank = 1, .dim = {COUNT_OF(large)}, .data = large}};
    const char *path = workdir_path("large.safetensors");
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 300000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum status st = safetensors_write(path, t, 2, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, ST_IO);
    assert_message_has("large.safetensors: File too large");
    assert_false(file_exists(path));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_no_tensors_at_all),
        TEST(test_every_truncation_is_detected),
        TEST(test_header_bit_flips_are_safe),
        TEST(test_wrong_headers_are_rejected),
        TEST(test_hostile_headers_are_refused),
        TEST(test_no_file_is_refused),
        TEST(test_unaligned_data_is_read),
        TEST(test_cut_while_open_is_an_error),
        TEST(test_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
