#include "fuzz.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/trust.h"

#include <stdlib.h>
#include <string.h>

enum { FILES_MOST = 8 };

static struct {
    const char *path;
    const void *bytes;
    int64_t size;
} file[FILES_MOST];
static int files;
static int64_t inputs, taken;

static void print_taken(void)
{
    printf("%lld of %lld inputs were valid\n", (long long)taken, (long long)inputs);
}

int LLVMFuzzerInitialize(int *, char ***)
{
    setenv("STROBE_LOG", "error", 1);
    atexit(print_taken);
    return 0;
}

int fuzz_parts(const uint8_t *data, size_t size, struct fuzz_part *part, int most, struct arena *a)
{
    static const char line[] = "\n%%\n";
    const char *at = (const char *)data, *end = at + size;
    int n = 0;
    memset(part, 0, sizeof *part * (size_t)most);
    for (; n < most; n++) {
        const char *stop = memmem(at, (size_t)(end - at), line, sizeof line - 1);
        bool last = !stop || n == most - 1;
        if (last) stop = end;
        part[n].size = stop - at;
        part[n].bytes = arena_alloc(a, part[n].size + 1);
        if (part[n].size) memcpy(part[n].bytes, at, (size_t)part[n].size);
        if (last) return n + 1;
        at = stop + sizeof line - 1;
    }
    return n;
}

void fuzz_file(const char *path, const void *bytes, int64_t size)
{
    BUG_IF(files == FILES_MOST, "too many files");
    file[files].path = path;
    file[files].bytes = bytes;
    file[files++].size = size;
}

static char folder[64];

static void remove_folder(void)
{
    (void)!file_remove_dir(folder);
}

const char *fuzz_folder(void)
{
    if (*folder) return folder;
    snprintf(folder, sizeof folder, "%s/strobe-fuzz-XXXXXX",
             file_is_dir("/dev/shm") ? "/dev/shm" : "/tmp");
    BUG_IF(!mkdtemp(folder), "%s cannot be made", folder);
    atexit(remove_folder);
    return folder;
}

void fuzz_disk(const char *name, const void *bytes, int64_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    BUG_IF(file_make_parent(path) != ST_OK, "%s", fail_message());
    FILE *f = fopen(path, "wb");
    BUG_IF(!f || (size && fwrite(bytes, 1, (size_t)size, f) != (size_t)size), "%s", path);
    fclose(f);
}

void fuzz_touch(const void *bytes, int64_t size)
{
    static volatile uint8_t sum;
    for (int64_t i = 0; i < size; i++) sum = sum ^ ((const uint8_t *)bytes)[i];
}

int fuzz_end(struct arena *a, bool accepted)
{
    files = 0;
    inputs++;
    taken += accepted;
    arena_release(a);
    return 0;
}

/* --- files in memory -------------------------------------------------------------------------- */

static int find(const char *path)
{
    for (int i = 0; i < files; i++)
        if (!strcmp(file[i].path, path)) return i;
    return -1;
}

bool __real_file_exists(const char *path);
bool __wrap_file_exists(const char *path);
bool __wrap_file_exists(const char *path)
{
    return find(path) >= 0 || __real_file_exists(path);
}

enum status __real_file_read(const char *path, struct arena *a, char **ret, int64_t *ret_size);
enum status __wrap_file_read(const char *path, struct arena *a, char **ret, int64_t *ret_size);
enum status __wrap_file_read(const char *path, struct arena *a, char **ret, int64_t *ret_size)
{
    int i = find(path);
    if (i < 0) return __real_file_read(path, a, ret, ret_size);
    char *copy = arena_alloc(a, file[i].size + 1);
    if (file[i].size) memcpy(copy, file[i].bytes, (size_t)file[i].size);
    *ret = copy;
    *ret_size = file[i].size;
    return ST_OK;
}

enum status __real_file_read_most(const char *path, int64_t most, struct arena *a, char **ret,
                                  int64_t *ret_size);
enum status __wrap_file_read_most(const char *path, int64_t most, struct arena *a, char **ret,
                                  int64_t *ret_size);
enum status __wrap_file_read_most(const char *path, int64_t most, struct arena *a, char **ret,
                                  int64_t *ret_size)
{
    if (find(path) < 0) return __real_file_read_most(path, most, a, ret, ret_size);
    TRY(__wrap_file_read(path, a, ret, ret_size));
    return *ret_size <= most ? ST_OK : fail(ST_FORMAT, "%s is too large", path);
}

/* A descriptor that no system call knows stands for a file in memory. */
enum { FIRST_FD = 1 << 20 };
enum status __real_file_open(const char *path, int *ret, int64_t *size);
enum status __wrap_file_open(const char *path, int *ret, int64_t *size);
enum status __wrap_file_open(const char *path, int *ret, int64_t *size)
{
    int i = find(path);
    if (i < 0) return __real_file_open(path, ret, size);
    *ret = FIRST_FD + i;
    *size = file[i].size;
    return ST_OK;
}

enum status __real_file_read_range(int fd, const char *path, int64_t from, int64_t n, void *ret);
enum status __wrap_file_read_range(int fd, const char *path, int64_t from, int64_t n, void *ret);
enum status __wrap_file_read_range(int fd, const char *path, int64_t from, int64_t n, void *ret)
{
    if (fd < FIRST_FD) return __real_file_read_range(fd, path, from, n, ret);
    int i = fd - FIRST_FD;
    BUG_IF(from < 0 || n < 0 || n > file[i].size - from, "a read beyond the end of %s", path);
    if (n) memcpy(ret, file[i].bytes + from, (size_t)n);
    return ST_OK;
}

/* Files in memory are trusted, no matter who owns the working directory. */
enum status __real_trust_check(const char *path, struct arena *a, const char **ret_real);
enum status __wrap_trust_check(const char *path, struct arena *a, const char **ret_real);
enum status __wrap_trust_check(const char *path, struct arena *a, const char **ret_real)
{
    if (find(path) < 0) return __real_trust_check(path, a, ret_real);
    *ret_real = arena_strdup(a, path);
    return ST_OK;
}

bool __real_trust_path(const char *path, bool *warned, struct arena *a, const char **ret_real);
bool __wrap_trust_path(const char *path, bool *warned, struct arena *a, const char **ret_real);
bool __wrap_trust_path(const char *path, bool *warned, struct arena *a, const char **ret_real)
{
    return find(path) < 0 ? __real_trust_path(path, warned, a, ret_real)
                          : __wrap_trust_check(path, a, ret_real) == ST_OK;
}

/* --- SHA-256 ---------------------------------------------------------------------------------- */

void __wrap_hash_add(struct hash *h, const void *bytes, int64_t n);
void __wrap_hash_add(struct hash *, const void *, int64_t) {}

struct hash *__wrap_hash_open(void);
struct hash *__wrap_hash_open(void)
{
    return NULL;
}

void __wrap_hash_close(struct hash *h, char ret_hex[HASH_HEX]);
void __wrap_hash_close(struct hash *, char ret_hex[HASH_HEX])
{
    memset(ret_hex, '0', HASH_HEX - 1);
    ret_hex[HASH_HEX - 1] = '\0';
}

void __wrap_hash_bytes(const void *bytes, int64_t n, char ret_hex[HASH_HEX]);
void __wrap_hash_bytes(const void *, int64_t, char ret_hex[HASH_HEX])
{
    __wrap_hash_close(NULL, ret_hex);
}
