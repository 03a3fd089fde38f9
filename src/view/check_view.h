/* check_view.h - runs and prints `strobe check`: one line per operator, variant and float type. */
#ifndef VIEW_CHECK_VIEW_H
#define VIEW_CHECK_VIEW_H

#include "backend/backend.h"
#include "base/arena.h"
#include "check/check.h"
#include "graph/op.h"

struct str;

/* All cases of one operator, variant and float type. */
struct check_line {
    enum op op;
    const char *variant, *type;
    int tried, failed;
    double error, tolerance;     /* in the case with the largest error / tolerance */
    const char *problem, *where; /* NULL while nothing failed; where: the failing case */
};

struct check_lines {
    struct arena *arena;
    struct check_line *line;
    int lines, capacity;
    int failed; /* lines */
};

/* Compares kernels with the reference. Also checks gradients and expansions, unless the scope is
 * limited to a variant or `kernels_only` is set. */
enum status check_run(struct check_lines *ret, const struct device *d,
                      const struct check_scope *scope, bool kernels_only);
void check_lines_print(const struct check_lines *l, bool json, struct str *s);

#endif
