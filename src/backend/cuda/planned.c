#include "backend/cuda/planned.h"

#include "backend/cuda/matmul/matmul.h"
#include "backend/cuda/runtime/cubin.h"
#include "backend/cuda/runtime/jit.h"
#include "backend/cuda/runtime/launch.h"
#include "base/arena.h"
#include "base/str.h"

static struct planned_launch planned_of(const struct kernel_call *c, const struct cuda_launch *l,
                                        struct arena *a)
{
    struct planned_launch p = {.text = l->text, .entry = l->entry};
    p.shape = (struct kernel_shape){
        {l->grid[0], l->grid[1], l->grid[2]}, {l->block, 1, 1}, l->shared_bytes};
    p.options = arena_strdup(a, l->options);
    p.registers = -1, p.static_bytes = -1;
    if (!l->write) return p;
    struct str source = {0};
    l->write(c, &source);
    p.source = arena_strdup(a, str_text(&source));
    str_release(&source);
    return p;
}

struct planned_call {
    struct planned_launch *launch;
    int n;
};

static void add_launch(struct planned_call *p, const struct planned_launch *one)
{
    BUG_IF(p->n == CALL_LAUNCHES, "more than %d launches of a call", CALL_LAUNCHES);
    p->launch[p->n++] = *one;
}

static void add_row(struct planned_call *p, const struct kernel *k, const struct kernel_call *c,
                    struct arena *a)
{
    struct cuda_launches l;
    cuda_launches_of(k, c, &l);
    for (int i = 0; i < l.n; i++) {
        const struct cuda_launch *one = &l.launch[i];
        if (!one->text || !one->grid[0] || !one->grid[1] || !one->grid[2]) continue;
        struct planned_launch planned = planned_of(c, one, a);
        add_launch(p, &planned);
    }
}

/* Adds the launches of our kernels that copy a matmul's operands before the library runs, or its
 * result afterwards. */
static void add_copies(struct planned_call *p, const struct cuda_row *row, enum op op,
                       const struct kernel_call *c, struct arena *a)
{
    for (; row->kernel.run; row++)
        if (row->kernel.op == op) add_row(p, &row->kernel, c, a);
}

int cuda_planned(const struct kernel *k, const struct kernel_call *c,
                 struct planned_launch ret[CALL_LAUNCHES], struct arena *a)
{
    struct planned_call p = {.launch = ret};
    if (k->prepare == cuda_prepare) {
        add_row(&p, k, c, a);
        return p.n;
    }
    add_copies(&p, matmul_before, k->op, c, a);
    add_launch(&p, &(struct planned_launch){0});
    add_copies(&p, matmul_after, k->op, c, a);
    return p.n;
}

static enum status examine(const struct jit *j, int module, struct planned_launch *p)
{
    const char *image;
    int64_t bytes;
    struct cubin_kernel kernel;
    TRY(jit_image(j, module, &image, &bytes));
    if (!cubin_kernel(image, bytes, p->entry, &kernel)) return ST_OK;
    p->registers = kernel.registers;
    p->static_bytes = kernel.static_bytes;
    return ST_OK;
}

enum status cuda_compile(const struct target *t, struct planned_launch *const *launch, int n)
{
    const char *why;
    if (!cuda_nvrtc(&why))
        return fail(ST_UNSUPPORTED,
                    "kernels cannot be compiled: %s; install NVRTC of CUDA 12 or 13 (Debian: "
                    "libnvrtc)",
                    why);
    struct jit *j = jit_open(t->arch);
    struct arena a = {0};
    int *module = ARENA_NEW(&a, int, n + 1);
    enum status st = ST_OK;
    for (int i = 0; i < n; i++)
        module[i] = jit_request(j, launch[i]->text, launch[i]->source, launch[i]->options);
    jit_make(j);
    for (int i = 0; i < n && st == ST_OK; i++) st = examine(j, module[i], launch[i]);
    arena_release(&a);
    jit_close(j);
    return st;
}
