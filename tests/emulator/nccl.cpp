/* NCCL between processes of one machine, each with an emulated GPU: collectives run on their stream
 * and meet in shared memory. Sums are in the order of the ranks; those of bf16 are rounded after
 * each addition, as a ring rounds them.
 *
 * EMU_NCCL makes rank EMU_NCCL_RANK fail: init: it cannot join; call: a collective is refused when
 * it is enqueued; async: it fails as it runs; hang: it does not end. The collectives before number
 * EMU_NCCL_AFTER succeed. With EMU_NCCL_ABORT an abort does not end. */
#include "engine.hpp"
#include "streams.hpp"

#include <atomic>
#include <fcntl.h>
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INTERNAL_ERROR = 3, INVALID_ARGUMENT = 4, REMOTE_ERROR = 6 };
enum { FLOAT = 7, BFLOAT16 = 9, SUM = 0, ID_BYTES = 128 };
enum : size_t { SLOT = 1 << 20 }; /* bytes that each rank hands over at once */

struct shared {
    std::atomic<int> joined, arrived, round, left;
};

} // namespace

struct ncclUniqueId {
    char name[ID_BYTES];
};

struct ncclComm {
    int rank, ranks;
    shared *meeting; /* then a slot of each rank */
    size_t bytes;
    std::atomic<bool> aborted;
    std::atomic<int> error;
    long long enqueued, ran;
    std::shared_ptr<int> used; /* also by each collective on a stream or in a captured graph */
    char *slot(int r) { return (char *)(meeting + 1) + (size_t)r * SLOT; }
};

