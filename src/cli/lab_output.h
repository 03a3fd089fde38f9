/* lab_output.h - what commands of `strobe lab` do with a result: print it, keep it in files. */
#ifndef CLI_LAB_OUTPUT_H
#define CLI_LAB_OUTPUT_H

#include "backend/backend.h"
#include "base/log.h"
#include "present/sheet.h"
#include "present/table_form.h"

struct lab_output {
    const char *svg, *save; /* paths; NULL: no such file */
    struct table_form form;
};

/* Whether the form is one, and the files can be written. */
enum status lab_output_check(const struct lab_output *o);
/* What a result is from. */
struct lab_origin {
    const struct device *device;
    const char *command;
    double others; /* share of the processors that other programs took (load_others) */
};
/* Completes the sheet with its origin, writes the files, prints the tables even if a file cannot be
 * written, and says on stderr which files there are now. `wrong`: what is wrong with the results,
 * which is ST_NUMERIC; NULL: nothing. Else a failure is that of a file. */
enum status lab_output_finish(const struct lab_output *o, const struct lab_origin *from,
                              struct sheet *s, const char *wrong, struct arena *a);

/* One progress for the runs of several sizes; lab_progress_share is the `each` of a run. */
struct lab_progress {
    struct progress progress;
    int run, runs;
};
void lab_progress_share(void *user, double share, const char *what);

#endif
