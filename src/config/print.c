#include "config/config.h"

#include "base/str.h"
#include "config/fields.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* True at the first field of a group; `group_length` bytes of f->member are its name. */
static bool opens_group(const struct field *f, int *ret_group_length)
{
    int n = (int)strcspn(f->member, ".");
    *ret_group_length = n;
    return f == fields || strncmp(f[-1].member, f->member, (size_t)n + 1) != 0;
}

void config_print(const struct config *c, struct str *s)
{
    for (const struct field *f = fields; f->key; f++) {
        int n;
        if (opens_group(f, &n)) str_printf(s, "%s# %.*s\n", f == fields ? "" : "\n", n, f->member);
        str_printf(s, "%s = ", f->key);
        field_print(f, c, s);
        str_append(s, "\n");
    }
}

void config_print_json(const struct config *c, struct str *s)
{
    str_append(s, "{\n");
    for (const struct field *f = fields; f->key; f++) {
        str_printf(s, "  \"%s\": ", f->key);
        field_print_json(f, c, s);
        str_append(s, f[1].key ? ",\n" : "\n");
    }
    str_append(s, "}\n");
}

struct json_t *config_json(const struct config *c)
{
    json_t *all = json_object();
    for (const struct field *f = fields; f->key; f++)
        json_object_set_new(all, f->key, field_json(f, c));
    return all;
}

static const char reference_head[] =
    "# The keys of a configuration\n"
    "\n"
    "Written by `make docs` from `src/config/fields.c`; do not edit.\n"
    "\n"
    "A file has lines `key = value`, `#` comments and, before all keys, at most one\n"
    "`include = other.conf`, relative to the file. Text may stand in quotes, and has the escapes "
    "`\\n`,\n"
    "`\\t`, `\\r`, `\\\"`, `\\'`, `\\#` and `\\\\`. On the command line the same words are\n"
    "`--key=value`. Names and defaults are nanoGPT's where it has the key.\n";

void config_print_reference(struct str *s)
{
    static const char *const kinds[] = {[FIELD_INT] = "integer",
                                        [FIELD_REAL] = "number",
                                        [FIELD_BOOL] = "boolean",
                                        [FIELD_TEXT] = "text",
                                        [FIELD_ENUM] = "choice"};
    str_append(s, reference_head);
    for (const struct field *f = fields; f->key; f++) {
        int n;
        if (opens_group(f, &n)) {
            str_printf(s, "\n## %.*s\n\n", n, f->member);
            str_append(s, "| key | type | default | values | meaning |\n|---|---|---|---|---|\n");
        }
        str_printf(s, "| `%s` | %s | `", f->key, kinds[f->kind]);
        field_print_default(f, s);
        str_append(s, "` | ");
        field_print_range(f, s);
        str_printf(s, " | %s |\n", f->help);
    }
}

const char *config_value_text(const struct config *c, const char *key, struct arena *a)
{
    const struct field *f = field_find(key, (int64_t)strlen(key));
    if (!f) return NULL;
    struct str s = {0};
    field_print(f, c, &s);
    const char *text = arena_strdup(a, str_text(&s));
    str_release(&s);
    return text;
}

unsigned config_key_flags(const char *key)
{
    const struct field *f = field_find(key, (int64_t)strlen(key));
    return f ? f->flags : 0;
}

void config_diff(const struct config *a, const struct config *b,
                 void (*each)(void *user, const char *key, const char *in_a, const char *in_b),
                 void *user)
{
    for (const struct field *f = fields; f->key; f++) {
        struct str in_a = {0}, in_b = {0};
        field_print(f, a, &in_a);
        field_print(f, b, &in_b);
        if (strcmp(str_text(&in_a), str_text(&in_b)))
            each(user, f->key, str_text(&in_a), str_text(&in_b));
        str_release(&in_a);
        str_release(&in_b);
    }
}
