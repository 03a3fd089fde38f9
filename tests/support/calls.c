#include "calls.h"

#include "backend/backend.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void call_input(struct hand_call *h, struct type type)
{
    int i = h->call.n_in++;
    int64_t n = type_elements(&type);
    h->call.attr = &h->attr;
    h->call.in_type[i] = type;
    h->call.in[i] = arena_alloc(&h->arena, type_bytes(&type));
    for (int64_t k = 0; k < n; k++)
        if (type.dtype == DT_I32)
            ((int32_t *)h->call.in[i])[k] = (int32_t)(k % 3);
        else
            call_in(h, i)[k] = 2 * rng_uniform(7, RNG_TEST, (uint32_t)i, (uint64_t)k) - 1;
}

void call_output(struct hand_call *h, struct type type)
{
    int i = h->call.n_out++;
    h->call.attr = &h->attr;
    h->call.out_type[i] = type;
    h->call.out[i] = arena_alloc(&h->arena, type_bytes(&type));
}

const struct kernel *call_row(const struct hand_call *h, enum op op, int n)
{
    const struct backend *cpu = backend_find("cpu");
    const struct kernel *row;
    for (int i = 0; (row = cpu->kernels.find((int)op, &h->call, i)); i++)
        if (strcmp(row->variant, "ref") != 0 && n-- == 0) return row;
    return NULL;
}

void call_run(struct hand_call *h, const struct kernel *row)
{
    struct kernel_call *c = &h->call;
    for (int i = 0; i < c->n_out; i++) memset(c->out[i], 0xff, (size_t)call_out_bytes(h, i));
    c->scratch = NULL;
    if (row->scratch_bytes) c->scratch = arena_alloc(&h->arena, row->scratch_bytes(row, c));
    if (row->prepare && row->prepare(row, c) != ST_OK)
        fail_msg("%s: %s", row->variant, fail_message());
    if (row->run(c) != ST_OK) fail_msg("%s: %s", row->variant, fail_message());
    if (row->release) row->release(c);
}

void call_release(struct hand_call *h)
{
    arena_release(&h->arena);
    *h = (struct hand_call){0};
}

float *call_in(const struct hand_call *h, int i)
{
    return h->call.in[i];
}

float *call_out(const struct hand_call *h, int i)
{
    return h->call.out[i];
}

int64_t call_out_bytes(const struct hand_call *h, int i)
{
    return type_bytes(&h->call.out_type[i]);
}
