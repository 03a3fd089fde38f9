/* A tuning file. */
#include "fuzz.h"

#include "tuning/tuning.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct tuning t;
    const char *why;
    fuzz_file("t.json", data, (int64_t)size);
    bool valid = tuning_read("t.json", &t, &a) == ST_OK;
    for (int i = 0; valid && i < t.n; i++) {
        const struct tuning_entry *e = tuning_find(&t, t.entry[i].key);
        BUG_IF(e != &t.entry[i], "the entries are not sorted");
        tuning_candidate(e, "cublaslt");
    }
    if (valid) tuning_holds(&t, &(struct target){.name = "g"}, &why);
    return fuzz_end(&a, valid);
}
