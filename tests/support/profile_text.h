/* profile_text.h - profiles with known contents, as text of profile.json. */
#ifndef SUPPORT_PROFILE_TEXT_H
#define SUPPORT_PROFILE_TEXT_H

struct arena;

/* The main fields of a row; the others are derived from them. */
struct profile_text_row {
    const char *range, *family, *op, *shape,
        *kernel; /* range: "forward/block 0/attention/softmax" */
    int layer;
    double ms, flops, bytes;
};

/* A step of two blocks with slow attention, 12.5 ms, of which 7 ms are softmax, and one with flash
 * attention, 8 ms. The kernel of block 0's matmul differs. The last row of each has no op. */
extern const struct profile_text_row profile_slow[], profile_flash[];

/* The text of the file; half a millisecond of the step is idle. */
const char *profile_text(const struct profile_text_row *row, struct arena *a);

#endif
