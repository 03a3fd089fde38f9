/* assets.h - the files of src/present/web and the chart library, as they were when the program was built.
 *
 * dygraphs comes from the package manager and is embedded where the build found it; elsewhere it is
 * read when a page is written. */
#ifndef PRESENT_ASSETS_H
#define PRESENT_ASSETS_H

#include "base/arena.h"

struct asset {
    const char *name, *text;
    int64_t size;
};

/* The files of web/ by their names, "dygraph.min.js" and "dygraph.min.css". ST_UNSUPPORTED where the chart library is nowhere to be found. */
enum status asset_find(const char *name, struct arena *a, struct asset *ret_asset);

#endif
