#include "present/svg.h"

#include "base/str.h"
#include "present/assets.h"

void svg_escape(struct str *s, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : NULL;
        if (entity)
            str_append(s, entity);
        else
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

static void print_style(struct str *s, const char *name)
{
    struct arena a = {0};
    struct asset style;
    BUG_IF(asset_find(name, &a, &style) != ST_OK, "no %s", name);
    str_append_bytes(s, style.text, style.size);
    arena_release(&a);
}

void svg_open(struct str *s, int top, int width, int height, const char *title)
{
    str_printf(s,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart-picture\" "
               "viewBox=\"0 %d %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n",
               top, width, height, width, height);
    if (!title) return;
    str_append(s, "<title>");
    svg_escape(s, title);
    str_append(s, "</title>\n<style>\n");
    print_style(s, "colors.css");
    print_style(s, "chart.css");
    str_printf(s, "</style>\n<rect class=\"chart-page\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
               top, width, height);
}

void svg_close(struct str *s)
{
    str_append(s, "</svg>\n");
}
