#include "backend/cuda/runtime/jit_cache.h"

#include "backend/cuda/runtime/jit.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file contains the SHA-256 of the image in hexadecimal digits, a newline, then the image. */
enum { HEAD = HASH_HEX };

bool jit_cache_path(const char *folder, const char *text, const char *source, const char *options,
                    const char *arch, char ret_path[1024])
{
    const struct cuda_nvrtc *nvrtc = cuda_nvrtc(NULL);
    int version[2] = {0, 0};
    if (!nvrtc || nvrtc->nvrtcVersion(&version[0], &version[1]) != NVRTC_SUCCESS) return false;
    struct hash *h = hash_open();
    int64_t bytes;
    for (int i = 0; cuda_text_name(i); i++) {
        const char *name = cuda_text_name(i);
        if (strcmp(name, text) && !strstr(name, ".cuh")) continue;
        const char *content = cuda_text(name, &bytes);
        hash_add(h, content, bytes);
    }
    for (int i = 0; jit_options[i]; i++)
        hash_add(h, jit_options[i], (int64_t)strlen(jit_options[i]) + 1);
    if (source) hash_add(h, source, (int64_t)strlen(source));
    hash_add(h, options, (int64_t)strlen(options) + 1);
    hash_add(h, arch, (int64_t)strlen(arch) + 1);
    hash_add(h, version, sizeof version);
    char hex[HASH_HEX];
    hash_close(h, hex);
    const char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text;
    return snprintf(ret_path, 1024, "%s/%.*s-%.24s.cubin", folder, (int)strcspn(name, "."), name,
                    hex) < 1024;
}

bool jit_cache_read(const char *path, char **ret_image, int64_t *ret_bytes)
{
    struct arena a = {0};
    char *data, hex[HASH_HEX];
    const char *real;
    int64_t size;
    static bool warned;
    bool good = file_exists(path) && trust_path(path, &warned, &a, &real) &&
                file_read(real, &a, &data, &size) == ST_OK && size > HEAD;
    if (good) hash_bytes(data + HEAD, size - HEAD, hex);
    good = good && !memcmp(hex, data, HASH_HEX - 1) && data[HEAD - 1] == '\n';
    if (good) {
        *ret_bytes = size - HEAD;
        *ret_image = heap_alloc(*ret_bytes);
        memcpy(*ret_image, data + HEAD, (size_t)*ret_bytes);
    }
    arena_release(&a);
    return good;
}

void jit_cache_write(const char *path, const char *image, int64_t bytes)
{
    struct file_writer w;
    char hex[HASH_HEX];
    hash_bytes(image, bytes, hex);
    hex[HASH_HEX - 1] = '\n';
    if (file_writer_open(&w, path) != ST_OK) return;
    /* Sets the mode regardless of the umask, because a file that others can write is never read. */
    if (fchmod(fileno(w.stream), S_IRUSR | S_IWUSR) != 0 ||
        fwrite(hex, 1, HEAD, w.stream) != HEAD ||
        fwrite(image, 1, (size_t)bytes, w.stream) != (size_t)bytes) {
        file_writer_discard(&w);
        return;
    }
    (void)!file_writer_commit(&w);
}
