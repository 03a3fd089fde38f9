/* isa.h - which instructions this processor has, of those that matter to training, and which of them
 * may be used.
 *
 * The sets that kernels are written for are one list, from the widest down; a processor that has one has
 * all behind it. A limit leaves out those before it, so that one machine can show what each is worth. */
#ifndef BASE_ISA_H
#define BASE_ISA_H

#include "base/arena.h"

/* THE list: enumerator, word. AMX and AVX512_BF16 multiply bfloat16; plain is C and nothing else. */
#define ISA_LIST(X)             \
    X(AMX, amx)                 \
    X(AVX512_BF16, avx512_bf16) \
    X(AVX512, avx512)           \
    X(AVX2, avx2)               \
    X(SSE2, sse2)               \
    X(PLAIN, plain)

enum isa {
    ISA_AUTO, /* as a limit: none */
#define ISA_ENUMERATOR(name, word) ISA_##name,
    ISA_LIST(ISA_ENUMERATOR)
#undef ISA_ENUMERATOR
        ISA_COUNT
};

/* "auto", "amx", ... "plain" in the order of the enum; NULL behind the last. */
extern const char *const isa_words[];

/* The widest that this processor and its operating system offer; ISA_PLAIN at least. */
enum isa isa_widest(void);

/* From here on nothing wider is used: for the whole process, before kernels are chosen. ISA_AUTO takes the
 * limit away. ST_UNSUPPORTED, naming what there is, if the processor lacks it. */
enum status isa_limit(enum isa limit);
/* The same for a word of isa_words; ST_USAGE, naming them all, if it is none of them. */
enum status isa_limit_word(const char *word);
/* The limit that was set last; ISA_AUTO: none. */
enum isa isa_limited(void);
/* The processor has it and it is within the limit. */
bool isa_allows(enum isa isa);
/* The widest that isa_allows. */
enum isa isa_used(void);
/* Products in bfloat16 are faster than in fp32: with AMX five times; with AVX512_BF16 twice on AMD's Zen 4, but
 * not on Intel's processors, where a step then takes 1.4 times as long as in fp32 (docs/MEASURING.md). */
bool isa_bf16_is_fast(void);
/* What isa_limit says, for a processor whose widest is `widest`. */
enum status isa_check(enum isa limit, enum isa widest);

/* "avx2 fma avx512f avx512_bf16 amx_bf16", in the words of /proc/cpuinfo; may be empty. */
const char *isa_names(struct arena *a);
/* The same out of the text of a /proc/cpuinfo. */
const char *isa_names_of(const char *cpuinfo, struct arena *a);

#endif
