/* info_view.h - what `strobe info` prints: this build, this machine, and what can run on it. */
#ifndef VIEW_INFO_VIEW_H
#define VIEW_INFO_VIEW_H

#include "engine/environment.h"

struct str;

void info_view_print(const struct environment *e, bool json, struct str *s, struct arena *a);

#endif
