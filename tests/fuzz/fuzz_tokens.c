/* Files of other programs: two shards of llm.c; two files of nanoGPT with its meta.pkl. */
#include "fuzz.h"

#include "data/dataset.h"
#include "data/pickle.h"

static bool open_folder(const char *name, struct arena *a)
{
    struct dataset d;
    if (dataset_open(&d, fuzz_folder(), name, a) != ST_OK) return false;
    BUG_IF(dataset_verify(&d) != ST_OK, "%s", fail_message());
    for (int s = 0; s < SPLIT_COUNT; s++)
        for (int64_t i = 0; i < d.count[s]; i++) {
            int32_t token;
            BUG_IF(dataset_read(&d, s, i, 1, &token) != ST_OK, "%s", fail_message());
            BUG_IF(token < 0 || token >= d.vocabulary.size, "token %d", token);
            fuzz_touch(vocabulary_text(&d.vocabulary, token), 2);
        }
    dataset_close(&d);
    return true;
}

/* The entries of a dictionary and of those in it, which may contain it. */
static void touch(const struct pickle_value *v, int depth)
{
    if (v->type == PICKLE_TEXT) fuzz_touch(v->text, v->number);
    for (int i = 0; v->type == PICKLE_DICT && depth && i < v->dict->count; i++) {
        touch(&v->dict->item[i].key, depth - 1);
        touch(&v->dict->item[i].value, depth - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[3];
    struct pickle_value v;
    fuzz_parts(data, size, part, 3, &a);
    bool is_pickle =
        pickle_read(PICKLE_PLAIN, "x.pkl", part[2].bytes, part[2].size, &a, &v) == ST_OK;
    if (is_pickle) touch(&v, 2);
    const char *folder = part[2].size ? "nanogpt" : "llmc";
    fuzz_disk(part[2].size ? "nanogpt/train.bin" : "llmc/a_train_0.bin", part[0].bytes,
              part[0].size);
    fuzz_disk(part[2].size ? "nanogpt/val.bin" : "llmc/a_val_0.bin", part[1].bytes, part[1].size);
    if (part[2].size) fuzz_disk("nanogpt/meta.pkl", part[2].bytes, part[2].size);
    return fuzz_end(&a, open_folder(folder, &a));
}
