#include "present/svg.h"

#include "base/arena.h"

void svg_text(struct markup *m, const char *classes, double x, double y, const char *anchor,
              const char *text)
{
    markup_printf(m, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
                  classes, x, y, anchor, text);
}

static void print_style(struct markup *m, const char *name)
{
    struct arena a = {0};
    BUG_IF(markup_asset(m, name, &a) != ST_OK, "no %s", name);
    arena_release(&a);
}

void svg_open(struct markup *m, int top, int width, int height, const char *title)
{
    markup_printf(m,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart-picture\" "
                  "viewBox=\"0 %d %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n"
                  "<title>%s</title>\n<style>\n",
                  top, width, height, width, height, title);
    print_style(m, "colors.css");
    print_style(m, "chart.css");
    markup_printf(m, "</style>\n<rect class=\"chart-page\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                  top, width, height);
}

void svg_close(struct markup *m)
{
    markup_printf(m, "</svg>\n");
}
