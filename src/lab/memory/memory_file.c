#include "lab/memory/memory_file.h"

#include "base/file.h"
#include "base/json.h"
#include "base/trust.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { RECORDS_MOST = 32 };

/* The members of a level that are stored; `sizes` are int64_t, `numbers` are double. */
#define SIZE(name)                                 \
    {                                              \
#name, offsetof(struct memory_level, name) \
    }
static const struct {
    const char *key;
    size_t at;
} sizes[] = {SIZE(unit_bytes), SIZE(bytes), SIZE(found)},
  numbers[] = {SIZE(unit_rate),   SIZE(rate), SIZE(write_rate), SIZE(copy_rate),
               SIZE(clock_bytes), SIZE(ns),   SIZE(clocks)};

static json_t *level_json(const struct memory_level *l)
{
    json_t *j = json_pack("{s:s, s:o}", "name", l->name, "note", text_or_null(l->note));
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        int64_t n;
        memcpy(&n, (const char *)l + sizes[i].at, sizeof n);
        json_object_set_new(j, sizes[i].key, json_integer(n));
    }
    for (int i = 0; i < COUNT_OF(numbers); i++) {
        double x;
        memcpy(&x, (const char *)l + numbers[i].at, sizeof x);
        json_object_set_new(j, numbers[i].key, number_or_null(x));
    }
    return j;
}

static const char *text_of(const json_t *j, const char *key, struct arena *a)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? arena_strdup(a, text) : NULL;
}

static bool read_level(const json_t *j, struct memory_level *l, struct arena *a)
{
    *l = (struct memory_level){.name = text_of(j, "name", a), .note = text_of(j, "note", a)};
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        int64_t n = max_i64(0, json_integer_value(json_object_get(j, sizes[i].key)));
        memcpy((char *)l + sizes[i].at, &n, sizeof n);
    }
    for (int i = 0; i < COUNT_OF(numbers); i++) {
        const json_t *of = json_object_get(j, numbers[i].key);
        double x = json_is_number(of) ? json_number_value(of) : NAN;
        memcpy((char *)l + numbers[i].at, &x, sizeof x);
    }
    return l->name != NULL;
}

static bool is_of(const json_t *j, const struct machine *m)
{
    const char *name = json_string_value(json_object_get(j, m->gpu ? "gpu" : "cpu"));
    const char *isa = json_string_value(json_object_get(j, "isa"));
    return name && isa && !strcmp(name, m->name) && !strcmp(isa, m->isa) &&
           json_integer_value(json_object_get(j, "threads")) == m->threads;
}

/* The path of the file; NULL if the user has no cache folder. */
static const char *record_path(struct arena *a)
{
    const char *folder = file_cache_folder(a);
    return folder ? arena_printf(a, "%s/memory.json", folder) : NULL;
}

bool memory_find(const struct machine *m, struct memory_record *ret, struct arena *a)
{
    json_t *file, *records;
    const char *path = record_path(a);
    *ret = (struct memory_record){0};
    if (!path || trust_check(path, a, &path) != ST_OK) return false;
    if (machine_records(path, &file, &records, a) != ST_OK) return false;
    for (size_t i = json_array_size(records); i > 0 && !ret->levels; i--) {
        const json_t *one = json_array_get(records, i - 1);
        const json_t *levels = json_object_get(one, "levels");
        if (!is_of(one, m) || json_array_size(levels) > MEMORY_LEVELS) continue;
        ret->date = text_of(one, "date", a);
        bool valid = ret->date != NULL;
        for (size_t k = 0; k < json_array_size(levels); k++)
            valid &= read_level(json_array_get(levels, k), &ret->level[k], a);
        ret->levels = valid ? (int)json_array_size(levels) : 0;
    }
    json_decref(file);
    return ret->levels > 0;
}

enum status memory_keep(const struct machine *m, const struct memory_run *r, struct arena *a)
{
    json_t *file, *records;
    const char *path = record_path(a);
    if (!path) return ST_OK;
    TRY(trust_parent(path, a, &path));
    TRY(machine_records(path, &file, &records, a));
    json_t *levels = json_array();
    for (size_t i = json_array_size(records); i > 0; i--)
        if (is_of(json_array_get(records, i - 1), m)) json_array_remove(records, i - 1);
    while (json_array_size(records) >= RECORDS_MOST) json_array_remove(records, 0);
    for (int i = 0; i < r->levels; i++) json_array_append_new(levels, level_json(&r->level[i]));
    json_array_append_new(records, json_pack("{s:s, s:s, s:i, s:s, s:o}", m->gpu ? "gpu" : "cpu",
                                             m->name, "isa", m->isa, "threads", m->threads, "date",
                                             m->date, "levels", levels));
    return trust_write_json(file, JSON_INDENT(1) | JSON_REAL_PRECISION(6), path);
}
