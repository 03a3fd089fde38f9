#include "read_model.h"

#include "fuzz.h"

#include <stdlib.h>

enum { ELEMENTS_MOST = 1 << 20 };

static void read_all(const struct exchange_model *m, int64_t vocab, int64_t positions,
                     struct arena *a)
{
    struct model own;
    struct config_model keys = m->config.model;
    keys.vocab_size = keys.pad_vocab = 0;
    keys.block_size = positions;
    model_init(&own, &keys, vocab, 0, a);
    if (own.elements > ELEMENTS_MOST) return;
    for (int i = 0; i < own.parameters; i++) {
        const struct parameter *p = &own.parameter[i];
        int64_t bytes = type_elements(&p->type) * (int64_t)sizeof(float);
        float *values = malloc((size_t)bytes);
        for (int part = 0; part <= m->states; part++) {
            BUG_IF(exchange_read(m, p, part, values) != ST_OK, "%s", fail_message());
            fuzz_touch(values, bytes);
        }
        free(values);
    }
}

void read_model(const struct exchange_model *m, struct arena *a)
{
    int64_t positions = m->config.model.block_size;
    read_all(m, m->vocab, positions, a);
    read_all(m, m->vocab + 3, positions, a);
    read_all(m, max_i64(1, m->vocab - 1), max_i64(1, positions - 1), a);
}
