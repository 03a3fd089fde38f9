#include "lab/ladders.h"

#include "base/arena.h"
#include "base/str.h"
#include "lab/own.h"

#include <stdio.h>
#include <string.h>

static const struct lab_ladder *const ladders[] = {&lab_copy,       &lab_transpose, &lab_elu,
                                                   &lab_reduce,     &lab_softmax,   &lab_layernorm,
                                                   &lab_divergence, &lab_matmul,    &lab_attention};

const struct lab_ladder *lab_ladder_at(int i)
{
    return i >= 0 && i < COUNT_OF(ladders) ? ladders[i] : NULL;
}

const struct lab_rung *lab_rungs(const struct lab_ladder *l, const struct device *d, int *ret_n)
{
    const struct lab_rung *r = d->backend->texts ? l->of_gpu : l->of_cpu;
    *ret_n = 0;
    while (r[*ret_n].name) ++*ret_n;
    BUG_IF(*ret_n > LAB_RUNGS, "%s has more than %d rungs", l->name, LAB_RUNGS);
    return r;
}

int lab_forms(const struct lab_ladder *l)
{
    int n = 0;
    while (n < LAB_FORMS && l->forms[n]) n++;
    return n ? n : 1;
}

bool lab_has_type(const struct lab_rung *r, enum lab_type type)
{
    return ((r->types ? r->types : LAB_F32 | LAB_BF16) & type) != 0;
}

enum status lab_shape(const struct lab_rung *r, const struct lab_problem *p,
                      struct kernel_shape *ret)
{
    if (r->own) return lab_own_shape(r->own, p, ret);
    r->shape(p, ret);
    return ST_OK;
}

int64_t lab_scratch(const struct lab_rung *r, const struct lab_problem *p, int threads)
{
    if (r->own) return lab_own_scratch(r->own, p);
    return r->scratch ? r->scratch(p, threads) : 0;
}

const char *lab_options(const struct lab_rung *r, enum lab_type type, int form, struct arena *a)
{
    const char *more = r->options ? r->options : "";
    return arena_printf(a, "-DELEMENT=%s%s -DFORM=%d%s%s", type == LAB_BF16 ? "bf16" : "float",
                        type == LAB_TF32 ? " -DTF32=1" : "", form, *more ? " " : "", more);
}

const char *lab_size_text(const struct lab_ladder *l, const int64_t n[LAB_SIZES], struct arena *a)
{
    const char *s = "";
    for (int i = 0; i < LAB_SIZES && l->sizes[i]; i++)
        s = arena_printf(a, "%s%s%s %lld", s, i ? ", " : "", l->sizes[i], (long long)n[i]);
    return s;
}

const char *lab_type_name(enum lab_type type)
{
    return type == LAB_BF16 ? "bfloat16" : type == LAB_TF32 ? "tf32" : "float32";
}

lab_fn lab_function(const struct lab_rung *r)
{
    if (r->own) return r->own->run;
    for (int isa = ISA_AUTO + 1; isa < ISA_COUNT; isa++)
        if (r->run[isa] && isa_allows((enum isa)isa)) return r->run[isa];
    BUG_IF(true, "no version of %s for this processor", r->file);
}

/* The sources of all rungs, which the assembler embeds; .incbin paths are relative to the root. The
 * Makefile defines RUNGS(F): F(ladder, device, name, ending) for each file. */
