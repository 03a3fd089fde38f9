/* output.h - what commands that measure do: they measure with a progress line until they are done
 * or Ctrl-C comes, then print the result and keep it in files. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "backend/backend.h"
#include "base/load.h"
#include "base/log.h"
#include "present/markup.h"
#include "present/sheet.h"
#include "present/table_form.h"

/* What the user asks for. */
struct output {
    const char *svg, *save; /* paths; NULL: no such file */
    struct table_form form;
    const char *command; /* the command line */
};
/* Rows for the option table of a command; `picture`: the help of --svg. */
#define OUTPUT_OPTIONS(o, picture)                                                     \
    {"svg", OPT_TEXT, &(o)->svg, "FILE", picture},                                     \
        {"save", OPT_TEXT, &(o)->save, "FILE", "write the result, for strobe report"}, \
        TABLE_FORM_OPTIONS(&(o)->form)
/* Whether the form is one, and the files can be written. */
enum status output_check(const struct output *o);

/* How long a command measures: the values of two options, and their limits. */
struct effort {
    const char *option; /* name of the first, "samples"; the second is --limit, in seconds */
    int64_t samples, samples_most, limit, limit_least, limit_most;
};
/* The first value of an option that is not given where a command measures on as long as the order
 * of its results is uncertain: then *ret_go_on is set, and samples are EFFORT_SAMPLES. */
#define EFFORT_OPEN INT64_MIN
enum { EFFORT_SAMPLES = 20 };
/* Checks the values. `ret_go_on` NULL: the command does not measure on. */
enum status effort_read(const struct effort *e, int *ret_samples, double *ret_limit_ms,
                        bool *ret_go_on);

/* Measurements, such as those of several sizes, one after the other until one fails or Ctrl-C, with
 * one progress line. outcome_share is their `each`, with the outcome as its user. */
struct outcome {
    struct progress progress;
    struct load load; /* since it began */
    double others;    /* share of the processors that other programs took meanwhile (load_others) */
    int done, runs;
    enum status status;
    struct failure why;
    /* The result, which the command fills in: */
    struct sheet sheet;
    const struct device *device;
    const char *wrong;     /* what is wrong with it, which is ST_NUMERIC; NULL: nothing */
    struct markup picture; /* for --svg; empty: that of the first table */
    struct str text;       /* printed after the tables, if they are plain text */
};
void outcome_begin(struct outcome *x, const char *name, int runs, const struct device *d);
bool outcome_goes_on(const struct outcome *x);
/* A measurement ended so. */
void outcome_add(struct outcome *x, enum status st);
/* Whether anything was measured. Then the command fills in the result. */
bool outcome_end(struct outcome *x);
/* Completes the sheet with its origin, writes the files, prints the tables even if a file cannot be
 * written, and says on stderr which files there are now. Returns the first failure of the
 * measurements, else what is wrong, else that of a file. */
enum status outcome_finish(struct outcome *x, const struct output *o, struct arena *a);
void outcome_share(void *user, double share, const char *what);

/* Warns of other programs on stderr and in the sheet, and says what it was measured on, when, and
 * by which command of which version. */
enum status output_origin(struct sheet *s, const struct device *d, const char *command,
                          double others, struct arena *a);
/* Says that a sheet was written, and how to see it: by its path, or that of its folder. */
void output_say_written(const char *path, const char *seen_by, struct arena *a);
/* What a table of cells tells of the measurement: ST_INTERRUPTED if it was `stopped`,
 * ST_UNSUPPORTED if no cell was measured. */
enum status output_conclude(const struct table *t, bool stopped);
/* Writes a picture, says so if wanted, and releases it. */
enum status output_draw(const char *path, struct markup *m, bool say);

#endif
