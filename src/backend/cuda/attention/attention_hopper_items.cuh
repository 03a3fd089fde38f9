/* attention_hopper_items.cuh - who has which rows in attention_hopper.cu: items, how they go to warpgroups, and what comes back.
 *
 * An item is ROWS query rows of one head. Items are counted through `group` heads at a time, those with the most keys first. Rows
 * are cut from the end of the sequence, in 64s, so that consumers without rows are those of the item with the fewest keys: and
 * not the same ones each time, for such items come together, at the end of a launch. */
#pragma once
#include "attention_hopper_counter.cuh"

struct __align__(16) item {
    int b, h, row, end, tiles; /* of which head, rows from here (may be negative) to there, tiles of keys; of none: no more items */
    u32 redo, failed; /* consumers, as bits: who does it again, or none: all do it first; for whom it is to be done again */
};
DEVICE int tiles_of(int rows, int T) /* that the rows before this one see */
{
    return ceil_div(CAUSAL ? min(rows, T) : T, KEYS);
}
DEVICE bool has_rows(const item &i, int w)
{
    int row = i.row + 64 * w;
    return row >= 0 && row < i.end && (!i.redo || i.redo >> w & 1);
}
DEVICE int items_of(int T, int BH)
{
    return ceil_div(T, ROWS) * BH;
}
/* Item n, a block's `count`-th. */
DEVICE item item_at(int n, int count, int T, int H, int BH, int group)
{
    if (n >= items_of(T, BH)) return {};
    int row_tiles = ceil_div(T, ROWS), section = n / (group * row_tiles), rest = n % (group * row_tiles);
    int heads = min(group, BH - section * group), bh = section * group + rest % heads;
    int end = (T + 63) / 64 * 64 - rest / heads * ROWS, row = end - ROWS;
    if (row < 0) row = -64 * (count % (1 - row / 64)); /* its rows go to these consumers, or those */
    return {bh / H, bh % H, row, end, tiles_of(end, T), 0, 0};
}

/* Items go from who loads keys to all others through two slots; `count` of them went before. */
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
/* The same for a warp. */
DEVICE item warp_item(int count)
{
    item r;
    const u32 *from = (const u32 *)item_in_slot(count);
    u32 *to = (u32 *)&r;
#pragma unroll
    for (int i = 0; i < (int)(sizeof r / 4); i++) to[i] = warp_word(from + i);
    return r;
}
/* By one thread, for itself or its warp. */
DEVICE void item_read(u32 base, int count)
{
    mbarrier_arrive(slot_of(base + ITEM_EMPTY, count));
}
/* Until item count - 2 was read by all. */
DEVICE void wait_slot(u32 base, int count)
{
    mbarrier_wait(slot_of(base + ITEM_EMPTY, count), count / 2 % 2 ^ 1);
}
/* Item `count`: one that has failed comes before number n, the next that nobody had. Where none is left, the last ones are
 * waited for: they may fail. */
DEVICE void put_item(u32 base, int count, int &n, int T, int H, int BH, int group)
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
        *to = item_at(n, count, T, H, BH, group);
        if (n < items_of(T, BH)) n = next_item();
    }
    mbarrier_arrive(slot_of(base + ITEM_FULL, count));
}
