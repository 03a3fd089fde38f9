/* A model of another program: config.json, model.safetensors, model.safetensors.index.json (then
 * the weights are its files "a" and "b"), b, tokenizer.json; or a checkpoint of Strobe, with its
 * state.json as the last part and its optimizer's states in b. */
#include "fuzz.h"
#include "read_model.h"

#include "base/file.h"
#include "exchange/exchange.h"

static void read_vocabulary(const struct exchange_model *m, struct arena *a)
{
    struct vocabulary v;
    if (!m->tokenizer) return; /* GPT-2's may be downloaded */
    BUG_IF(exchange_vocabulary(m, &v, a) != ST_OK, "%s", fail_message());
    BUG_IF(v.size > m->vocab, "%d tokens of %lld", v.size, (long long)m->vocab);
    for (int i = 0; i < v.size; i++) {
        struct token_text text = vocabulary_bytes(&v, i);
        fuzz_touch(text.bytes, text.length);
    }
}

static bool open_folder(const char *folder, struct arena *a)
{
    struct exchange_model m;
    if (exchange_open(&m, folder, a) != ST_OK) return false;
    read_model(&m, a);
    read_vocabulary(&m, a);
    exchange_close(&m);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[6];
    const char *folder = fuzz_folder();
    fuzz_parts(data, size, part, COUNT_OF(part), &a);
    bool index = part[2].size, state = part[5].size;
    const char *const names[COUNT_OF(part)] = {"config.json",
                                               index ? "a" : "model.safetensors",
                                               "model.safetensors.index.json",
                                               state ? "optimizer.safetensors" : "b",
                                               "tokenizer.json",
                                               "state.json"};
    for (int i = 0; i < COUNT_OF(part); i++)
        if (part[i].size)
            fuzz_file(arena_printf(&a, "%s/%s", folder, names[i]), part[i].bytes, part[i].size);
    return fuzz_end(&a, open_folder(folder, &a));
}
