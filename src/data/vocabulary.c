#include "data/vocabulary.h"

#include "data/kind.h"
#include "data/meta.h"

enum status vocabulary_encode(const struct vocabulary *v, const char *text, struct arena *a,
                              int32_t **ret_ids, int64_t *ret_count)
{
    return v->kind->encode(v, text, a, ret_ids, ret_count);
}

const char *vocabulary_text(const struct vocabulary *v, int32_t id)
{
    return id >= 0 && id < v->size ? v->text[id] : "";
}

enum status vocabulary_read(struct vocabulary *v, const char *path, struct arena *a)
{
    struct meta m;
    TRY(meta_read(&m, path, a));
    *v = m.vocabulary;
    return ST_OK;
}
