/* tune.h - the stage before compiling: measures the matmuls whose fastest variant a program's tuning table does not know.
 *
 * The table of a GPU is a file of the user's cache (tuning.h); what was measured for one configuration serves all that have such
 * matmuls. tune=off leaves tables out, and so does deterministic=true, which uses nothing that timing decided. */
#ifndef ENGINE_TUNE_H
#define ENGINE_TUNE_H

#include "engine/program.h"

#include <jansson.h>

struct str;

/* The table that is kept for the target, or an empty one for it; a file that does not hold for this device or library, or is
 * damaged, is not used, which is said. False: this configuration uses no table. */
bool tune_read(const struct config *c, const struct target *target, struct tuning *ret,
               struct arena *a);
/* Measures what the program asked and the table lacks, on an opened device, keeps each entry in the table's file, and compiles `kinds`
 * again into `p`, until nothing is missing that can be measured. A program that lacks nothing is left as it is. */
enum status tune_program(struct program *p, unsigned kinds, void *context, struct tuning *t,
                         struct arena *a);
/* What a program asked of its table: the variant that was taken, what it measured, and the next one. */
void tune_print(const struct program *p, struct str *s);
/* The same as an array. */
json_t *tune_json(const struct program *p);

/* What is compiled where nothing will run: for the device that the configuration asks for, which is not opened, or, where there is
 * none, for what stands for it (backend.h), with the table that is kept, NULL: none. `backend`: the name of one. */
enum status tune_target(const struct config *c, const char *backend, struct target *ret,
                        const struct tuning **ret_tuning, struct arena *a);
/* Compiles for that. */
enum status program_for(struct program *ret, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a);

#endif
