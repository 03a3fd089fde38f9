/* What libFuzzer does, without coverage, for machines without clang: runs all files of the folders,
 * then simple mutations of them until the time is over.
 * usage: NAME [-max_total_time=SECONDS] [-seed=N] FOLDER... ; other options are ignored. A single
 * file is run once. */
#include "fuzz.h"

#include "base/clock.h"
#include "base/rng.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEEDS_MOST = 4096, BYTES_MOST = 1 << 16, CHANGES_MOST = 8 };

static struct {
    uint8_t *bytes;
    int64_t size;
} seed[SEEDS_MOST];
static int seeds;
static uint32_t sequence = 1;
static uint64_t counter;

static int64_t below(int64_t n)
{
    return rng_below(sequence, RNG_TEST, 0, counter++, n);
}

static void take_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || seeds == SEEDS_MOST) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    static uint8_t bytes[BYTES_MOST];
    int64_t n = (int64_t)fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    seed[seeds].bytes = malloc((size_t)n + 1);
    memcpy(seed[seeds].bytes, bytes, (size_t)n);
    seed[seeds++].size = n;
}

static void take(const char *path)
{
    struct stat info;
    char name[4096];
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        take_file(path);
        return;
    }
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.') take(name);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
}

/* Numbers and texts at which readers break. */
static const char *const words[] = {
    "0",
    "-1",
    "1e999",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1e18",
    "nan",
    "null",
    "\"\"",
    "{}",
    "[]",
    "true",
    "\xff",
    "%s%n",
    "<script>",
    "\x1b[2J",
    "18446744073709551615",
    "\n%%\n",
    "=",
    "1e-400",
    "\\u0000",
};

/* One change of `bytes`, which have space for BYTES_MOST. */
static int64_t change(uint8_t *bytes, int64_t n)
{
    int64_t at = below(n + 1), length = min_i64(1 + below(16), n - at);
    const char *word = words[below(COUNT_OF(words))];
    int64_t letters = (int64_t)strlen(word), from;
    switch (below(6)) {
    case 0: /* one bit */
        if (at < n) bytes[at] ^= (uint8_t)(1u << below(8));
        return n;
    case 1: /* one byte */
        if (at < n) bytes[at] = (uint8_t)below(256);
        return n;
    case 2: /* a piece less */
        memmove(bytes + at, bytes + at + length, (size_t)(n - at - length));
        return n - length;
    case 3: /* a piece twice */
        if (n + length > BYTES_MOST) return n;
        memmove(bytes + at + length, bytes + at, (size_t)(n - at));
        return n + length;
    case 4: /* a word */
        if (n + letters > BYTES_MOST) return n;
        memmove(bytes + at + letters, bytes + at, (size_t)(n - at));
        memcpy(bytes + at, word, (size_t)letters);
        return n + letters;
    default: /* a piece of another place */
        from = below(n - length + 1);
        memmove(bytes + at, bytes + from, (size_t)length);
        return n;
    }
}

enum { SECONDS_MOST = 20 }; /* for one input, as libFuzzer's -timeout in run.sh */

static char found[4096];
static const uint8_t *current;
static size_t current_size;

/* Keeps the input at which a sanitizer, BUG_IF or the alarm ends the program. It is called by
 * signal handlers, so it uses no streams. */
static void keep_current(void)
{
    int fd = current ? open(found, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (fd < 0) return;
    bool kept = write(fd, current, current_size) == (ssize_t)current_size;
    close(fd);
    dprintf(STDERR_FILENO, kept ? "the input is %s\n" : "%s could not be written\n", found);
}

static void on_signal(int number)
{
    if (number == SIGALRM)
        dprintf(STDERR_FILENO, "one input takes more than %d seconds\n", SECONDS_MOST);
    keep_current();
    _exit(1);
}

void __sanitizer_set_death_callback(void (*callback)(void));

static void run_input(const uint8_t *bytes, int64_t n)
{
    uint8_t *copy = malloc((size_t)n + !n);
    memcpy(copy, bytes, (size_t)n);
    current = copy;
    current_size = (size_t)n;
    alarm(SECONDS_MOST);
    LLVMFuzzerTestOneInput(copy, (size_t)n);
    alarm(0);
    current = NULL;
    free(copy);
}

int main(int argc, char **argv)
{
    double seconds = 0;
    const char *kept = "";
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "-max_total_time=%lf", &seconds) == 1) continue;
        if (sscanf(argv[i], "-seed=%u", &sequence) == 1) continue;
        if (strncmp(argv[i], "-artifact_prefix=", 17) == 0) kept = argv[i] + 17;
        if (argv[i][0] != '-') take(argv[i]);
    }
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    snprintf(found, sizeof found, "%s%scrash-%s", kept, *kept ? "" : "/tmp/", name);
    __sanitizer_set_death_callback(keep_current);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    int64_t start = clock_ns(), runs = 0;
    for (; runs < seeds; runs++) run_input(seed[runs].bytes, seed[runs].size);
    static uint8_t bytes[BYTES_MOST + 64];
    while (seeds && clock_ms(start, clock_ns()) < 1e3 * seconds) {
        int i = (int)below(seeds);
        int64_t n = seed[i].size;
        memcpy(bytes, seed[i].bytes, (size_t)n);
        for (int64_t k = 1 + below(CHANGES_MOST); k > 0; k--) n = change(bytes, n);
        run_input(bytes, n);
        runs++;
    }
    for (int i = 0; i < seeds; i++) free(seed[i].bytes);
    printf("stat::number_of_executed_units: %lld\n", (long long)runs);
    return 0;
}
