#include "report/profile_page.h"

#include "base/json.h"
#include "base/lenient.h"
#include "base/load.h"
#include "base/record.h"
#include "present/markup.h"
#include "report/changes.h"
#include "report/roofline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Six digits, more than the page shows; the file has all of them. */
static json_t *number(double x)
{
    char text[32];
    if (!isfinite(x)) return json_null();
    snprintf(text, sizeof text, "%.6g", x);
    x = strtod(text, NULL);
    return x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x);
}

/* Rounded to a nanosecond. */
static json_t *microseconds(double us)
{
    return number_or_null(round(us * 1e3) / 1e3);
}

/* Bytes are integers where a double counts exactly. */
static json_t *bytes_json(double bytes)
{
    return fabs(bytes) < 0x1p53 ? json_integer((json_int_t)bytes) : number_or_null(bytes);
}

/* The distinct texts of a profile, and their indices. */
struct texts {
    json_t *list, *place;
};

static json_t *text_index(struct texts *t, const char *text)
{
    if (!text) return json_integer(-1);
    json_t *known = json_object_get(t->place, text);
    if (known) return json_incref(known);
    known = json_integer((json_int_t)json_array_size(t->list));
    json_array_append_new(t->list, json_string(text));
    json_object_set(t->place, text, known);
    return known;
}

/* --- rows, moments, memory -------------------------------------------------------------------- */

/* The texts, the range, then the numbers. */
/* clang-format off */
static const char *const row_fields[] = {
    "phase", "op", "shape", "types", "dtype", "peak_of", "variant", "device_kernel", "scope",
    "bound", "name", "limit", "range", "layer", "family", "kernel", "flops", "bytes", "floor_ms",
    "per_step", "ms", "work_ms", "n", "median", "mean", "std", "min", "max", "dram_read",
    "dram_written", "dram_of_node", "tensor_active", "sm_active", "dram_busy", "blocks",
    "threads", "registers", "static_bytes", "dynamic_bytes", "sm_blocks", "sm_warps",
    "sm_warps_most", "waves", "tail",
};
/* clang-format on */

static json_t *row_json(const struct profile_file *p, const struct profile_row *r, struct texts *t)
{
    const char *name = p->kernel[r->kernel].name;
    const struct profile_file_launch *l = &r->launch;
    const char *const text[] = {r->phase_name, r->op_name,    r->shape,   r->types,
                                r->dtype_name, r->peak_of,    r->variant, r->device_kernel,
                                r->scope,      r->bound_name, name,       l->limit};
    const double numbers[] = {r->range.layer,   r->family,        r->kernel,        r->flops,
                              r->bytes,         r->floor_ms,      r->per_step,      r->ms,
                              r->work_ms,       r->run_ms.n,      r->run_ms.median, r->run_ms.mean,
                              r->run_ms.std,    r->run_ms.min,    r->run_ms.max,    r->dram_read,
                              r->dram_written,  r->dram_of_node,  r->tensor_active, r->sm_active,
                              r->dram_busy,     l->blocks,        l->threads,       l->registers,
                              l->static_bytes,  l->dynamic_bytes, l->sm_blocks,     l->sm_warps,
                              l->sm_warps_most, l->waves,         l->tail};
    json_t *cells = json_array(), *range = json_array();
    for (int i = 0; i < COUNT_OF(text); i++) json_array_append_new(cells, text_index(t, text[i]));
    for (int i = 0; i < r->range.words; i++)
        json_array_append_new(range, text_index(t, r->range.word[i]));
    json_array_append_new(cells, range);
    for (int i = 0; i < COUNT_OF(numbers); i++) json_array_append_new(cells, number(numbers[i]));
    BUG_IF(json_array_size(cells) != COUNT_OF(row_fields),
           "a row does not match the list of fields");
    return cells;
}

static json_t *rows_json(const struct profile_file *p, struct texts *t)
{
    json_t *rows = json_array();
    for (int i = 0; i < p->rows; i++) json_array_append_new(rows, row_json(p, &p->row[i], t));
    return json_pack("{s:o, s:o}", "fields", texts_json(row_fields, COUNT_OF(row_fields)), "rows",
                     rows);
}

