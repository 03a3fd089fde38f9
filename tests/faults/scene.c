/* What trials start from and are compared with: a text, a data set, a tiny model, and the files
 * that undisturbed commands leave. All paths are relative, so that folders can be copied. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const command_names[COMMANDS] = {"train",  "resume", "data",   "eval",
                                             "sample", "report", "compare"};

const struct subject the_run = {"run", "saved", "end_train/run", LAST},
                     run_of_text2 = {"run", NULL, "end_train2/run", LAST},
                     compared_run = {"both/seed=2", "saved_seed2", "end_compare/both/seed=2", LAST};

static char *expected[COMMANDS];

/* A run stores its data_dir as an absolute path; a trial starts from a copy of the run, and reads
 * the copy of the data. */
static char *const words[COMMANDS][10] = {
    [TRAIN] = {"strobe", "train", "tiny.conf", "--out_dir=run"},
    [RESUME] = {"strobe", "train", "run", "--init_from=resume", "--max_iters=20",
                "--data_dir=data"},
    [DATA] = {"strobe", "data", "tiny", "--from=text2", "--force", "--data_dir=data"},
    [EVAL] = {"strobe", "eval", "run", "--data_dir=data"},
    [SAMPLE] = {"strobe", "sample", "run", "--num_samples=1", "--max_new_tokens=20"},
    [REPORT] = {"strobe", "report", "run", "--html=page.html", "--csv"},
    [COMPARE] = {"strobe", "compare", "tiny.conf", "--seed=1,2", "--out_dir=both",
                 "--init_from=resume", "--json"},
};

char *const *scene_words(enum command c)
{
    return words[c];
}

const char *scene_start(enum command c)
{
    static char path[PATH_BYTES];
    return path_in(path, "%s/base/%s", settings.work,
                   c == TRAIN || c == DATA ? "plain"
                   : c == RESUME           ? "half"
                   : c == COMPARE          ? "partway"
                                           : "whole");
}

const char *scene_expected(enum command c)
{
    return expected[c];
}

void write_text(const char *dir, const char *name, uint64_t seed, uint64_t words_in_it)
{
    static const char *const word[] = {"aba", "cab", "deed", "fad", "bee", "face", "a", "ed"};
    char path[PATH_BYTES];
    FILE *f = fopen(path_in(path, "%s/%s", dir, name), "we");
    if (!f) die("%s cannot be written", path);
    for (uint64_t i = 0; i < words_in_it; i++)
        fprintf(f, "%s%s", word[random_of(seed, i) % 8], i % 8 == 7 ? "\n" : " ");
    fclose(f);
}

/* The learning rate grows until the loss rises: the best checkpoint is neither iteration 0 nor one
 * of the last two. No telemetry, so that each run makes the same calls. */
static void write_config(const char *dir)
{
    static const char text[] =
        "dataset = tiny\ndata_dir = data\nn_layer = 1\nn_head = 2\nn_embd = 16\nblock_size = 16\n"
        "batch_size = 2\ndropout = 0.1\nmax_iters = 20\neval_interval = 4\neval_iters = 1\n"
        "learning_rate = 1\nmin_lr = 1e-2\nwarmup_iters = 20\nlr_decay_iters = 100\n"
        "threads = 1\nsample_interval = 0\n";
    char path[PATH_BYTES];
    write_whole(path_in(path, "%s/tiny.conf", dir), text, sizeof text - 1);
}

static void must(struct worker *w, char *const *line, struct outcome *ret)
{
    run(w, &(struct start){.words = line}, ret);
    if (ret->code) die("without faults, strobe %s %s fails: %s", line[1], line[2], ret->err);
}

/* A run that did 12 of its 20 iterations and then had no time to end. */
static void train_half(struct worker *w, const char *run, char *seed)
{
    static const char *const ends[] = {"summary.json", "samples.txt", "report.html"};
    static struct outcome o;
    char path[PATH_BYTES], out_dir[PATH_BYTES];
    path_in(out_dir, "--out_dir=%s", run);
    char *const line[] = {"strobe", "train", "tiny.conf", out_dir, "--max_iters=12", seed, NULL};
    must(w, line, &o);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        remove(path_in(path, "%s/%s/%s", w->dir, run, ends[i]));
}

/* What resume starts from. */
static void build_half(struct worker *w)
{
    char path[PATH_BYTES];
    copy_tree(path_in(path, "%s/base/plain", settings.work), w->dir);
    train_half(w, "run", NULL);
    copy_tree(w->dir, path_in(path, "%s/base/half", settings.work));
}

/* What compare starts from: the first run has ended, the second has not. */
static void build_partway(struct worker *w)
{
    char path[PATH_BYTES];
    copy_tree(path_in(path, "%s/base/whole", settings.work), w->dir);
    remove_tree(path_in(path, "%s/both/seed=2", w->dir));
    remove(path_in(path, "%s/both/report.html", w->dir));
    train_half(w, "both/seed=2", "--seed=2");
    copy_tree(w->dir, path_in(path, "%s/base/partway", settings.work));
}

/* The end of a training on the other text. */
static void build_text2(struct worker *w)
{
    static struct outcome o;
    char path[PATH_BYTES];
    copy_tree(path_in(path, "%s/base/plain", settings.work), w->dir);
    must(w, words[DATA], &o);
    must(w, words[TRAIN], &o);
    copy_tree(w->dir, path_in(path, "%s/base/end_train2", settings.work));
    char why[256];
    if (same_end(w, &the_run, why)) die("the two texts train alike");
}

