/* A recursive-descent parser. It appends a node after the node's operands, so evaluation is one
 * loop over the nodes. Only parentheses, calls and signs recurse, at most FORMULA_DEPTH deep. */
#include "lab/formula.h"

#include "base/str.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "lab/formula_kinds.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *text, *const *name;
    int names;
    int at;                /* the next byte to read */
    int token, token_ends; /* first byte of the last token, and the byte after it */
    int depth;
    struct formula_node *node;
    int nodes;
};

/* --- errors ----------------------------------------------------------------------------------- */

/* Appends bytes first ... last - 1 and makes unprintable bytes visible; returns the number of
 * columns. */
static int append_visible(struct str *s, const char *text, int first, int last)
{
    int columns = 0;
    while (first < last) {
        char form[VISIBLE_BYTES];
        first += visible_step(text + first, last - first, false, form);
        for (const char *c = form; *c; c++) columns += utf8_begins(*c);
        str_append(s, form);
    }
    return columns;
}

enum status formula_fail(const char *text, int at, const char *format, ...)
{
    /* A formula of more than WHOLE bytes is cut BEFORE bytes before and AFTER bytes after the
     * error. */
    enum { WHOLE = 80, BEFORE = 48, AFTER = 24 };
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    int bytes = (int)strlen(text);
    bool fits = bytes <= WHOLE;
    int first = !fits && at > BEFORE ? at - BEFORE : 0;
    int last = !fits && bytes - at > AFTER ? at + AFTER : bytes;
    while (last < bytes && !utf8_begins(text[last])) last++;
    struct str line = {0};
    str_append(&line, first ? "..." : "");
    int column = (first ? 3 : 0) + append_visible(&line, text, first, at);
    append_visible(&line, text, at, last);
    str_append(&line, last < bytes ? "..." : "");
    enum status st = fail(ST_USAGE, "%s\n    %s\n    %*s^", sentence, str_text(&line), column, "");
    str_release(&line);
    return st;
}

/* --- tokens ----------------------------------------------------------------------------------- */

static void skip_spaces(struct parser *p)
{
    while (p->text[p->at] && strchr(" \t\r\n", p->text[p->at])) p->at++;
}

static bool begins_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int word_bytes(const char *at)
{
    int n = 0;
    while (begins_word(at[n]) || (n && is_digit(at[n]))) n++;
    return n;
}

/* The length of a number such as "12", "1.5", ".5", "2." or "1e-6"; 0: not a number. */
static int number_bytes(const char *at)
{
    int n = 0, digits = 0;
    for (bool point = false; is_digit(at[n]) || (at[n] == '.' && !point); n++) {
        point |= at[n] == '.';
        digits += at[n] != '.';
    }
    if (!digits) return 0;
    if (at[n] == 'e' || at[n] == 'E') {
        int sign = at[n + 1] == '+' || at[n + 1] == '-';
        int m = n + 1 + sign;
        while (is_digit(at[m])) m++;
        if (m > n + 1 + sign) n = m;
    }
    return n;
}

/* The length of the token at `at`: a word, a number, an operator or one character. */
static int token_bytes(const char *at)
{
    int n = word_bytes(at), ignored;
    if (!n) n = number_bytes(at);
    if (!n && (*at == '<' || *at == '>') && at[1] == '=') n = 2;
    if (!n && *at && utf8_decode(at, (int64_t)strlen(at), &ignored) >= 0) n = ignored;
    return n ? n : *at != 0;
}

static void take(struct parser *p, int bytes)
{
    p->token = p->at;
    p->at = p->token_ends = p->at + bytes;
    skip_spaces(p);
}

static bool take_character(struct parser *p, char c)
{
    if (p->text[p->at] != c) return false;
    take(p, 1);
    return true;
}

/* The advice for an error at this token; NULL: none. */
static const char *advice_at(const char *at)
{
    static const struct {
        const char *begins, *advice;
    } all[] = {
        {"**", "a power is written pow(x, 2)"},
        {"^", "a power is written pow(x, 2)"},
        {"=", "the comparisons are < <= > and >="},
        {"!", "the comparisons are < <= > and >="},
        {"?", "a choice is written where(x > 0, x, 0)"},
        {"&", "two conditions are joined by *, as in (x > 0) * (x < 1)"},
        {"|", "one of two conditions is max(x < 0, x > 1)"},
        {"%", "a percentage is a number such as 0.01"},
        {"[", "a formula has only round brackets"},
        {"{", "a formula has only round brackets"},
    };
    for (int i = 0; i < COUNT_OF(all); i++)
        if (!strncmp(at, all[i].begins, strlen(all[i].begins))) return all[i].advice;
    return NULL;
}

