#include "data/vocabulary.h"

#include "data/kind.h"
#include "data/meta.h"
#include "text/tokenizer.h"

#include <string.h>

enum status vocabulary_encode(const struct vocabulary *v, const char *text, struct arena *a,
                              int32_t **ret_ids, int64_t *ret_count)
{
    return v->kind->encode(v, text, a, ret_ids, ret_count);
}

const char *vocabulary_text(const struct vocabulary *v, int32_t id)
{
    if (v->tokenizer) return tokenizer_text(v->tokenizer, id).bytes;
    return id >= 0 && id < v->size ? v->text[id] : "";
}

struct token_text vocabulary_bytes(const struct vocabulary *v, int32_t id)
{
    if (v->tokenizer) return tokenizer_text(v->tokenizer, id);
    const char *text = vocabulary_text(v, id);
    return (struct token_text){text, (int)strlen(text)};
}

int vocabulary_text_bytes(const struct vocabulary *v, int32_t id)
{
    if (v->kind->sized) return -1;
    if (v->tokenizer && tokenizer_is_special(v->tokenizer, id)) return 0;
    return vocabulary_bytes(v, id).length;
}

static bool same_merges(const struct tokenizer *t, const struct tokenizer *u)
{
    if (!t || !u) return t == u;
    return t->merges == u->merges &&
           !memcmp(t->merge, u->merge, (size_t)t->merges * sizeof *t->merge);
}

bool vocabulary_same(const struct vocabulary *v, const struct vocabulary *w)
{
    if (v->size == w->size && (v->kind->sized || w->kind->sized)) return true;
    if (v->size != w->size || !same_merges(v->tokenizer, w->tokenizer)) return false;
    for (int32_t i = 0; i < v->size; i++) {
        struct token_text x = vocabulary_bytes(v, i), y = vocabulary_bytes(w, i);
        if (x.length != y.length || memcmp(x.bytes, y.bytes, (size_t)x.length) != 0) return false;
    }
    return true;
}

bool vocabulary_differs(const struct vocabulary *v, const struct vocabulary *w)
{
    return !v->kind->sized && !w->kind->sized && !vocabulary_same(v, w);
}

enum status vocabulary_read(struct vocabulary *v, const char *path, struct arena *a)
{
    struct meta m;
    TRY(meta_read(&m, path, a));
    *v = m.vocabulary;
    return ST_OK;
}
