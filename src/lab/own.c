#include "lab/own.h"

#include "base/file.h"
#include "base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = LAB_SIZES + 1, TEXT_MOST = 1 << 20, THREADS_MOST = 1024 };
static const int64_t SCRATCH_MOST = INT64_C(1) << 40;

/* --- lines with @ ----------------------------------------------------------------------------- */

/* A word that a file may have after @. */
struct keyword {
    const char *name;
    struct lab_own_line *to; /* where the formulas after the word go; NULL: it has no formulas */
    int most;                /* the most formulas that the word takes */
    bool gpu;                /* allowed only in a file for a GPU */
};

static int names_of(const struct lab_own *o, bool gpu, const char *ret[NAMES])
{
    int n = 0;
    for (; n < LAB_SIZES && o->ladder->sizes[n]; n++) ret[n] = o->ladder->sizes[n];
    if (gpu) ret[n++] = "processors";
    return n;
}

static void values_of(const struct lab_own *o, const struct lab_problem *p, int64_t ret[NAMES])
{
    int n = 0;
    for (; n < LAB_SIZES && o->ladder->sizes[n]; n++) ret[n] = p->n[n];
    ret[n] = p->processors;
}

/* Parses the formulas of a line, which are separated by commas outside of parentheses. */
static enum status read_formulas(struct lab_own *o, const struct keyword *k, const char *text,
                                 int line, bool gpu, struct arena *a)
{
    const char *name[NAMES];
    int names = names_of(o, gpu, name);
    k->to->line = line;
    for (k->to->n = 0; k->to->n < k->most; text++) {
        int bytes = 0, depth = 0;
        for (; text[bytes] && (depth > 0 || text[bytes] != ','); bytes++)
            depth += (text[bytes] == '(') - (text[bytes] == ')');
        char *one = arena_printf(a, "%.*s", bytes, text);
        enum status st = formula_parse(&k->to->of[k->to->n++], one, name, names, a);
        if (st != ST_OK) return fail_in(st, "%s:%d: @%s", o->path, line, k->name);
        text += bytes;
        if (!*text) return ST_OK;
    }
    return fail(ST_USAGE, "%s:%d: @%s takes at most %d formula%s", o->path, line, k->name, k->most,
                k->most == 1 ? "" : "s");
}

/* Reads a line of the file; lines that do not begin with "// @" are ignored. */
static enum status read_line(struct lab_own *o, const struct keyword *all, const char *text,
                             int line, bool gpu, struct arena *a)
{
    const struct keyword *k = all;
    while (*text == ' ' || *text == '\t') text++;
    if (text[0] != '/' || text[1] != '/') return ST_OK;
    for (text += 2; *text == ' ' || *text == '\t';) text++;
    if (*text++ != '@') return ST_OK;
    int bytes = 0;
    while (isalnum((unsigned char)text[bytes])) bytes++;
    while (k->name && ((int)strlen(k->name) != bytes || strncmp(k->name, text, (size_t)bytes))) k++;
    if (!k->name)
        return fail(ST_USAGE,
                    "%s:%d: @%.*s is unknown; there are @blocks, @threads, @shared, @scratch and "
                    "@zeroed",
                    o->path, line, bytes, text);
    if (k->gpu && !gpu)
        return fail(ST_USAGE, "%s:%d: @%s is for kernels of a GPU; leave the line out", o->path,
                    line, k->name);
    if (k->to && k->to->line)
        return fail(ST_USAGE, "%s:%d: @%s is already in line %d; leave one of them out", o->path,
                    line, k->name, k->to->line);
    if (k->to) return read_formulas(o, k, text + bytes, line, gpu, a);
    if (text[bytes + (int)strspn(text + bytes, " \t")])
        return fail(ST_USAGE, "%s:%d: @%s has no value; leave out what follows it", o->path, line,
                    k->name);
    o->rung.zeroed = true;
    return ST_OK;
}

static enum status read_lines(struct lab_own *o, bool gpu, struct arena *a)
{
    const struct keyword all[] = {
        {"blocks", &o->blocks, 3, true}, {"threads", &o->threads, 3, true},
        {"shared", &o->shared, 1, true}, {"scratch", &o->scratch, 1, false},
        {"zeroed", NULL, 0, false},      {0},
    };
    int line = 1;
    for (const char *at = o->text; at; line++) {
        size_t bytes = strcspn(at, "\r\n");
        TRY(read_line(o, all, arena_printf(a, "%.*s", (int)bytes, at), line, gpu, a));
        at = strchr(at, '\n');
        if (at) at++;
    }
    const char *missing = !gpu               ? NULL
                          : !o->blocks.line  ? "blocks"
                          : !o->threads.line ? "threads"
                                             : NULL;
    if (missing)
        return fail(ST_USAGE,
                    "%s has no line // @%s, which says how it is launched; strobe lab %s "
                    "--template prints a file that has one",
                    o->path, missing, o->ladder->name);
    return ST_OK;
}

