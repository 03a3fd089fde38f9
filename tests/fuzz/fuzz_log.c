/* log.jsonl as a training that resumes at iteration 3 reads it: what it keeps is a part of what was
 * there, and resuming again changes nothing. */
#include "fuzz.h"

#include "backend/sample.h"
#include "base/file.h"
#include "train/runlog.h"

#include <string.h>

enum { RESUMED_AT = 3 };

/* Names of what is written, which no input reaches. */
const char *throttle_name(enum throttle)
{
    return "";
}

static enum status resume(const char *path, struct arena *a, char **ret_text, int64_t *ret_size)
{
    struct runlog log;
    TRY(runlog_open(&log, path, RESUMED_AT));
    runlog_close(&log);
    return file_read(path, a, ret_text, ret_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    char *once, *twice;
    int64_t n, m;
    const char *path = arena_printf(&a, "%s/log.jsonl", fuzz_folder());
    fuzz_disk("log.jsonl", data, (int64_t)size);
    BUG_IF(resume(path, &a, &once, &n) != ST_OK, "%s", fail_message());
    BUG_IF(resume(path, &a, &twice, &m) != ST_OK, "%s", fail_message());
    BUG_IF(n > (int64_t)size || n != m || memcmp(once, twice, (size_t)n), "another log is kept");
    return fuzz_end(&a, n > 0);
}
