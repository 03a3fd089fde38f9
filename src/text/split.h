/* split.h - cuts text into the pieces within which byte pairs are merged, as GPT-2's pattern does:
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * No regular expression runs. 64 bytes at a time become masks, one for each class, and a few
 * shifts and logical operations find where pieces begin; nothing branches on the text but
 * apostrophes and characters that are not ASCII. Bytes that are not UTF-8 are characters of class
 * other, so every sequence of bytes has pieces. */
#ifndef TEXT_SPLIT_H
#define TEXT_SPLIT_H

#include "base/base.h"

enum { SPLIT_BLOCK = 64 };

struct split_masks {
    uint64_t there; /* bytes of the text */
    uint64_t letter, number, space;
    uint64_t blank, quote; /* U+0020 and U+0027 */
    uint64_t inner;        /* bytes after the first of a character */
};

struct splitter {
    const char *text;
    int64_t bytes;
    /* private to split.c */
    bool avx2;
    int64_t at;                       /* begin of the block that is marked next */
    struct split_masks before, block; /* the block at `at` is classified already */
    uint64_t set, clear;              /* what a contraction before it says of that block */
    int spilled;                      /* bytes of the last character that reach into the next one */
    int spilled_class;
};

/* The text must outlive the splitter. */
void split_begin(struct splitter *s, const char *text, int64_t bytes);
/* Marks the beginnings of pieces in the next `blocks` blocks of 64 bytes, fewer at the end of the
 * text: bit i of ret[k] belongs to byte 64 k + i. Returns the number of blocks; 0: the text has
 * ended. */
int64_t split_next(struct splitter *s, int64_t blocks, uint64_t *ret);

/* The last place up to `most`, or 0, where a text of `bytes` bytes may be cut in two whose pieces
 * together are its pieces, whatever follows the text. */
int64_t split_safe_cut(const char *text, int64_t bytes, int64_t most);

#endif
