#include "present/page.h"

#include "base/str.h"
#include "present/assets.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void page_print_data(const struct json_t *data, struct str *s)
{
    /* ASCII only, so U+2028 is escaped; no "<", so neither </script> nor <!-- can be formed. */
    char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    BUG_IF(!text, "the data of the page are not JSON");
    for (const char *from = text, *stop; *from; from = stop) {
        stop = strchrnul(from, '<');
        str_append_bytes(s, from, stop - from);
        if (*stop) {
            str_append(s, "\\u003c");
            stop++;
        }
    }
    free(text);
}

/* Leaves out the comment that names the library's source map, which the page lacks. */
static enum status print_asset(const char *name, struct arena *a, struct str *s)
{
    struct asset asset;
    TRY(asset_find(name, a, &asset));
    const char *map = memmem(asset.text, (size_t)asset.size, "\n//# sourceMappingURL", 21);
    if (!map) map = memmem(asset.text, (size_t)asset.size, "\n/*# sourceMappingURL", 21);
    str_append_bytes(s, asset.text, map ? map - asset.text : asset.size);
    return ST_OK;
}

/* Copies the frame and replaces each {{name}} by the asset of that name, the title or the data. */
enum status page_print(const char *title, const char *data, struct arena *a, struct str *s)
{
    struct asset frame;
    TRY(asset_find("page.html", a, &frame));
    const char *from = frame.text, *end = frame.text + frame.size;
    for (;;) {
        const char *open = memmem(from, (size_t)(end - from), "{{", 2);
        str_append_bytes(s, from, (open ? open : end) - from);
        if (!open) return ST_OK;
        const char *close = memmem(open, (size_t)(end - open), "}}", 2);
        BUG_IF(!close, "page.html: {{ without }}");
        const char *name = arena_printf(a, "%.*s", (int)(close - open - 2), open + 2);
        if (strcmp(name, "title") == 0)
            str_append(s, title);
        else if (strcmp(name, "data") == 0)
            str_append(s, data);
        else
            TRY(print_asset(name, a, s));
        from = close + 2;
    }
}
