#include "train/logits.h"

#include "base/file.h"

#include <string.h>

/* Runs a window of the ids and zeros. Attention is causal, so the zeros have no effect. */
static enum status run_window(struct sequence *q, const int32_t *ids, int64_t n, int64_t T,
                              struct arena *a)
{
    int32_t *tokens = ARENA_NEW(a, int32_t, T), *positions = ARENA_NEW(a, int32_t, T);
    memcpy(tokens, ids, (size_t)n * sizeof *ids);
    for (int64_t t = 0; t < T; t++) positions[t] = (int32_t)t;
    TRY(sequence_feed(q, 0, "tokens", tokens, T * (int64_t)sizeof *tokens));
    TRY(sequence_feed(q, 0, "positions", positions, T * (int64_t)sizeof *positions));
    return sequence_start(q, NULL);
}

/* Version 1.0 of the .npy format: the data begins at a multiple of 64 bytes, here at 128. */
static void write_header(FILE *f, int64_t rows, int64_t columns)
{
    enum { MAGIC = 10, HEADER = 118 };
    char text[HEADER + 1];
    int n = snprintf(text, sizeof text,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }",
                     (long long)rows, (long long)columns);
    memset(text + n, ' ', (size_t)(HEADER - n));
    text[HEADER - 1] = '\n';
    const char magic[MAGIC] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, HEADER, 0};
    fwrite(magic, 1, MAGIC, f);
    fwrite(text, 1, HEADER, f);
}

enum status logits_write(struct engine *e, const int32_t *ids, int64_t n, const char *path,
                         struct arena *a)
{
    const struct model *m = &e->program.model;
    const int64_t size = sizeof(float);
    float *row = ARENA_NEW(a, float, m->vocab);
    struct sequence q;
    struct file_writer w = {0};
    sequence_init_plan(&q, e, GRAPH_LOGITS, NULL, a);
    enum status st = run_window(&q, ids, n, m->config.block_size, a);
    if (st == ST_OK) st = file_writer_open(&w, path);
    if (st == ST_OK) write_header(w.stream, n, m->vocab);
    bool opened = st == ST_OK;
    for (int64_t t = 0; st == ST_OK && t < n; t++) {
        st = plan_read(&e->program.plan[GRAPH_LOGITS], "logits", t * m->padded_vocab * size, row,
                       m->vocab * size);
        fwrite(row, sizeof *row, (size_t)m->vocab, w.stream);
    }
    sequence_close(&q);
    if (st == ST_OK) return file_writer_commit(&w);
    if (opened) file_writer_discard(&w);
    return st;
}
