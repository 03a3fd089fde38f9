#include "base/opt.h"

#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum edit distance at which an unknown option counts as a misspelling of a known one. */
enum { MISSPELLING_DISTANCE = 2 };

static _Thread_local char help_text[4096];

static const struct opt *opt_find(const struct opt *table, const char *name, int64_t length)
{
    for (const struct opt *o = table; o->name; o++)
        if ((int64_t)strlen(o->name) == length && !memcmp(o->name, name, (size_t)length)) return o;
    return NULL;
}

static enum status set_flag(const struct opt *o, const char *value)
{
    if (!value || !strcmp(value, "true"))
        *(bool *)o->member = true;
    else if (!strcmp(value, "false"))
        *(bool *)o->member = false;
    else
        return fail(ST_USAGE, "--%s must be true or false, not %s%s", o->name, value,
                    strchr(value, '.') ? "; it prints to stdout, which the shell writes to a file "
                                         "with > FILE"
                                       : "");
    return ST_OK;
}

static enum status set_value(const struct opt *o, const char *value)
{
    char *end;
    errno = 0;
    switch (o->kind) {
    case OPT_FLAG:
        return set_flag(o, value);
    case OPT_TEXT:
        TRY(file_check_place(o->name, value));
        *(const char **)o->member = value;
        return ST_OK;
    case OPT_INT: {
        long long number = strtoll(value, &end, 10);
        if (end == value || *end || errno)
            return fail(ST_USAGE, "--%s must be an integer, not %s", o->name, value);
        *(int64_t *)o->member = number;
        return ST_OK;
    }
    case OPT_SIZE: {
        int64_t bytes;
        if (!str_read_bytes(value, &bytes) || bytes < 1)
            return fail(ST_USAGE,
                        "--%s takes a size with its unit, as in 80GiB, 24GB or 512MiB; found %s",
                        o->name, *value ? value : "nothing");
        *(int64_t *)o->member = bytes;
        return ST_OK;
    }
    }
    BUG_IF(true, "option --%s of kind %d", o->name, (int)o->kind);
}

/* The option that `word` ("--jsno=1") probably meant, or NULL. */
static const struct opt *opt_nearest(const struct opt *table, const char *word)
{
    const struct opt *nearest = NULL;
    int best = MISSPELLING_DISTANCE + 1;
    char name[64];
    word += strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (const struct opt *o = table; o->name; o++) {
        if (!o->help) continue;
        int distance = str_distance(name, o->name);
        if (distance >= best) continue;
        best = distance;
        nearest = o;
    }
    return nearest;
}

static enum status fail_unknown(const struct opt *table, const char *word)
{
    int length = (int)strcspn(word, "=");
    const struct opt *nearest = opt_nearest(table, word);
    if (nearest)
        return fail(ST_USAGE, "unknown option %.*s; did you mean --%s?", length, word,
                    nearest->name);
    struct str known = {0};
    for (const struct opt *o = table; o->name; o++)
        if (o->help) str_printf(&known, "%s--%s", known.len ? ", " : "", o->name);
    enum status st = fail(ST_USAGE, "unknown option %.*s; options of this command: %s", length,
                          word, known.len ? str_text(&known) : "none");
    str_release(&known);
    return st;
}

const char *opt_help(void)
{
    return help_text;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) return true;
    return false;
}

/* The table lives in the command's stack frame, so the help text is generated while it exists. */
static enum status fail_help(const struct opt *table)
{
    struct str s = {0};
    opt_print(table, &s);
    snprintf(help_text, sizeof help_text, "%s", str_text(&s));
    str_release(&s);
    return fail(ST_HELP, "help was requested");
}

enum status opt_parse(const struct opt *table, int *argc, char **argv,
                      bool (*keep)(const char *word))
{
    int kept = 0, i = 0;
    if (asks_for_help(*argc, argv)) return fail_help(table);
    for (; i < *argc; i++) {
        char *word = argv[i];
        if (!strcmp(word, "--")) {
            i++;
            break;
        }
        if (word[0] != '-' || !word[1]) { /* by convention a lone dash means standard input */
            argv[kept++] = word;
            continue;
        }
        if (word[1] != '-' && word[2])
            return fail(ST_USAGE, "unknown option %s; options and keys have two dashes: -%s", word,
                        word);
        if (word[1] != '-') return fail_unknown(table, word);
        const char *equals = strchr(word, '=');
        const struct opt *o =
            opt_find(table, word + 2, equals ? equals - word - 2 : (int64_t)strlen(word + 2));
        if (!o) {
            if (!keep || (!keep(word) && opt_nearest(table, word)))
                return fail_unknown(table, word);
            argv[kept++] = word;
            continue;
        }
        const char *value = equals ? equals + 1 : NULL;
        if (!value && o->kind != OPT_FLAG) {
            if (i + 1 >= *argc)
                return fail(ST_USAGE, "--%s needs a value: --%s=%s", o->name, o->name,
                            o->value_name ? o->value_name : "VALUE");
            value = argv[++i];
        }
        TRY(set_value(o, value));
    }
    for (; i < *argc; i++) argv[kept++] = argv[i];
    *argc = kept;
    return ST_OK;
}

void opt_print(const struct opt *table, struct str *s)
{
    for (const struct opt *o = table; o->name; o++) {
        if (!o->help) continue;
        int64_t start = s->len;
        str_printf(s, "  --%s", o->name);
        if (o->kind != OPT_FLAG) str_printf(s, "=%s", o->value_name ? o->value_name : "VALUE");
        int64_t width = s->len - start;
        str_printf(s, "%*s  %s\n", width < 24 ? (int)(24 - width) : 0, "", o->help);
    }
}
