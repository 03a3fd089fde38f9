/* Barriers in shared memory, named barriers, registers that warpgroups exchange, and visibility of
 * writes. */
#include "block.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <vector>

namespace
{

enum : unsigned { THREADS_MOST = 1024, BARRIERS = 512, NAMED = 16, WARPS = THREADS_MOST / 32 };
enum { CHUNK = 16, REGISTERS = 65536 };
const uint64_t WORD = 0xba441e4ba441e4baull; /* marks a barrier */

struct barrier {
    unsigned at;
    int threads, missing;
    long long bytes; /* announced and not arrived */
    uint64_t phase;
};
barrier barriers[BARRIERS];
unsigned used;
bool fenced; /* since the last initialization */

struct named {
    int threads, arrived;
    uint64_t times;
};
named names[NAMED];

/* What a thread waits for. */
enum kind { NOTHING, BARRIER, NAME, POOL };
struct wait {
    kind what;
    unsigned at;
    int parity;
};
wait waits[THREADS_MOST];

int registers[WARPS]; /* per thread */
bool registers_known;
uint64_t given_up;
bool waited; /* for the previous launch */

/* Chunks that a thread wrote, and how many threads have not fenced them; times of the last write
 * and of each thread's fence. */
std::vector<unsigned> wrote[THREADS_MOST];
unsigned short unfenced[EMU_DYNAMIC / CHUNK];
unsigned unfenced_in_all;
uint64_t now, written[EMU_DYNAMIC / CHUNK], fences[THREADS_MOST];
bool touched; /* any of these was used in this block */

void wait_for(const uint64_t *number, const wait &w)
{
    touched = true;
    waits[emu_thread()] = w;
    emu_wait_for(number);
    waits[emu_thread()].what = NOTHING;
}

barrier &at(unsigned offset)
{
    for (unsigned i = 0; i < used; i++)
        if (barriers[i].at == offset) {
            if (memcmp(emu_shared_at(offset, 8), &WORD, 8))
                emu_broken_by("the barrier at %u was overwritten", offset);
            return barriers[i];
        }
    emu_broken_by("there is no barrier at %u", offset);
}

void complete(barrier &b)
{
    if (b.missing) return;
    if (b.bytes < 0)
        emu_broken_by("more bytes arrived at the barrier at %u than were announced", b.at);
    if (b.bytes) return;
    b.phase++;
    b.missing = b.threads;
}

void tell(unsigned first, unsigned last, const wait &w)
{
    fprintf(stderr, "emulator:     threads %u to %u: ", first, last);
    if (w.what == NAME) {
        fprintf(stderr, "named barrier %u, %d of %d threads have arrived\n", w.at,
                names[w.at].arrived, names[w.at].threads);
    } else if (w.what == BARRIER) {
        const barrier &b = at(w.at);
        fprintf(stderr,
                "the barrier at %u, parity %d; it is in phase %llu, %d of %d threads and %lld "
                "bytes are missing\n",
                w.at, w.parity, (unsigned long long)b.phase, b.missing, b.threads, b.bytes);
    } else {
        fprintf(stderr, w.what == POOL ? "registers that no thread releases\n"
                                       : "ended, or at a barrier or a collective operation\n");
    }
}

} // namespace

void emu_broken_by(const char *form, ...)
{
    char text[200];
    va_list more;
    va_start(more, form);
    vsnprintf(text, sizeof text, form, more);
    va_end(more);
    emu_broken(text);
}

unsigned char *emu_shared_at(unsigned at, unsigned bytes)
{
    if (at + bytes < at || at + bytes > emu_block().shared_bytes)
        emu_broken_by("byte %d is outside the block's dynamic shared memory", (int)at);
    return emu_block().module->dynamic + at;
}

void emu_wrote(unsigned at)
{
    emu_shared_at(at, 2);
    touched = true;
    wrote[emu_thread()].push_back(at / CHUNK);
    unfenced[at / CHUNK]++;
    written[at / CHUNK] = ++now;
    unfenced_in_all++;
}

void emu_fence_async()
{
    std::vector<unsigned> &mine = wrote[emu_thread()];
    for (unsigned chunk : mine) unfenced[chunk]--;
    unfenced_in_all -= (unsigned)mine.size();
    mine.clear();
    fences[emu_thread()] = ++now;
}

uint64_t emu_fenced()
{
    return fences[emu_thread()];
}

void emu_visible(unsigned at, unsigned bytes, uint64_t fenced)
{
    if (!unfenced_in_all) return;
    for (unsigned i = at / CHUNK; i <= (at + bytes - 1) / CHUNK; i++)
        if (unfenced[i] && written[i] > fenced)
            emu_broken_by("byte %u of shared memory is read by a WGMMA or a copy, but the thread "
                          "that wrote it has not called fence_async, nor has the reader since then",
                          i * CHUNK);
}

