/* meta.json, train.bin and val.bin of a data set. */
#include "fuzz.h"

#include "data/dataset.h"
#include "data/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[3];
    struct dataset d;
    fuzz_parts(data, size, part, 3, &a);
    fuzz_disk("x/meta.json", part[0].bytes, part[0].size);
    fuzz_disk("x/train.bin", part[1].bytes, part[1].size);
    fuzz_disk("x/val.bin", part[2].bytes, part[2].size);
    bool valid = dataset_open(&d, fuzz_folder(), "x", &a) == ST_OK;
    if (valid) {
        for (int s = 0; s < SPLIT_COUNT; s++)
            for (int64_t i = 0; i < d.count[s]; i++) {
                int32_t token;
                BUG_IF(dataset_read(&d, s, i, 1, &token) != ST_OK, "%s", fail_message());
                BUG_IF(token < 0 || token >= d.vocabulary.size, "token %d", token);
                fuzz_touch(vocabulary_text(&d.vocabulary, token), 1);
            }
        dataset_close(&d);
    }
    return fuzz_end(&a, valid);
}
