/* attention-block: the kernels of one block of attention, slow and flash. */
#include "suite/kernels.h"
#include "suite/others.h"

enum { LENGTHS_MOST = 8, TOP = 12, STEPS = 20 };
static const double limit_ms = 20e3, small_limit_ms = 4e3;
static const char file[] = "attention_block.conf", words[] = "fusion=op";
static const char *const ways[] = {"slow", "flash"};
static const struct table_column way_column = {"attention", "attention",
                                               "slow: its matrices in memory; flash", false};

static enum status add_one(struct kernel_lines *l, const struct suite_request *r, int64_t T,
                           int way, bool small)
{
    struct profiled p;
    struct config c;
    const char *more =
        arena_printf(l->a, "block_size=%lld flash=%s", (long long)T, way ? "true" : "false");
    TRY(suite_config(r, file, words, more, &c, l->a));
    c.model.block_size = T;
    TRY(model_check(&c));
    TRY(profiled_run(&p, r, &c, 0, r->steps ? (int)r->steps : STEPS,
                     small ? small_limit_ms : limit_ms));
    if (p.reason) kernel_lines_refuse(l, ways[way], T, p.reason);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD && !p.reason; phase++)
        kernel_lines_add(l, ways[way], T, phase_name((enum phase)phase), 1u << phase, &p.profile);
    profiled_close(&p);
    return ST_OK;
}

enum status suite_run_block(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                            struct arena *a)
{
    static const char *const lists[] = {"block_size", NULL};
    int64_t length[LENGTHS_MOST];
    struct kernel_lines l;
    int lengths;
    bool small;
    (void)s;
    TRY(suite_check_lists(r, lists));
    TRY(suite_is_small(r, &small));
    TRY(suite_lengths(r, "block_size", small ? "100,300" : "100,1000", LENGTHS_MOST, length,
                      &lengths, a));
    kernel_lines_open(&l, ret, NULL, &way_column, lengths * COUNT_OF(ways) * 2, TOP, a);
    for (int i = 0; i < lengths; i++)
        for (int way = 0; way < COUNT_OF(ways) && !suite_stopped(); way++) {
            if (r->each)
                r->each(r->user, (double)(i * COUNT_OF(ways) + way) / (lengths * COUNT_OF(ways)),
                        arena_printf(a, "T %lld %s", (long long)length[i], ways[way]));
            TRY(add_one(&l, r, length[i], way, small));
        }
    kernel_lines_close(&l);
    TRY(suite_check_stopped(l.n > 0));
    sheet_note(ret,
               "The block of configs/attention_block.conf: one head of 256, batch 32, float32. "
               "Kernels behind the twelve longest of a phase are left out.");
    if (small) suite_say_small(ret, "T 100 and 300 instead of 100 and 1000", a);
    return ST_OK;
}
