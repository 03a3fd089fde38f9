/* How often each kernel ran and how long it took, by CUPTI alone: an independent check of
 * `strobe profile`.
 *
 *     cc -O2 -shared -fPIC -I/usr/local/cuda/include -I/usr/local/cuda/extras/CUPTI/include \
 *         reference/cupti_kernels.c -o cupti_kernels.so \
 *         -L/usr/local/cuda/lib64 -L/usr/local/cuda/extras/CUPTI/lib64 -lcupti -pthread
 *     CUPTI_KERNELS=replay CUDA_INJECTION64_PATH=$PWD/cupti_kernels.so \
 *         ./strobe train configs/gpt2_124m.conf --device=cuda --replay=true --max_iters=30
 *
 * The driver opens it when the program begins. At the end it prints to stderr, or to the file
 * CUPTI_KERNELS_OUT, a table with tabs between columns, by total time. The column `recording` tells
 * one CUDA graph from another (training, evaluation); 0 is everything outside a graph, including
 * the search for the fastest matmul. count/plays is how often the kernel is in one replay.
 * CUPTI_KERNELS=replay leaves out recording 0.
 *
 * Not together with `strobe profile` by CUPTI: both want it for themselves. */
#include <cupti.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 8 << 20, ROWS = 4096, RECORDINGS = 256 };

static struct row {
    char *name;
    uint32_t recording;
    uint64_t *ns;
    size_t n, capacity;
    uint64_t total;
} rows[ROWS];
static int used;
static struct recording {
    uint32_t id, last_call;
    size_t plays;
} recordings[RECORDINGS];
static size_t dropped, untimed, left_out;
static int replay_only;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *records)
{
    *buffer = malloc(BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *records = 0;
}

static struct row *row_of(const char *name, uint32_t recording)
{
    for (int i = 0; i < used; i++)
        if (rows[i].recording == recording && strcmp(rows[i].name, name) == 0) return &rows[i];
    if (used == ROWS) return NULL;
    rows[used].name = strdup(name);
    rows[used].recording = recording;
    return &rows[used++];
}

static struct recording *recording_of(uint32_t id)
{
    int i = 0;
    while (i < RECORDINGS - 1 && recordings[i].id && recordings[i].id != id) i++;
    recordings[i].id = id;
    return &recordings[i];
}

static void count(const char *name, uint64_t start, uint64_t end, uint32_t recording, uint32_t call)
{
    if (replay_only && !recording) return;
    if (!start || !end) {
        untimed++;
        return;
    }
    struct recording *g = recording ? recording_of(recording) : NULL;
    if (g && g->last_call != call) g->plays++, g->last_call = call;
    struct row *r = row_of(name ? name : "?", recording);
    if (!r) {
        left_out++;
        return;
    }
    if (r->n == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        r->ns = realloc(r->ns, r->capacity * sizeof *r->ns);
        if (!r->ns) abort();
    }
    r->ns[r->n++] = end - start;
    r->total += end - start;
}

static void CUPTIAPI take(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                          size_t valid)
{
    CUpti_Activity *a = NULL;
    size_t lost = 0;
    (void)size;
    pthread_mutex_lock(&lock);
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &a) == CUPTI_SUCCESS) {
        if (a->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            const CUpti_ActivityKernel5 *k = (const void *)a;
            count(k->name, k->start, k->end, k->graphId, k->correlationId);
        } else if (a->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            const CUpti_ActivityMemcpy4 *c = (const void *)a;
            count("[copy]", c->start, c->end, c->graphId, c->correlationId);
        } else if (a->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            const CUpti_ActivityMemset3 *f = (const void *)a;
            count("[fill]", f->start, f->end, f->graphId, f->correlationId);
        }
    }
    if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS) dropped += lost;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static int by_total(const void *a, const void *b)
{
    uint64_t x = ((const struct row *)a)->total, y = ((const struct row *)b)->total;
    return (x < y) - (x > y);
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void report(void)
{
    cuptiActivityFlushAll(1);
    const char *path = getenv("CUPTI_KERNELS_OUT");
    FILE *out = path ? fopen(path, "w") : stderr;
    if (!out) out = stderr;
    uint64_t all = 0;
    pthread_mutex_lock(&lock);
    qsort(rows, (size_t)used, sizeof rows[0], by_total);
    for (int i = 0; i < used; i++) all += rows[i].total;
    fputs("share\ttotal_ms\trecording\tcount\tcount/plays\taverage_us\tmedian_us\tminimum_us\t"
          "maximum_us\tname\n",
          out);
    for (int i = 0; i < used; i++) {
        struct row *r = &rows[i];
        double total = (double)r->total, n = (double)r->n;
        size_t plays = r->recording ? recording_of(r->recording)->plays : 0;
        qsort(r->ns, r->n, sizeof *r->ns, by_time);
        fprintf(out, "%.2f\t%.4f\t%u\t%zu\t", all ? 100 * total / (double)all : 0, total * 1e-6,
                r->recording, r->n);
        fprintf(out, "%.2f\t%.3f\t%.3f\t%.3f\t%.3f\t%s\n", plays ? n / (double)plays : 0,
                total * 1e-3 / n, (double)r->ns[r->n / 2] * 1e-3, (double)r->ns[0] * 1e-3,
                (double)r->ns[r->n - 1] * 1e-3, r->name);
    }
    fprintf(out, "# total %.4f ms; %zu records dropped, %zu without times, %zu of too many names\n",
            (double)all * 1e-6, dropped, untimed, left_out);
    pthread_mutex_unlock(&lock);
    if (out != stderr) fclose(out);
}

int InitializeInjection(void);
int InitializeInjection(void)
{
    static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_MEMSET,
                                               CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
    const char *only = getenv("CUPTI_KERNELS");
    replay_only = only && strcmp(only, "replay") == 0;
    CUptiResult r = cuptiActivityRegisterCallbacks(request, take);
    for (size_t i = 0; r == CUPTI_SUCCESS && i < sizeof kinds / sizeof kinds[0]; i++)
        r = cuptiActivityEnable(kinds[i]);
    if (r != CUPTI_SUCCESS) {
        const char *words = "?";
        cuptiGetResultString(r, &words);
        fprintf(stderr, "cupti_kernels: CUPTI cannot begin: %s\n", words);
        return 0;
    }
    atexit(report);
    return 1;
}
