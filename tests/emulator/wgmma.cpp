/* WGMMA: the last thread that waits for a WGMMA computes all of it, in order of k. */
#include "block.hpp"

#include <deque>
#include <math.h>
#include <string.h>
#include <vector>

namespace
{

enum : unsigned { GROUP = 128, GROUPS = 1024 / GROUP, ROWS = 64, SUM = 16, WIDEST = 256 };
enum { ACCUMULATORS = 16 };

/* A WGMMA that all threads of the warpgroup issue, one after the other. */
struct product {
    emu_wgmma of; /* of.d, of.registers: those of the first thread, not read */
    unsigned arrived;
    int accumulator;
    bool done;
    uint64_t fenced; /* by all threads */
    unsigned registers[GROUP][4];
};

/* The accumulator registers of all threads, from the first WGMMA on them to the wait for the
 * last. */
struct accumulator {
    float *d[GROUP]; /* NULL: none of this thread */
    int n;
    float value[ROWS * WIDEST];
};

struct thread {
    uint64_t started;            /* number of WGMMAs */
    std::deque<uint64_t> groups; /* number issued when each group was closed */
    bool fenced;
};

struct warpgroup {
    std::deque<product> under_way;
    uint64_t ended; /* WGMMAs before the first in flight */
    accumulator acc[ACCUMULATORS];
    thread t[GROUP];
    /* A wait: which threads arrived, until which WGMMA; how often all arrived. */
    unsigned arrived;
    uint64_t until, times;
};

warpgroup *groups[GROUPS];
bool touched; /* in this block */
float operand_a[ROWS][SUM], operand_b[SUM][WIDEST];
uint64_t fenced; /* by the reader */

warpgroup &mine()
{
    touched = true;
    if (!groups[emu_thread() / GROUP]) groups[emu_thread() / GROUP] = new warpgroup();
    return *groups[emu_thread() / GROUP];
}
thread &me()
{
    return mine().t[emu_thread() % GROUP];
}

float of_bf16(unsigned short bits)
{
    return __builtin_bit_cast(float, (unsigned)bits << 16);
}
float of_tf32(unsigned bits)
{
    return __builtin_bit_cast(float, bits & ~0x1fffu);
}

/* The position of element i of a thread's accumulator. */
size_t place_of(unsigned t, int i, int n)
{
    unsigned row = 16 * (t / 32) + t % 32 / 4 + 8 * (i >> 1 & 1);
    int column = 8 * (i >> 2) + 2 * (int)(t % 4) + (i & 1);
    return row * (size_t)n + (size_t)column;
}

/* An operand's descriptor, and the address of its element (row of this operand, k). */
struct matrix {
    unsigned at, lbo, sbo, span;
    bool transposed;    /* rows are k */
    unsigned bytes = 2; /* of an element */
};

matrix matrix_of(unsigned long long descriptor, bool transposed, unsigned long_side, bool tf32)
{
    static const unsigned spans[] = {0, 128, 64, 32};
    matrix m = {(unsigned)(descriptor & 0x3fff) << 4, (unsigned)(descriptor >> 16 & 0x3fff) << 4,
                (unsigned)(descriptor >> 32 & 0x3fff) << 4, spans[descriptor >> 62], transposed};
    if (tf32) m.bytes = 4;
    if (!m.span) emu_broken("a WGMMA of a matrix that is not swizzled");
    if (descriptor & 0x3fffc000c000c000ull) emu_broken("a descriptor with reserved bits set");
    if (m.sbo != 8 * m.span)
        emu_broken_by("a descriptor's SBO is %u instead of %u", m.sbo, 8 * m.span);
    if (transposed && 2 * long_side > m.span && !m.lbo)
        emu_broken("a descriptor without the step from panel to panel");
    return m;
}

float element(const matrix &m, unsigned row, unsigned k)
{
    unsigned columns = m.span / 2, at;
    if (m.transposed)
        at = row / columns * m.lbo + k / 8 * m.sbo + k % 8 * m.span + row % columns * 2;
    else
        at = row / 8 * m.sbo + row % 8 * m.span + k * m.bytes;
    at = emu_swizzled(m.at + at, m.span);
    if (k * m.bytes % 16 == 0 || m.transposed) emu_visible(at, m.bytes, fenced);
    if (m.bytes == 4) return of_tf32(*(const unsigned *)emu_shared_at(at, 4));
    return of_bf16(*(const unsigned short *)emu_shared_at(at, 2));
}

void read_a(const product &p)
{
    if (!p.of.registers) {
        matrix m = matrix_of(p.of.a, p.of.ta, ROWS, p.of.tf32);
        for (unsigned row = 0; row < ROWS; row++)
            for (unsigned k = 0; k < 32 / m.bytes; k++) operand_a[row][k] = element(m, row, k);
        return;
    }
    for (unsigned t = 0; t < GROUP; t++)
        for (unsigned r = 0; r < 4; r++) {
            unsigned row = 16 * (t / 32) + t % 32 / 4 + 8 * (r & 1), k = 2 * (t % 4) + 8 * (r >> 1);
            operand_a[row][k] = of_bf16((unsigned short)p.registers[t][r]);
            operand_a[row][k + 1] = of_bf16((unsigned short)(p.registers[t][r] >> 16));
        }
}

void multiply(warpgroup &w, product &p)
{
    float *sum = w.acc[p.accumulator].value;
    const unsigned n = (unsigned)p.of.n;
    fenced = p.fenced;
    read_a(p);
    matrix m = matrix_of(p.of.b, p.of.tb, n, p.of.tf32);
    const unsigned depth = 32 / m.bytes;
    for (unsigned k = 0; k < depth; k++)
        for (unsigned j = 0; j < n; j++) operand_b[k][j] = element(m, j, k);
    if (!p.of.accumulate) memset(sum, 0, ROWS * n * sizeof *sum);
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned k = 0; k < depth; k++) {
            const float a = operand_a[i][k], *b = operand_b[k];
            float *row = sum + i * n;
            for (unsigned j = 0; j < n; j++) row[j] += a * b[j];
        }
    p.done = true;
}

