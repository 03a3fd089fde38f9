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
    int64_t doubt; /* enum memory_doubt; -1: unknown, because an older version wrote the file */
};

/* How reliable a run is; a larger number is less reliable. */
enum memory_doubt {
    MEMORY_WHOLE,
    MEMORY_BUSY,      /* other programs used the processors */
    MEMORY_RESTRICTED /* --largest, less time or fewer samples than usual, or Ctrl-C */
};

/* Reads the record of the machine `m`; the record's texts live in the arena. False: there is no
 * record. */
bool memory_find(const struct machine *m, struct memory_record *ret, struct arena *a);
/* Replaces the record of the identified machine `m`, unless the old record has less doubt: then
 * *ret_better is the date of the old record, else NULL. The records of other machines are kept, up
 * to a limit. If the user has no cache folder, writes nothing and returns ST_OK. */
enum status memory_keep(const struct machine *m, const struct memory_run *r,
                        enum memory_doubt doubt, const char **ret_better, struct arena *a);

#endif
