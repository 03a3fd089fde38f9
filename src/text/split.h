/* split.h - splits text into pieces, within which byte pairs are merged, by GPT-2's pattern:
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * The code does not use regular expressions. It converts 64 bytes at a time to masks, one for each
 * class, and finds where pieces begin by a few shifts and logical operations; only apostrophes and
 * characters that are not ASCII cause branches. A byte that is not part of valid UTF-8 counts as a
 * character of class `other`, so every sequence of bytes can be split. */
#ifndef TEXT_SPLIT_H
#define TEXT_SPLIT_H

#include "base/base.h"

enum { SPLIT_BLOCK = 64 };

struct split_masks {
    uint64_t there; /* bytes before the end of the text */
    uint64_t letter, number, space;
    uint64_t blank, quote; /* U+0020 and U+0027 */
    uint64_t inner;        /* the second and later bytes of characters */
};

struct splitter {
    const char *text;
    int64_t bytes;
    /* private to split.c */
    bool avx2;
    int64_t at;                       /* beginning of the next block to mark */
    struct split_masks before, block; /* masks of the block before `at` and of the block at `at` */
    uint64_t set, clear;              /* changes of `block` due to a contraction before `at` */
    int spilled;                      /* bytes of the last character in the block after `block` */
    int spilled_class;                /* the class of that character */
};

/* The text must outlive the splitter. */
void split_begin(struct splitter *s, const char *text, int64_t bytes);
/* Marks the beginnings of pieces in at most `blocks` further blocks of 64 bytes: bit i of ret[k]
 * belongs to byte 64 k + i. Returns the number of blocks; 0: the text has ended. */
int64_t split_next(struct splitter *s, int64_t blocks, uint64_t *ret);

/* The last place, at most `most`, at which the text can be cut without changing its pieces,
 * whatever text follows; 0: there is none. */
int64_t split_safe_cut(const char *text, int64_t bytes, int64_t most);

#endif
