/* The files of a run directory: log.jsonl, summary.json, plan.json, env.json, config.conf and
 * samples.txt, read, compared with themselves, and printed as tables, JSON and
 * the page's data. */
#include "fuzz.h"

#include "base/str.h"
#include "report/html.h"

#include <jansson.h>

static const char *const names[] = {"./log.jsonl", "./summary.json", "./plan.json",
                                    "./env.json",  "./config.conf",  "./samples.txt"};

static void print(struct run *run, struct arena *a)
{
    struct comparison c;
    struct str s = {0};
    double largest, last;
    compare_runs(run, 2, a, &c);
    compare_val_loss(&run[0], &run[1], &largest, &last);
    struct table settings = compare_settings_table(&c, a);
    void (*const print[])(const struct table *t, struct str *s) = {
        table_print_text, table_print_markdown, table_print_csv};
    for (int i = 0; i < COUNT_OF(print); i++) {
        print[i](&c.table, &s);
        print[i](&settings, &s);
    }
    json_decref(table_json(&c.table));
    struct profile_set none = {0};
    struct html_page page = {.runs = &c, .profiles = &none};
    json_decref(html_data(&page, a));
    str_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[COUNT_OF(names)];
    struct run *run;
    char dot[] = ".", *dirs[] = {dot, dot};
    int parts = fuzz_parts(data, size, part, COUNT_OF(names), &a);
    for (int i = 0; i < parts; i++) fuzz_file(names[i], part[i].bytes, part[i].size);
    bool valid = runs_read(dirs, 2, &a, &run) == ST_OK;
    if (valid) print(run, &a);
    return fuzz_end(&a, valid);
}
