/* The tuning file: {"v":1,"device":{...},"library":130001,"driver":"...","matmuls":{KEY:[...]}}. */
#include "base/file.h"
#include "base/trust.h"
#include "tuning/tuning.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
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

/* False if the text is missing or too long. */
static bool read_text(const json_t *object, const char *name, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));
    if (!text || strlen(text) >= size) return false;
    snprintf(ret, size, "%s", text);
    return true;
}

static bool read_whole(const json_t *object, const char *name, int64_t most, int64_t *ret)
{
    const json_t *number = json_object_get(object, name);
    *ret = json_integer_value(number);
    return json_is_integer(number) && *ret >= 0 && *ret <= most;
}

static bool read_target(const json_t *root, struct target *t)
{
    const json_t *device = json_object_get(root, "device");
    int64_t arch, processors, shared;
    bool fine = read_text(device, "name", t->name, sizeof t->name) &&
                read_whole(device, "arch", INT16_MAX, &arch) &&
                read_whole(device, "processors", INT16_MAX, &processors) &&
                read_whole(device, "shared_bytes", INT32_MAX, &shared) &&
                read_whole(device, "l2_bytes", INT64_MAX, &t->l2_bytes) &&
                read_whole(device, "bytes", INT64_MAX, &t->bytes) &&
                read_whole(root, "library", INT64_MAX, &t->library) &&
                json_is_boolean(json_object_get(device, "tensor_maps")) && processors > 0;
    if (!fine) return false;
    t->arch = (int)arch, t->processors = (int)processors, t->shared_bytes = (int)shared;
    t->tensor_maps = json_is_true(json_object_get(device, "tensor_maps"));
    return true;
}

/* Hexadecimal digits that fill `ret`; true also if there are none. */
static bool read_digits(const json_t *object, const char *name, char *ret, size_t size)
{
    if (!json_object_get(object, name)) return true;
    return read_text(object, name, ret, size) && strspn(ret, "0123456789abcdef") == size - 1;
}

/* [128, 256, 16]; true also if there is none. */
static bool read_tile(const json_t *list, struct tuning_tile *ret)
{
    enum { MOST = 1 << 20 };
    json_int_t n[3];
    if (!list) return true;
    if (json_array_size(list) != COUNT_OF(n)) return false;
    for (int i = 0; i < COUNT_OF(n); i++) {
        n[i] = json_integer_value(json_array_get(list, (size_t)i));
        if (n[i] < 1 || n[i] > MOST) return false;
    }
    *ret = (struct tuning_tile){(int)n[0], (int)n[1], (int)n[2]};
    return true;
}

static bool read_candidate(const json_t *from, struct tuning_candidate *ret)
{
    const json_t *us = json_object_get(from, "us");
    if (!read_text(from, "variant", ret->variant, sizeof ret->variant) ||
        !read_digits(from, "algorithm", ret->algorithm, sizeof ret->algorithm) ||
        !read_digits(from, "launch", ret->launch, sizeof ret->launch) ||
        !read_tile(json_object_get(from, "tile"), &ret->tile))
        return false;
    ret->us = json_number_value(us);
    ret->spread_us = json_number_value(json_object_get(from, "spread_us"));
    return json_is_number(us) && ret->us > 0 && ret->spread_us >= 0;
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
            if (!read_candidate(json_array_get(list, (size_t)i), &e.candidate[i])) return false;
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
    bool fine = version == FILE_VERSION && read_target(root, &ret->target) &&
                read_text(root, "driver", ret->driver, sizeof ret->driver) &&
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

static json_t *candidate_json(const struct tuning_candidate *c)
{
    json_t *o =
        json_pack("{s:s, s:f, s:f}", "variant", c->variant, "us", c->us, "spread_us", c->spread_us);
    if (*c->algorithm) json_object_set_new(o, "algorithm", json_string(c->algorithm));
    if (*c->launch) json_object_set_new(o, "launch", json_string(c->launch));
    if (c->tile.rows)
        json_object_set_new(o, "tile",
                            json_pack("[i, i, i]", c->tile.rows, c->tile.columns, c->tile.group));
    return o;
}

static json_t *table_json(const struct tuning *t)
{
    const struct target *d = &t->target;
    json_t *matmuls = json_object();
    for (int i = 0; i < t->n; i++) {
        json_t *list = json_array();
        for (int k = 0; k < t->entry[i].n; k++)
            json_array_append_new(list, candidate_json(&t->entry[i].candidate[k]));
        json_object_set_new(matmuls, t->entry[i].key, list);
    }
    return json_pack("{s:i, s:{s:s, s:i, s:i, s:i, s:I, s:I, s:b}, s:I, s:s, s:o}", "v",
                     FILE_VERSION, "device", "name", d->name, "arch", d->arch, "processors",
                     d->processors, "shared_bytes", d->shared_bytes, "l2_bytes",
                     (json_int_t)d->l2_bytes, "bytes", (json_int_t)d->bytes, "tensor_maps",
                     d->tensor_maps, "library", (json_int_t)d->library, "driver", t->driver,
                     "matmuls", matmuls);
}

/* The entries of `t` and those that only the file has. What is damaged or of another device or
 * version is replaced; what cannot be read is not. */
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
