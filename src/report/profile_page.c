#include "report/profile_page.h"

#include "base/json.h"
#include "base/lenient.h"
#include "base/load.h"
#include "base/record.h"
#include "present/markup.h"
#include "report/roofline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- rows ------------------------------------------------------------------------------------- */

/* Texts and objects repeat, so a column of them becomes its distinct values and, for each row, the
 * index of its value: {"of", "at"}. A column of numbers stays. */
static json_t *shared(json_t *column)
{
    json_t *of = json_array(), *at = json_array(), *place = json_object(), *value;
    bool numbers = true;
    size_t i;
    json_array_foreach(column, i, value) {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        json_t *known = json_object_get(place, text);
        if (!known) {
            known = json_integer((json_int_t)json_array_size(of));
            json_object_set_new(place, text, known);
            json_array_append(of, value);
        }
        json_array_append(at, known);
        numbers &= json_is_number(value) || json_is_null(value);
        free(text);
    }
    json_decref(place);
    json_t *both = json_pack("{s:o, s:o}", "of", of, "at", at);
    if (!numbers) return both;
    json_decref(both);
    return json_incref(column);
}

/* The columns of the file that the page shows, and the kernel of each row. */
static json_t *rows_json(const struct profile_file *p)
{
    static const char *const unused[] = {
        "plan", "node", "std_per_step", "chunk_ms", "hidden_ms_per_step", "threads"};
    json_t *columns = record_columns(profile_row_record, p->row, p->rows), *column;
    json_t *kernels = json_array();
    const char *name;
    for (int i = 0; i < COUNT_OF(unused); i++) json_object_del(columns, unused[i]);
    json_object_foreach(columns, name, column) {
        json_object_set_new(columns, name, shared(column));
    }
    for (int i = 0; i < p->rows; i++)
        json_array_append_new(kernels, json_integer(p->row[i].kernel));
    json_object_set_new(columns, "kernel_of", kernels);
    return columns;
}

static json_t *kernel_names(const struct profile_file *p)
{
    json_t *names = json_array();
    for (int i = 0; i < p->kernels; i++)
        json_array_append_new(names, json_string(p->kernel[i].name));
    return names;
}

/* --- a profile -------------------------------------------------------------------------------- */

static json_t *peaks_json(const struct profile_file_peak *peak, int n)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(all, json_pack("[s, o]", peak[i].name, number_or_null(peak[i].rate)));
    return all;
}

/* As in its file, without rows and chunks. */
static json_t *head_json(const struct profile_file *p)
{
    struct profile_file head = *p;
    head.rows = 0;
    head.chunks = (struct profile_file_chunks){0};
    if (!(profile_file_busy(p) > LOAD_BUSY)) head.others = NAN;
    json_t *j = json_pack("{s:s, s:s, s:i, s:o}", "name", p->name, "path", p->path, "run", p->run,
                          "model", text_or_null(p->model));
    return record_add(j, profile_file_record, &head);
}

static json_t *picture_json(const struct profile_file *p, const struct roofline_frame *frame)
{
    struct markup m = {0};
    if (roofline_has_points(p)) roofline_print_picture(p, frame, &m);
    json_t *picture = markup_bytes(&m) ? json_string(markup_text(&m)) : json_null();
    markup_release(&m);
    return picture;
}

static json_t *profile_json_of(const struct profile_file *p, const struct roofline_frame *frame)
{
    json_t *j = head_json(p);
    json_t *more =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "ceilings", peaks_json(p->copy, p->copies), "rows",
                  rows_json(p), "kernels", kernel_names(p), "roofline", picture_json(p, frame),
                  "points", roofline_points(p, frame));
    BUG_IF(!j || !more, "a profile of the page is not JSON");
    json_object_update(j, more);
    json_decref(more);
    return j;
}

/* --- what changed ----------------------------------------------------------------------------- */

static json_t *side_json(const struct change_side *s)
{
    if (!s->kernel) return json_null();
    return json_pack("[s, o, o]", s->kernel, number_or_null(s->ms), number_or_null(s->per_step));
}

static json_t *changes_json(const struct changes *c, int after, struct arena *a)
{
    json_t *rows = json_array();
    for (const struct change *x = c->change; x < c->change + c->n; x++)
        json_array_append_new(rows, json_pack("[s, s, i, o, o, s]", change_kind_name(x->kind),
                                              x->place, x->family, side_json(&x->before),
                                              side_json(&x->after), verdict_name(x->verdict.kind)));
    return json_pack("{s:i, s:s, s:o}", "after", after, "words", changes_words(c, a), "rows", rows);
}

#define ADD_SHARE(to, share, id, title, help) \
    json_array_append_new(to, json_pack("[s, s, s]", #share, title, help));

struct json_t *profile_page_json(const struct profile_set *all, struct arena *a)
{
    json_t *families = json_array(), *profiles = json_array(), *changes = json_array();
    json_t *words = json_array(), *shares = json_array();
    struct roofline_frame frame = roofline_frame_of(all->profile, all->n);
    for (int i = 0; i < PROFILE_FILE_FAMILIES; i++)
        json_array_append_new(families, json_string(profile_file_family_name(i)));
    COUNTER_SHARES(ADD_SHARE, shares)
    for (int i = 0; i < all->n; i++)
        json_array_append_new(profiles, profile_json_of(&all->profile[i], &frame));
    for (int i = 0; i < all->changes; i++)
        json_array_append_new(changes, changes_json(&all->change[i], i + 1, a));
    for (int i = 0; i < all->words; i++) { /* paths are bytes */
        const char *word = lenient_utf8(all->word[i], (int64_t)strlen(all->word[i]), a);
        json_array_append_new(words, json_string(word));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "words", words, "families", families, "shares",
                     shares, "profiles", profiles, "changes", changes);
}
