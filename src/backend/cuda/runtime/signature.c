#include "backend/cuda/runtime/signature.h"

#include "backend/cuda/runtime/jit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, WORD = 48 };

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* True if the whole word `word` is at `at`. */
static bool is_word(const char *source, const char *at, const char *word)
{
    size_t n = strlen(word);
    return !strncmp(at, word, n) && !in_word(at[n]) && (at == source || !in_word(at[-1]));
}

static const char *next_word(const char *source, const char *from, const char *end,
                             const char *word)
{
    for (const char *at = from; (at = strstr(at, word)) && at < end; at++)
        if (is_word(source, at, word)) return at;
    return NULL;
}

/* A backslash counts as blank because lines of a macro end in one. */
static bool is_blank(char c)
{
    return isspace((unsigned char)c) || c == '\\';
}

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at)) at++;
    return at;
}

/* The last character before `at` that is not blank. */
static const char *before(const char *source, const char *at)
{
    while (at > source && is_blank(at[-1])) at--;
    return at > source ? at - 1 : source;
}

/* True if `at` is preceded by KERNEL(...) or KERNEL_MIN(...). */
static bool is_kernel(const char *source, const char *at)
{
    int depth = 0;
    at = before(source, at);
    if (*at != ')') return false;
    do {
        depth += *at == ')';
        depth -= *at == '(';
    } while (depth && at-- > source);
    while (at > source && in_word(at[-1])) at--;
    return is_word(source, at, "KERNEL") || is_word(source, at, "KERNEL_MIN");
}

/* Returns the text after "(" of kernel `entry`, or NULL if the kernel is not declared between
 * `from` and `end`. */
static const char *declared(const char *source, const char *from, const char *end,
                            const char *entry)
{
    for (const char *at = from; (at = next_word(source, at, end, entry)); at++) {
        const char *open = skip_blanks(at + strlen(entry));
        if (*open == '(' && is_kernel(source, at)) return open + 1;
    }
    return NULL;
}

/* Like `declared`, but for a kernel that a macro declares; the macro's first parameter must be the
 * kernel's name. */
static const char *declared_by(const char *source, const char *macro)
{
    char define[WORD + 16], first[WORD];
    snprintf(define, sizeof define, "#define %s(", macro);
    const char *at = strstr(source, define), *end;
    if (!at) return NULL;
    at += strlen(define);
    size_t n = strcspn(at, " ,)");
    if (n >= sizeof first) return NULL;
    snprintf(first, sizeof first, "%.*s", (int)n, at);
    for (end = at; *end && (*end != '\n' || end[-1] == '\\');) end++;
    return declared(source, at + n, end, first);
}

/* The parameters of an entry, declared directly or by a macro. */
static const char *find(const char *source, const char *entry)
{
    const char *end = source + strlen(source), *found = declared(source, source, end, entry);
    for (const char *at = source; !found && (at = next_word(source, at, end, entry)); at++) {
        const char *open = before(source, at), *name = open;
        char macro[WORD];
        while (name > source && in_word(name[-1])) name--;
        if (*open != '(' || open - name >= WORD) continue;
        snprintf(macro, sizeof macro, "%.*s", (int)(open - name), name);
        found = declared_by(source, macro);
    }
    return found;
}

static const char *find_with_includes(const char *source, const char *entry)
{
    static const char include[] = "#include \"";
    const char *found = find(source, entry);
    for (const char *at = source; !found && (at = strstr(at, include)); at++) {
        char name[WORD];
        int64_t bytes;
        const char *first = at + strlen(include);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(first, "\""), first);
        found = find_with_includes(cuda_text(name, &bytes), entry);
    }
    return found;
}

struct reader {
    const struct cuda_launch *k;
    const char *source, *at; /* the launch's source; the position in it or in an included file */
    bool inside, hidden;     /* inside an #if; inside its inactive branch */
};

