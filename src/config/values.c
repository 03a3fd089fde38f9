#include "config/fields.h"

#include "base/str.h"
#include "base/utf8.h"

#include <jansson.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *member_of(const struct config *c, const struct field *f)
{
    return (char *)c + f->offset;
}

bool field_is_switch(const struct field *f)
{
    bool yes = f->kind == FIELD_BOOL;
    for (int i = 0; f->choice && f->choice[i]; i++) yes |= !strcmp(f->choice[i], "true");
    return yes;
}

/* "0.0001", "6e-05": the shortest text that reads back as the same number. */
static void print_real(struct str *s, double value)
{
    char text[32], shortest[32] = "";
    for (int digits = 1; digits <= 17; digits++) {
        int n = snprintf(text, sizeof text, "%.*g", digits, value);
        bool shorter = !*shortest || n < (int)strlen(shortest);
        if (shorter && strtod(text, NULL) == value) strcpy(shortest, text);
    }
    str_append(s, shortest);
}

void field_print_range(const struct field *f, struct str *s)
{
    if (f->choice) {
        for (int i = 0; f->choice[i]; i++) str_printf(s, "%s%s", i ? ", " : "", f->choice[i]);
        if (f->max > 0) str_printf(s, " (N %.0f to %.0f)", f->min, f->max);
    } else if (f->kind == FIELD_BOOL) {
        str_append(s, "true, false");
    } else if (f->kind == FIELD_INT) {
        str_printf(s, "%.0f to %.0f", f->min, f->max);
    } else if (f->kind == FIELD_REAL) {
        print_real(s, f->min);
        str_append(s, " to ");
        print_real(s, f->max);
    }
}

static enum status fail_value(const struct field *f, const char *value)
{
    static const char *const wants[] = {[FIELD_INT] = "a whole number, ",
                                        [FIELD_REAL] = "a number, ",
                                        [FIELD_BOOL] = "",
                                        [FIELD_TEXT] = "text",
                                        [FIELD_ENUM] = ""};
    struct str range = {0};
    field_print_range(f, &range);
    enum status st = fail(ST_USAGE, "%s must be %s%s; got %s", f->key,
                          f->choice || f->kind == FIELD_BOOL ? "one of: " : wants[f->kind],
                          str_text(&range), *value ? value : "an empty value");
    str_release(&range);
    return st;
}

/* The length of "word:" if choice i is "word:N"; 0 if it is a plain word. */
static int prefix_length(const struct field *f, int i)
{
    size_t n = strlen(f->choice[i]);
    return f->max > 0 && !f->choice[i + 1] && n > 2 && !strcmp(f->choice[i] + n - 2, ":N")
               ? (int)n - 1
               : 0;
}

/* The enum value of the word `value`, as field.choice defines it; -1 if the word is not allowed. */
static int choice_find(const struct field *f, const char *value)
{
    for (int i = 0; f->choice[i]; i++) {
        int head = prefix_length(f, i);
        if (!head && !strcmp(f->choice[i], value)) return i;
        if (!head || strncmp(f->choice[i], value, (size_t)head) != 0) continue;
        char *end;
        long number = strtol(value + head, &end, 10);
        bool ok = isdigit((unsigned char)value[head]) && !*end;
        if (ok && (double)number >= f->min && (double)number <= f->max) return i + (int)number - 2;
    }
    return -1;
}

static void choice_print(const struct field *f, int chosen, struct str *s)
{
    int i = 0;
    while (i < chosen && f->choice[i + 1]) i++;
    int head = prefix_length(f, i);
    if (head)
        str_printf(s, "%.*s%d", head, f->choice[i], chosen - i + 2);
    else
        str_append(s, f->choice[i]);
}

/* True if the word auto is allowed instead of a number; config_choose then sets the number. */
static bool may_be_auto(const struct field *f)
{
    return f->choice && !strcmp(f->choice[0], "auto");
}

/* Reads "1000", or "1e3" and "2.5e4", whose values are whole numbers. */
static bool read_factor(const char *value, char **end, int64_t *ret)
{
    errno = 0;
    long long number = strtoll(value, end, 10);
    if (*end == value || errno) return false;
    *ret = number;
    if (!**end || !strchr(".eE", **end)) return true;
    double x = strtod(value, end);
    if (!memchr(value, 'e', (size_t)(*end - value)) && !memchr(value, 'E', (size_t)(*end - value)))
        return false;
    if (!(fabs(x) < 1e15) || x != floor(x)) return false;
    *ret = (int64_t)x;
    return true;
}

/* Copies `value` without Python's underscores between digits (600_000); false if it is too long. */
static bool drop_underscores(const char *value, char *ret, size_t bytes)
{
    size_t n = 0;
    if (strlen(value) >= bytes) return false;
    for (const char *c = value; *c; c++) {
        bool between = c > value && isdigit((unsigned char)c[-1]) && isdigit((unsigned char)c[1]);
        if (*c != '_' || !between) ret[n++] = *c;
    }
    ret[n] = '\0';
    return true;
}

/* Reads a whole number or a product of whole numbers, as in nanoGPT's gradient_accumulation_steps =
 * 5 * 8. */
