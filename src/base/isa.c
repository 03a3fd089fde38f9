#include "base/isa.h"

#include "base/file.h"
#include "base/str.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* --- detection -------------------------------------------------------------------------------- */

/* The families of processors that this program is built for. */
#if defined(__x86_64__)
enum { X86 = true, ARM = false, ANY = true };
#elif defined(__aarch64__)
enum { X86 = false, ARM = true, ANY = true };
#else
enum { X86 = false, ARM = false, ANY = true };
#endif

/* For sets that every processor of their family has. */
static bool has_always(void)
{
    return true;
}
#define has_sse2  has_always
#define has_neon  has_always
#define has_plain has_always

#if defined(__x86_64__)
/* What -march=x86-64-v3 and -v4 use; the builtin also checks operating system support. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}

static bool has_avx512_bf16(void)
{
    unsigned eax, ebx, ecx, edx;
    return has_avx512() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && eax >> 5 & 1;
}

/* Linux enables the large tile registers only on request (since kernel 5.16) and may refuse. Intel,
 * Architecture Instruction Set Extensions, chapter 3; Linux, Documentation/arch/x86/xstate. */
static bool has_amx(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18, AMX_BF16 = 22, AMX_TILE = 24 };
    unsigned eax, ebx, ecx, edx;
    return has_avx512_bf16() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           edx >> AMX_BF16 & 1 && edx >> AMX_TILE & 1 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}
#else
#define has_avx2        has_always
#define has_avx512      has_always
#define has_avx512_bf16 has_always
#define has_amx         has_always
#endif

const char *const isa_words[] = {"auto",
#define ISA_WORD(name, word, family) #word,
                                 ISA_LIST(ISA_WORD)
#undef ISA_WORD
                                     NULL};

static const struct {
    bool exists;
    bool (*has)(void);
} sets[] = {{true, has_always},
#define ISA_SET(name, word, family) {family, has_##word},
            ISA_LIST(ISA_SET)
#undef ISA_SET
};

bool isa_exists(enum isa isa)
{
    return sets[isa].exists;
}

/* Several threads may make the first call at once, so known_widest is written only once final. */
enum isa isa_widest(void)
{
    static _Atomic int known_widest; /* ISA_AUTO: not determined yet */
    int widest = known_widest;
    if (widest != ISA_AUTO) return (enum isa)widest;
    do widest++;
    while (!sets[widest].exists || !sets[widest].has());
    known_widest = widest;
    return (enum isa)widest;
}

/* --- limit ------------------------------------------------------------------------------------ */

/* Ranks that are threads all set it, to the same value. */
static _Atomic(enum isa) limit = ISA_AUTO;

static struct str list_from(enum isa first)
{
    struct str words = {0};
    for (enum isa i = first; i < ISA_COUNT; i++)
        if (isa_exists(i)) str_printf(&words, "%s%s", i > first ? ", " : "", isa_words[i]);
    return words;
}

enum status isa_check(enum isa wanted, enum isa widest)
{
    if (wanted == ISA_AUTO || (wanted >= widest && isa_exists(wanted))) return ST_OK;
    struct str words = list_from(widest);
    enum status st = fail(ST_UNSUPPORTED, "isa=%s: this processor supports only %s",
                          isa_words[wanted], str_text(&words));
    str_release(&words);
    return st;
}

enum status isa_limit(enum isa wanted)
{
    TRY(isa_check(wanted, isa_widest()));
    limit = wanted;
    return ST_OK;
}

enum status isa_limit_word(const char *word)
{
    for (enum isa i = ISA_AUTO; i < ISA_COUNT; i++)
        if (!strcmp(word, isa_words[i])) return isa_limit(i);
    struct str words = list_from(ISA_AUTO);
    if (!*word) word = "nothing";
    enum status st = fail(ST_USAGE, "isa must be one of: %s; got %s", str_text(&words), word);
    str_release(&words);
    return st;
}

enum isa isa_limited(void)
{
    return limit;
}

enum isa isa_used(void)
{
    enum isa widest = isa_widest();
    return limit > widest ? limit : widest;
}

bool isa_bf16_is_fast(void)
{
#if defined(__x86_64__)
    bool fast_avx512 = isa_allows(ISA_AVX512_BF16) && __builtin_cpu_is("amd");
#else
    bool fast_avx512 = false;
#endif
    return fast_avx512 || isa_allows(ISA_AMX);
}

bool isa_allows(enum isa isa)
{
    return isa_exists(isa) && isa >= isa_used();
}

/* --- names ------------------------------------------------------------------------------------ */

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

/* x86 lists the names as "flags", ARM as "Features". All processors are assumed to be alike. */
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