void emu_barrier_init(unsigned offset, int threads)
{
    if (offset % 8) emu_broken("a barrier at an address that is not a multiple of 8");
    if (threads < 1 || threads >= 1 << 20) emu_broken_by("a barrier of %d threads", threads);
    if (used == BARRIERS) emu_broken("too many barriers");
    for (unsigned i = 0; i < used; i++)
        if (barriers[i].at == offset) emu_broken_by("a second barrier at %u", offset);
    memcpy(emu_shared_at(offset, 8), &WORD, 8);
    barriers[used++] = {offset, threads, threads, 0, 0};
    fenced = false;
}

void emu_barrier_fence()
{
    fenced = true;
}

void emu_barrier_arrive(unsigned offset, int bytes)
{
    barrier &b = at(offset);
    if (bytes < 0 || b.bytes + bytes >= 1 << 20) emu_broken("too many bytes for a barrier");
    b.bytes += bytes;
    b.missing--;
    complete(b);
    emu_let_go(&b.phase);
}

void emu_barrier_complete(unsigned offset, int bytes)
{
    barrier &b = at(offset);
    b.bytes -= bytes;
    complete(b);
}

void emu_barrier_counts(unsigned offset)
{
    at(offset);
    if (!fenced) emu_broken("a copy to a barrier that fence_barrier_init has not made visible");
}

void emu_barrier_wait(unsigned offset, int parity)
{
    if (parity & ~1) emu_broken_by("parity %d", parity);
    const barrier &b = at(offset);
    while ((int)(b.phase & 1) == parity) wait_for(&b.phase, {BARRIER, offset, parity});
}

void emu_named_barrier(int id, int threads, bool wait)
{
    if (id < 1 || id >= (int)NAMED) emu_broken_by("named barrier %d", id);
    named &n = names[id];
    touched = true;
    if (threads < 1 || threads % 32 || threads > (int)emu_block().threads)
        emu_broken_by("a named barrier of %d threads", threads);
    if (n.arrived && n.threads != threads)
        emu_broken_by("named barrier %d is used with %d and with %d threads", id, n.threads,
                      threads);
    n.threads = threads;
    if (++n.arrived == threads) {
        n.arrived = 0;
        n.times++;
    } else if (wait) {
        wait_for(&n.times, {NAME, (unsigned)id, 0});
    }
}

/* At first the block has what ptxas assigns: all registers in equal parts. */
static void registers_begin()
{
    int each = REGISTERS / (int)((emu_block().threads + 31) / 32 * 32) / 8 * 8;
    for (int &r : registers) r = each < 255 ? each : 255;
    registers_known = true;
}

void emu_registers(int n)
{
    unsigned warps = emu_block().threads / 32;
    if (!registers_known) registers_begin();
    if (emu_thread() % 32) return;
    for (;;) {
        int others = 0;
        for (unsigned i = 0; i < warps; i++)
            if (i != emu_thread() / 32) others += 32 * registers[i];
        if (others + 32 * n <= REGISTERS) break;
        wait_for(&given_up, {POOL, 0, 0});
    }
    if (n < registers[emu_thread() / 32]) given_up++;
    registers[emu_thread() / 32] = n;
}

void emu_dependents_wait()
{
    waited = true;
}

void emu_barriers_begin()
{
    used = 0;
    waited = registers_known = false;
    if (!touched) return;
    touched = false;
    memset(names, 0, sizeof names);
    memset(waits, 0, sizeof waits);
    memset(unfenced, 0, sizeof unfenced);
    memset(fences, 0, sizeof fences);
    unfenced_in_all = 0;
    for (auto &chunks : wrote) chunks.clear();
}

void emu_barriers_end()
{
    for (unsigned i = 0; i < NAMED; i++)
        if (names[i].arrived)
            emu_broken_by("the block ends while %d threads have arrived at named barrier %u",
                          names[i].arrived, i);
    if (emu_block().dependent && !waited)
        emu_broken("a dependent launch that does not call dependents_wait");
}

void emu_barriers_tell()
{
    unsigned n = emu_block().threads;
    for (unsigned first = 0, last; first < n; first = last + 1) {
        const wait &w = waits[first];
        for (last = first; last + 1 < n; last++) {
            const wait &next = waits[last + 1];
            if (next.what != w.what || next.at != w.at || next.parity != w.parity) break;
        }
        tell(first, last, w);
    }
}
