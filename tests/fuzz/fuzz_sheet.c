/* bench.json: read, printed in every form, drawn, and written again as JSON. */
#include "fuzz.h"

#include "base/str.h"
#include "base/visible.h"
#include "report/html.h"

#include <jansson.h>

static void print(const struct sheet *s, struct arena *a)
{
    struct str out = {0};
    sheet_print(s, table_print_text, visible_append, &out);
    sheet_print(s, table_print_markdown, table_markdown_text, &out);
    sheet_print(s, table_print_csv, NULL, &out);
    for (int i = 0; i < s->tables; i++) json_decref(table_json(&s->table[i].table));
    struct comparison no_runs = {0};
    struct profile_set no_profiles = {0};
    struct html_page page = {&no_runs, &no_profiles, s, 1};
    json_decref(html_data(&page, a)); /* with the curves */
    str_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct sheet s;
    fuzz_file("bench.json", data, (int64_t)size);
    bool valid;
    valid = sheet_is("bench.json", &valid) == ST_OK && valid &&
            sheet_read("bench.json", &a, &s) == ST_OK;
    if (valid) print(&s, &a);
    return fuzz_end(&a, valid);
}
