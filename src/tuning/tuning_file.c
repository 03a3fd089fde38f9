/* The tuning file: {"v":1,"device":{...},"library":130001,"driver":"...","matmuls":{KEY:[...]}}. */
#include "base/file.h"
#include "base/record.h"
#include "base/trust.h"
#include "tuning/tuning.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

enum { FILE_VERSION = 1 };

const char *tuning_path(const char *device, struct arena *a)
{
    const char *folder = file_cache_folder(a);
    if (!folder) return NULL;
    char *word = arena_strdup(a, device);
    for (char *p = word; *p; p++)
        if (!isalnum((unsigned char)*p)) *p = '-';
    return arena_printf(a, "%s/tuning-%s.json", folder, word);
}

/* clang-format off */
#define S struct target
RECORD(device, CHARS("name", name), F(INT, "arch", arch),
       F(INT, "processors", processors), F(INT, "shared_bytes", shared_bytes),
       F(COUNT, "l2_bytes", l2_bytes), F(COUNT, "bytes", bytes),
       F(FLAG, "tensor_maps", tensor_maps));
#undef S
#define S struct tuning
RECORD(head, F(ONE, "device", target, .of = &device_record), F(COUNT, "library", target.library),
       CHARS("driver", driver));
#undef S
#define S struct tuning_tile
TUPLE(tile, F(INT, "rows", rows), F(INT, "columns", columns), F(INT, "group", group));
#undef S
#define S struct tuning_candidate
RECORD(candidate, CHARS("variant", variant), F(REAL, "us", us),
       F(REAL, "spread_us", spread_us),
       CHARS("algorithm", algorithm, .sparse = true),
       CHARS("launch", launch, .sparse = true),
       F(ONE, "tile", tile, .of = &tile_record));
#undef S
/* clang-format on */

static bool is_valid(const struct tuning *t)
{
    const struct target *d = &t->target;
    return d->name[0] && d->arch >= 0 && d->arch <= INT16_MAX && d->processors > 0 &&
           d->processors <= INT16_MAX && d->shared_bytes >= 0 && d->l2_bytes >= 0 &&
           d->bytes >= 0 && d->library >= 0;
}

/* Hexadecimal digits that fill `size` bytes, or none. */
static bool are_digits(const char *text, size_t size)
{
    return !*text || (strspn(text, "0123456789abcdef") == size - 1 && !text[size - 1]);
}

static bool read_candidate(const json_t *from, struct tuning_candidate *ret, struct arena *a)
{
    enum { MOST = 1 << 20 };
    struct tuning_tile *t = &ret->tile;
    record_take(&candidate_record, from, ret, a);
    if (!json_object_get(from, "tile")) *t = (struct tuning_tile){0};
    if (isnan(ret->spread_us)) ret->spread_us = 0;
    bool has_tile = t->rows > 0 && t->rows <= MOST && t->columns > 0 && t->columns <= MOST &&
                    t->group > 0 && t->group <= MOST;
    return ret->variant[0] && are_digits(ret->algorithm, sizeof ret->algorithm) &&
           are_digits(ret->launch, sizeof ret->launch) && ret->us > 0 && ret->spread_us >= 0 &&
           (has_tile || t->rows == 0);
}

static bool read_entries(const json_t *matmuls, struct tuning *t)
{
    const char *key;
    const json_t *list;
    if (!json_is_object(matmuls)) return false;
    json_object_foreach((json_t *)(uintptr_t)matmuls, key, list) {
        struct tuning_entry e = {.n = (int)json_array_size(list)};
        if (!json_is_array(list) || e.n > TUNING_VARIANTS || strlen(key) >= sizeof e.key)
            return false;
        snprintf(e.key, sizeof e.key, "%s", key);
        for (int i = 0; i < e.n; i++)
            if (!read_candidate(json_array_get(list, (size_t)i), &e.candidate[i], t->arena))
                return false;
        tuning_set(t, &e);
    }
    return true;
}

enum status tuning_read(const char *path, struct tuning *ret, struct arena *a)
{
    json_error_t error;
    char *text;
    int64_t bytes;
    TRY(file_read(path, a, &text, &bytes));
    json_t *root = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return fail(ST_FORMAT, "%s is not a tuning file: line %d: %s", path, error.line,
                    error.text);
    *ret = (struct tuning){.arena = a};
    int64_t version = json_integer_value(json_object_get(root, "v"));
    record_take(&head_record, root, ret, a);
    bool fine = version == FILE_VERSION && is_valid(ret) &&
                read_entries(json_object_get(root, "matmuls"), ret);
    json_decref(root);
    if (fine) return ST_OK;
    return version == FILE_VERSION
               ? fail(ST_FORMAT, "%s is a damaged tuning file; `strobe tune` makes a new one", path)
               : fail(ST_FORMAT, "%s is not a tuning file of version %d; `strobe tune` makes one",
                      path, FILE_VERSION);
}

bool tuning_holds(const struct tuning *t, const struct target *target, const char **ret_why)
{
    const struct target *m = &t->target;
    *ret_why = strcmp(m->name, target->name) != 0 ? "it is for another device"
               : m->library != target->library    ? "it was made with another version of cuBLASLt"
               : m->arch != target->arch || m->processors != target->processors ||
                       m->shared_bytes != target->shared_bytes || m->l2_bytes != target->l2_bytes ||
                       m->tensor_maps != target->tensor_maps
                   ? "its device has other properties"
                   : NULL;
    return !*ret_why;
}

static json_t *table_json(const struct tuning *t)
{
    json_t *matmuls = json_object();
    for (int i = 0; i < t->n; i++) {
        json_t *list = json_array();
        for (int k = 0; k < t->entry[i].n; k++) {
            json_t *one = record_json(&candidate_record, &t->entry[i].candidate[k]);
            if (!t->entry[i].candidate[k].tile.rows) json_object_del(one, "tile");
            json_array_append_new(list, one);
        }
        json_object_set_new(matmuls, t->entry[i].key, list);
    }
    return record_add(json_pack("{s:i, s:o}", "v", FILE_VERSION, "matmuls", matmuls), &head_record,
                      t);
}

/* *all gets the entries of `t` and the entries that only the file has. If the file is damaged, or
 * is for another device or version, its entries are not used. Fails if the file cannot be read. */
static enum status merge(struct tuning *all, const char *path, const struct tuning *t,
                         struct arena *a)
{
    struct tuning there;
    const char *why;
    struct failure before;
    *all = *t;
    all->entry = NULL;
    all->n = all->capacity = 0;
    all->arena = a;
    if (file_exists(path)) {
        fail_keep(&before);
        enum status st = tuning_read(path, &there, a);
        if (is_of_files(st) && st != ST_FORMAT) return st;
        fail_restore(&before);
        for (int i = 0; st == ST_OK && tuning_holds(&there, &t->target, &why) && i < there.n; i++)
            tuning_set(all, &there.entry[i]);
    }
    for (int i = 0; i < t->n; i++) tuning_set(all, &t->entry[i]);
    return ST_OK;
}

enum status tuning_write(const char *path, const struct tuning *t)
{
    struct arena a = {0};
    struct tuning all;
    enum status st = merge(&all, path, t, &a);
    size_t flags = JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15);
    if (st == ST_OK) st = trust_write_json(table_json(&all), flags, path);
    arena_release(&a);
    return st;
}
