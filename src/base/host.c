#include "base/host.h"

#include "base/file.h"
#include "base/str.h"
#include "base/threads.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* What follows "key :" on the first such line of a file of /proc; NULL if there is none. */
static const char *line_of(const char *text, const char *key, struct arena *a)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t n = strlen(key);
        if (strncmp(line, key, n) != 0) continue;
        const char *value = line + n;
        while (*value == ' ' || *value == '\t') value++;
        if (*value++ != ':') continue;
        while (*value == ' ' || *value == '\t') value++;
        return arena_printf(a, "%.*s", (int)strcspn(value, "\n"), value);
    }
    return NULL;
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || isspace((unsigned char)p[-1])) &&
            (!p[n] || isspace((unsigned char)p[n])))
            return true;
    return false;
}

/* What a kernel of this program may be compiled for, in the kernel's (/proc/cpuinfo) words. */
static const char *isa_of(const char *flags, struct arena *a)
{
    static const char *const known[] = {
        "avx2",     "fma",      "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
        "amx_bf16", "amx_int8", "asimd",   "sve",         "sve2",        "bf16"};
    struct str s = {0};
    for (int i = 0; i < COUNT_OF(known); i++)
        if (has_word(flags, known[i])) str_printf(&s, "%s%s", s.len ? " " : "", known[i]);
    const char *text = arena_strdup(a, str_text(&s));
    str_release(&s);
    return text;
}

/* "MemAvailable: 1234 kB" in bytes. */
static int64_t kilobytes(const char *text, const char *key, struct arena *a)
{
    const char *value = line_of(text, key, a);
    return value ? strtoll(value, NULL, 10) * 1024 : 0;
}

static const char *read_proc(const char *path, struct arena *a)
{
    char *text;
    int64_t size;
    return file_read(path, a, &text, &size) == ST_OK ? text : "";
}

void host_read(struct host *h, struct arena *a)
{
    const char *cpu = read_proc("/proc/cpuinfo", a), *memory = read_proc("/proc/meminfo", a);
    const char *name = line_of(cpu, "model name", a), *flags = line_of(cpu, "flags", a);
    if (!flags) flags = line_of(cpu, "Features", a); /* so on ARM */
    struct utsname system = {0};
    uname(&system);
    *h = (struct host){
        .name = arena_strdup(a, system.nodename),
        .system = arena_printf(a, "%s %s %s", system.sysname, system.release, system.machine),
        .cpu = name ? name : "unknown",
        .isa = isa_of(flags ? flags : "", a),
        .processors = sysconf(_SC_NPROCESSORS_ONLN),
        .threads = threads_available(),
        .memory_bytes = kilobytes(memory, "MemTotal", a),
        .memory_free_bytes = kilobytes(memory, "MemAvailable", a),
    };
}
