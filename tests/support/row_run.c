#include "row_run.h"

#include "hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096, ASKEW = 64, POISON = 0xff /* a NaN in every float type */ };

bool row_find(struct row_run *r, enum op op, const char *variant, int n)
{
    const struct kernel *k;
    r->call.attr = &r->attr;
    for (int i = 0; (k = r->backend->kernels.find((int)op, &r->call, i)); i++) {
        if (variant && strcmp(k->variant, variant) != 0) continue;
        if (n-- > 0) continue;
        r->kernel = k;
        if (k->prepare) hand_ok(k->prepare(k, &r->call));
        return true;
    }
    return false;
}

static void *take(struct row_run *r, struct row_memory *m, int64_t bytes)
{
    int64_t all = GUARD + ASKEW + bytes + GUARD;
    m->bytes = bytes;
    hand_ok(r->backend->memory.alloc(r->call.context, all, &m->all));
    hand_ok(r->backend->memory.fill(r->call.context, m->all, POISON, all));
    m->at = (char *)m->all + GUARD + ASKEW;
    return m->at;
}

void row_open(struct row_run *r)
{
    struct kernel_call *c = &r->call;
    for (int i = 0; i < c->n_in; i++) c->in[i] = take(r, &r->in[i], type_bytes(&c->in_type[i]));
    for (int i = 0; i < c->n_out; i++) c->out[i] = take(r, &r->out[i], type_bytes(&c->out_type[i]));
    if (r->kernel->scratch_bytes)
        c->scratch = take(r, &r->scratch, r->kernel->scratch_bytes(r->kernel, c));
}

void row_close(struct row_run *r)
{
    struct row_memory *all[MAX_IN + MAX_OUT + 1];
    int n = 0;
    for (int i = 0; i < r->call.n_in; i++) all[n++] = &r->in[i];
    for (int i = 0; i < r->call.n_out; i++) all[n++] = &r->out[i];
    all[n++] = &r->scratch;
    for (int i = 0; i < n; i++) {
        if (all[i]->all) r->backend->memory.free(r->call.context, all[i]->all);
        *all[i] = (struct row_memory){0};
    }
    if (r->kernel && r->kernel->release) r->kernel->release(&r->call);
    r->kernel = NULL;
}

void row_upload(struct row_run *r, int i, int64_t at, const void *from, int64_t bytes)
{
    hand_ok(r->backend->memory.upload(r->call.context, r->in[i].at + at, from, bytes));
}

void row_download(struct row_run *r, int i, int64_t at, void *to, int64_t bytes)
{
    hand_ok(r->backend->memory.download(r->call.context, to, r->out[i].at + at, bytes));
}

void row_start(struct row_run *r)
{
    for (int i = 0; i < r->call.n_out; i++)
        hand_ok(r->backend->memory.fill(r->call.context, r->out[i].at, POISON, r->out[i].bytes));
    if (r->scratch.bytes)
        hand_ok(r->backend->memory.fill(r->call.context, r->scratch.at, POISON, r->scratch.bytes));
    hand_ok(r->kernel->run(&r->call));
    hand_ok(r->backend->stream.sync(r->call.context));
}

static bool is_poison(struct row_run *r, const void *at, int64_t bytes)
{
    unsigned char now[GUARD + ASKEW];
    hand_ok(r->backend->memory.download(r->call.context, now, at, bytes));
    for (int64_t i = 0; i < bytes; i++)
        if (now[i] != POISON) return false;
    return true;
}

static const char *look(struct row_run *r, const struct row_memory *m, const char *what, int i)
{
    static char words[48];
    if (!m->all) return NULL;
    bool before = is_poison(r, m->all, GUARD + ASKEW),
         behind = is_poison(r, m->at + m->bytes, GUARD);
    if (before && behind) return NULL;
    snprintf(words, sizeof words, "%s %s %d", before ? "behind" : "before", what, i);
    return words;
}

const char *row_stray_write(struct row_run *r)
{
    const char *words = look(r, &r->scratch, "scratch", 0);
    for (int i = 0; i < r->call.n_in && !words; i++) words = look(r, &r->in[i], "input", i);
    for (int i = 0; i < r->call.n_out && !words; i++) words = look(r, &r->out[i], "output", i);
    return words;
}
