/* roofline.h - the roofline as one SVG: every kernel is a point at its FLOPs per byte and FLOPs per
 * second, below the measured peaks of the machine. Its area is its time, its color its family.
 *
 * The file and the page use the same drawing. Points have tooltips; the page, which shows the
 * drawing as an image, has them as data. */
#ifndef REPORT_ROOFLINE_H
#define REPORT_ROOFLINE_H

#include "result/profile_file.h"

struct json_t;
struct markup;

/* Limits of the axes, the same for all profiles of a report. */
struct roofline_frame {
    double x_low, x_high; /* FLOP/byte */
    double y_low, y_high; /* FLOP/s */
    double ms_most;       /* largest time of a kernel per step: has the largest point */
};

struct roofline_frame roofline_frame_of(const struct profile_file *profile, int n);
/* Whether any kernel of the profile does arithmetic. */
bool roofline_has_points(const struct profile_file *p);
/* The picture of one profile, as the page shows it. */
void roofline_print_picture(const struct profile_file *p, const struct roofline_frame *frame,
                            struct markup *m);
/* {"width", "points": [[x, y, radius, family, tooltip], ...]} of that picture, in the order of
 * drawing; the caller releases it with json_decref. */
struct json_t *roofline_points(const struct profile_file *p, const struct roofline_frame *frame);
/* A complete file: all profiles, one below the other. */
void roofline_print_file(const struct profile_file *profile, int n, struct markup *m);

#endif
