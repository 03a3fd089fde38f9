#include "suite/texts.h"

#include "base/base.h"

#include <string.h>

/* Paths are relative to the root of the repository, where the build runs. Texts end with a zero. */
#define EMBED(symbol, name)                                                                \
    __asm__(".section .rodata\n" #symbol "_text:\n.incbin \"configs/" name "\"\n.byte 0\n" \
            ".previous\n");                                                                \
    extern const char symbol##_text[]

EMBED(attention_block, "attention_block.conf");
EMBED(cs336_small, "cs336_small.conf");
EMBED(cs336_medium, "cs336_medium.conf");
EMBED(cs336_large, "cs336_large.conf");
EMBED(cs336_xl, "cs336_xl.conf");
EMBED(cs336_2_7b, "cs336_2.7b.conf");
EMBED(cs336_xl2026, "cs336_xl2026.conf");
EMBED(cs336_10b, "cs336_10b.conf");

static const struct {
    const char *name, *text;
} texts[] = {
    {"attention_block.conf", attention_block_text},
    {"cs336_small.conf", cs336_small_text},
    {"cs336_medium.conf", cs336_medium_text},
    {"cs336_large.conf", cs336_large_text},
    {"cs336_xl.conf", cs336_xl_text},
    {"cs336_2.7b.conf", cs336_2_7b_text},
    {"cs336_xl2026.conf", cs336_xl2026_text},
    {"cs336_10b.conf", cs336_10b_text},
};

const char *suite_text(const char *name)
{
    for (int i = 0; i < COUNT_OF(texts); i++)
        if (!strcmp(texts[i].name, name)) return texts[i].text;
    return NULL;
}
