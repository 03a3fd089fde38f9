/* attention_hopper_items.cuh - items of attention_hopper.cu: their order, and the repetition of
 * items that failed.
 *
 * An item is ROWS query rows of one head. Items are numbered section by section, each of
 * `heads_at_once` heads; in a section, items with the most keys come first. Items are cut from the
 * end of the sequence, in multiples of 64 rows, so only a head's last item, with the fewest keys,
 * leaves consumers idle. */
#pragma once
#include "attention_hopper_counter.cuh"

struct __align__(16) item {
    /* The item has the rows row ... end - 1; `row` may be negative. `tiles` is the number of its
     * tiles of keys, or 0 if there are no more items. */
    int b, h, row, end, tiles;
    /* Bit masks of consumers. `redo` has the consumers that repeat the item; it is 0 in the first
     * run, in which all consumers take part. `failed` collects the consumers that must repeat the
     * item. */
    u32 redo, failed;
};
DEVICE int tiles_of(int rows, int T) /* tiles that the first `rows` rows see */
{
    return ceil_div(CAUSAL ? min(rows, T) : T, KEYS);
}
DEVICE bool takes_part(const item &i, int w)
{
    int row = i.row + 64 * w;
    return row >= 0 && row < i.end && (!i.redo || i.redo >> w & 1);
}
DEVICE int items_of(int T, int BH)
{
    return ceil_div(T, ROWS) * BH;
}
/* Item n, the `count`-th of the block. */
DEVICE item item_at(int n, int count, int T, int H, int BH, int heads_at_once)
{
    if (n >= items_of(T, BH)) return {};
    int row_tiles = ceil_div(T, ROWS), section = n / (heads_at_once * row_tiles),
        rest = n % (heads_at_once * row_tiles);
    int heads = min(heads_at_once, BH - section * heads_at_once);
    int bh = section * heads_at_once + rest % heads;
    int end = (T + 63) / 64 * 64 - rest / heads * ROWS, row = end - ROWS;
    if (row < 0) row = -64 * (count % (1 - row / 64)); /* so that the idle consumers vary */
    return {bh / H, bh % H, row, end, tiles_of(end, T), 0, 0};
}

/* The producer of keys passes items to all other warps through two slots; `count` numbers them. */
DEVICE u32 slot_of(u32 base, int count)
{
    return base + count % 2 * 8;
}
DEVICE item *item_in_slot(int count)
{
    return (item *)(shared_memory + AT_ITEMS) + count % 2;
}
DEVICE void wait_item(u32 base, int count)
{
    mbarrier_wait(slot_of(base + ITEM_FULL, count), count / 2 % 2);
}
DEVICE item read_item(u32 base, int count)
{
    wait_item(base, count);
    return *item_in_slot(count);
}
/* Reads the item for a whole warp, which must have called wait_item. */
DEVICE item warp_item(int count)
{
    item r;
    const u32 *from = (const u32 *)item_in_slot(count);
    u32 *to = (u32 *)&r;
    UNROLL for (int i = 0; i < (int)(sizeof r / 4); i++) to[i] = warp_word(from + i);
    return r;
}
/* Signals that one thread has read the item, for itself or its warp. */
DEVICE void release_item(u32 base, int count)
{
    mbarrier_arrive(slot_of(base + ITEM_EMPTY, count));
}
/* Waits until item count - 2 has been read by all. */
DEVICE void wait_slot(u32 base, int count)
{
    mbarrier_wait(slot_of(base + ITEM_EMPTY, count), count / 2 % 2 ^ 1);
}
/* Passes on the block's item `count`: an item that failed, or item n if none failed. If there is no
 * item n, waits until the previous item is done, because it may have failed. */
DEVICE void put_item(u32 base, int count, int &n, int T, int H, int BH, int heads_at_once)
{
    item *to = item_in_slot(count), *last = item_in_slot(count + 1);
    wait_slot(base, count);
    bool again = count > 1 && to->failed;
    if (!again && count > 0 && n >= items_of(T, BH)) {
        wait_slot(base, count + 1);
        again = last->failed;
        if (again) *to = *last;
        last->failed = 0;
    }
    if (again) {
        to->redo = to->failed;
        to->failed = 0;
    } else {
        *to = item_at(n, count, T, H, BH, heads_at_once);
        if (n < items_of(T, BH)) n = next_item();
    }
    mbarrier_arrive(slot_of(base + ITEM_FULL, count));
}
