/* machine_view.h - what `strobe machine` prints: the peaks that were measured. */
#ifndef VIEW_MACHINE_VIEW_H
#define VIEW_MACHINE_VIEW_H

#include "machine/machine.h"

struct str;

/* `path`: where they are kept; NULL: they are not. */
void machine_view_print(const struct machine *m, const char *path, bool json, struct str *s,
                        struct arena *a);

#endif
