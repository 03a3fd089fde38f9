#include "backend/cuda/runtime/kernel_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* A name under construction. The name is cut if it becomes longer than `text`. */
struct builder {
    char text[4 * ACTIVITY_NAME];
    size_t used;
};

static void add_text(struct builder *w, const char *text, size_t n)
{
    size_t left = sizeof w->text - 1 - w->used;
    if (n > left) n = left;
    memcpy(w->text + w->used, text, n);
    w->used += n;
    w->text[w->used] = '\0';
}

/* Reads a length and an identifier, such as "8cublasLt", and moves *at past the identifier. Returns
 * the length, or 0 if *at points to something else. */
static size_t source_name(const char **at, const char **ret)
{
    size_t n = 0;
    const char *p = *at;
    while (isdigit((unsigned char)*p) && n < 1000) n = 10 * n + (size_t)(*p++ - '0');
    if (!n || strnlen(p, n) < n) return 0;
    *ret = p;
    *at = p + n;
    return n;
}

/* Appends the namespaces and the name, separated by "::", and moves *at past the name. */
static void add_scopes(struct builder *w, const char **at)
{
    static const char nameless[] = "_GLOBAL__N_";
    const char *word;
    if (!strncmp(*at, "St", 2)) {
        add_text(w, "std", 3);
        *at += 2;
    }
    for (size_t n; (n = source_name(at, &word));) {
        if (!strncmp(word, nameless, sizeof nameless - 1)) continue;
        if (w->used) add_text(w, "::", 2);
        add_text(w, word, n);
    }
}

/* Parses only the part of the Itanium ABI's mangling that a name needs: _Z, N and qualifiers before
 * namespaces, I before template parameters. */
static void add_mangled(struct builder *w, const char *name)
{
    const char *at = name + 2, *word;
    if (*at == 'N') at++;
    while (*at && strchr("KVrL", *at)) at++;
    add_scopes(w, &at);
    if (*at++ != 'I') return;
    size_t n = source_name(&at, &word);
    if (!n) return;
    add_text(w, "<", 1);
    add_text(w, word, n);
    add_text(w, ">", 1);
}

void kernel_name_short(const char *name, char ret[ACTIVITY_NAME])
{
    struct builder w = {.used = 0};
    if (!strncmp(name, "_Z", 2)) add_mangled(&w, name);
    const char *text = w.used ? w.text : name;
    size_t n = strlen(text);
    bool cut = n >= ACTIVITY_NAME;
    snprintf(ret, ACTIVITY_NAME, "%.*s%s", (int)(cut ? ACTIVITY_NAME - 3 : n), text,
             cut ? ".." : "");
}
