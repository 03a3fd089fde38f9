#include "text/bpe.h"

#include <string.h>

/* A slot of the hash table of pairs: two ranks and the rank of the result, 21 bits each. */
enum { RANK_BITS = 21, RANK_MASK = (1 << RANK_BITS) - 1, BYTES = 256 };
static const uint64_t empty = UINT64_MAX;

static uint64_t pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << RANK_BITS | right;
}

static uint64_t pair_slot(const struct bpe *b, uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> (64 - b->pair_bits);
}

uint32_t bpe_joined(const struct bpe *b, uint32_t left, uint32_t right)
{
    uint64_t key = pair_key(left, right), most = ((uint64_t)1 << b->pair_bits) - 1;
    for (uint64_t i = pair_slot(b, key);; i = (i + 1) & most) {
        if (b->pair[i] >> RANK_BITS == key) return b->pair[i] & RANK_MASK;
        if (b->pair[i] == empty) return BPE_NONE;
    }
}

static void add_pair(struct bpe *b, uint32_t left, uint32_t right, uint32_t result)
{
    uint64_t key = pair_key(left, right), most = ((uint64_t)1 << b->pair_bits) - 1;
    uint64_t i = pair_slot(b, key);
    while (b->pair[i] != empty && b->pair[i] >> RANK_BITS != key) i = (i + 1) & most;
    if (b->pair[i] == empty) b->pair[i] = key << RANK_BITS | result;
}

/* The tokens of the single bytes get ranks 0 to 255. */
static enum status rank_bytes(const struct token_text *text, int ids, uint32_t *id, uint32_t *rank)
{
    int found = 0;
    for (int i = 0; i < ids; i++) {
        if (text[i].length != 1) continue;
        uint8_t byte = (uint8_t)text[i].bytes[0];
        if (id[byte] != BPE_NONE)
            return fail(ST_FORMAT, "tokens %u and %d of the vocabulary are the same byte 0x%02x",
                        id[byte], i, byte);
        id[byte] = (uint32_t)i;
        rank[i] = byte;
        found++;
    }
    if (found == BYTES) return ST_OK;
    int missing = 0;
    while (id[missing] != BPE_NONE) missing++;
    return fail(ST_FORMAT,
                "byte 0x%02x is not a token of the vocabulary; a byte-level vocabulary has all 256",
                (unsigned)missing);
}

/* The result of each merge gets the next rank. Consecutive merges may make the same token. */
static enum status rank_results(const struct bpe_merge *merge, int64_t merges, int ids,
                                uint32_t *id, uint32_t *rank, int *ret_ranks)
{
    int ranks = BYTES;
    for (int64_t i = 0; i < merges; i++) {
        const struct bpe_merge *m = &merge[i];
        BUG_IF(m->left >= (uint32_t)ids || m->right >= (uint32_t)ids || m->result >= (uint32_t)ids,
               "merge %lld of ids %u, %u, %u", (long long)i, m->left, m->right, m->result);
        if (rank[m->result] == (uint32_t)ranks - 1 && ranks > BYTES) continue;
        if (rank[m->result] != BPE_NONE)
            return fail(ST_FORMAT, "merge %lld makes token %u, which an earlier one made already",
                        (long long)i + 1, m->result);
        id[ranks] = m->result;
        rank[m->result] = (uint32_t)ranks++;
    }
    *ret_ranks = ranks;
    return ST_OK;
}

bool bpe_is_made(const struct bpe *b, uint32_t rank)
{
    return rank < BYTES || b->parts[rank].left != BPE_NONE;
}

/* Encoding joins pairs in the order of ranks, since the parts of a token have lower ranks than the
 * token. This loop undoes the joins next to the border between the two tokens, beginning with the
 * latest join. If the pair across the border has a lower rank than a join that is undone, the
 * encoding would have joined that pair first, so the encoding of the joined text is different. */
bool bpe_go_together(const struct bpe *b, uint32_t left, uint32_t right, uint32_t limit)
{
    for (;;) {
        if (bpe_joined(b, left, right) < limit) return false;
        /* Of two pairs with equal ranks the left pair was joined first: undo the right pair
         * first. */
        if (left > right && left >= BYTES) {
            limit = left;
            left = b->parts[left].right;
        } else if (right >= BYTES) {
            limit = right + 1;
            right = b->parts[right].left;
        } else if (left >= BYTES) {
            limit = left;
            left = b->parts[left].right;
        } else {
            return true;
        }
    }
}

/* Adds the merges that join two tokens of lower ranks than the result. Other merges are never used,
 * because all pairs within a token's text are joined before, so they are left out; the lists of all
 * merges that are made from tiktoken's ranks have such merges. A merge that is left out is an error
 * only if no other merge makes its result. */