enum status lab_own_read(struct lab_own *o, const struct lab_ladder *l, bool gpu, const char *path,
                         struct arena *a)
{
    char *text;
    const char *name = strrchr(path, '/');
    *o = (struct lab_own){.ladder = l, .path = path};
    TRY(file_read_most(path, TEXT_MOST, a, &text, &o->bytes));
    if ((int64_t)strlen(text) != o->bytes)
        return fail(ST_FORMAT, "%s is not a text: it has a zero byte", path);
    o->text = text;
    o->rung = (struct lab_rung){.name = name ? name + 1 : path,
                                .own = o,
                                .idea = "your kernel",
                                .types = LAB_F32 | LAB_TF32 | LAB_BF16};
    if (!strstr(text, l->name))
        return fail(ST_USAGE,
                    "%s has no function %s; strobe lab %s --template --device=%s prints a file "
                    "that has one",
                    path, l->name, l->name, gpu ? "cuda" : "cpu");
    return read_lines(o, gpu, a);
}

/* --- values of the formulas ------------------------------------------------------------------- */

static enum status value_of(const struct lab_own *o, const struct lab_own_line *l, int i,
                            const struct lab_problem *p, const char *name, int64_t least,
                            int64_t most, int64_t *ret)
{
    int64_t values[NAMES];
    values_of(o, p, values);
    enum status st = formula_integer(&l->of[i], values, ret);
    if (st != ST_OK) return fail_in(st, "line %d: @%s", l->line, name);
    if (*ret >= least && *ret <= most) return ST_OK;
    return fail(ST_USAGE, "line %d: @%s is %lld for this size, and must be %lld to %lld%s", l->line,
                name, (long long)*ret, (long long)least, (long long)most,
                *ret == 0 ? "; / rounds down: (n + 255) / 256 rounds up" : "");
}

enum status lab_own_shape(const struct lab_own *o, const struct lab_problem *p,
                          struct kernel_shape *ret)
{
    enum { GRID_MOST = INT32_MAX, SHARED_MOST = 1 << 20 };
    int64_t x, threads = 1;
    if (o->scratch.n) TRY(value_of(o, &o->scratch, 0, p, "scratch", 0, SCRATCH_MOST, &x));
    *ret = (struct kernel_shape){{1, 1, 1}, {1, 1, 1}, 0};
    for (int i = 0; i < o->blocks.n; i++) {
        TRY(value_of(o, &o->blocks, i, p, "blocks", 1, GRID_MOST, &x));
        ret->grid[i] = (unsigned)x;
    }
    for (int i = 0; i < o->threads.n; i++) {
        TRY(value_of(o, &o->threads, i, p, "threads", 1, THREADS_MOST, &x));
        ret->block[i] = (unsigned)x;
        threads *= x;
    }
    if (threads > THREADS_MOST)
        return fail(ST_USAGE, "line %d: @threads makes blocks of %lld threads, and a GPU takes %d",
                    o->threads.line, (long long)threads, THREADS_MOST);
    if (!o->shared.n) return ST_OK;
    TRY(value_of(o, &o->shared, 0, p, "shared", 0, SHARED_MOST, &x));
    ret->shared_bytes = x;
    return ST_OK;
}

int64_t lab_own_scratch(const struct lab_own *o, const struct lab_problem *p)
{
    int64_t ret = 0;
    if (!o->scratch.n) return 0;
    return value_of(o, &o->scratch, 0, p, "scratch", 0, SCRATCH_MOST, &ret) == ST_OK ? ret : 0;
}

/* --- the file to begin from ------------------------------------------------------------------- */

static const char *const of_gpu[] = {
    "Tensors are stored by rows and do not overlap. ELEMENT is float, or bf16 with",
    "--dtype=bfloat16; to_float(x) and to<ELEMENT>(y) convert. The lines with @ below say how the",
    "kernel is launched, in formulas of the sizes and of `processors`, the multiprocessors:",
    "    blocks   of the grid, up to three numbers with commas between them",
    "    threads  of a block, likewise",
    "    shared   bytes of dynamic shared memory of a block (default 0)",
    "    scratch  bytes of a buffer, whose address is then the last argument",
    "    zeroed   without a formula: the output is set to zero before each call",
    NULL,
};
static const char *const of_cpu[] = {
    "Tensors are stored by rows and do not overlap. cc compiles this file with -O3, -march=native",
    "and -fopenmp. Two lines may be added, each with // and @ before it:",
    "    scratch  4 * n, say: bytes of a buffer, whose address is then the last argument",
    "    zeroed   the output is set to zero before each call",
    NULL,
};

void lab_own_template(const struct lab_ladder *l, bool gpu, struct str *ret)
{
    const char *name = gpu ? "mine.cu" : "mine.c";
    str_printf(
        ret,
        "// %s - a kernel for strobe lab %s\n//\n"
        "//     strobe lab %s --kernel=%s            is it right, and how fast?\n"
        "//     strobe lab %s --kernel=%s --watch    runs again whenever the file changes\n//\n",
        name, l->name, l->name, name, l->name, name);
    for (const char *const *line = gpu ? of_gpu : of_cpu; *line; line++)
        str_printf(ret, "// %s\n", *line);
    str_printf(ret, "%s\n%s", gpu ? "#include \"device.cuh\"\n" : "#include <stdint.h>\n",
               lab_template(l, gpu));
}
