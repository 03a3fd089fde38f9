#include "zip_image.h"

#include "exchange/crc32.h"
#include "exchange/zip_format.h"

#include <string.h>

enum { NAME_MOST = 32 };

static void put(uint8_t **at, int bytes, int64_t number)
{
    for (int i = 0; i < bytes; i++) *(*at)++ = (uint8_t)((uint64_t)number >> 8 * i);
}

/* Reserves `more` bytes; returns where they begin. */
static uint8_t *grow(struct zip_image *m, int64_t more, struct arena *a)
{
    uint8_t *byte = arena_alloc(a, m->n + more);
    if (m->n) memcpy(byte, m->byte, (size_t)m->n);
    m->byte = byte;
    return byte + m->n;
}

/* What both headers of an entry have after their versions. */
static void put_common(uint8_t **at, const char *name, const void *data, int64_t n)
{
    put(at, 8, 0);
    put(at, 4, crc32_add(0, data, n));
    put(at, 4, n);
    put(at, 4, n);
    put(at, 4, (int64_t)strlen(name));
}

void zip_image_add(struct zip_image *m, const char *name, const void *data, int64_t n,
                   struct arena *a)
{
    size_t length = strlen(name);
    BUG_IF(length > NAME_MOST || m->count == 10, "%s", name);
    uint8_t *at = grow(m, ZIP_LOCAL_BYTES + (int64_t)length + n, a);
    uint8_t *d = m->directory + m->directory_bytes;
    put(&d, 4, ZIP_DIRECTORY);
    put(&d, 4, 0);
    put_common(&d, name, data, n);
    put(&d, 6, 0);
    put(&d, 4, 0);
    put(&d, 4, m->n);
    memcpy(d, name, length);
    put(&at, 4, ZIP_LOCAL);
    put(&at, 2, 0);
    put_common(&at, name, data, n);
    memcpy(at, name, length);
    if (n) memcpy(at + length, data, (size_t)n);
    m->n = at + length + n - m->byte;
    m->directory_bytes = (int)(d + length - m->directory);
    m->count++;
}

void zip_image_finish(struct zip_image *m, struct arena *a)
{
    uint8_t *at = grow(m, m->directory_bytes + ZIP_END_BYTES, a);
    memcpy(at, m->directory, (size_t)m->directory_bytes);
    at += m->directory_bytes;
    put(&at, 4, ZIP_END);
    put(&at, 4, 0);
    put(&at, 2, m->count);
    put(&at, 2, m->count);
    put(&at, 4, m->directory_bytes);
    put(&at, 4, m->n);
    put(&at, 2, 0);
    m->n = at - m->byte;
}