static json_t *moments_json(const struct profile_file *p)
{
    json_t *all = json_array();
    for (int i = 0; i < p->moments; i++) {
        const struct profile_moment *m = &p->moment[i];
        json_array_append_new(all, json_pack("[i, o, o, i]", m->row, microseconds(m->start_us),
                                             microseconds(m->end_us - m->start_us), m->lane));
    }
    return all;
}

static json_t *column_json(const struct profile_file_column *c, int parts)
{
    json_t *column = json_array();
    json_array_append_new(column, json_integer(c->row));
    json_array_append_new(column, microseconds(c->time_us));
    for (int k = 0; k < parts; k++) json_array_append_new(column, bytes_json(c->bytes[k]));
    return column;
}

static json_t *memory_json(const struct profile_file *p)
{
    const struct profile_file_memory *m = &p->memory;
    if (!m->columns || !m->parts) return json_null();
    json_t *parts = json_array(), *columns = json_array();
    for (int i = 0; i < m->parts; i++)
        json_array_append_new(parts,
                              json_pack("[s, s]", m->part[i], profile_file_part_name(m->part[i])));
    for (int i = 0; i < m->columns; i++)
        json_array_append_new(columns, column_json(&m->column[i], m->parts));
    return json_pack("{s:o, s:o, s:i}", "parts", parts, "columns", columns, "peak", m->peak);
}

/* --- a profile -------------------------------------------------------------------------------- */

static json_t *peaks_json(const struct profile_file_peak *peak, int n)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(all, json_pack("[s, o]", peak[i].name, number(peak[i].rate)));
    return all;
}

/* As in its file, without the long lists. */
static json_t *head_json(const struct profile_file *p)
{
    struct profile_file head = *p;
    head.rows = head.moments = head.memory.columns = head.memory.parts = head.chunks.n = 0;
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
    struct texts t = {json_array(), json_object()};
    json_t *j = head_json(p);
    json_t *more =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "ceilings", peaks_json(p->copy, p->copies),
                  "table", rows_json(p, &t), "moments", moments_json(p), "memory", memory_json(p),
                  "roofline", picture_json(p, frame), "points", roofline_points(p, frame));
    BUG_IF(!j || !more, "a profile of the page is not JSON");
    json_object_update(j, more);
    json_decref(more);
    json_object_set_new(j, "texts", t.list);
    json_decref(t.place);
    return j;
}

/* --- what changed ----------------------------------------------------------------------------- */

static json_t *side_json(const struct change_side *s)
{
    if (!s->kernel) return json_null();
    return json_pack("[s, o, o]", s->kernel, number(s->ms), number(s->per_step));
}

static json_t *changes_json(const struct profile_set *all, int after, struct arena *a)
{
    struct changes c;
    changes_find(&all->profile[0], &all->profile[after], a, &c);
    json_t *rows = json_array();
    for (int i = 0; i < c.n; i++) {
        const struct change *x = &c.change[i];
        json_array_append_new(rows, json_pack("[s, s, i, o, o, s]", change_kind_name(x->kind),
                                              x->place, x->family, side_json(&x->before),
                                              side_json(&x->after), verdict_name(x->verdict.kind)));
    }
    return json_pack("{s:i, s:i, s:s, s:o, s:o, s:o}", "before", 0, "after", after, "words",
                     changes_words(&c, a), "before_ms", number(c.before_ms), "after_ms",
                     number(c.after_ms), "rows", rows);
}

struct json_t *profile_page_json(const struct profile_set *all, struct arena *a)
{
    json_t *families = json_array(), *profiles = json_array(), *changes = json_array();
    json_t *words = json_array();
    struct roofline_frame frame = roofline_frame_of(all->profile, all->n);
    for (int i = 0; i < PROFILE_FILE_FAMILIES; i++)
        json_array_append_new(families, json_string(profile_file_family_name(i)));
    for (int i = 0; i < all->n; i++) {
        json_array_append_new(profiles, profile_json_of(&all->profile[i], &frame));
        if (i > 0) json_array_append_new(changes, changes_json(all, i, a));
    }
    for (int i = 0; i < all->words; i++) { /* paths are bytes */
        const char *word = lenient_utf8(all->word[i], (int64_t)strlen(all->word[i]), a);
        json_array_append_new(words, json_string(word));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "words", words, "families", families, "profiles",
                     profiles, "changes", changes);
}
