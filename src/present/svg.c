#include "present/svg.h"

#include "base/str.h"

static const char style[] =
    "<style>\n"
    "svg{--page:#ffffff;--ink:#1f2328;--faint:#6b7280;--grid:#e5e7eb;"
    "--c0:#be123c;--c1:#d97706;--c2:#1d4ed8;--c3:#047857;--c4:#7e22ce;--c5:#0e7490;"
    "--c6:#e8590c;--c7:#74a63a;--c8:#c0399f;--c9:#6d5a44;--c10:#4f86d9;--c11:#a8a29e}\n"
    "@media (prefers-color-scheme:dark){svg{--page:#14171c;--ink:#e6e8eb;--faint:#9aa3ad;"
    "--grid:#2b313a;"
    "--c0:#ff8a80;--c1:#fbbf24;--c2:#82b1ff;--c3:#5ee0a8;--c4:#d8a8ff;--c5:#67d5ea;"
    "--c6:#ff9e5e;--c7:#b6d97a;--c8:#f58ad6;--c9:#c9b08f;--c10:#a9c7ff;--c11:#8a8580}}\n"
    "text{font:12px system-ui,sans-serif;fill:var(--ink)}\n"
    ".big{font-size:15px;font-weight:600}.head{font-weight:600}.faint{fill:var(--faint)}\n"
    ".grid{stroke:var(--grid)}.level{stroke:var(--faint);stroke-dasharray:2 4}\n";

void svg_escape(struct str *s, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '&':
            str_append(s, "&amp;");
            break;
        case '<':
            str_append(s, "&lt;");
            break;
        default:
            str_append_bytes(s, text, 1);
        }
}

void svg_text(struct str *s, const char *classes, double x, double y, const char *anchor,
              const char *text)
{
    str_printf(s, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", classes, x, y,
               anchor);
    svg_escape(s, text);
    str_append(s, "</text>\n");
}

void svg_open(struct str *s, int width, int height, int left, const char *title, const char *more)
{
    str_printf(s,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
               "height=\"%d\" role=\"img\">\n<title>",
               width, height, width, height);
    svg_escape(s, title);
    str_printf(s,
               "</title>\n%s%s</style>\n<rect width=\"%d\" height=\"%d\" fill=\"var(--page)\"/>\n",
               style, more, width, height);
    svg_text(s, "big", left, 30, "start", title);
}

void svg_close(struct str *s)
{
    str_append(s, "</svg>\n");
}