static enum status add_pairs(struct bpe *b, const struct bpe_merge *merge, int64_t merges,
                             const uint32_t *rank)
{
    for (int64_t i = 0; i < merges; i++) {
        uint32_t left = rank[merge[i].left], right = rank[merge[i].right],
                 result = rank[merge[i].result];
        if (left == BPE_NONE || right == BPE_NONE)
            return fail(ST_FORMAT, "merge %lld joins token %u, which no merge makes",
                        (long long)i + 1, left == BPE_NONE ? merge[i].left : merge[i].right);
        if (left >= result || right >= result) continue;
        add_pair(b, left, right, result);
        if (!bpe_is_made(b, result) && bpe_is_made(b, left) && bpe_is_made(b, right) &&
            bpe_go_together(b, left, right, result))
            b->parts[result] = (struct bpe_pair){left, right};
    }
    for (int64_t i = 0; i < merges; i++)
        if (max_i64(rank[merge[i].left], rank[merge[i].right]) >= rank[merge[i].result] &&
            !bpe_is_made(b, rank[merge[i].result]))
            return fail(ST_FORMAT, "merge %lld joins tokens that only later merges make",
                        (long long)i + 1);
    return ST_OK;
}

static enum status check_length(const struct bpe *b)
{
    int64_t bytes = 0;
    for (int r = 0; r < b->ranks; r++) bytes += b->text[b->id[r]].length;
    if (bytes <= BPE_TEXT_MOST) return ST_OK;
    return fail(ST_FORMAT, "the tokens have %lld bytes together; at most %d are possible",
                (long long)bytes, BPE_TEXT_MOST);
}

static void note_bytes(struct bpe *b, struct arena *a)
{
    b->pair_of_bytes = ARENA_NEW(a, uint32_t, BYTES * BYTES);
    b->joined = ARENA_NEW(a, uint64_t, BYTES * BYTES / 64);
    for (uint32_t left = 0; left < BYTES; left++)
        for (uint32_t right = 0; right < BYTES; right++)
            b->pair_of_bytes[left * BYTES + right] = bpe_joined(b, left, right);
    for (int r = BYTES; r < b->ranks; r++) {
        const struct token_text *t = &b->text[b->id[r]];
        for (int i = 0; i + 1 < t->length; i++) {
            uint8_t left = (uint8_t)t->bytes[i], right = (uint8_t)t->bytes[i + 1];
            b->joined[left * 4 + right / 64] |= (uint64_t)1 << right % 64;
        }
    }
}

enum status bpe_build(struct bpe *b, const struct token_text *text, int ids,
                      const struct bpe_merge *merge, int64_t merges, struct arena *a)
{
    BUG_IF(ids > BPE_IDS_MOST, "a vocabulary of %d", ids);
    uint32_t *rank = ARENA_NEW(a, uint32_t, ids), *id = ARENA_NEW(a, uint32_t, ids + BYTES);
    *b = (struct bpe){.ids = ids, .text = text, .id = id, .pair_bits = 4};
    for (int i = 0; i < ids; i++) rank[i] = BPE_NONE;
    for (int i = 0; i < ids + BYTES; i++) id[i] = BPE_NONE;
    TRY(rank_bytes(text, ids, id, rank));
    TRY(rank_results(merge, merges, ids, id, rank, &b->ranks));
    TRY(check_length(b));
    b->parts = ARENA_NEW(a, struct bpe_pair, b->ranks);
    for (int r = 0; r < b->ranks; r++) b->parts[r] = (struct bpe_pair){BPE_NONE, BPE_NONE};
    while ((int64_t)1 << b->pair_bits < 2 * merges) b->pair_bits++;
    b->pair = ARENA_NEW(a, uint64_t, (int64_t)1 << b->pair_bits);
    memset(b->pair, 0xff, sizeof *b->pair << b->pair_bits);
    TRY(add_pairs(b, merge, merges, rank));
    note_bytes(b, a);
    return ST_OK;
}

/* The index of the pair of the earliest merge, the leftmost of equal pairs; -1: none. */
static int best_pair(const uint32_t *pair, int n)
{
    uint32_t best = BPE_NONE;
    for (int i = 0; i < n; i++) best = pair[i] < best ? pair[i] : best;
    if (best == BPE_NONE) return -1;
    int i = 0;
    while (pair[i] != best) i++;
    return i;
}

int bpe_merge_short(const struct bpe *b, const char *text, int n, uint32_t *ret)
{
    uint32_t token[BPE_SHORT_MOST], pair[BPE_SHORT_MOST]; /* pair[i]: tokens i, i + 1 joined */
    BUG_IF(n < 1 || n > BPE_SHORT_MOST, "a fragment of %d bytes", n);
    for (int i = 0; i < n; i++) token[i] = (uint8_t)text[i];
    for (int i = 0; i + 1 < n; i++) pair[i] = b->pair_of_bytes[token[i] * BYTES + token[i + 1]];
    for (int i; n > 1 && (i = best_pair(pair, n - 1)) >= 0;) {
        token[i] = pair[i];
        n--;
        size_t rest = (size_t)(n - 1 - i);
        memmove(token + i + 1, token + i + 2, rest * sizeof *token);
        if (rest) memmove(pair + i + 1, pair + i + 2, (rest - 1) * sizeof *pair);
        if (i > 0) pair[i - 1] = bpe_joined(b, token[i - 1], token[i]);
        if (i + 1 < n) pair[i] = bpe_joined(b, token[i], token[i + 1]);
    }
    memcpy(ret, token, (size_t)n * sizeof *token);
    return n;
}
