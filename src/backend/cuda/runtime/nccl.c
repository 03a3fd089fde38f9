#include "backend/cuda/runtime/nccl.h"

#include "base/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NCCL_SUCCESS = 0, NCCL_FLOAT = 7, NCCL_BFLOAT16 = 9, NCCL_SUM = 0, NOTES = 1024 };

typedef struct ncclComm *comm;
struct nccl_id {
    char bytes[128];
};

/* All return an int but the first; 0 is success. */
/* clang-format off */
#define NCCL_LIST(F)                                                                            \
    F(ncclGetErrorString, const char *, (int))                                                  \
    F(ncclGetVersion, int, (int *))                                                             \
    F(ncclGetUniqueId, int, (struct nccl_id *))                                                 \
    F(ncclCommInitRank, int, (comm *, int, struct nccl_id, int))                                \
    F(ncclCommDestroy, int, (comm))                                                             \
    F(ncclCommAbort, int, (comm))                                                               \
    F(ncclCommGetAsyncError, int, (comm, int *))                                                \
    F(ncclGroupStart, int, (void))                                                              \
    F(ncclGroupEnd, int, (void))                                                                \
    F(ncclAllReduce, int, (const void *, void *, size_t, int, int, comm, CUstream))             \
    F(ncclReduce, int, (const void *, void *, size_t, int, int, int, comm, CUstream))           \
    F(ncclReduceScatter, int, (const void *, void *, size_t, int, int, comm, CUstream))         \
    F(ncclAllGather, int, (const void *, void *, size_t, int, comm, CUstream))                  \
    F(ncclBroadcast, int, (const void *, void *, size_t, int, int, comm, CUstream))
/* clang-format on */

#define MEMBER(name, type, parameters) type(*name) parameters;
#define SYMBOL(name, type, parameters) #name,
struct library {
    NCCL_LIST(MEMBER)
};

static const struct library *library(const char **ret_why)
{
    static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
    static const char *const symbols[] = {NCCL_LIST(SYMBOL)};
    static struct library table;
    static struct library_state l;
    _Static_assert(sizeof table == sizeof symbols, "one pointer per name");
    return library_table(&l, names, false, symbols, COUNT_OF(symbols), &table, ret_why);
}

struct nccl {
    const struct library *library;
    comm comm;
    int rank, ranks;
    bool failed;
    struct note {
        const void *data;
        CUevent event;
    } note[NOTES];
    int notes;
};

static enum status check(struct nccl *n, int r, const char *doing)
{
    if (r == NCCL_SUCCESS) return ST_OK;
    n->failed = true;
    return fail(ST_DEVICE, "NCCL cannot %s: %s (NCCL_DEBUG=WARN says more)", doing,
                n->library->ncclGetErrorString(r));
}

enum status nccl_open(struct nccl **ret, struct communicator *c)
{
    struct nccl_id id = {0};
    const char *why;
    const struct library *l = library(&why);
    if (!l) return fail(ST_UNSUPPORTED, "ranks on several GPUs need NCCL: %s", why);
    struct nccl *n = HEAP_NEW(struct nccl, 1);
    n->library = l;
    n->rank = communicator_rank(c);
    n->ranks = communicator_ranks(c);
    enum status st = n->rank ? ST_OK : check(n, l->ncclGetUniqueId(&id), "make an id");
    if (st == ST_OK) st = communicator_tell(c, &id, sizeof id);
    if (st == ST_OK)
        st = check(n, l->ncclCommInitRank(&n->comm, n->ranks, id, n->rank), "join the GPUs");
    if (st == ST_OK)
        *ret = n;
    else
        free(n);
    return st;
}

static int number_of(const struct type *t)
{
    return t->dtype == DT_BF16 ? NCCL_BFLOAT16 : NCCL_FLOAT;
}

/* In place, as NCCL wants it: shard r is `each` elements from r * each on. The last shards of a
 * range may be shorter; then each is a call of its own to its rank or from it. */
static enum status shards(struct nccl *n, bool scatter, char *data, const struct type *t,
                          CUstream s)
{
    const struct library *l = n->library;
    int64_t count = type_elements(t), bytes = dtype_size(t->dtype);
    struct group_shard own = group_shard(count, n->ranks, n->rank);
    size_t each = (size_t)(own.end - own.first);
    char *mine = data + own.first * bytes;
    int type = number_of(t);
    if (count == (int64_t)each * n->ranks)
        return scatter
                   ? check(n, l->ncclReduceScatter(data, mine, each, type, NCCL_SUM, n->comm, s),
                           "reduce shards")
                   : check(n, l->ncclAllGather(mine, data, each, type, n->comm, s),
                           "gather shards");
    TRY(check(n, l->ncclGroupStart(), "group calls"));
    for (int r = 0; r < n->ranks; r++) {
        struct group_shard of = group_shard(count, n->ranks, r);
        char *x = data + of.first * bytes;
        size_t size = (size_t)(of.end - of.first);
        if (!size) continue;
        TRY(scatter
                ? check(n, l->ncclReduce(x, x, size, type, NCCL_SUM, r, n->comm, s),
                        "reduce a shard")
                : check(n, l->ncclBroadcast(x, x, size, type, r, n->comm, s), "gather a shard"));
    }
    return check(n, l->ncclGroupEnd(), "group calls");
}

enum status nccl_run(struct nccl *n, enum collective what, void *data, const struct type *t,
                     CUstream stream)
{
    const struct library *l = n->library;
    size_t size = (size_t)type_elements(t);
    int type = number_of(t);
    switch (what) {
    case COLLECTIVE_ALL_REDUCE:
        return check(n, l->ncclAllReduce(data, data, size, type, NCCL_SUM, n->comm, stream), "sum");
    case COLLECTIVE_REDUCE_SCATTER:
        return shards(n, true, data, t, stream);
    case COLLECTIVE_ALL_GATHER:
        return shards(n, false, data, t, stream);
    case COLLECTIVE_BROADCAST:
        return check(n, l->ncclBroadcast(data, data, size, type, 0, n->comm, stream), "broadcast");
    case COLLECTIVE_GATHER:
    case COLLECTIVE_TELL:
        break;
    }
    return ST_OK;
}

void nccl_note(struct nccl *n, const void *data, CUevent event)
{
    int i = 0;
    while (i < n->notes && n->note[i].data != data) i++;
    BUG_IF(i == NOTES, "more than %d ranges are in flight", NOTES);
    n->note[i] = (struct note){data, event};
    if (i == n->notes) n->notes++;
}

CUevent nccl_event(const struct nccl *n, const void *data)
{
    int i = 0;
    while (i < n->notes && n->note[i].data != data) i++;
    BUG_IF(i == n->notes, "no collective was started on this memory");
    return n->note[i].event;
}

void nccl_close(struct nccl *n)
{
    if (!n) return;
    if (n->failed)
        n->library->ncclCommAbort(n->comm);
    else
        n->library->ncclCommDestroy(n->comm);
    free(n);
}

const char *nccl_missing(char ret_version[48])
{
    const char *why;
    int v = 0;
    const struct library *l = library(&why);
    ret_version[0] = '\0';
    if (!l) return why;
    if (l->ncclGetVersion(&v) == NCCL_SUCCESS)
        snprintf(ret_version, 48, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return NULL;
}