namespace
{

bool fails(const char *how, int rank)
{
    const char *wanted = getenv("EMU_NCCL");
    return wanted && !strcmp(wanted, how) && rank == emu_number("EMU_NCCL_RANK", 1);
}

/* False: the communicator was aborted. */
bool sleep_until_aborted(const ncclComm *c)
{
    while (!c->aborted) usleep(200);
    return false;
}

bool meet(ncclComm *c)
{
    shared *m = c->meeting;
    int round = m->round;
    if (++m->arrived == c->ranks) {
        m->arrived = 0;
        m->round++;
        return true;
    }
    for (int turn = 0; m->round == round; turn++) {
        if (c->aborted) return false;
        usleep(turn < 100 ? 0 : 50);
    }
    return true;
}

float value_of(const char *from, int type, size_t i)
{
    if (type == FLOAT) return ((const float *)from)[i];
    unsigned bits = (unsigned)((const unsigned short *)from)[i] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To the nearest, to even in the middle. */
float rounded(float x, int type)
{
    unsigned bits;
    if (type == FLOAT || x != x) return x;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void put(char *to, int type, size_t i, float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    if (type == FLOAT)
        ((float *)to)[i] = x;
    else
        ((unsigned short *)to)[i] = (unsigned short)(bits >> 16);
}

/* A collective on n elements, of which this rank gives give_first ... give_end - 1, at `give`, and
 * gets get_first ... get_end - 1, at `get`. Element i is the sum of all ranks, or what rank
 * first_giver + i / each gives. */
struct collective {
    size_t n, give_first, give_end, get_first, get_end;
    const char *give;
    char *get;
    int type;
    bool sums;
    size_t each;
    int first_giver;
};

bool part(ncclComm *c, const collective &o, size_t from, size_t end)
{
    size_t size = o.type == FLOAT ? 4 : 2;
    size_t first = from > o.give_first ? from : o.give_first;
    size_t last = end < o.give_end ? end : o.give_end;
    if (first < last)
        memcpy(c->slot(c->rank) + (first - from) * size, o.give + (first - o.give_first) * size,
               (last - first) * size);
    if (!meet(c)) return false;
    first = from > o.get_first ? from : o.get_first;
    last = end < o.get_end ? end : o.get_end;
    for (size_t i = first; i < last; i++) {
        int owner = o.sums ? 0 : o.first_giver + (int)(i / o.each);
        float x = value_of(c->slot(owner), o.type, i - from);
        for (int r = 1; o.sums && r < c->ranks; r++)
            x = rounded(x + value_of(c->slot(r), o.type, i - from), o.type);
        put(o.get, o.type, i - o.get_first, x);
    }
    return meet(c);
}

bool run(ncclComm *c, const collective &o)
{
    size_t chunk = SLOT / (o.type == FLOAT ? 4 : 2);
    bool fault = c->ran++ >= emu_number("EMU_NCCL_AFTER", 0);
    if (fault && fails("hang", c->rank)) return sleep_until_aborted(c);
    if (fault && fails("async", c->rank)) {
        c->error = REMOTE_ERROR;
        return sleep_until_aborted(c);
    }
    for (size_t at = 0; at < o.n; at += chunk)
        if (!part(c, o, at, at + chunk < o.n ? at + chunk : o.n)) return false;
    return true;
}

int enqueue(ncclComm *c, const collective &o, CUstream stream)
{
    if (o.type != FLOAT && o.type != BFLOAT16) return INVALID_ARGUMENT;
    if (c->enqueued++ >= emu_number("EMU_NCCL_AFTER", 0) && fails("call", c->rank))
        return INTERNAL_ERROR;
    emu_what what = {EMU_KERNEL, "ncclDevKernel", 0, 0};
    CUresult r = emu_enqueue(stream, 0.01, what, [c, o, used = c->used] {
        (void)run(c, o);
        return CUDA_SUCCESS;
    });
    return r == CUDA_SUCCESS ? SUCCESS : 1;
}

/* As NCCL does, waits for the device, and until captured graphs with its collectives are freed. */
int release(ncclComm *c)
{
    while (c->used.use_count() > 1 && emu_fault() == CUDA_SUCCESS) {
        (void)cuCtxSynchronize();
        usleep(200);
    }
    munmap(c->meeting, c->bytes);
    delete c;
    return SUCCESS;
}

} // namespace

extern "C" {

const char *ncclGetErrorString(int r)
{
    return r == SYSTEM_ERROR     ? "unhandled system error"
           : r == INTERNAL_ERROR ? "internal error"
           : r == REMOTE_ERROR   ? "remote process exited or there was a network error"
           : r == SUCCESS        ? "no error"
                                 : "invalid argument";
}

int ncclGetVersion(int *version)
{
    *version = 22803;
    return SUCCESS;
}

int ncclGetUniqueId(ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->name, sizeof id->name, "/emulated-nccl-%d-%lld", (int)getpid(), emu_host_ns());
    return SUCCESS;
}

int ncclCommInitRank(ncclComm **ret, int ranks, ncclUniqueId id, int rank)
{
    if (fails("init", rank)) return SYSTEM_ERROR;
    size_t bytes = sizeof(shared) + (size_t)ranks * SLOT;
    int file = shm_open(id.name, O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return SYSTEM_ERROR;
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (m == MAP_FAILED) return SYSTEM_ERROR;
    ncclComm *c = new ncclComm{};
    c->rank = rank, c->ranks = ranks, c->meeting = (shared *)m, c->bytes = bytes;
    c->used = std::make_shared<int>();
    c->meeting->joined++;
    while (c->meeting->joined < ranks) usleep(200);
    if (rank == 0) shm_unlink(id.name);
    *ret = c;
    return SUCCESS;
}

/* As NCCL does, waits for all ranks of the machine to leave. */
int ncclCommDestroy(ncclComm *c)
{
    c->meeting->left++;
    while (c->meeting->left < c->ranks && emu_fault() == CUDA_SUCCESS) usleep(200);
    return release(c);
}

/* Work that is still on a stream ends without effect. */
int ncclCommAbort(ncclComm *c)
{
    while (getenv("EMU_NCCL_ABORT")) usleep(1000); /* never ends */
    c->aborted = true;
    return release(c);
}

int ncclCommGetAsyncError(ncclComm *c, int *error)
{
    *error = c->error;
    return SUCCESS;
}

int ncclGroupStart(void)
{
    return SUCCESS;
}

int ncclGroupEnd(void)
{
    return SUCCESS;
}

int ncclAllReduce(const void *give, void *get, size_t n, int type, int, ncclComm *c, CUstream s)
{
    return enqueue(c, {n, 0, n, 0, n, (const char *)give, (char *)get, type, true, n, 0}, s);
}

int ncclReduce(const void *give, void *get, size_t n, int type, int, int root, ncclComm *c,
               CUstream s)
{
    size_t got = c->rank == root ? n : 0;
    return enqueue(c, {n, 0, n, 0, got, (const char *)give, (char *)get, type, true, n, 0}, s);
}

int ncclReduceScatter(const void *give, void *get, size_t each, int type, int, ncclComm *c,
                      CUstream s)
{
    size_t n = each * (size_t)c->ranks, first = each * (size_t)c->rank;
    return enqueue(
        c, {n, 0, n, first, first + each, (const char *)give, (char *)get, type, true, each, 0}, s);
}

int ncclAllGather(const void *give, void *get, size_t each, int type, ncclComm *c, CUstream s)
{
    size_t n = each * (size_t)c->ranks, first = each * (size_t)c->rank;
    return enqueue(
        c, {n, first, first + each, 0, n, (const char *)give, (char *)get, type, false, each, 0},
        s);
}

int ncclBroadcast(const void *give, void *get, size_t n, int type, int root, ncclComm *c,
                  CUstream s)
{
    size_t given = c->rank == root ? n : 0;
    return enqueue(c, {n, 0, given, 0, n, (const char *)give, (char *)get, type, false, n, root},
                   s);
}
}
