/* A command line, a word a line, for a table with every kind of option. */
#include "fuzz.h"

#include "base/opt.h"
#include "config/config.h"

#include <string.h>

enum { WORDS_MOST = 64 };

static bool is_key(const char *word)
{
    return config_is_key(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct fuzz_part text;
    char *word[WORDS_MOST];
    int words = 0;
    bool flag = false;
    int64_t number = 0;
    const char *path = NULL;
    const struct opt table[] = {{"json", OPT_FLAG, &flag, NULL, "print JSON"},
                                {"steps", OPT_INT, &number, "N", "steps to time"},
                                {"svg", OPT_TEXT, &path, "FILE", "write a picture"},
                                {0}};
    fuzz_parts(data, size, &text, 1, &a);
    for (char *at = text.bytes, *next; at && words < WORDS_MOST; at = next) {
        next = strchr(at, '\n');
        if (next) *next++ = '\0';
        word[words++] = at;
    }
    bool valid = opt_parse(table, &words, word, is_key) == ST_OK;
    return fuzz_end(&a, valid);
}