static enum status constant(const struct reader *r, const char *name, long *ret)
{
    char option[WORD + 16], define[WORD + 16];
    snprintf(option, sizeof option, "-D%s=", name);
    snprintf(define, sizeof define, "#define %s ", name);
    const char *at = strstr(r->k->options, option);
    const char *number = at ? at + strlen(option) : strstr(r->source, define);
    if (number && !at) number += strlen(define);
    char *end = NULL;
    if (number) *ret = strtol(number, &end, 10);
    if (number && end != number) return ST_OK;
    return fail(ST_FORMAT, "%s: the parameters of %s depend on %s, which is not a number",
                r->k->text, r->k->entry, name);
}

/* Reads a line that begins with '#'. If it begins an inactive branch, skips this branch up to its
 * next line with '#'. */
static enum status read_directive(struct reader *r)
{
    char line[WORD], name[WORD], rest;
    long number = 0;
    size_t n = strcspn(r->at, "\n");
    bool negated, fits = n < sizeof line;
    snprintf(line, sizeof line, "%.*s", (int)n, r->at);
    r->at += n;
    negated = sscanf(line, "#if !%47[A-Za-z0-9_] %c", name, &rest) == 1;
    if (fits && !r->inside &&
        (negated || sscanf(line, "#if %47[A-Za-z0-9_] %c", name, &rest) == 1)) {
        TRY(constant(r, name, &number));
        r->inside = true;
        r->hidden = negated == (number != 0);
    } else if (r->inside && !strcmp(line, "#else")) {
        r->hidden = !r->hidden;
    } else if (r->inside && !strcmp(line, "#endif")) {
        r->inside = r->hidden = false;
    } else {
        return fail(ST_FORMAT, "%s: \"%s\" is not understood in the parameters of %s", r->k->text,
                    line, r->k->entry);
    }
    while (r->hidden && *r->at && (*r->at != '#' || r->at[-1] != '\n')) r->at++;
    return ST_OK;
}

/* Reads the next word or punctuation character; an empty word at the end of the source. */
static enum status read_word(struct reader *r, char ret[WORD])
{
    for (;;) {
        r->at = skip_blanks(r->at);
        const char *comment = !strncmp(r->at, "/*", 2) ? strstr(r->at, "*/") : NULL;
        if (comment)
            r->at = comment + 2;
        else if (!strncmp(r->at, "//", 2))
            r->at += strcspn(r->at, "\n");
        else if (*r->at == '#')
            TRY(read_directive(r));
        else
            break;
    }
    int n = 0;
    while (n < WORD - 1 && in_word(r->at[n])) n++;
    if (!n && *r->at) n = 1;
    snprintf(ret, WORD, "%.*s", n, r->at);
    r->at += n;
    return ST_OK;
}

/* Parses "const float *x" and the like; the last word is the name. */
static bool parse_parameter(char word[WORDS][WORD], int n, struct parameter *ret)
{
    static const struct {
        const char *word;
        enum parameter_kind kind;
    } numbers[] = {
        {"int", PARAMETER_I32},
        {"u32", PARAMETER_U32},
        {"i64", PARAMETER_I64},
        {"float", PARAMETER_F32},
    };
    const char *name = word[n - 1];
    if (n < 2 || !(isalpha((unsigned char)*name) || *name == '_') || strlen(name) >= ARG_NAME)
        return false;
    snprintf(ret->name, sizeof ret->name, "%s", name);
    if (n == 2)
        for (int i = 0; i < COUNT_OF(numbers); i++) {
            if (strcmp(word[0], numbers[i].word)) continue;
            ret->kind = numbers[i].kind;
            return true;
        }
    bool is_const = !strcmp(word[0], "const");
    if (n == 4 && is_const && !strcmp(word[1], "__grid_constant__") &&
        !strcmp(word[2], "tensor_map")) {
        ret->kind = PARAMETER_TENSOR_MAP;
        return true;
    }
    ret->kind = is_const ? PARAMETER_CONST_POINTER : PARAMETER_POINTER;
    int words = n - 1 - is_const;
    if (words == 3 && !strcmp(word[n - 2], "__restrict__")) words--;
    return words == 2 && in_word(*word[is_const]) && !strcmp(word[is_const + 1], "*");
}

