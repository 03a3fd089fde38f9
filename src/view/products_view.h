/* products_view.h - one matmul in each number format (lab/products.h) as a sheet. */
#ifndef VIEW_PRODUCTS_VIEW_H
#define VIEW_PRODUCTS_VIEW_H

#include "lab/products.h"
#include "present/sheet.h"

void products_sheet(const struct products_run *r, struct sheet *s, struct arena *a);

#endif
