/* A text or lines of JSON, plain or packed: unpacked, and made into a data set. */
#include "fuzz.h"

#include "base/str.h"
#include "base/unpack.h"
#include "data/corpus.h"
#include "data/tokenizers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNPACKED_MOST = 1 << 20, SET_MOST = 1 << 16 };

/* Unpacks a file in portions of at most `most` bytes, up to UNPACKED_MOST. */
static enum status unpack(const struct fuzz_part *file, int64_t most, struct str *ret)
{
    struct unpack *u;
    int fd = memfd_create("input", MFD_CLOEXEC);
    BUG_IF(fd < 0 || write(fd, file->bytes, (size_t)file->size) != file->size ||
               lseek(fd, 0, SEEK_SET) != 0,
           "no file in memory");
    TRY(unpack_open(&u, fd, "input"));
    enum status st = ST_OK;
    for (int64_t n = 1; st == ST_OK && n > 0 && ret->len < UNPACKED_MOST;) {
        st = unpack_read(u, str_reserve(ret, most), most, &n);
        if (st == ST_OK) ret->len += n;
    }
    BUG_IF(unpack_consumed(u) > file->size, "more was read than is there");
    unpack_close(u);
    return st;
}

/* The tokens of a set of a single text are its bytes. */
static void compare(const struct dataset *d, const struct str *text)
{
    int64_t at = 0;
    for (int s = 0; s < SPLIT_COUNT; s++) {
        for (int64_t i = 0; i < d->count[s]; i++, at++) {
            int32_t token;
            BUG_IF(dataset_read(d, s, i, 1, &token) != ST_OK, "%s", fail_message());
            BUG_IF(at >= text->len || token != (uint8_t)text->data[at], "token %lld",
                   (long long)at);
        }
    }
    BUG_IF(at != text->len, "%lld tokens", (long long)at);
}

/* Each document ends with a token of its own. */
static void count(const struct dataset *d, int end)
{
    int64_t documents = 0;
    for (int s = 0; s < SPLIT_COUNT; s++) {
        for (int64_t i = 0; i < d->count[s]; i++) {
            int32_t token;
            BUG_IF(dataset_read(d, s, i, 1, &token) != ST_OK, "%s", fail_message());
            documents += token == end;
        }
    }
    BUG_IF(documents != d->documents, "%lld documents end", (long long)documents);
}

static bool make(const char *file, const struct str *text, struct arena *a)
{
    struct tokenizer t;
    struct dataset d;
    BUG_IF(tokenizers_find(&t, "bytes", a) != ST_OK, "%s", fail_message());
    const char *path = arena_printf(a, "%s/%s", fuzz_folder(), file);
    struct corpus c = {.data_dir = fuzz_folder(),
                       .name = "set",
                       .from = &path,
                       .froms = 1,
                       .tokenizer = &t,
                       .val_share = 0.5,
                       .replace = true,
                       .threads = 1};
    if (corpus_write(&c, a) != ST_OK) return false;
    BUG_IF(dataset_open(&d, fuzz_folder(), "set", a) != ST_OK, "%s", fail_message());
    BUG_IF(dataset_verify(&d) != ST_OK, "%s", fail_message());
    if (text)
        compare(&d, text);
    else
        count(&d, 256);
    dataset_close(&d);
    return true;
}

/* The first part of an input is empty for a text, or a word for lines. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[2];
    struct str whole = {0}, portions = {0};
    bool lines = fuzz_parts(data, size, part, 2, &a) && part[0].size;
    enum status st = unpack(&part[1], UNPACKED_MOST, &whole);
    BUG_IF(unpack(&part[1], 7, &portions) != st, "portions are read otherwise");
    int64_t n = min_i64(whole.len, portions.len);
    BUG_IF(st == ST_OK && n < UNPACKED_MOST && whole.len != portions.len, "portions end elsewhere");
    BUG_IF(n && memcmp(whole.data, portions.data, (size_t)n) != 0, "portions are other bytes");
    const char *file = lines ? "x.jsonl" : "x";
    bool valid = st == ST_OK && whole.len <= SET_MOST;
    if (valid) {
        fuzz_disk(file, part[1].bytes, part[1].size);
        valid = make(file, lines ? NULL : &whole, &a);
    }
    str_release(&whole);
    str_release(&portions);
    return fuzz_end(&a, valid);
}
