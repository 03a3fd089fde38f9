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
    sequence_init_staged(&v->sequence, e, GRAPH_EVAL, "loss", a);
    return ST_OK;
}

void evaluator_close(struct evaluator *v)
{
    sequence_close(&v->sequence);
}

static void count(struct evaluator *v, int64_t split)
{
    int64_t n = v->batch.B * v->batch.T;
    for (int64_t i = 0; i < n; i++)
        v->text_bytes[split] += vocabulary_text_bytes(v->vocabulary, v->batch.targets[i]);
    v->targets[split] += n;
}

static enum status start(struct evaluator *v, int64_t k)
{
    TRY(batch_feed(&v->batch, &v->loader[k / v->batches], &v->sequence, 0, 0));
    if (v->vocabulary) count(v, k / v->batches);
    return sequence_start(&v->sequence, &v->hooks);
}

static enum status finish(struct evaluator *v, double *sum)
{
    const float *loss;
    TRY(sequence_wait(&v->sequence, &loss));
    if (!isfinite(*loss))
        return fail(ST_NUMERIC,
                    "the loss is %g: run again with --check_nan=true to see which "
                    "operator it comes from",
                    (double)*loss);
    *sum += (double)*loss;
    return ST_OK;
}

/* The batches of both splits; on a GPU each starts before the previous one ends. */
static enum status run(struct evaluator *v, double sum[SPLIT_COUNT], struct progress *progress)
{
    int64_t batches = SPLIT_COUNT * v->batches;
    int64_t ahead = v->hooks.after ? 0 : sequence_lookahead(&v->sequence);
    for (int64_t k = 0; k < batches + ahead; k++) {
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        if (k < batches) TRY(start(v, k));
        int64_t done = k - ahead;
        if (done < 0) continue;
        TRY(finish(v, &sum[done / v->batches]));
        progress_show(progress, done + 1, NULL);
    }
    return ST_OK;
}

enum status evaluator_run(struct evaluator *v, int64_t iter, double ret_loss[SPLIT_COUNT])
{
    double sum[SPLIT_COUNT] = {0};
    struct progress progress;
    progress_start(&progress, "  eval", 0, SPLIT_COUNT * v->batches);
    progress.inner = true;
    for (int split = 0; split < SPLIT_COUNT; split++) {
        v->loader[split].next = iter * v->batches;
        v->targets[split] = v->text_bytes[split] = 0;
    }
    enum status st = run(v, sum, &progress);
    if (st != ST_OK) {
        sequence_drop(&v->sequence);
        if (st == ST_INTERRUPTED) return st;
        return fail_in(st, "evaluation at iteration %lld", (long long)iter);
    }
    for (int split = 0; split < SPLIT_COUNT; split++)
        ret_loss[split] = sum[split] / (double)v->batches;
    return ST_OK;
}