static bool read_whole(const char *text, int64_t *ret)
{
    char *end, value[128];
    int64_t factor;
    if (!drop_underscores(text, value, sizeof value)) return false;
    if (!read_factor(value, &end, ret)) return false;
    while (*end) {
        end += strspn(end, " ");
        if (*end != '*') return false;
        if (!read_factor(end + 1, &end, &factor)) return false;
        if (!(fabs((double)*ret * (double)factor) < 1e15)) return false;
        *ret *= factor;
    }
    return true;
}

enum status field_set(const struct field *f, struct config *c, const char *value, struct arena *a)
{
    void *member = member_of(c, f);
    char *end;
    switch (f->kind) {
    case FIELD_INT: {
        int64_t number = CONFIG_AUTO;
        bool ok = may_be_auto(f) && !strcmp(value, "auto");
        ok = ok || read_whole(value, &number);
        if (f->choice)
            ok = ok && choice_find(f, value) >= 0;
        else
            ok = ok && (double)number >= f->min && (double)number <= f->max;
        if (!ok) return fail_value(f, value);
        *(int64_t *)member = number;
        return ST_OK;
    }
    case FIELD_REAL: {
        double number = strtod(value, &end);
        if (end == value || *end || !(number >= f->min && number <= f->max))
            return fail_value(f, value);
        *(double *)member = number;
        return ST_OK;
    }
    case FIELD_BOOL: {
        bool yes = !strcmp(value, "true") || !strcmp(value, "True");
        if (!yes && strcmp(value, "false") && strcmp(value, "False")) return fail_value(f, value);
        *(bool *)member = yes;
        return ST_OK;
    }
    case FIELD_TEXT:
        if (!utf8_is(value)) return fail(ST_USAGE, "%s must be text in UTF-8", f->key);
        *(const char **)member = a ? arena_strdup(a, value) : value;
        return ST_OK;
    case FIELD_ENUM: {
        static const char *const python[] = {"True", "true", "False", "false"};
        for (int i = 0; i < COUNT_OF(python) && field_is_switch(f); i += 2)
            if (!strcmp(value, python[i])) value = python[i + 1];
        int chosen = choice_find(f, value);
        if (chosen < 0) return fail_value(f, value);
        *(unsigned *)member = (unsigned)chosen;
        return ST_OK;
    }
    }
    BUG_IF(true, "key %s of kind %d", f->key, (int)f->kind);
}

/* Quotes the text if it would not be read back unchanged without quotes. */
static void print_text(struct str *s, const char *text)
{
    size_t n = strlen(text);
    bool bare = n > 0 && !isspace((unsigned char)text[0]) && !isspace((unsigned char)text[n - 1]) &&
                !strpbrk(text, "\"'\\#\n\r\t");
    if (bare) {
        str_append(s, text);
        return;
    }
    str_append(s, "\"");
    for (const char *p = text; *p; p++) {
        static const char from[] = "\n\t\r\\\"", to[] = "ntr\\\"";
        const char *special = strchr(from, *p);
        if (special)
            str_printf(s, "\\%c", to[special - from]);
        else
            str_append_bytes(s, p, 1);
    }
    str_append(s, "\"");
}

void field_print(const struct field *f, const struct config *c, struct str *s)
{
    const void *member = member_of(c, f);
    switch (f->kind) {
    case FIELD_INT:
        if (may_be_auto(f) && *(const int64_t *)member == CONFIG_AUTO)
            str_append(s, "auto");
        else
            str_printf(s, "%lld", (long long)*(const int64_t *)member);
        break;
    case FIELD_REAL:
        print_real(s, *(const double *)member);
        break;
    case FIELD_BOOL:
        str_append(s, *(const bool *)member ? "true" : "false");
        break;
    case FIELD_TEXT:
        print_text(s, *(const char *const *)member);
        break;
    case FIELD_ENUM:
        choice_print(f, (int)*(const unsigned *)member, s);
        break;
    }
}

void field_print_default(const struct field *f, struct str *s)
{
    if (f->kind == FIELD_TEXT)
        print_text(s, f->initial);
    else
        str_append(s, f->initial);
}

json_t *field_json(const struct field *f, const struct config *c)
{
    struct str word = {0};
    json_t *j = NULL;
    double x;
    switch (f->kind) {
    case FIELD_INT:
        x = (double)*(const int64_t *)member_of(c, f);
        j = may_be_auto(f) && x == CONFIG_AUTO ? json_string("auto") : json_integer((json_int_t)x);
        break;
    case FIELD_REAL: /* print 1, not 1.0 */
        x = *(const double *)member_of(c, f);
        j = x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x);
        break;
    case FIELD_BOOL:
        j = json_boolean(*(const bool *)member_of(c, f));
        break;
    case FIELD_TEXT:
        j = json_string(*(const char *const *)member_of(c, f));
        break;
    case FIELD_ENUM:
        field_print(f, c, &word);
        j = json_string(str_text(&word));
        str_release(&word);
    }
    BUG_IF(!j, "the value of %s cannot be written as JSON", f->key);
    return j;
}

void field_print_json(const struct field *f, const struct config *c, struct str *s)
{
    if (f->kind == FIELD_REAL) { /* jansson would print all 17 digits */
        field_print(f, c, s);
        return;
    }
    json_t *j = field_json(f, c);
    char *text = json_dumps(j, JSON_ENCODE_ANY);
    str_append(s, text);
    free(text);
    json_decref(j);
}