enum status signature_read(const struct cuda_launch *k, const char *source, struct signature *ret)
{
    struct reader r = {.k = k, .source = source};
    char word[WORDS][WORD];
    ret->parameters = 0;
    r.at = find_with_includes(source, k->entry);
    if (!r.at) return fail(ST_FORMAT, "%s declares no kernel %s", k->text, k->entry);
    for (bool last = false; !last;) {
        int n = 0;
        for (;; n++) {
            if (n == WORDS)
                return fail(ST_FORMAT, "%s: a parameter of %s: too many words", k->text, k->entry);
            TRY(read_word(&r, word[n]));
            last = !strcmp(word[n], ")");
            if (last || !strcmp(word[n], ",")) break;
            if (!*word[n]) return fail(ST_FORMAT, "%s: %s has no end", k->text, k->entry);
        }
        if (last && !n && !ret->parameters) return ST_OK;
        if (ret->parameters == LAUNCH_ARGS || !n ||
            !parse_parameter(word, n, &ret->parameter[ret->parameters]))
            return fail(ST_FORMAT, "%s: parameter %d of %s, %s, is not understood", k->text,
                        ret->parameters + 1, k->entry, n ? word[n - 1] : "an empty one");
        ret->parameters++;
    }
    return ST_OK;
}

static const char *const arg_words[] = {
    [ARG_IN] = "an input",         [ARG_OUT] = "an output", [ARG_SCRATCH] = "scratch memory",
    [ARG_NULL] = "a null pointer", [ARG_I32] = "an int",    [ARG_U32] = "a u32",
    [ARG_I64] = "an i64",          [ARG_F32] = "a float",   [ARG_TENSOR_MAP] = "a tensor map",
};
static const char *const parameter_words[] = {
    [PARAMETER_POINTER] = "a pointer",
    [PARAMETER_CONST_POINTER] = "a pointer to const",
    [PARAMETER_I32] = "an int",
    [PARAMETER_U32] = "a u32",
    [PARAMETER_I64] = "an i64",
    [PARAMETER_F32] = "a float",
    [PARAMETER_TENSOR_MAP] = "a tensor map",
};

static bool accepts(enum parameter_kind p, enum cuda_arg_kind a)
{
    static const enum parameter_kind numbers[] = {
        [ARG_I32] = PARAMETER_I32,
        [ARG_U32] = PARAMETER_U32,
        [ARG_I64] = PARAMETER_I64,
        [ARG_F32] = PARAMETER_F32,
        [ARG_TENSOR_MAP] = PARAMETER_TENSOR_MAP,
    };
    if (a == ARG_IN) return p == PARAMETER_CONST_POINTER;
    if (a == ARG_OUT || a == ARG_SCRATCH || a == ARG_NULL)
        return p == PARAMETER_CONST_POINTER || p == PARAMETER_POINTER;
    return p == numbers[a];
}

static int find_argument(const struct cuda_launch *k, const char *name, int from)
{
    for (int i = from; i < k->args; i++)
        if (!strcmp(k->arg[i].name, name)) return i;
    return k->args;
}

enum status signature_match(const struct signature *s, struct cuda_launch *k)
{
    struct cuda_arg ordered[LAUNCH_ARGS];
    bool used[LAUNCH_ARGS] = {0};
    for (int i = 0; i < s->parameters; i++) {
        const struct parameter *p = &s->parameter[i];
        int at = find_argument(k, p->name, 0);
        if (at == k->args)
            return fail(ST_FORMAT, "%s: parameter %s of %s has no argument", k->text, p->name,
                        k->entry);
        if (find_argument(k, p->name, at + 1) < k->args)
            return fail(ST_FORMAT, "%s: parameter %s of %s has two arguments", k->text, p->name,
                        k->entry);
        if (!accepts(p->kind, k->arg[at].kind))
            return fail(ST_FORMAT, "%s: parameter %s of %s is %s, its argument %s", k->text,
                        p->name, k->entry, parameter_words[p->kind], arg_words[k->arg[at].kind]);
        used[at] = true;
        ordered[i] = k->arg[at];
    }
    for (int i = 0; i < k->args; i++)
        if (!used[i])
            return fail(ST_FORMAT, "%s: %s has no parameter %s", k->text, k->entry, k->arg[i].name);
    memcpy(k->arg, ordered, (size_t)s->parameters * sizeof *ordered);
    return ST_OK;
}
