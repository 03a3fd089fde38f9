#include "train/evaluator.h"

#include "base/interrupt.h"
#include "base/log.h"

#include <math.h>

enum status evaluator_init(struct evaluator *v, struct engine *e, const struct dataset *d,
                           const struct plan_hooks *hooks, struct arena *a)
{
    const struct config *c = e->program.config;
    int64_t B = c->data.batch_size, T = c->model.block_size;
    *v = (struct evaluator){.batches = c->train.eval_iters};
    if (hooks) v->hooks = *hooks;
    for (int split = 0; split < SPLIT_COUNT; split++)
        TRY(loader_init(&v->loader[split], d, (enum split)split, RNG_EVAL_BATCH,
                        (uint32_t)c->train.seed, B, T));
    batch_init(&v->batch, B, T, a);
    sequence_init_plan(&v->sequence, e, GRAPH_EVAL, "loss", a);
    return ST_OK;
}

void evaluator_close(struct evaluator *v)
{
    sequence_close(&v->sequence);
}

static enum status one_batch(struct evaluator *v, struct loader *l, double *ret_loss)
{
    const float *loss;
    TRY(batch_feed(&v->batch, l, &v->sequence, 0, 0));
    TRY(sequence_start(&v->sequence, &v->hooks));
    TRY(sequence_wait(&v->sequence, &loss));
    if (!isfinite(*loss))
        return fail(ST_NUMERIC,
                    "the loss is %g: run again with --check_nan=true to see which "
                    "operator it comes from",
                    (double)*loss);
    *ret_loss = (double)*loss;
    return ST_OK;
}

enum status evaluator_run(struct evaluator *v, int64_t iter, double ret_loss[SPLIT_COUNT])
{
    double sum[SPLIT_COUNT] = {0}, loss = 0;
    struct progress progress;
    progress_start(&progress, "  eval", 0, SPLIT_COUNT * v->batches);
    progress.inner = true;
    for (int split = 0; split < SPLIT_COUNT; split++) {
        struct loader *l = &v->loader[split];
        l->next = iter * v->batches;
        for (int64_t k = 0; k < v->batches; k++) {
            if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
            enum status st = one_batch(v, l, &loss);
            if (st != ST_OK) return fail_in(st, "evaluation at iteration %lld", (long long)iter);
            sum[split] += loss;
            progress_show(&progress, split * v->batches + k + 1, NULL);
        }
    }
    for (int split = 0; split < SPLIT_COUNT; split++)
        ret_loss[split] = sum[split] / (double)v->batches;
    return ST_OK;
}
