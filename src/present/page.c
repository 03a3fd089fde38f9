#include "present/page.h"

#include "base/arena.h"
#include "base/hash.h"
#include "present/assets.h"

/* In the order in which the page includes them. */
static const char *const styles[] = {"dygraph.min.css", "colors.css", "page.css", "profile.css",
                                     "bench.css"};
static const char *const scripts[] = {"dygraph.min.js", "charts.js", "tables.js", "timeline.js",
                                      "profile.js",     "bench.js",  "page.js"};

enum { SCRIPTS = COUNT_OF(scripts) };

/* The exact content of a <style> or <script> element, and its hash. */
struct block {
    struct markup text;
    char hash[HASH_BASE64];
};

static void hash_block(struct block *b)
{
    hash_base64(markup_text(&b->text), markup_bytes(&b->text), b->hash);
}

static enum status read_blocks(struct block *style, struct block script[SCRIPTS], struct arena *a)
{
    for (int i = 0; i < COUNT_OF(styles); i++) {
        markup_printf(&style->text, "\n");
        TRY(markup_asset(&style->text, styles[i], a));
    }
    hash_block(style);
    for (int i = 0; i < SCRIPTS; i++) {
        markup_printf(&script[i].text, "\n");
        TRY(markup_asset(&script[i].text, scripts[i], a));
        hash_block(&script[i]);
    }
    return ST_OK;
}

static void print_policy(const struct block *style, const struct block script[SCRIPTS],
                         struct markup *m)
{
    markup_printf(m,
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "base-uri 'none'; form-action 'none'; img-src data:; style-src 'sha256-%s'; "
                  "script-src",
                  style->hash);
    for (int i = 0; i < SCRIPTS; i++) markup_printf(m, " 'sha256-%s'", script[i].hash);
    markup_printf(m, "\">\n");
}

static enum status print(const char *title, const struct json_t *data, const struct block *style,
                         const struct block script[SCRIPTS], struct arena *a, struct markup *m)
{
    markup_printf(m, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    print_policy(style, script, m);
    markup_printf(m,
                  "<meta name=\"color-scheme\" content=\"light dark\">\n"
                  "<title>%s · Strobe report</title>\n"
                  "<link rel=\"icon\" href=\"data:,\">\n<style>",
                  title);
    markup_join(m, &style->text);
    markup_printf(m, "</style>\n</head>\n<body>\n"
                     "<noscript><p>This page draws its curves and tables with JavaScript. "
                     "<code>strobe report --markdown</code> prints the tables without it.</p>"
                     "</noscript>\n<script id=\"data\" type=\"application/json\">");
    markup_json(m, data);
    markup_printf(m, "</script>\n<!--\n");
    TRY(markup_asset(m, "dygraphs_notice.txt", a));
    markup_printf(m, "-->\n");
    for (int i = 0; i < SCRIPTS; i++) {
        markup_printf(m, "<script>");
        markup_join(m, &script[i].text);
        markup_printf(m, "</script>\n");
    }
    markup_printf(m, "</body>\n</html>\n");
    return ST_OK;
}

enum status page_print(const char *title, const struct json_t *data, struct arena *a,
                       struct markup *m)
{
    struct block style = {0}, script[SCRIPTS] = {0};
    enum status st = read_blocks(&style, script, a);
    if (st == ST_OK) st = print(title, data, &style, script, a, m);
    markup_release(&style.text);
    for (int i = 0; i < SCRIPTS; i++) markup_release(&script[i].text);
    return st;
}
