/* tune.h - the tuning stage: measures the matmuls that a program's tuning table does not contain.
 *
 * The table of a GPU is a file in the user's cache (tuning.h), shared by all configurations.
 * tune=off uses no table, and neither does deterministic=true. */
#ifndef ENGINE_TUNE_H
#define ENGINE_TUNE_H

#include "engine/program.h"

#include <jansson.h>

struct str;

/* Reads the target's table from the cache. The table is empty if there is no file or, with a
 * message, if the file is damaged or not valid here. False: the configuration uses no table. */
bool tune_read(const struct config *c, const struct target *target, struct tuning *ret,
               struct arena *a);
/* Measures the program's missing entries on an open device, writes each to the table's file, and
 * recompiles `kinds` into `p`, until no measurable entry is missing. ST_UNSUPPORTED if new entries
 * are still missing after many rounds. */
enum status tune_program(struct program *p, unsigned kinds, void *context, struct tuning *t,
                         struct arena *a);
/* Prints each matmul that was looked up: the chosen variant, its time, and the second fastest. */
void tune_print(const struct program *p, struct str *s);
/* The same as a JSON array. */
json_t *tune_json(const struct program *p);

/* The target and table for a program that will not run: the configuration's device, or the
 * backend's default target if there is none, and the cached table (NULL: none). */
enum status tune_target(const struct config *c, const char *backend, struct target *ret,
                        const struct tuning **ret_tuning, struct arena *a);
/* Compiles for the target and table of tune_target. */
enum status program_for(struct program *ret, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a);

#endif