/* Fails because the next token cannot follow the tokens before it. */
static enum status unexpected(const struct parser *p)
{
    const char *at = p->text + p->at, *advice = advice_at(at);
    int bytes = token_bytes(at);
    if (advice)
        return formula_fail(p->text, p->at, "\"%.*s\" cannot be used: %s", bytes, at, advice);
    if (*at == ')') return formula_fail(p->text, p->at, "this \")\" has no \"(\" before it");
    if (*at == ',')
        return formula_fail(p->text, p->at,
                            "a comma can only separate the arguments of a function");
    if (*at == '(' || begins_word(*at) || number_bytes(at))
        return formula_fail(p->text, p->at, "an operator such as * is missing before \"%.*s\"",
                            bytes, at);
    return formula_fail(p->text, p->at, "\"%.*s\" cannot be used in a formula", bytes, at);
}

static enum status no_operand(const struct parser *p)
{
    const char *at = p->text + p->at, *token = p->text + p->token;
    bool known = !*at || strchr("+-*/<>(),", *at);
    if (!known || (p->token_ends == p->at && advice_at(token))) {
        struct parser from = *p;
        if (known) from.at = p->token;
        return unexpected(&from);
    }
    if (p->token_ends)
        return formula_fail(p->text, p->at, "an operand is missing after \"%.*s\"",
                            p->token_ends - p->token, token);
    if (!*at) return formula_fail(p->text, p->at, "the formula is empty");
    return formula_fail(p->text, p->at, "an operand is missing before \"%.*s\"", token_bytes(at),
                        at);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static int append(struct parser *p, struct formula_node n)
{
    p->node[p->nodes] = n;
    return p->nodes++;
}

/* Appends a node for the operator or function at byte `at`. */
static int apply(struct parser *p, enum formula_kind kind, int at, int args, const int *arg)
{
    struct formula_node n = {.kind = kind, .at = at, .args = args};
    n.bytes = (int)strlen(formula_kind_name(kind));
    memcpy(n.arg, arg, (size_t)args * sizeof *arg);
    return append(p, n);
}

static enum status read_number(struct parser *p, int *ret)
{
    char digits[FORMULA_BYTES + 1];
    int bytes = number_bytes(p->text + p->at);
    struct formula_node n = {.kind = FORMULA_NUMBER, .at = p->at, .bytes = bytes};
    memcpy(digits, p->text + p->at, (size_t)bytes);
    digits[bytes] = 0;
    n.number = strtod(digits, NULL);
    if (!isfinite(n.number))
        return formula_fail(p->text, p->at, "the number %.40s is too large", digits);
    errno = 0;
    n.integer = strtoll(digits, NULL, 10);
    n.is_integer = !errno && strspn(digits, "0123456789") == (size_t)bytes;
    take(p, bytes);
    *ret = append(p, n);
    return ST_OK;
}

static enum status no_name(const struct parser *p, const char *word, int bytes)
{
    struct str list = {0};
    for (int i = 0; i < p->names; i++)
        str_printf(&list, "%s%s", !i ? "" : i + 1 < p->names ? ", " : " and ", p->name[i]);
    enum status st = formula_fail(p->text, p->at, "\"%.*s\" is no known name; the names are %.300s",
                                  bytes < 40 ? bytes : 40, word, str_text(&list));
    str_release(&list);
    return st;
}

static enum status no_function(const struct parser *p, const char *word, int bytes)
{
    struct str list = {0};
    for (int k = FORMULA_FUNCTIONS; k < FORMULA_KINDS; k++)
        str_printf(&list, "%s%s",
                   k == FORMULA_FUNCTIONS   ? ""
                   : k + 1 == FORMULA_KINDS ? " and "
                                            : ", ",
                   formula_kind_name((enum formula_kind)k));
    enum status st = formula_fail(p->text, p->at, "\"%.*s\" is no function; the functions are %s",
                                  bytes < 40 ? bytes : 40, word, str_text(&list));
    str_release(&list);
    return st;
}

static enum status read_comparison(struct parser *p, int *ret);

static enum status deeper(struct parser *p)
{
    if (++p->depth <= FORMULA_DEPTH) return ST_OK;
    return formula_fail(p->text, p->at,
                        "parentheses, functions and signs may nest %d deep, and this is one more",
                        FORMULA_DEPTH);
}

/* Reads the ")" that closes the "(" at byte `opened`. */
static enum status close_group(struct parser *p, int opened)
{
    if (take_character(p, ')')) return ST_OK;
    if (!p->text[p->at]) return formula_fail(p->text, opened, "this \"(\" is never closed");
    return unexpected(p);
}

static enum status read_call(struct parser *p, enum formula_kind kind, int *ret)
{
    const char *name = formula_kind_name(kind);
    int at = p->at, arg[FORMULA_ARGS], n = 0, most = formula_kinds[kind].args;
    take(p, (int)strlen(name));
    int opened = p->at;
    if (!take_character(p, '('))
        return formula_fail(p->text, at, "%s is a function and needs its argument%s in parentheses",
                            name, most > 1 ? "s" : "");
    TRY(deeper(p));
    bool more = p->text[p->at] != ')';
    while (more) {
        if (n == most)
            return formula_fail(p->text, p->at, "%s takes %d argument%s, and this is one more",
                                name, most, most > 1 ? "s" : "");
        TRY(read_comparison(p, &arg[n++]));
        more = take_character(p, ',');
    }
    if (n < most && p->text[p->at] == ')')
        return formula_fail(p->text, p->at, "%s takes %d argument%s; found %d", name, most,
                            most > 1 ? "s" : "", n);
    TRY(close_group(p, opened));
    p->depth--;
    *ret = apply(p, kind, at, n, arg);
    return ST_OK;
}

static enum status read_word(struct parser *p, int *ret)
{
    const char *word = p->text + p->at;
    int bytes = word_bytes(word), after = bytes;
    for (int i = 0; i < p->names; i++) {
        if (strncmp(p->name[i], word, (size_t)bytes) || p->name[i][bytes]) continue;
        *ret = append(
            p, (struct formula_node){.kind = FORMULA_NAME, .at = p->at, .bytes = bytes, .name = i});
        take(p, bytes);
        return ST_OK;
    }
    for (int k = FORMULA_FUNCTIONS; k < FORMULA_KINDS; k++) {
        const char *name = formula_kind_name((enum formula_kind)k);
        if (!strncmp(name, word, (size_t)bytes) && !name[bytes])
            return read_call(p, (enum formula_kind)k, ret);
    }
    while (word[after] == ' ') after++;
    return word[after] == '(' ? no_function(p, word, bytes) : no_name(p, word, bytes);
}

static enum status read_operand(struct parser *p, int *ret)
{
    const char *at = p->text + p->at;
    int start = p->at;
    if (number_bytes(at)) return read_number(p, ret);
    if (begins_word(*at)) return read_word(p, ret);
    if (*at != '-' && *at != '(') return no_operand(p);
    TRY(deeper(p));
    take(p, 1);
    if (*at == '-') {
        TRY(read_operand(p, ret));
        *ret = apply(p, FORMULA_NEGATE, start, 1, ret);
    } else {
        TRY(read_comparison(p, ret));
        TRY(close_group(p, start));
    }
    p->depth--;
    return ST_OK;
}

/* --- operators -------------------------------------------------------------------------------- */

static enum status read_product(struct parser *p, int *ret)
{
    TRY(read_operand(p, ret));
    for (char c; (c = p->text[p->at]) == '*' || c == '/';) {
        int at = p->at, arg[2] = {*ret};
        take(p, 1);
        TRY(read_operand(p, &arg[1]));
        *ret = apply(p, c == '*' ? FORMULA_MUL : FORMULA_DIV, at, 2, arg);
    }
    return ST_OK;
}

static enum status read_sum(struct parser *p, int *ret)
{
    TRY(read_product(p, ret));
    for (char c; (c = p->text[p->at]) == '+' || c == '-';) {
        int at = p->at, arg[2] = {*ret};
        take(p, 1);
        TRY(read_product(p, &arg[1]));
        *ret = apply(p, c == '+' ? FORMULA_ADD : FORMULA_SUB, at, 2, arg);
    }
    return ST_OK;
}

static enum status read_comparison(struct parser *p, int *ret)
{
    TRY(read_sum(p, ret));
    char c = p->text[p->at];
    if (c != '<' && c != '>') return ST_OK;
    int at = p->at, arg[2] = {*ret};
    bool equal = p->text[at + 1] == '=';
    take(p, 1 + equal);
    TRY(read_sum(p, &arg[1]));
    if (p->text[p->at] == '<' || p->text[p->at] == '>')
        return formula_fail(p->text, p->at,
                            "only two values can be compared; a range is written "
                            "(0 < x) * (x < 1)");
    *ret = apply(p,
                 c == '<' ? equal ? FORMULA_LESS_EQUAL : FORMULA_LESS
                 : equal  ? FORMULA_GREATER_EQUAL
                          : FORMULA_GREATER,
                 at, 2, arg);
    return ST_OK;
}

enum status formula_parse(struct formula *ret, const char *text, const char *const *names, int n,
                          struct arena *a)
{
    int64_t bytes = (int64_t)strlen(text);
    if (bytes > FORMULA_BYTES)
        return fail(ST_USAGE, "a formula has at most %d bytes; this one has %lld", FORMULA_BYTES,
                    (long long)bytes);
    int result;
    struct parser p = {.text = arena_strdup(a, text), .name = names, .names = n};
    p.node = ARENA_NEW(a, struct formula_node, bytes + 1);
    skip_spaces(&p);
    TRY(read_comparison(&p, &result));
    if (p.text[p.at]) return unexpected(&p);
    *ret = (struct formula){.text = p.text, .node = p.node, .nodes = p.nodes};
    return ST_OK;
}
