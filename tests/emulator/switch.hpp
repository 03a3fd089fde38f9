/* switch.hpp - switches from one fiber to another. A kernel of 300 blocks switches some ten million
 * times, so on a known processor this is a dozen instructions; elsewhere the C library does it and
 * takes three times as long. */
#pragma once
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <ucontext.h>

#if defined(__x86_64__) && !defined(EMU_PORTABLE)
/* Callee-saved registers are on the fiber's own stack. */
struct emu_place {
    void *stack;
};
extern "C" void emu_switch(emu_place *from, const emu_place *to);
__asm__(".text\n"
        ".hidden emu_switch\n"
        "emu_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov (%rsi), %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n");

/* A context that starts with `body`, which does not return. */
static inline void emu_place_make(emu_place *p, void (*body)(), char *stack, size_t bytes)
{
    enum { KEPT = 6 };
    void **top = (void **)((size_t)(stack + bytes) & ~(size_t)15);
    *--top = NULL; /* instead of a return address: keeps the stack alignment of a call */
    *--top = (void *)body;
    for (int i = 0; i < KEPT; i++) *--top = NULL;
    p->stack = top;
}
#else
struct emu_place {
    jmp_buf at;
    ucontext_t *start; /* until it has started */
};
static inline void emu_switch(emu_place *from, emu_place *to)
{
    if (_setjmp(from->at)) return;
    if (!to->start) _longjmp(to->at, 1);
    ucontext_t *start = to->start;
    to->start = NULL;
    setcontext(start);
    abort();
}

static inline void emu_place_make(emu_place *p, void (*body)(), char *stack, size_t bytes)
{
    p->start = new ucontext_t();
    getcontext(p->start);
    p->start->uc_stack.ss_sp = stack;
    p->start->uc_stack.ss_size = bytes;
    makecontext(p->start, body, 0);
}
#endif
