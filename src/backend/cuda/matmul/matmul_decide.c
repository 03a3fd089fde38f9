/* Decides which variant computes a matmul: cuBLASLt, our own kernel for compute capability 9.0, or,
 * if it has an epilogue, a matmul and a separate kernel. Times come from the tuning table. */
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/matmul/matmul.h"
#include "backend/cuda/runtime/jit.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

const char MATMUL_LIBRARY[] = "cublaslt", MATMUL_OWN[] = "wgmma", MATMUL_SEPARATE[] = "separate";

enum { ADA = 89 }; /* the first with matmuls of 8 bits */
static const double TIE = 0.01;

bool matmul_is_long(const struct matmul *p)
{
    static const double LONG = 1e9;
    return 2.0 * (double)p->M * (double)p->N * (double)p->K >= LONG;
}

/* The digest of a kernel source and all headers. It is computed once per source, because there are
 * few sources. */
static const char *text_digest(const char *text)
{
    enum { TEXTS = 8 };
    static _Thread_local struct {
        const char *text;
        char hex[HASH_HEX];
    } known[TEXTS];
    int i = 0, last = TEXTS - 1;
    int64_t bytes;
    while (i < last && known[i].text && strcmp(known[i].text, text) != 0) i++;
    if (known[i].text && !strcmp(known[i].text, text)) return known[i].hex;
    struct hash *h = hash_open();
    for (int n = 0; cuda_text_name(n); n++) {
        const char *name = cuda_text_name(n);
        if (strcmp(name, text) != 0 && !strstr(name, ".cuh")) continue;
        const char *content = cuda_text(name, &bytes);
        hash_add(h, content, bytes);
    }
    known[i].text = text;
    hash_close(h, known[i].hex);
    return known[i].hex;
}

void matmul_launch_digest(const struct kernel *k, const struct kernel_call *c,
                          char ret[TUNING_LAUNCH])
{
    struct cuda_launches l;
    char hex[HASH_HEX], line[LAUNCH_OPTIONS + 256];
    struct hash *h = hash_open();
    cuda_launches_of(k, c, &l);
    for (int i = 0; i < l.n; i++) {
        const struct cuda_launch *one = &l.launch[i];
        int n = snprintf(line, sizeof line, "%s %s %s %u %u %u %u %u\n",
                         one->text ? text_digest(one->text) : "", one->entry, one->options,
                         one->grid[0], one->grid[1], one->grid[2], one->block, one->shared_bytes);
        hash_add(h, line, n);
    }
    hash_close(h, hex);
    snprintf(ret, TUNING_LAUNCH, "%.*s", TUNING_LAUNCH - 1, hex);
}

/* The entry of the tuning table; NULL: there is none, or our own kernel has changed since then. */
static const struct tuning_entry *entry_of(const struct matmul_decision *d,
                                           const struct kernel_call *c)
{
    const struct tuning_entry *e = tuning_find(c->tuning, d->key);
    const struct tuning_candidate *own = tuning_candidate(e, MATMUL_OWN);
    char launch[TUNING_LAUNCH];
    if (!own || !d->own) return e;
    matmul_launch_digest(d->own, c, launch);
    return strcmp(own->launch, launch) != 0 ? NULL : e;
}

static void note(const struct matmul_decision *d, enum op op, const struct kernel_call *c,
                 const struct tuning_entry *e)
{
    if (!c->lookups || tuning_lookup_find(c->lookups, d->key)) return;
    struct tuning_lookup *q = tuning_lookup_add(c->lookups, d->key);
    q->op = op;
    q->attr = *c->attr;
    q->numerics = c->numerics;
    q->n_in = c->n_in;
    q->n_out = c->n_out;
    memcpy(q->in_type, c->in_type, sizeof q->in_type);
    memcpy(q->out_type, c->out_type, sizeof q->out_type);
    q->entry = e;
    if (d->own) matmul_launch_digest(d->own, c, q->launch);
    snprintf(q->chosen, sizeof q->chosen, "%s",
             d->separate_first ? MATMUL_SEPARATE
             : d->own_first    ? MATMUL_OWN
             : d->library      ? MATMUL_LIBRARY
                               : "");
}

/* Chooses the fastest candidate that this call allows. Ties go to the library, which draws less
 * power at equal time: at the power limit a step with ties to our own matmul takes 1.6 % longer
 * (docs/log/gpu.md). */
static void take_fastest(struct matmul_decision *d, const struct tuning_entry *e)
{
    const struct tuning_candidate *library = tuning_candidate(e, MATMUL_LIBRARY),
                                  *own = d->own ? tuning_candidate(e, MATMUL_OWN) : NULL,
                                  *separate = tuning_candidate(e, MATMUL_SEPARATE);
    if (!library) d->library = false;
    d->algorithm = d->library ? library->algorithm : NULL;
    d->own_first = own && (!d->library || own->us < (1 - TIE) * library->us);
    double best = d->own_first ? own->us : d->library ? library->us : 0;
    d->separate_first = separate && (best <= 0 || separate->us <= best);
}

struct matmul_decision matmul_decide(enum op op, const struct kernel_call *c)
{
    struct matmul_decision d = {.own = matmul_hopper_row((int)op, c)};
    struct matmul p;
    d.library = cuda_device_of(c)->library && matmul_library_fits(op, c, &p) &&
                (!matmul_is_scaled(&p) || cuda_device_of(c)->arch >= ADA);
    if (!d.library && (!d.own || !matmul_hopper_of(op, c, &p))) return d;
    matmul_text(&p, d.key);
    if (p.deterministic) {
        d.own = NULL;
        d.separate_first = true;
        return d;
    }
    const struct tuning_entry *e = entry_of(&d, c);
    if (e)
        take_fastest(&d, e);
    else
        d.own_first = d.own && (op != OP_MATMUL || matmul_is_long(&p)) &&
                      (!d.library || matmul_hopper_pitch(&p));
    note(&d, op, c, e);
    return d;
}

bool cuda_fusion_pays(int op, const struct kernel_call *c)
{
    struct matmul p;
    if (op == OP_QUANTIZE_GELU || op == OP_QUANTIZE_GELU_GRAD || op == OP_QUANTIZE_ADD_LAYERNORM)
        /* These operators save writing and reading a bf16 tensor. */
        return cuda_kernel(op, c, 0) != NULL;
    if (op == OP_GELU_BOTH) return false; /* memory-bound, and the slope is a third of its bytes */
    /* Reads the gradient once instead of twice, if rows are short enough. */
    if (op == OP_LAYERNORM_GRAD_DROP) return cuda_kernel(op, c, 0) != NULL;
    if (op == OP_LINEAR)
        return c->in_type[2].dtype == DT_BF16 && matmul_library_fits(OP_LINEAR, c, &p);
    struct matmul_decision d = matmul_decide((enum op)op, c);
    return (d.library || d.own_first) && !d.separate_first;
}

const struct kernel *cuda_faster(int op, const struct kernel_call *c)
{
    const struct kernel *own = matmul_hopper_row(op, c);
    return own && matmul_decide((enum op)op, c).own_first ? own : NULL;
}
