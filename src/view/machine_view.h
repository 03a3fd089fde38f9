/* machine_view.h - what `strobe machine` prints: the measured peaks. */
#ifndef VIEW_MACHINE_VIEW_H
#define VIEW_MACHINE_VIEW_H

#include "machine/machine.h"

struct str;

/* `path`: the file with the stored peaks; NULL: they are not stored. */
void machine_view_print(const struct machine *m, const char *path, bool json, struct str *s,
                        struct arena *a);

#endif
