/* assets.h - the files of src/present/web and the chart library, embedded at build time.
 *
 * The chart library, dygraphs, comes from the package manager. It is embedded if the build found
 * it; otherwise it is read when a page is written. */
#ifndef PRESENT_ASSETS_H
#define PRESENT_ASSETS_H

#include "base/arena.h"

struct asset {
    const char *name, *text;
    int64_t size;
};

/* A file of web/, "dygraph.min.js" or ".css". ST_UNSUPPORTED: the chart library is missing. */
enum status asset_find(const char *name, struct arena *a, struct asset *ret_asset);

#endif
