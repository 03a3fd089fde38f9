/* memory_file.h - stores the last measured memory hierarchy of each machine in strobe/memory.json
 * in the user's cache folder (docs/FORMATS.md). */
#ifndef LAB_MEMORY_MEMORY_FILE_H
#define LAB_MEMORY_MEMORY_FILE_H

#include "lab/memory/memory.h"
#include "machine/machine.h"

struct memory_record {
    const char *date; /* "2026-11-21T08:22:13Z" */
    struct memory_level level[MEMORY_LEVELS];
    int levels;
};

/* Reads the record of the machine `m`; its texts live in the arena. False: there is none. */
bool memory_find(const struct machine *m, struct memory_record *ret, struct arena *a);
/* Replaces the record of the identified machine `m`; the records of other machines are kept, up to
 * a limit. If the user has no cache folder, writes nothing and returns ST_OK. */
enum status memory_keep(const struct machine *m, const struct memory_run *r, struct arena *a);

#endif
