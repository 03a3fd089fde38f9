#include "present/assets.h"

#include "base/file.h"

#include <string.h>

#define LIBRARY     "/usr/share/javascript/dygraphs/"
#define LIBRARY_JS  "/usr/share/javascript/dygraphs/dygraph.min.js"
#define LIBRARY_CSS "/usr/share/javascript/dygraphs/dygraph.min.css"

/* clang-format off */
#define WEB_FILES(F) \
    F(page_css, "page.css") F(page_js, "page.js") \
    F(charts_js, "charts.js") F(colors_css, "colors.css") F(profile_css, "profile.css") \
    F(chart_css, "chart.css") F(tables_js, "tables.js") F(timeline_js, "timeline.js") \
    F(profile_js, "profile.js") F(bench_css, "bench.css") F(bench_js, "bench.js") \
    F(notice, "dygraphs_notice.txt")
/* clang-format on */

/* Paths are relative to the root of the repository, where the build runs. */
#define EMBED(symbol, path)                                                        \
    __asm__(".section .rodata\n" #symbol "_first:\n.incbin \"" path "\"\n" #symbol \
            "_last:\n.byte 0\n.previous\n");                                       \
    extern const char symbol##_first[], symbol##_last[];
#define EMBED_WEB(symbol, name) EMBED(symbol, "src/present/web/" name)
#define ROW(symbol, name)       {name, symbol##_first, symbol##_last},

WEB_FILES(EMBED_WEB)
#if __has_include(LIBRARY_JS)
EMBED(dygraph_js, LIBRARY_JS)
EMBED(dygraph_css, LIBRARY_CSS)
#define DYGRAPH(symbol) symbol##_first, symbol##_last
#else
#define DYGRAPH(symbol) NULL, NULL
#endif

static const struct {
    const char *name, *first, *last;
} assets[] = {
    WEB_FILES(ROW){"dygraph.min.js", DYGRAPH(dygraph_js)},
    {"dygraph.min.css", DYGRAPH(dygraph_css)},
};

enum status asset_find(const char *name, struct arena *a, struct asset *ret_asset)
{
    int i = 0;
    while (i < COUNT_OF(assets) && strcmp(assets[i].name, name) != 0) i++;
    BUG_IF(i == COUNT_OF(assets), "no asset %s", name);
    struct asset found = {name, assets[i].first, assets[i].last - assets[i].first};
    if (!found.text) {
        const char *path = arena_printf(a, LIBRARY "%s", name);
        char *data;
        if (!file_exists(path))
            return fail(ST_UNSUPPORTED,
                        "the page needs the chart library dygraphs, but %s is missing; install "
                        "the package libjs-dygraphs",
                        path);
        TRY(file_read(path, a, &data, &found.size));
        found.text = data;
    }
    *ret_asset = found;
    return ST_OK;
}
