/* fuzz.h - what the fuzz targets share: parts of an input, and files in memory.
 *
 * A target is a file fuzz_NAME.c with LLVMFuzzerTestOneInput, the entry point of libFuzzer; without
 * clang the same function is called by driver.c. In these programs file_read, file_open_at and the
 * like find files in memory first (the linker's --wrap), and every SHA-256 is 64 zeros, so that a
 * changed byte gets past the checksums. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "base/arena.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes of one file of an input; followed by a zero byte. */
struct fuzz_part {
    char *bytes;
    int64_t size;
};

/* Parts of an input are separated by lines of "%%". Fills `part`, missing ones with no bytes, and
 * returns how many there are. The copies live in the arena. */
int fuzz_parts(const uint8_t *data, size_t size, struct fuzz_part *part, int most, struct arena *a);

/* A file that exists until fuzz_end. `bytes` are borrowed. */
void fuzz_file(const char *path, const void *bytes, int64_t size);
/* A folder on tmpfs, for a reader that opens files itself; removed at the end of the program. */
const char *fuzz_folder(void);
/* Writes a file of it, which stays until it is written again. */
void fuzz_disk(const char *name, const void *bytes, int64_t size);
/* Reads every byte, so that the sanitizer sees those that are not there. */
void fuzz_touch(const void *bytes, int64_t size);
/* Ends an input: removes the files, releases the arena. `accepted`: the reader took the input for
 * valid. At the end of the program their number is printed; none of the seeds accepted would mean
 * that the target does not reach its reader. Returns 0. */
int fuzz_end(struct arena *a, bool accepted);

#endif
