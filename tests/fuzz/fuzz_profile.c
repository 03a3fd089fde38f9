/* One or two profiles: read, compared, drawn, and printed as the page's data. */
#include "fuzz.h"

#include "base/str.h"
#include "present/markup.h"
#include "report/changes.h"
#include "report/profile_page.h"
#include "report/roofline.h"

#include <jansson.h>

static void print(struct profile_file *p, int n, struct arena *a)
{
    struct str s = {0};
    struct changes c;
    char word[] = "x", *words[] = {word, word};
    struct profile_set set = {p, n, words, n, &c, n - 1};
    changes_find(&p[0], &p[n - 1], a, &c);
    changes_words(&c, a);
    struct table t = changes_table(&c, 3, a);
    table_print_text(&t, &s);
    for (int i = 0; i < n; i++) profile_file_words(&p[i], a);
    struct markup m = {0};
    roofline_print_file(p, n, &m);
    markup_release(&m);
    json_decref(profile_page_json(&set, a));
    str_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[2];
    struct profile_file p[2];
    static const char *const names[] = {"a.json", "b.json"};
    int parts = fuzz_parts(data, size, part, 2, &a);
    bool valid = true;
    for (int i = 0; i < parts && valid; i++) {
        fuzz_file(names[i], part[i].bytes, part[i].size);
        valid = profile_file_read(names[i], names[i], &a, &p[i]) == ST_OK;
    }
    if (valid) print(p, parts, &a);
    return fuzz_end(&a, valid);
}
