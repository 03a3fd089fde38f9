/* The file of machine records. */
#include "fuzz.h"

#include "machine/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct machine m = {.name = "cpu", .isa = "isa", .library = "none", .threads = 4};
    fuzz_file("machine.json", data, (int64_t)size);
    bool valid = machine_read(&m, "machine.json", &a);
    return fuzz_end(&a, valid);
}
