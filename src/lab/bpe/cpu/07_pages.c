/* 07_pages.c - the cache of words in pages of 2 MiB.
 *
 * Eight megabytes are 2048 pages of 4 KiB, more than the TLB has places for; a prefetch whose
 * address is not in the TLB has to walk the page table, and some processors drop it. In four large
 * pages every address is in the TLB. Where the system gives none, nothing changes. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_pages)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
    put_batches(x, c, ret->large_pages, ret);
}
