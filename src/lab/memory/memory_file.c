#include "lab/memory/memory_file.h"

#include "base/file.h"
#include "base/json.h"
#include "base/record.h"
#include "base/trust.h"

#include <string.h>

enum { RECORDS_MOST = 32 };

/* clang-format off */
#define S struct memory_level
RECORD(level, F(TEXT, "name", name), F(TEXT, "note", note), F(COUNT, "unit_bytes", unit_bytes),
       F(COUNT, "bytes", bytes), F(COUNT, "found", found), F(REAL, "unit_rate", unit_rate),
       F(REAL, "rate", rate), F(REAL, "write_rate", write_rate), F(REAL, "copy_rate", copy_rate),
       F(REAL, "clock_bytes", clock_bytes), F(REAL, "ns", ns), F(REAL, "clocks", clocks));
#undef S
#define S struct memory_record
RECORD(memory, F(TEXT, "date", date), F(COUNT, "doubt", doubt),
       F(LIST, "levels", level, N(levels), .of = &level_record, .most = MEMORY_LEVELS));
#undef S
/* clang-format on */

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
        if (!is_of(one, m)) continue;
        record_take(&memory_record, one, ret, a);
        bool valid = ret->date != NULL;
        for (int k = 0; k < ret->levels; k++) valid &= ret->level[k].name != NULL;
        if (!valid) ret->levels = 0;
    }
    json_decref(file);
    return ret->levels > 0;
}

enum status memory_keep(const struct machine *m, const struct memory_run *r,
                        enum memory_doubt doubt, const char **ret_better, struct arena *a)
{
    json_t *file, *records;
    const char *path = record_path(a);
    struct memory_record old;
    *ret_better = NULL;
    if (!path) return ST_OK;
    if (memory_find(m, &old, a) && max_i64(old.doubt, MEMORY_WHOLE) < doubt) {
        *ret_better = old.date;
        return ST_OK;
    }
    TRY(trust_parent(path, a, &path));
    TRY(machine_records(path, &file, &records, a));
    for (size_t i = json_array_size(records); i > 0; i--)
        if (is_of(json_array_get(records, i - 1), m)) json_array_remove(records, i - 1);
    while (json_array_size(records) >= RECORDS_MOST) json_array_remove(records, 0);
    struct memory_record kept = {.date = m->date, .levels = r->levels, .doubt = doubt};
    memcpy(kept.level, r->level, sizeof kept.level);
    json_t *one = json_pack("{s:s, s:s, s:i}", m->gpu ? "gpu" : "cpu", m->name, "isa", m->isa,
                            "threads", m->threads);
    json_array_append_new(records, record_add(one, &memory_record, &kept));
    return trust_write_json(file, JSON_INDENT(1) | JSON_REAL_PRECISION(6), path);
}
