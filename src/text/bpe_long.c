#include "text/bpe_long.h"

#include "base/heap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_BITS = 24, ROOT = 0 };
static const uint64_t empty = UINT64_MAX;

struct bpe_long {
    const struct bpe *bpe;
    pthread_mutex_t lock;
    _Atomic bool filled;
    uint32_t *shorter; /* by rank: the longest token that is a proper prefix, or BPE_NONE */
    /* A trie of the tokens. `edge` is a hash table from a node and a byte to the next node; `token`
     * is the token that ends at a node, or BPE_NONE. */
    uint64_t *edge;
    int edge_bits, nodes;
    uint32_t *token;
};

struct bpe_long *bpe_long_open(const struct bpe *b)
{
    struct bpe_long *w = HEAP_NEW(struct bpe_long, 1);
    w->bpe = b;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void bpe_long_close(struct bpe_long *w)
{
    pthread_mutex_destroy(&w->lock);
    free(w->shorter);
    free(w->edge);
    free(w->token);
    free(w);
}

/* --- the trie --------------------------------------------------------------------------------- */

/* The slot of the edge from `node` by `byte`, or the empty slot for it. */
static uint64_t *find_edge(const struct bpe_long *w, uint32_t node, uint8_t byte)
{
    uint64_t key = (uint64_t)node << 8 | byte, most = ((uint64_t)1 << w->edge_bits) - 1;
    uint64_t i = key * 0x9e3779b97f4a7c15u >> (64 - w->edge_bits);
    while (w->edge[i] != empty && w->edge[i] >> NODE_BITS != key) i = (i + 1) & most;
    return &w->edge[i];
}

static uint32_t node_of(uint64_t edge)
{
    return edge & (((uint64_t)1 << NODE_BITS) - 1);
}

static void add_token(struct bpe_long *w, const struct token_text *t, uint32_t rank)
{
    uint32_t node = ROOT;
    for (int i = 0; i < t->length; i++) {
        uint64_t *edge = find_edge(w, node, (uint8_t)t->bytes[i]);
        if (*edge == empty) {
            uint64_t key = (uint64_t)node << 8 | (uint8_t)t->bytes[i];
            *edge = key << NODE_BITS | (uint64_t)w->nodes++;
        }
        node = node_of(*edge);
    }
    w->token[node] = rank;
}

/* The longest token with which the text begins; each single byte is a token. */
static uint32_t longest(const struct bpe_long *w, const char *text, int64_t n)
{
    uint32_t node = ROOT, found = BPE_NONE;
    for (int64_t i = 0; i < n; i++) {
        uint64_t edge = *find_edge(w, node, (uint8_t)text[i]);
        if (edge == empty) break;
        node = node_of(edge);
        if (w->token[node] != BPE_NONE) found = w->token[node];
    }
    return found;
}

/* --- filling the tables ----------------------------------------------------------------------- */

static void fill(struct bpe_long *w)
{
    const struct bpe *b = w->bpe;
    int64_t nodes = 1;
    for (int r = 0; r < b->ranks; r++) nodes += b->text[b->id[r]].length;
    while ((int64_t)1 << w->edge_bits < 2 * nodes) w->edge_bits++;
    w->edge = heap_alloc((int64_t)sizeof *w->edge << w->edge_bits);
    memset(w->edge, 0xff, sizeof *w->edge << w->edge_bits);
    w->token = heap_alloc(nodes * (int64_t)sizeof *w->token);
    memset(w->token, 0xff, (size_t)nodes * sizeof *w->token);
    w->nodes = 1;
    w->shorter = HEAP_NEW(uint32_t, b->ranks);
    for (uint32_t r = 0; r < (uint32_t)b->ranks; r++)
        if (bpe_is_made(b, r)) add_token(w, &b->text[b->id[r]], r);
    for (int r = 0; r < b->ranks; r++) {
        const struct token_text *t = &b->text[b->id[r]];
        w->shorter[r] = longest(w, t->bytes, t->length - 1);
    }
}

static void fill_once(struct bpe_long *w)
{
    if (w->filled) return;
    pthread_mutex_lock(&w->lock);
    if (!w->filled) fill(w);
    w->filled = true;
    pthread_mutex_unlock(&w->lock);
}

/* --- the search ------------------------------------------------------------------------------- */

struct walking {
    uint8_t *left; /* a bit for each place: the search has removed a token that ended there */
    uint32_t *token;
    int64_t tokens, at;
};

static int length_of(const struct bpe *b, uint32_t rank)
{
    return b->text[b->id[rank]].length;
}

/* Appends the longest token that can follow the last token: `token` or a shorter prefix of it that
 * is a token. Returns false if none can. */
static bool advance(const struct bpe_long *w, struct walking *x, uint32_t token)
{
    for (; token != BPE_NONE; token = w->shorter[token]) {
        int64_t end = x->at + length_of(w->bpe, token);
        if (x->left[end / 8] >> end % 8 & 1) continue;
        if (x->tokens && !bpe_go_together(w->bpe, x->token[x->tokens - 1], token, BPE_NONE))
            continue;
        x->token[x->tokens++] = token;
        x->at = end;
        return true;
    }
    return false;
}

int64_t bpe_long_merge(struct bpe_long *w, const char *text, int64_t n, uint32_t *ret)
{
    fill_once(w);
    struct walking x = {.left = HEAP_NEW(uint8_t, n / 8 + 1), .token = ret};
    uint32_t next = longest(w, text, n);
    while (x.at < n) {
        if (advance(w, &x, next)) {
            next = longest(w, text + x.at, n - x.at);
            continue;
        }
        BUG_IF(x.tokens == 0, "a fragment of %lld bytes has no encoding", (long long)n);
        x.left[x.at / 8] |= (uint8_t)(1 << x.at % 8);
        next = x.token[--x.tokens];
        x.at -= length_of(w->bpe, next);
    }
    free(x.left);
    return x.tokens;
}
