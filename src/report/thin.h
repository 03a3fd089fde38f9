/* thin.h - which rows of a long series a chart needs, so that no extreme is lost. */
#ifndef REPORT_THIN_H
#define REPORT_THIN_H

#include "base/arena.h"

struct json_t;

/* The most points of a curve: more than a screen can show only make the page slow. */
enum { THIN_MOST = 12000 };

/* Rows of `size` bytes, with a double at each offset. */
struct thin {
    const void *row;
    size_t size;
    int rows;
    const struct thin_column {
        const char *name;
        size_t offset;
    } * column;
    int columns;
};

/* Of each of equal parts of the rows, keeps the first and the last, and for every column those with
 * the lowest and the highest value and the first that is not a number; all rows if they are at most
 * THIN_MOST. Returns their indices, ascending, in the arena. */
int *thin_rows(const struct thin *t, struct arena *a, int *ret_kept);
/* Sets o[name of a column] to the values of these rows, for each column. */
void thin_json(const struct thin *t, const int *index, int kept, struct json_t *o);

#endif
