/* Copies by tensor maps and bulk copies: registered when issued, done when a thread waits. */
#include "block.hpp"

#include <cuda.h>
#include <deque>
#include <string.h>
#include <vector>

namespace
{

enum : unsigned { THREADS_MOST = 1024 };
enum { POISON = 0xff, CHUNK = 16 };
const char MAP_WORD[8] = {'a', ' ', 't', 'e', 'n', 's', 'o', 'r'};

/* A copy to shared memory, and the bytes that a barrier then counts. */
struct load {
    bool boxed;
    emu_map map;
    int c[EMU_RANK];
    const void *from; /* of a bulk copy */
    unsigned to, barrier;
    int bytes;
};
std::deque<load> loads;

struct store {
    bool boxed, adds; /* neither: a flat copy */
    emu_map map;
    int c[EMU_RANK];
    float *to;
    unsigned from;
    int bytes;
};
/* Groups of each thread; the last is open. */
std::deque<std::vector<store>> stores[THREADS_MOST];
bool touched; /* any of these was used in this block */

std::deque<std::vector<store>> &mine()
{
    auto &groups = stores[emu_thread()];
    touched = true;
    if (groups.empty()) groups.emplace_back();
    return groups;
}

unsigned row_bytes(const emu_map &m)
{
    return m.box[0] * (unsigned)m.step[0];
}

int box_bytes(const emu_map &m)
{
    int rows = 1;
    for (int i = 1; i < EMU_RANK; i++) rows *= m.box[i];
    return rows * (int)row_bytes(m);
}

emu_map map_at(const void *p)
{
    emu_map m;
    memcpy(&m, p, sizeof m);
    if (memcmp(m.word, MAP_WORD, sizeof m.word)) emu_broken("this is not a tensor map");
    return m;
}

void check_shared(const emu_map &m, unsigned at)
{
    unsigned wanted = m.span ? 8u * m.span : 128;
    if (at % wanted) emu_broken_by("a box at byte %u, which is not a multiple of %u", at, wanted);
    emu_shared_at(at, (unsigned)box_bytes(m));
}

/* Calls f for each chunk of a box: its position in shared memory and in the tensor, and its number
 * of bytes inside. */
template <typename F> void each_chunk(const emu_map &m, const int *c, unsigned shared, F f)
{
    const unsigned chunks = row_bytes(m) / CHUNK;
    int i[EMU_RANK] = {};
    for (;;) {
        bool inside = true;
        char *row = m.at;
        for (int d = 1; d < EMU_RANK; d++) {
            long long x = (long long)c[d] + i[d];
            inside &= x >= 0 && x < (long long)m.dim[d];
            row += x * (long long)m.step[d];
        }
        for (unsigned k = 0; k < chunks; k++, shared += CHUNK) {
            long long first = (long long)c[0] * (long long)m.step[0] + k * CHUNK,
                      end = (long long)(m.dim[0] * m.step[0]);
            f(emu_swizzled(shared, m.span), row + first, first, inside ? end : -1);
        }
        int d = 1;
        for (; d < EMU_RANK && ++i[d] == m.box[d]; d++) i[d] = 0;
        if (d == EMU_RANK) return;
    }
}

/* To nearest, ties to even; infinities and NaN stay. */
void round_to_tf32(unsigned *p)
{
    enum : unsigned { LOST = 0x1fff, EXPONENT = 0x7f800000 };
    if ((*p & EXPONENT) != EXPONENT) *p = (*p + LOST / 2 + (*p >> 13 & 1)) & ~LOST;
}

void come(const load &l)
{
    if (l.boxed)
        each_chunk(l.map, l.c, l.to, [&](unsigned at, char *from, long long first, long long end) {
            unsigned char *to = emu_shared_at(at, CHUNK);
            for (int b = 0; b < CHUNK; b++)
                to[b] = first + b >= 0 && first + b < end ? (unsigned char)from[b] : 0;
            for (int i = 0; l.map.rounds && i < CHUNK / 4; i++) round_to_tf32((unsigned *)to + i);
        });
    else
        memcpy(emu_shared_at(l.to, (unsigned)l.bytes), l.from, (size_t)l.bytes);
    emu_barrier_complete(l.barrier, l.bytes);
}

void start(const load &l)
{
    emu_barrier_counts(l.barrier);
    memset(emu_shared_at(l.to, (unsigned)l.bytes), POISON, (size_t)l.bytes);
    if (emu_early())
        come(l);
    else
        loads.push_back(l);
}

void go(const store &s)
{
    const unsigned char *from = emu_shared_at(s.from, (unsigned)s.bytes);
    if (s.boxed)
        each_chunk(s.map, s.c, s.from, [](unsigned at, char *to, long long first, long long end) {
            const unsigned char *chunk = emu_shared_at(at, CHUNK);
            for (int b = 0; b < CHUNK; b++)
                if (first + b >= 0 && first + b < end) to[b] = (char)chunk[b];
        });
    else if (s.adds)
        for (int i = 0; i < s.bytes / 4; i++) s.to[i] += ((const float *)from)[i];
    else
        memcpy(s.to, from, (size_t)s.bytes);
}

void start(const store &s)
{
    emu_visible(s.from, (unsigned)s.bytes, emu_fenced());
    if (emu_early())
        go(s);
    else
        mine().back().push_back(s);
}

bool box_fits(const emu_map &m)
{
    unsigned row = row_bytes(m);
    if ((size_t)m.at % 16 || row % 16 || (m.span && row != m.span)) return false;
    for (int i = 0; i < EMU_RANK; i++)
        if (!m.dim[i] || m.dim[i] > 1ull << 32 || !m.box[i] || m.box[i] > 256 ||
            (i && (m.step[i] % 16 || m.step[i] >> 40)))
            return false;
    return true;
}

} // namespace

