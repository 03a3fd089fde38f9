#include "train/evaluator.h"

#include "backend/communicator.h"
#include "base/heap.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "engine/shards.h"
#include "train/ranks.h"

#include <math.h>
#include <stdlib.h>

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
    struct loader *l = &v->loader[k / v->batches];
    l->next = v->iter * v->batches + k % v->batches;
    TRY(batch_feed(&v->batch, l, &v->sequence, 0, 0));
    if (v->vocabulary) count(v, k / v->batches);
    return sequence_start(&v->sequence, &v->hooks);
}

static enum status check_finite(double loss)
{
    if (isfinite(loss)) return ST_OK;
    return fail(ST_NUMERIC,
                "the loss is %g: run again with --check_nan=true to see which operator it comes "
                "from",
                loss);
}

/* The losses of `count` batches, `stride` apart; on a GPU each batch starts before the previous one
 * ends. With `progress`, it stops if the user interrupts it or if a loss is not finite. */
static enum status run_batches(struct evaluator *v, int64_t first, int64_t stride, int64_t count,
                               float *ret_loss, struct progress *progress)
{
    int64_t ahead = v->hooks.after ? 0 : sequence_lookahead(&v->sequence);
    for (int64_t k = 0; k < count + ahead; k++) {
        const float *loss;
        if (progress && interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        if (k < count) TRY(start(v, first + k * stride));
        int64_t done = k - ahead;
        if (done < 0 || done >= count) continue;
        TRY(sequence_wait(&v->sequence, &loss));
        ret_loss[done] = *loss;
        if (!progress) continue;
        TRY(check_finite((double)*loss));
        progress_show(progress, done + 1, NULL);
    }
    return ST_OK;
}

/* --- several ranks: round-robin distribution of the batches ----------------------------------- */

/* Runs the batches of a round if the weights are sharded. All ranks must then take part in every
 * batch, so a rank without a batch of its own repeats the last one and its loss is not used. */
static enum status run_together(struct evaluator *v, int64_t first, int64_t ranks, int64_t left,
                                float *ret_loss)
{
    int64_t rank = communicator_rank(v->sequence.engine->communicator);
    enum status st = ST_OK;
    for (int64_t k = 0; k < min_i64(EVALUATOR_ROUND, ceil_div(left, ranks)) && st == ST_OK; k++) {
        int64_t mine = min_i64(k * ranks + rank, left - 1);
        st = run_batches(v, first + mine, 1, 1, ret_loss + k, NULL);
    }
    return st;
}

enum status evaluator_join(struct evaluator *v, int64_t iter, int64_t first, float *ret_loss)
{
    struct communicator *c = v->sequence.engine->communicator;
    int rank = communicator_rank(c), ranks = communicator_ranks(c);
    int64_t left = SPLIT_COUNT * v->batches - first;
    int64_t count = min_i64(EVALUATOR_ROUND, ceil_div(max_i64(left - rank, 0), ranks));
    float mine[EVALUATOR_ROUND] = {0};
    v->iter = iter;
    enum status st = shards_weights(v->sequence.engine->program.config)
                         ? run_together(v, first, ranks, left, mine)
                         : run_batches(v, first + rank, ranks, count, mine, NULL);
    if (st == ST_OK) return communicator_gather(c, mine, sizeof mine, ret_loss);
    communicator_fail(c, st);
    return st;
}

static enum status run_rounds(struct evaluator *v, int64_t iter, float *ret_loss,
                              struct progress *progress)
{
    struct communicator *c = v->sequence.engine->communicator;
    int64_t batches = SPLIT_COUNT * v->batches, ranks = communicator_ranks(c);
    float *all = HEAP_NEW(float, EVALUATOR_ROUND *ranks);
    enum status st = ST_OK;
    for (int64_t first = 0; first < batches && st == ST_OK; first += EVALUATOR_ROUND * ranks) {
        if (interrupt_noted()) TRY_OUT(st, fail(ST_INTERRUPTED, "interrupted"));
        TRY_OUT(st, crew_order(c, ORDER_EVALUATE, iter, first));
        TRY_OUT(st, evaluator_join(v, iter, first, all));
        int64_t end = min_i64(batches, first + EVALUATOR_ROUND * ranks);
        for (int64_t k = first; k < end; k++) {
            ret_loss[k] = all[(k - first) % ranks * EVALUATOR_ROUND + (k - first) / ranks];
            TRY_OUT(st, check_finite((double)ret_loss[k]));
        }
        progress_show(progress, end, NULL);
    }
out:
    free(all);
    return st;
}

enum status evaluator_run(struct evaluator *v, int64_t iter, double ret_loss[SPLIT_COUNT])
{
    int64_t batches = SPLIT_COUNT * v->batches;
    bool many = communicator_ranks(v->sequence.engine->communicator) > 1;
    float *loss = HEAP_NEW(float, batches);
    struct progress progress;
    progress_start(&progress, "  eval", 0, batches);
    progress.inner = true;
    v->iter = iter;
    for (int split = 0; split < SPLIT_COUNT; split++) v->targets[split] = v->text_bytes[split] = 0;
    enum status st = many ? run_rounds(v, iter, loss, &progress)
                          : run_batches(v, 0, 1, batches, loss, &progress);
    if (st != ST_OK) {
        sequence_drop(&v->sequence);
        if (st != ST_INTERRUPTED) st = fail_in(st, "evaluation at iteration %lld", (long long)iter);
    }
    for (int split = 0; split < SPLIT_COUNT && st == ST_OK; split++) {
        double sum = 0;
        for (int64_t k = 0; k < v->batches; k++) sum += (double)loss[split * v->batches + k];
        ret_loss[split] = sum / (double)v->batches;
    }
    free(loss);
    return st;
}
