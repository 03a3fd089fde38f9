#include "base/isa.h"

#include "base/file.h"
#include "base/str.h"

#include <string.h>

static const char *const known[] = {
    "avx2",     "fma",      "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
    "amx_bf16", "amx_int8", "asimd",   "sve",         "sve2",        "bf16"};

static bool has_word(const char *words, int length, const char *word)
{
    int n = (int)strlen(word);
    for (int i = 0; i + n <= length; i++) {
        bool begins = i == 0 || words[i - 1] == ' ', ends = i + n == length || words[i + n] == ' ';
        if (begins && ends && !memcmp(words + i, word, (size_t)n)) return true;
    }
    return false;
}

/* x86 lists them as "flags", ARM as "Features"; all processors of a machine are taken to be alike. */
const char *isa_names_of(const char *cpuinfo, struct arena *a)
{
    const char *line = strstr(cpuinfo, "\nflags");
    if (!line) line = strstr(cpuinfo, "\nFeatures");
    const char *colon = line ? strchr(line, ':') : NULL;
    if (!colon) return "";
    const char *words = colon + 1;
    int length = (int)strcspn(words, "\n");
    struct str s = {0};
    for (int i = 0; i < COUNT_OF(known); i++)
        if (has_word(words, length, known[i])) str_printf(&s, "%s%s", s.len ? " " : "", known[i]);
    const char *names = arena_strdup(a, str_text(&s));
    str_release(&s);
    return names;
}

const char *isa_names(struct arena *a)
{
    char *text;
    int64_t size;
    return file_read("/proc/cpuinfo", a, &text, &size) == ST_OK ? isa_names_of(text, a) : "";
}
