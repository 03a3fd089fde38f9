/* check_view.h - what `strobe check` tries and prints: a line for each operator, variant and float type. */
#ifndef VIEW_CHECK_VIEW_H
#define VIEW_CHECK_VIEW_H

#include "backend/backend.h"
#include "base/arena.h"
#include "graph/op.h"

struct str;

/* All that was tried of one operator with one variant and one float type. */
struct check_line {
    enum op op;
    const char *variant, *type;
    int tried, failed;
    double error, tolerance;     /* of the run that came nearest to failing, or failed worst */
    const char *problem, *where; /* NULL while nothing failed; in which case */
};

struct check_lines {
    struct arena *arena;
    struct check_line *line;
    int lines, capacity;
    int failed; /* lines */
};

/* Every kernel row against the reference, every gradient and expansion against arithmetic. OP_COUNT: of every operator;
 * `variant` NULL: of every variant, else of the rows of that name alone, without the rules. */
enum status check_run(struct check_lines *ret, const struct device *d, enum op op,
                      const char *variant);
void check_lines_print(const struct check_lines *l, bool json, struct str *s);

#endif