#define EMBED(ladder, device, file, ending)                                        \
    __asm__(".section .rodata\nrung_" #ladder "_" #device "_" #file "_first:\n"    \
            ".incbin \"src/lab/" #ladder "/" #device "/" #file "." #ending "\"\n"  \
            "rung_" #ladder "_" #device "_" #file "_last:\n.byte 0\n.previous\n"); \
    extern const char rung_##ladder##_##device##_##file##_first[],                 \
        rung_##ladder##_##device##_##file##_last[];
RUNGS(EMBED)
#define ROW(ladder, device, file, ending)                                                  \
    {#ladder "/" #device "/" #file "." #ending, rung_##ladder##_##device##_##file##_first, \
     rung_##ladder##_##device##_##file##_last},
static const struct {
    const char *path, *first, *last;
} sources[] = {RUNGS(ROW)};

static int index_of(const char *path, int64_t bytes)
{
    for (int i = 0; i < COUNT_OF(sources); i++)
        if ((int64_t)strlen(sources[i].path) == bytes &&
            !strncmp(sources[i].path, path, (size_t)bytes))
            return i;
    return -1;
}

const char *lab_source(const struct lab_rung *r, int64_t *ret_bytes)
{
    *ret_bytes = r->own ? r->own->bytes : 0;
    if (r->own || !r->file) return r->own ? r->own->text : NULL;
    int i = index_of(r->file, (int64_t)strlen(r->file));
    BUG_IF(i < 0, "no file src/lab/%s", r->file);
    *ret_bytes = sources[i].last - sources[i].first;
    return sources[i].first;
}

/* Appends a text and the headers that it includes, each header once. The #line directives make the
 * compiler's messages name the original files and lines. */
static void expand(struct str *s, const char *text, const char *path, bool *done)
{
    static const char include[] = "#include \"lab/", once[] = "#pragma once";
    int line = 1;
    for (const char *at = text; *at; line++) {
        int bytes = (int)strcspn(at, "\n");
        const char *name = at + sizeof include - 1;
        int header = strncmp(at, include, sizeof include - 1)
                         ? -1
                         : index_of(name, (int64_t)strcspn(name, "\""));
        if (header >= 0 && !done[header]) {
            done[header] = true;
            str_printf(s, "#line 1 \"%s\"\n", sources[header].path);
            expand(s, sources[header].first, sources[header].path, done);
            str_printf(s, "#line %d \"%s\"\n", line + 1, path);
        } else {
            bool left_out = header >= 0 || !strncmp(at, once, sizeof once - 1);
            str_printf(s, "%.*s\n", left_out ? 0 : bytes, at);
        }
        at += bytes + (at[bytes] == '\n');
    }
}

const char *lab_text(const struct lab_rung *r, struct arena *a)
{
    bool done[COUNT_OF(sources)] = {false};
    struct str s = {0};
    int64_t bytes;
    const char *source = lab_source(r, &bytes);
    if (r->own) return source;
    expand(&s, source, r->file, done);
    source = arena_strdup(a, str_text(&s));
    str_release(&s);
    return source;
}

const char *lab_template(const struct lab_ladder *l, bool gpu)
{
    char path[64];
    snprintf(path, sizeof path, gpu ? "%s/gpu/template.cu" : "%s/cpu/template.c", l->name);
    int i = index_of(path, (int64_t)strlen(path));
    BUG_IF(i < 0, "no file src/lab/%s", path);
    return sources[i].first;
}

bool lab_header(const struct lab_rung *r, int i, const char **ret_path, const char **ret_text)
{
    static const char include[] = "#include \"lab/";
    enum { MOST = 16 };
    int found[MOST], n = 0;
    int64_t bytes;
    const char *text = lab_source(r, &bytes);
    for (int next = 0; text; text = next < n ? sources[found[next++]].first : NULL)
        for (const char *at = text; (at = strstr(at, include)) && n < MOST;) {
            at += sizeof include - 1;
            int header = index_of(at, (int64_t)strcspn(at, "\""));
            bool known = header < 0;
            for (int k = 0; k < n; k++) known |= found[k] == header;
            if (!known) found[n++] = header;
        }
    if (i >= n) return false;
    *ret_path = sources[found[i]].path;
    *ret_text = sources[found[i]].first;
    return true;
}

const char *lab_idea(const struct lab_rung *r, char *buffer, int bytes)
{
    int64_t size;
    if (r->idea) {
        snprintf(buffer, (size_t)bytes, "%s", r->idea);
        return buffer;
    }
    const char *source = lab_source(r, &size), *line = strstr(source, " - ");
    BUG_IF(!line, "src/lab/%s does not begin with its idea", r->file);
    line += strlen(" - ");
    int n = (int)strcspn(line, "\n");
    snprintf(buffer, (size_t)bytes, "%.*s", n - (n && line[n - 1] == '.'), line);
    return buffer;
}
