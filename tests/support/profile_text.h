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

/* A step of two blocks with slow attention, 12.5 ms, and the same with flash attention, 8 ms; each
 * ends with a row that has no op. Softmax is 7 ms of the first; the matmul of block 0 is in both,
 * with another kernel in the second. */
extern const struct profile_text_row profile_slow[], profile_flash[];

/* The text of the file; half a millisecond of the step is idle. */
const char *profile_text(const struct profile_text_row *row, struct arena *a);

#endif
