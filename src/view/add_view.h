/* add_view.h - the steps of one floating-point addition (lab/add.h) as a table. */
#ifndef VIEW_ADD_VIEW_H
#define VIEW_ADD_VIEW_H

#include "lab/add.h"
#include "present/sheet.h"

/* `word`: the texts in which the user gave the two numbers. */
void add_sheet(const struct addition *x, const char *const word[2], struct sheet *s,
               struct arena *a);

#endif
