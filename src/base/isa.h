/* isa.h - the instruction sets that CPU kernels may use on this processor.
 *
 * The sets form one list, widest first. A processor that has a set also has all later sets of the
 * same family. A limit disables wider sets, so that one machine can measure the benefit of each. */
#ifndef BASE_ISA_H
#define BASE_ISA_H

#include "base/arena.h"

/* THE list: enumerator, name, processor family. AMX and AVX512_BF16 multiply bfloat16; every 64-bit
 * Arm processor has NEON; PLAIN is portable C. */
#define ISA_LIST(X)                  \
    X(AMX, amx, X86)                 \
    X(AVX512_BF16, avx512_bf16, X86) \
    X(AVX512, avx512, X86)           \
    X(AVX2, avx2, X86)               \
    X(SSE2, sse2, X86)               \
    X(NEON, neon, ARM)               \
    X(PLAIN, plain, ANY)

enum isa {
    ISA_AUTO, /* no limit */
#define ISA_ENUMERATOR(name, word, family) ISA_##name,
    ISA_LIST(ISA_ENUMERATOR)
#undef ISA_ENUMERATOR
        ISA_COUNT
};

/* "auto", "amx", ... "plain" in the order of the enum; ends with NULL. */
extern const char *const isa_words[];

/* True if the set belongs to the family of processors that this program is built for. */
bool isa_exists(enum isa isa);

/* The widest set that this processor and its operating system support; at least ISA_PLAIN. */
enum isa isa_widest(void);

/* Disables wider sets for the whole process; call it before kernels are chosen. ISA_AUTO removes
 * the limit. ST_UNSUPPORTED if the processor lacks the set; the message lists the sets it has. */
enum status isa_limit(enum isa limit);
/* The same, given a word of isa_words; ST_USAGE for any other word, and the message lists all. */
enum status isa_limit_word(const char *word);
/* The current limit; ISA_AUTO: no limit. */
enum isa isa_limited(void);
/* True if the processor has the set and the limit permits it. */
bool isa_allows(enum isa isa);
/* The widest set that isa_allows. */
enum isa isa_used(void);
/* True if bf16 matmuls are faster than fp32 ones: 5x with AMX; 2x with AVX512_BF16 on AMD's Zen 4,
 * but on Intel a step takes 1.4 times as long as in fp32 (docs/MEASURING.md). */
bool isa_bf16_is_fast(void);
/* The check of isa_limit for a processor whose widest set is `widest`. */
enum status isa_check(enum isa limit, enum isa widest);

/* "avx2 fma avx512f amx_bf16", for example, with the names of /proc/cpuinfo; may be empty. */
const char *isa_names(struct arena *a);
/* The same, parsed from the contents of /proc/cpuinfo. */
const char *isa_names_of(const char *cpuinfo, struct arena *a);

#endif
