#include "base/shell.h"

#include "base/str.h"
#include "base/visible.h"

#include <string.h>

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                            "_./=,:@%+-";

/* Whether the character of n bytes at `c` equals its escaped form, so that a terminal shows it. */
static bool is_shown(const char *c, int n, const char *form)
{
    return (int)strlen(form) == n && !memcmp(c, form, (size_t)n);
}

/* Whether the word needs quotes; *ret_escapes: whether it also needs escapes. */
static bool needs_quotes(const char *word, bool *ret_escapes)
{
    char form[VISIBLE_BYTES];
    bool quotes = !*word || *word == '~';
    *ret_escapes = false;
    int n;
    for (int64_t left = (int64_t)strlen(word); left > 0; word += n, left -= n) {
        n = visible_step(word, left, false, form);
        *ret_escapes |= !is_shown(word, n, form);
        quotes |= n == 1 && !strchr(plain, *word);
    }
    return quotes || *ret_escapes;
}

const char *shell_word(const char *word, struct arena *a)
{
    bool escapes;
    char form[VISIBLE_BYTES];
    if (*word == '-') word = arena_printf(a, "./%s", word); /* or it would be an option */
    if (!needs_quotes(word, &escapes)) return word;
    struct str s = {0};
    int n;
    str_append(&s, escapes ? "$'" : "'");
    for (int64_t left = (int64_t)strlen(word); left > 0; word += n, left -= n) {
        n = visible_step(word, left, false, form);
        if (!is_shown(word, n, form))
            for (int i = 0; i < n; i++) str_printf(&s, "\\x%02x", (unsigned char)word[i]);
        else if (escapes && (*word == '\'' || *word == '\\'))
            str_printf(&s, "\\%c", *word);
        else
            str_append(&s, *word == '\'' ? "'\\''" : form);
    }
    str_append(&s, "'");
    const char *quoted = arena_strdup(a, str_text(&s));
    str_release(&s);
    return quoted;
}
