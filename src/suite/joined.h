/* joined.h - two profiles of one thing in one table, before and after a change; private to suite/.
 *
 * Rows are joined by name: of the kernel, where all instances of one name count as one (a name on
 * the device has no shape and no constants), or of the operation. */
#ifndef SUITE_JOINED_H
#define SUITE_JOINED_H

#include "present/sheet.h"
#include "profile/profile.h"

enum joined_by { JOINED_KERNEL, JOINED_OP };
enum { JOINED_SIDES = 2 };

struct joined_line {
    int64_t T;
    enum phase phase;
    const char *name;
    bool idle; /* the last line of its phase */
    struct {
        double ms, share, calls; /* per step; share of its phase, idle time included */
    } side[JOINED_SIDES];
};

struct joined {
    enum joined_by by;
    struct joined_line *line;
    int lines, capacity;
    struct arena *a;
};

void joined_init(struct joined *j, enum joined_by by, struct arena *a);
/* Adds forward and backward of a profile to one side; the profile may be released afterwards. */
void joined_add(struct joined *j, int side, int64_t T, const struct profile *p);
/* Adds the table: by T and phase, the longest line of either side first. `word` names the sides. */
void joined_table(struct joined *j, struct sheet *s, const char *const word[JOINED_SIDES]);

#endif
