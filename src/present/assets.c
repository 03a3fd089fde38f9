#include "present/assets.h"

#include "base/file.h"

#include <string.h>

/* Paths are relative to the root of the repository, where the build runs. */
#define EMBED(symbol, path)                                                        \
    __asm__(".section .rodata\n" #symbol "_first:\n.incbin \"" path "\"\n" #symbol \
            "_last:\n.byte 0\n.previous\n");                                       \
    extern const char symbol##_first[], symbol##_last[]

#define WEB         "src/present/web/"
#define LIBRARY     "/usr/share/javascript/dygraphs/"
#define LIBRARY_JS  "/usr/share/javascript/dygraphs/dygraph.min.js"
#define LIBRARY_CSS "/usr/share/javascript/dygraphs/dygraph.min.css"

EMBED(page_html, WEB "page.html");
EMBED(page_css, WEB "page.css");
EMBED(page_js, WEB "page.js");
EMBED(charts_js, WEB "charts.js");
EMBED(colors_css, WEB "colors.css");
EMBED(profile_css, WEB "profile.css");
EMBED(chart_css, WEB "chart.css");
EMBED(tables_js, WEB "tables.js");
EMBED(timeline_js, WEB "timeline.js");
EMBED(profile_js, WEB "profile.js");
EMBED(bench_css, WEB "bench.css");
EMBED(bench_js, WEB "bench.js");
EMBED(dygraphs_notice, WEB "dygraphs_notice.txt");
#if __has_include(LIBRARY_JS)
EMBED(dygraph_js, LIBRARY_JS);
EMBED(dygraph_css, LIBRARY_CSS);
#define DYGRAPH(symbol) symbol##_first, symbol##_last
#else
#define DYGRAPH(symbol) NULL, NULL
#endif

static const struct {
    const char *name, *first, *last;
} assets[] = {
    {"page.html", page_html_first, page_html_last},
    {"page.css", page_css_first, page_css_last},
    {"page.js", page_js_first, page_js_last},
    {"charts.js", charts_js_first, charts_js_last},
    {"colors.css", colors_css_first, colors_css_last},
    {"profile.css", profile_css_first, profile_css_last},
    {"chart.css", chart_css_first, chart_css_last},
    {"tables.js", tables_js_first, tables_js_last},
    {"timeline.js", timeline_js_first, timeline_js_last},
    {"profile.js", profile_js_first, profile_js_last},
    {"bench.css", bench_css_first, bench_css_last},
    {"bench.js", bench_js_first, bench_js_last},
    {"dygraphs_notice.txt", dygraphs_notice_first, dygraphs_notice_last},
    {"dygraph.min.js", DYGRAPH(dygraph_js)},
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
                        "the page needs the chart library dygraphs, and %s is not "
                        "there: install the package libjs-dygraphs",
                        path);
        TRY(file_read(path, a, &data, &found.size));
        found.text = data;
    }
    *ret_asset = found;
    return ST_OK;
}
