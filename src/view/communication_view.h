/* communication_view.h - the collectives of a step of several ranks as a table. */
#ifndef VIEW_COMMUNICATION_VIEW_H
#define VIEW_COMMUNICATION_VIEW_H

#include "present/table.h"
#include "profile/profile.h"

/* One line for each collective of a step, in their order; after `rows` the rest is one line, 0:
 * all. */
struct table communication_table(const struct profile_communication *c, int rows, struct arena *a);

#endif
