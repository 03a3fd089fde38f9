/* add_view.h - one addition (lab/add.h) as on a blackboard. */
#ifndef VIEW_ADD_VIEW_H
#define VIEW_ADD_VIEW_H

#include "lab/add.h"
#include "present/sheet.h"

/* `word`: the two numbers as the user wrote them. */
void add_sheet(const struct addition *x, const char *const word[2], struct sheet *s,
               struct arena *a);

#endif
