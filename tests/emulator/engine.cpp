/* Runs blocks one after the other; the threads of each are fibers that run in turn. */
#include "block.hpp"
#include "switch.hpp"

#include <deque>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <vector>

namespace
{

enum : size_t {
    THREADS_MOST = 1024,
    /* Not a power of two: stacks with equal low address bits would compete for the same cache
     * lines. */
    STACK_BYTES = (24 << 10) + 320,
    SIGNAL_STACK = 64 << 10,
};
enum { POISON = 0xff, MASKS = 8 };
const uint64_t CANARY = 0x5aa5c33c0ff0f00full;

struct copy {
    void *to;
    const void *from;
    int bytes, size;
};

struct fiber {
    emu_place at;
    bool done;
    const uint64_t *watched; /* runs again when this number changes; NULL: at once */
    uint64_t seen;
    unsigned thread;
    emu_index place;                      /* the same in the dimensions of the block */
    std::deque<std::vector<copy>> groups; /* of copies in flight; the last is open */
};

/* Collective operations of the lanes of a mask. Contributions alternate between two rows: a lane
 * can be one operation ahead of another that still reads, but not two. */
struct meeting {
    unsigned mask, arrived, wanted;
    uint64_t times;
    emu_slot slot[2][EMU_WARP];
};
struct warp {
    int used;
    meeting met[MASKS];
};

fiber fibers[THREADS_MOST];
warp warps[THREADS_MOST / EMU_WARP];
char *stacks;
fiber *now;
emu_place host;  /* the context that starts blocks */
sigjmp_buf lost; /* the same, after an illegal access */
bool running, reverse, early;

emu_start current;
void **arguments;
unsigned alive, at_barrier;
uint64_t barriers;

[[noreturn]] void broken(const char *what)
{
    const emu_index *b = current.module->block;
    fprintf(stderr, "emulator: kernel %s, block %u,%u,%u, thread %u: %s\n", current.name, b->x,
            b->y, b->z, now ? now->thread : 0, what);
    abort();
}

bool can_run(const fiber &f)
{
    return !f.done && (!f.watched || *f.watched != f.seen);
}

void enter(emu_place *from, fiber *f)
{
    now = f;
    f->watched = NULL;
    *current.module->thread = f->place;
    emu_switch(from, &f->at);
}

/* Switches to the next fiber; when all are done, to the host. Returns when it is this fiber's turn
 * again. */
void give_way()
{
    fiber *self = now;
    unsigned n = current.threads, at = self->thread;
    for (unsigned i = 0; i < n; i++) {
        at = reverse ? (at ? at - 1 : n - 1) : (at + 1 == n ? 0 : at + 1);
        if (can_run(fibers[at])) return enter(&self->at, &fibers[at]);
    }
    if (alive && emu_tensors_proceed()) return give_way();
    if (alive) {
        emu_barriers_tell();
        broken("deadlock: a barrier or a collective operation that not all threads come "
               "to");
    }
    emu_switch(&self->at, &host);
}

/* Waits until the number changes. */
void wait_for(const uint64_t *number)
{
    fiber *f = now;
    f->watched = number;
    f->seen = *number;
    give_way();
}

void release_barrier()
{
    at_barrier = 0;
    barriers++;
}

void barrier()
{
    if (++at_barrier == alive)
        release_barrier();
    else
        wait_for(&barriers);
}

unsigned lanes_of(unsigned first)
{
    unsigned n = current.threads - first;
    return n >= EMU_WARP ? ~0u : (1u << n) - 1;
}

meeting *meeting_of(unsigned mask)
{
    unsigned first = now->thread / EMU_WARP * EMU_WARP;
    warp *w = &warps[first / EMU_WARP];
    for (int i = 0; i < w->used; i++)
        if (w->met[i].mask == mask) return &w->met[i];
    if (w->used == MASKS) broken("too many masks for a warp");
    meeting *m = &w->met[w->used++];
    m->mask = mask;
    m->wanted = (unsigned)__builtin_popcount(mask & lanes_of(first));
    m->arrived = 0;
    m->times = 0;
    return m;
}

const emu_slot *meet(unsigned mask, const void *bytes, unsigned size, void (*finish)(emu_slot *))
{
    unsigned lane = now->thread % EMU_WARP;
    if (!(mask >> lane & 1)) broken("a lane that is not in its mask");
    if (size > EMU_SLOT) broken("a lane's contribution is too large");
    meeting *m = meeting_of(mask);
    emu_slot *slots = m->slot[m->times & 1];
    memcpy(slots[lane].bytes, bytes, size);
    if (++m->arrived == m->wanted) {
        if (finish) finish(slots);
        m->arrived = 0;
        m->times++;
    } else {
        wait_for(&m->times);
    }
    return slots;
}

void copy_now(const copy &c)
{
    memset(c.to, 0, (size_t)c.size);
    memcpy(c.to, c.from, (size_t)c.bytes);
}

void copy_later(void *to, const void *from, int bytes, int size)
{
    if ((uintptr_t)to % (uintptr_t)size || (uintptr_t)from % (uintptr_t)size)
        broken("cp.async at an address that is not a multiple of its size");
    if (bytes < 0 || bytes > size) broken("cp.async of more bytes than its size");
    copy c = {to, from, bytes, size};
    if (early)
        copy_now(c);
    else
        now->groups.back().push_back(c);
}

void copies_commit()
{
    now->groups.emplace_back();
}

void copies_wait(int groups)
{
    while ((int)now->groups.size() - 1 > groups) {
        for (const copy &c : now->groups.front()) copy_now(c);
        now->groups.pop_front();
    }
}

/* Fibers are reused from block to block. */
void live()
{
    for (;;) {
        fiber *f = now;
        current.entry->run(arguments);
        emu_wgmma_thread_ends();
        emu_tensors_thread_ends();
        f->done = true;
        if (--alive && at_barrier == alive) release_barrier();
        give_way();
    }
}

uint64_t *canary_of(unsigned thread)
{
    return (uint64_t *)(stacks + thread * STACK_BYTES);
}

void make_fiber(unsigned thread)
{
    fibers[thread].thread = thread;
    emu_place_make(&fibers[thread].at, live, stacks + thread * STACK_BYTES, STACK_BYTES);
    *canary_of(thread) = CANARY;
}

/* Device memory ends at a protected page; only a fiber can have touched it. */
void on_touch(int, siginfo_t *info, void *)
{
    const emu_index *b = current.module ? current.module->block : NULL;
    if (!running || !now) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    fprintf(stderr, "emulator: kernel %s, block %u,%u,%u, thread %u touches %p, which is not its\n",
            current.name, b->x, b->y, b->z, now->thread, info->si_addr);
    siglongjmp(lost, 1);
}

void prepare()
{
    static char signal_stack[SIGNAL_STACK];
    if (stacks) return;
    stacks = (char *)mmap(NULL, THREADS_MOST * STACK_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) abort();
    madvise(stacks, THREADS_MOST * STACK_BYTES, MADV_HUGEPAGE);
    for (unsigned i = 0; i < THREADS_MOST; i++) make_fiber(i);
    reverse = emu_number("EMU_REVERSE", 0);
    early = emu_number("EMU_EARLY", 0);
    stack_t at = {};
    at.ss_sp = signal_stack;
    at.ss_size = sizeof signal_stack;
    sigaltstack(&at, NULL);
    struct sigaction action = {};
    action.sa_sigaction = on_touch;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

void run_block(emu_index block)
{
    emu_module *m = current.module;
    *m->block = block;
    memset(m->begin, POISON, (size_t)(m->end - m->begin));
    memset(m->dynamic, POISON, current.shared_bytes + EMU_GUARD);
    for (unsigned i = 0; i < current.threads; i += EMU_WARP) warps[i / EMU_WARP].used = 0;
    for (unsigned i = 0; i < current.threads; i++) {
        fibers[i].done = false;
        fibers[i].watched = NULL;
        fibers[i].groups.clear();
        fibers[i].groups.emplace_back();
    }
    alive = current.threads;
    at_barrier = 0;
    emu_wgmma_begin();
    emu_barriers_begin();
    emu_tensors_begin();
    enter(&host, &fibers[reverse ? current.threads - 1 : 0]);
    emu_barriers_end();
    emu_tensors_end();
    for (int i = 0; i < EMU_GUARD; i++)
        if (m->dynamic[current.shared_bytes + i] != POISON)
            broken("the block wrote past its shared memory");
    for (unsigned i = 0; i < current.threads; i++)
        if (*canary_of(i) != CANARY) broken("a fiber's stack is too small");
}

} // namespace

const emu_start &emu_block()
{
    return current;
}
unsigned emu_thread()
{
    return now->thread;
}
bool emu_early()
{
    return early;
}
void emu_wait_for(const uint64_t *number)
{
    wait_for(number);
}
void emu_let_go(const uint64_t *number)
{
    fiber *self = now;
    if (reverse) return;
    for (unsigned i = 0; i < current.threads; i++)
        if (!fibers[i].done && fibers[i].watched == number && *number != fibers[i].seen)
            return enter(&self->at, &fibers[i]);
}
void emu_broken(const char *what)
{
    broken(what);
}

long long emu_number(const char *name, long long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

const emu_engine emu_functions = {barrier,     meet,   copy_later,           copies_commit,
                                  copies_wait, broken, &emu_hopper_functions};

bool emu_run(const emu_start &s, void **parameters)
{
    prepare();
    current = s;
    arguments = parameters;
    *s.module->grid = s.grid;
    *s.module->block_size = s.block;
    for (unsigned i = 0; i < s.threads; i++)
        fibers[i].place = {i % s.block.x, i / s.block.x % s.block.y, i / s.block.x / s.block.y};
    running = true;
    if (sigsetjmp(lost, 1)) {
        running = false;
        return false;
    }
    unsigned long long blocks = (unsigned long long)s.grid.x * s.grid.y * s.grid.z;
    for (unsigned long long i = 0; i < blocks; i++) {
        unsigned long long b = reverse ? blocks - 1 - i : i;
        run_block({(unsigned)(b % s.grid.x), (unsigned)(b / s.grid.x % s.grid.y),
                   (unsigned)(b / s.grid.x / s.grid.y)});
    }
    running = false;
    return true;
}