/* The number of this thread's accumulator at d; the values of a new one are taken from the
 * thread. */
int accumulator_of(warpgroup &w, unsigned t, const emu_wgmma &p)
{
    int at = -1;
    for (int i = 0; i < ACCUMULATORS; i++) {
        accumulator &a = w.acc[i];
        if (!a.d[t]) {
            if (at < 0) at = i;
            continue;
        }
        if (a.d[t] == p.d && a.n == p.n) return i;
        if (a.d[t] < p.d + p.n / 2 && p.d < a.d[t] + a.n / 2)
            emu_broken("a WGMMA on a part of an accumulator that is in flight");
    }
    if (at < 0) emu_broken("too many accumulators in flight");
    if (!w.t[t].fenced) emu_broken("a WGMMA without wgmma_fence since the last wait");
    accumulator &a = w.acc[at];
    a.n = p.n;
    a.d[t] = p.d;
    for (int i = 0; i < p.n / 2; i++) {
        a.value[place_of(t, i, p.n)] = p.d[i];
        p.d[i] = NAN;
    }
    return at;
}

bool same(const product &a, const emu_wgmma &b)
{
    return a.of.n == b.n && a.of.a == b.a && a.of.b == b.b && a.of.ta == b.ta && a.of.tb == b.tb &&
           a.of.accumulate == b.accumulate && a.of.tf32 == b.tf32 &&
           !a.of.registers == !b.registers;
}

/* Does all WGMMAs before `until`, and returns the accumulators that no later one uses. */
void end(warpgroup &w, uint64_t until)
{
    bool used[ACCUMULATORS] = {};
    for (; w.ended < until; w.ended++) {
        if (!w.under_way.front().done) multiply(w, w.under_way.front());
        w.under_way.pop_front();
    }
    for (const product &p : w.under_way) used[p.accumulator] = true;
    for (int i = 0; i < ACCUMULATORS; i++) {
        accumulator &a = w.acc[i];
        if (used[i] || !a.d[0]) continue;
        for (unsigned t = 0; t < GROUP; t++) {
            for (int k = 0; k < a.n / 2; k++) a.d[t][k] = a.value[place_of(t, k, a.n)];
            a.d[t] = NULL;
        }
    }
}

} // namespace

void emu_wgmma_add(const emu_wgmma &p)
{
    unsigned t = emu_thread() % GROUP;
    if (emu_thread() - t + GROUP > emu_block().threads) emu_broken("half a warpgroup");
    warpgroup &w = mine();
    uint64_t number = w.t[t].started++;
    if (number == w.ended + w.under_way.size()) {
        product one = {p, 0, 0, false, UINT64_MAX, {}};
        one.accumulator = accumulator_of(w, t, p);
        w.under_way.push_back(one);
    } else if (!same(w.under_way[number - w.ended], p) ||
               accumulator_of(w, t, p) != w.under_way[number - w.ended].accumulator) {
        emu_broken("the threads of a warpgroup do not issue the same WGMMA");
    }
    product &one = w.under_way[number - w.ended];
    if (emu_fenced() < one.fenced) one.fenced = emu_fenced();
    if (p.registers) memcpy(one.registers[t], p.registers, sizeof one.registers[t]);
    if (++one.arrived == GROUP && emu_early()) multiply(w, one);
}

void emu_wgmma_fence()
{
    me().fenced = true;
}

void emu_wgmma_commit()
{
    me().groups.push_back(me().started);
}

void emu_wgmma_wait(int n)
{
    warpgroup &w = mine();
    thread &t = me();
    uint64_t until = w.ended;
    t.fenced = false;
    while ((int)t.groups.size() > n) {
        until = t.groups.front();
        t.groups.pop_front();
    }
    if (w.arrived && w.until != until)
        emu_broken("the threads of a warpgroup do not wait for the same WGMMAs");
    w.until = until;
    if (++w.arrived < GROUP) return emu_wait_for(&w.times);
    w.arrived = 0;
    end(w, until);
    w.times++;
}

void emu_wgmma_begin()
{
    if (!touched) return;
    touched = false;
    for (warpgroup *w : groups) {
        if (!w) continue;
        w->under_way.clear();
        w->ended = w->until = w->times = 0;
        w->arrived = 0;
        for (accumulator &a : w->acc) memset(a.d, 0, sizeof a.d);
        for (thread &t : w->t) t.started = 0, t.groups.clear(), t.fenced = false;
    }
}

void emu_wgmma_thread_ends()
{
    if (touched && me().started > mine().ended)
        emu_broken("a thread ends while its WGMMA is in flight");
}