/* Of rank 5, as the program makes them; a row of a box is as long as the swizzle span. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *ret, CUtensorMapDataType type, cuuint32_t rank,
                                void *at, const cuuint64_t *dim, const cuuint64_t *step,
                                const cuuint32_t *box, const cuuint32_t *each,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill)
{
    static const unsigned short spans[] = {0, 32, 64, 128};
    emu_map m = {};
    static_assert(sizeof m <= sizeof *ret, "a map has 128 bytes");
    if ((size_t)ret % 64 || rank != EMU_RANK || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
        (type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 && type != CU_TENSOR_MAP_DATA_TYPE_FLOAT32 &&
         type != CU_TENSOR_MAP_DATA_TYPE_TFLOAT32))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(m.word, MAP_WORD, sizeof m.word);
    m.at = (char *)at;
    m.span = spans[swizzle];
    m.rounds = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    for (int i = 0; i < EMU_RANK; i++) {
        if (each[i] != 1 || box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
        m.dim[i] = dim[i];
        m.box[i] = (unsigned short)box[i];
        m.step[i] = i ? step[i - 1] : type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 ? 2 : 4;
    }
    if (!box_fits(m)) return CUDA_ERROR_INVALID_VALUE;
    memset((void *)ret, 0, sizeof *ret);
    memcpy((void *)ret, &m, sizeof m);
    return CUDA_SUCCESS;
}

void emu_load_box(unsigned to, const void *map, unsigned barrier, const int *c)
{
    load l = {};
    l.boxed = true;
    l.map = map_at(map);
    memcpy(l.c, c, sizeof l.c);
    l.to = to;
    l.barrier = barrier;
    l.bytes = box_bytes(l.map);
    check_shared(l.map, to);
    start(l);
}

void emu_load(unsigned to, const void *from, int bytes, unsigned barrier)
{
    if (to % 16 || (size_t)from % 16 || bytes < 16 || bytes % 16)
        emu_broken("a bulk copy whose addresses or size are not multiples of 16 bytes");
    load l = {};
    l.from = from;
    l.to = to;
    l.barrier = barrier;
    l.bytes = bytes;
    start(l);
}

void emu_store_box(const void *map, unsigned from, const int *c)
{
    store s = {};
    s.boxed = true;
    s.map = map_at(map);
    memcpy(s.c, c, sizeof s.c);
    s.from = from;
    s.bytes = box_bytes(s.map);
    check_shared(s.map, from);
    start(s);
}

static void store_flat(bool adds, void *to, unsigned from, int bytes)
{
    if (from % 16 || (size_t)to % 16 || bytes < 16 || bytes % 16)
        emu_broken("a bulk store whose addresses or size are not multiples of 16 bytes");
    store s = {};
    s.adds = adds;
    s.to = (float *)to;
    s.from = from;
    s.bytes = bytes;
    start(s);
}

void emu_add(float *to, unsigned from, int bytes)
{
    store_flat(true, to, from, bytes);
}

void emu_store(void *to, unsigned from, int bytes)
{
    store_flat(false, to, from, bytes);
}

void emu_store_commit()
{
    mine().emplace_back();
}

void emu_store_wait(int groups)
{
    while ((int)mine().size() - 1 > groups) {
        for (const store &s : mine().front()) go(s);
        mine().pop_front();
    }
}

bool emu_tensors_proceed()
{
    if (loads.empty()) return false;
    load first = loads.front();
    loads.pop_front();
    come(first);
    return true;
}

void emu_tensors_begin()
{
    loads.clear();
    if (!touched) return;
    touched = false;
    for (auto &groups : stores) groups.clear();
}

void emu_tensors_thread_ends()
{
    for (const auto &group : stores[emu_thread()])
        if (!group.empty()) emu_broken("a thread ends without waiting for its stores");
}

void emu_tensors_end()
{
    if (!loads.empty()) emu_broken("the block ends while a copy to its shared memory is in flight");
}

const emu_hopper emu_hopper_functions = {
    emu_wgmma_add,     emu_wgmma_fence,    emu_wgmma_commit,  emu_wgmma_wait,  emu_barrier_init,
    emu_barrier_fence, emu_barrier_arrive, emu_barrier_wait,  emu_fence_async, emu_wrote,
    emu_load_box,      emu_store_box,      emu_load,          emu_add,         emu_store,
    emu_store_commit,  emu_store_wait,     emu_named_barrier, emu_registers,   emu_dependents_wait};
