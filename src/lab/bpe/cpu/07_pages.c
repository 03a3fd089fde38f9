/* 07_pages.c - the cache of words in pages of 2 MiB.
 *
 * The cache has 8 MiB, which are 2048 pages of 4 KiB, at least as many as most TLBs hold. A
 * prefetch of an address that is not in the TLB must walk the page table, and some processors drop
 * such a prefetch. With four large pages every address is in the TLB. If the system gives no large
 * pages, nothing changes. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_pages)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
    put_batches(x, c, ret->large_pages, ret);
}
