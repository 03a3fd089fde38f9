/* lab_output.h - what commands of `strobe lab` do with a result: print it, keep it in files. */
#ifndef CLI_LAB_OUTPUT_H
#define CLI_LAB_OUTPUT_H

#include "backend/backend.h"
#include "base/load.h"
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

/* Measurements, such as those of several sizes, one after the other until one fails or Ctrl-C, with
 * one progress; lab_series_share is their `each`, with the series as its user. */
struct lab_series {
    struct progress progress;
    struct load load; /* since it began */
    int done, runs;
    enum status status;
    struct failure why;
};
void lab_series_begin(struct lab_series *s, const char *name, int runs);
bool lab_series_goes_on(const struct lab_series *s);
/* A measurement ended so. */
void lab_series_add(struct lab_series *s, enum status st);
void lab_series_end(struct lab_series *s);
/* The first failure of the series, else `finished`: that of printing what was done. */
enum status lab_series_status(const struct lab_series *s, enum status finished);
void lab_series_share(void *user, double share, const char *what);

#endif
