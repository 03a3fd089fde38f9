#include "present/markup.h"

#include "base/arena.h"
#include "base/visible.h"
#include "present/assets.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *entity_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void add_text(struct markup *m, const char *text, bool lines)
{
    char form[VISIBLE_BYTES];
    int n;
    for (int64_t left = (int64_t)strlen(text); left > 0; text += n, left -= n) {
        n = visible_step(text, left, lines, form);
        const char *entity = entity_of(*form);
        str_append(&m->written, entity ? entity : form);
    }
}

/* Appends the argument for the conversion at `at`; returns the text after the conversion. */
static const char *add_argument(struct markup *m, const char *at, va_list *args)
{
    enum { LONGEST = 16 };
    char conversion[LONGEST];
    size_t n = 1 + strspn(at + 1, "+-0 .123456789");
    size_t longs = strspn(at + n, "l");
    size_t length = n + longs + 1;
    char kind = at[n + longs];
    BUG_IF(!kind || length >= LONGEST, "markup: %s is not a conversion", at);
    memcpy(conversion, at, length);
    conversion[length] = '\0';
    if (kind == '%')
        str_append(&m->written, "%");
    else if (kind == 's' && n == 1)
        add_text(m, va_arg(*args, const char *), false);
    else if (kind == 'd' && longs == 2)
        str_printf(&m->written, "%lld", va_arg(*args, long long));
    else if (kind == 'd' && !longs)
        str_printf(&m->written, "%d", va_arg(*args, int));
    else if (strchr("feg", kind)) {
        char number[352]; /* the longest %f has 309 digits and a few decimals */
        double x = va_arg(*args, double);
        snprintf(number, sizeof number, conversion, isfinite(x) ? x : 0);
        str_append(&m->written, number);
    } else
        bug(__FILE__, __LINE__, "markup: %s is not among its conversions", conversion);
    return at + length;
}

void markup_format(struct markup *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    for (const char *stop; *format; format = stop) {
        stop = strchrnul(format, '%');
        str_append_bytes(&m->written, format, stop - format);
        if (*stop) stop = add_argument(m, stop, &args);
    }
    va_end(args);
}

void markup_lines(struct markup *m, const char *text)
{
    add_text(m, text, true);
}

void markup_json(struct markup *m, const struct json_t *data)
{
    /* ASCII only, so U+2028 is escaped. Without <, neither </script> nor <!-- can be formed. */
    char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    BUG_IF(!text, "the data of the page are not JSON");
    for (const char *from = text, *stop; *from; from = stop) {
        stop = from + strcspn(from, "<>&");
        str_append_bytes(&m->written, from, stop - from);
        if (*stop) str_printf(&m->written, "\\u%04x", (unsigned)*stop++);
    }
    free(text);
}

/* Leaves out the comment with the library's source map, which the page does not have. Removes
 * carriage returns, because browsers read every line break as \n, and the hash would be wrong. */
enum status markup_asset(struct markup *m, const char *name, struct arena *a)
{
    struct asset asset;
    TRY(asset_find(name, a, &asset));
    const char *map = memmem(asset.text, (size_t)asset.size, "\n//# sourceMappingURL", 21);
    if (!map) map = memmem(asset.text, (size_t)asset.size, "\n/*# sourceMappingURL", 21);
    const char *end = map ? map : asset.text + asset.size;
    for (const char *from = asset.text; from < end;) {
        const char *stop = memchr(from, '\r', (size_t)(end - from));
        str_append_bytes(&m->written, from, (stop ? stop : end) - from);
        from = stop ? stop + 1 : end;
    }
    return ST_OK;
}

void markup_join(struct markup *m, const struct markup *part)
{
    str_append_bytes(&m->written, str_text(&part->written), part->written.len);
}

const char *markup_text(const struct markup *m)
{
    return str_text(&m->written);
}

int64_t markup_bytes(const struct markup *m)
{
    return m->written.len;
}

void markup_release(struct markup *m)
{
    str_release(&m->written);
}
