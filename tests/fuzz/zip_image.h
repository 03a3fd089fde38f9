/* zip_image.h - a zip file in memory, for targets whose input is one entry of it. */
#ifndef FUZZ_ZIP_IMAGE_H
#define FUZZ_ZIP_IMAGE_H

#include "base/arena.h"

/* Zeroed, it is empty. */
struct zip_image {
    uint8_t *byte;
    int64_t n;
    /* private */
    uint8_t directory[1024];
    int directory_bytes, count;
};

/* At most 10 entries. */
void zip_image_add(struct zip_image *m, const char *name, const void *data, int64_t n,
                   struct arena *a);
/* Then byte and n are the file. */
void zip_image_finish(struct zip_image *m, struct arena *a);

#endif