/* The tensors of every checkpoint that is ever saved. */
static void build_checkpoints(struct worker *w, const char *saved, char *seed)
{
    static struct outcome o;
    char path[PATH_BYTES], target[PATH_BYTES], most[64];
    make_dir(path_in(path, "%s/base/%s", settings.work, saved));
    for (int iter = EVERY; iter <= LAST; iter += EVERY) {
        copy_tree(path_in(path, "%s/base/plain", settings.work), w->dir);
        snprintf(most, sizeof most, "--max_iters=%d", iter);
        char *const line[] = {"strobe", "train", "tiny.conf", "--out_dir=run", most, seed, NULL};
        must(w, line, &o);
        copy_tree(path_in(path, "%s/run/ckpt/%06d", w->dir, iter),
                  path_in(target, "%s/base/%s/%06d", settings.work, saved, iter));
    }
}

static void build_whole(struct worker *w)
{
    char *const line[] = {"strobe", "compare", "tiny.conf", "--seed=1,2", "--out_dir=both", NULL};
    char *const profile[] = {"strobe",    "profile",         "tiny.conf", "--out_dir=run",
                             "--steps=3", "--trace-steps=0", NULL};
    char *const bench[] = {"strobe",    "bench",      "tiny.conf", "--save=run/bench.json",
                           "--steps=1", "--warmup=1", NULL};
    static struct outcome o;
    char path[PATH_BYTES];
    copy_tree(path_in(path, "%s/base/plain", settings.work), w->dir);
    must(w, words[TRAIN], &o);
    must(w, line, &o);
    must(w, profile, &o);
    must(w, bench, &o);
    copy_tree(w->dir, path_in(path, "%s/base/whole", settings.work));
}

/* Of compare's JSON the lines that neither the clock nor the memory of the process decides. */
char *scene_timeless(enum command c, const char *out)
{
    static const char *const varies[] = {
        "\"ms_",     "\"tokens_per_s\"", "\"run_tokens_per_s\"", "\"run_mfu\"",
        "\"speed\"", "\"mfu\"",          "\"memory_peak\"",      "\"wall\""};
    char *text;
    size_t bytes;
    bool in_notes = false; /* about other programs that ran at the same time */
    FILE *f = open_memstream(&text, &bytes);
    for (const char *s = out; *s; s += strcspn(s, "\n") + (strchr(s, '\n') != NULL)) {
        const char *from = s + strspn(s, " "), *losses = strstr(s, "losses ");
        size_t n = strcspn(s, "\n");
        bool is_left_out = in_notes;
        if (c == COMPARE && !strncmp(from, "\"notes\"", 7)) is_left_out = in_notes = true;
        if (in_notes && memchr(s, ']', n)) in_notes = false;
        for (size_t i = 0; c == COMPARE && i < sizeof varies / sizeof *varies; i++)
            is_left_out |= !strncmp(from, varies[i], strlen(varies[i]));
        if (c == COMPARE && losses && losses < s + n) n -= (size_t)(losses - s), s = losses;
        if (!is_left_out) fprintf(f, "%.*s\n", (int)n, s);
    }
    fclose(f);
    return text;
}

/* What judges readers must be the same each time. */
static void expect(enum command c, const char *a, const char *b)
{
    char *x = scene_timeless(c, a), *y = scene_timeless(c, b);
    if (strcmp(x, y) != 0)
        die("two runs of %s print different words:\n%s%s", command_names[c], x, y);
    expected[c] = x;
    free(y);
}

static void expect_file(struct worker *w, const char *name)
{
    char a[PATH_BYTES], b[PATH_BYTES];
    path_in(b, "%s/base/end_report/%s", settings.work, name);
    if (!same_file(path_in(a, "%s/%s", w->dir, name), b)) die("two reports differ in %s", name);
}

/* The folder after each undisturbed command, and its output. */
static void build_ends(struct worker *w)
{
    static struct outcome o, again;
    char path[PATH_BYTES];
    for (enum command c = 0; c < COMMANDS; c++) {
        copy_tree(scene_start(c), w->dir);
        must(w, words[c], &o);
        copy_tree(w->dir, path_in(path, "%s/base/end_%s", settings.work, command_names[c]));
        copy_tree(scene_start(c), w->dir);
        must(w, words[c], &again);
        if (c >= EVAL) expect(c, o.out, again.out);
        if (c == REPORT) expect_file(w, "page.html");
    }
}

void scene_build(void)
{
    struct worker w = {.number = -1};
    struct outcome o;
    char path[PATH_BYTES];
    char *const data[] = {"strobe", "data", "tiny", "--from=text1", "--data_dir=data", NULL};
    path_in(w.dir, "%s/w", settings.work);
    path_in(w.side, "%s/side", settings.work);
    make_dir(w.side);
    make_dir(w.dir);
    make_dir(path_in(path, "%s/base", settings.work));
    write_text(w.dir, "text1", 1, 900);
    write_text(w.dir, "text2", 2, 900);
    write_config(w.dir);
    must(&w, data, &o);
    copy_tree(w.dir, path_in(path, "%s/base/plain", settings.work));
    build_checkpoints(&w, "saved", NULL);
    build_checkpoints(&w, "saved_seed2", "--seed=2");
    build_half(&w);
    build_whole(&w);
    build_partway(&w);
    build_ends(&w);
    build_text2(&w);
}

bool scene_finish(struct worker *w, enum command c, struct outcome *ret)
{
    char *const resume[] = {"strobe", "train", "tiny.conf", "--out_dir=run", "--init_from=resume",
                            NULL};
    if (c != TRAIN && c != RESUME) {
        run(w, &(struct start){.words = words[c]}, ret);
        return ret->code == 0;
    }
    run(w, &(struct start){.words = resume}, ret);
    /* Stopped before there was a run: nothing to resume. */
    if (ret->code == 2) run(w, &(struct start){.words = words[TRAIN]}, ret);
    return ret->code == 0;
}
