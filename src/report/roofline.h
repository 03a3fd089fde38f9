/* roofline.h - the roofline as one SVG: every kernel a point at its FLOPs per byte and FLOPs per second,
 * its area its time, its colour its family, under the measured ceilings of the machine.
 *
 * One drawing serves the file and the page: in the page the colours are those of the page, a file brings
 * them along. Points carry what they are as tooltips. */
#ifndef REPORT_ROOFLINE_H
#define REPORT_ROOFLINE_H

#include "report/profile_file.h"

struct str;

/* The decades that the axes show, the same for all profiles that are beside each other. */
struct roofline_frame {
    double x_low, x_high; /* FLOP/byte */
    double y_low, y_high; /* FLOP/s */
    double ms_most;       /* of a kernel in a step: has the largest point */
};

struct roofline_frame roofline_frame_of(const struct profile_file *profile, int n);
/* False if no kernel of it does arithmetic. */
bool roofline_has_points(const struct profile_file *p);
/* An <svg> element without colours of its own. */
void roofline_print_picture(const struct profile_file *p, const struct roofline_frame *frame,
                            struct str *s);
/* A file: all profiles, one below the other. */
void roofline_print_file(const struct profile_file *profile, int n, struct str *s);

#endif
