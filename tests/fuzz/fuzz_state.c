/* state.json of a checkpoint and DONE, which is right if the input has no second part. */
#include "fuzz.h"

#include "train/state_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part part[2];
    struct checkpoint_state state;
    struct safetensors_facts facts[STATE_FILE_COUNT];
    char done[HASH_HEX];
    memset(done, '0', sizeof done);
    done[HASH_HEX - 1] = '\n';
    int parts = fuzz_parts(data, size, part, 2, &a);
    fuzz_file("c/state.json", part[0].bytes, part[0].size);
    fuzz_file("c/DONE", parts > 1 ? part[1].bytes : done, parts > 1 ? part[1].size : HASH_HEX);
    bool valid = state_read("c", &a, &state, facts) == ST_OK;
    return fuzz_end(&a, valid);
}
