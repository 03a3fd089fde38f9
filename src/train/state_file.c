#include "train/state_file.h"

#include "base/file.h"
#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_BYTES_MOST = 1 << 20 };

const char *state_tensor_file(int i)
{
    return i == STATE_MODEL ? "model.safetensors" : "optimizer.safetensors";
}

enum status state_part(enum status st, const char *path)
{
    if (st != ST_ABSENT) return st;
    return fail(ST_FORMAT, "%s is missing: the checkpoint is incomplete", path);
}

enum status state_write(const char *folder, const struct checkpoint_state *state,
                        const struct safetensors_facts files[STATE_FILE_COUNT])
{
    json_t *listed = json_object();
    for (int i = 0; i < STATE_FILE_COUNT; i++)
        json_object_set_new(listed, state_tensor_file(i),
                            json_pack("{s:I, s:s}", "bytes", (json_int_t)files[i].bytes, "sha256",
                                      files[i].sha256));
    json_t *root =
        json_pack("{s:i, s:I, s:I, s:o, s:I, s:I, s:I, s:s, s:s*, s:o}", "v", STATE_VERSION, "iter",
                  (json_int_t)state->iter, "seed", (json_int_t)state->seed, "best_val_loss",
                  number_or_null(state->best_val_loss), "best_iter", (json_int_t)state->best_iter,
                  "train_batches", (json_int_t)state->train_batches, "eval_batches",
                  (json_int_t)state->eval_batches, "config", state->config, "run", state->run,
                  "files", listed);
    if (!root) return fail(ST_USAGE, "the configuration has a value that is not valid UTF-8");
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(root);
    BUG_IF(!text, "a state cannot be written as JSON");

    char done[HASH_HEX + 1], path[FILE_LONGEST + 1];
    int64_t bytes = (int64_t)strlen(text);
    hash_bytes(text, bytes, done);
    memcpy(done + HASH_HEX - 1, "\n", 2);
    snprintf(path, sizeof path, "%s/state.json", folder);
    enum status st = file_write(path, text, bytes);
    free(text);
    if (st != ST_OK) return st;
    snprintf(path, sizeof path, "%s/DONE", folder);
    return file_write(path, done, HASH_HEX);
}

static bool read_integer(json_t *root, const char *key, int64_t *ret)
{
    json_t *item = json_object_get(root, key);
    *ret = (int64_t)json_integer_value(item);
    return json_is_integer(item);
}

static bool read_files(json_t *root, struct safetensors_facts files[STATE_FILE_COUNT])
{
    for (int i = 0; i < STATE_FILE_COUNT; i++) {
        json_t *o = json_object_get(json_object_get(root, "files"), state_tensor_file(i));
        const char *digest = json_string_value(json_object_get(o, "sha256"));
        if (!read_integer(o, "bytes", &files[i].bytes)) return false;
        if (!digest || strlen(digest) != HASH_HEX - 1) return false;
        memcpy(files[i].sha256, digest, HASH_HEX);
    }
    return true;
}

static bool read_fields(json_t *root, struct arena *a, struct checkpoint_state *s,
                        struct safetensors_facts files[STATE_FILE_COUNT])
{
    json_t *loss = json_object_get(root, "best_val_loss");
    const char *config = json_string_value(json_object_get(root, "config"));
    if (!config || !(json_is_real(loss) || json_is_null(loss))) return false;
    s->best_val_loss = json_is_null(loss) ? INFINITY : json_real_value(loss);
    const char *run = json_string_value(json_object_get(root, "run"));
    s->config = arena_strdup(a, config);
    s->run = run ? arena_strdup(a, run) : NULL;
    return read_integer(root, "iter", &s->iter) && read_integer(root, "seed", &s->seed) &&
           read_integer(root, "best_iter", &s->best_iter) &&
           read_integer(root, "train_batches", &s->train_batches) &&
           read_integer(root, "eval_batches", &s->eval_batches) && read_files(root, files);
}

static enum status read_part(const char *path, int64_t most, struct arena *a, char **ret_text,
                             int64_t *ret_bytes)
{
    return state_part(file_read_most(path, most, a, ret_text, ret_bytes), path);
}

/* DONE contains the digest and a newline. */
static enum status check_done(const char *folder, const char *state_path, const char *state,
                              int64_t bytes, struct arena *a)
{
    char *done, digest[HASH_HEX];
    int64_t done_bytes;
    TRY(read_part(arena_printf(a, "%s/DONE", folder), HASH_HEX, a, &done, &done_bytes));
    hash_bytes(state, bytes, digest);
    if (done_bytes != HASH_HEX || done[HASH_HEX - 1] != '\n' ||
        memcmp(done, digest, HASH_HEX - 1) != 0)
        return fail(ST_FORMAT, "%s is corrupt: its SHA-256 %.12s... differs from the one in DONE",
                    state_path, digest);
    return ST_OK;
}

enum status state_read(const char *folder, struct arena *a, struct checkpoint_state *ret_state,
                       struct safetensors_facts ret_files[STATE_FILE_COUNT])
{
    const char *path = arena_printf(a, "%s/state.json", folder);
    char *text;
    int64_t bytes;
    TRY(read_part(path, STATE_BYTES_MOST, a, &text, &bytes));
    TRY(check_done(folder, path, text, bytes, a));
    json_error_t e;
    json_t *root = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &e);
    if (!root) return fail(ST_FORMAT, "%s is not valid JSON: %s", path, e.text);
    int64_t version = 0;
    struct checkpoint_state s = {};
    struct safetensors_facts files[STATE_FILE_COUNT];
    enum status st = ST_OK;
    if (!read_integer(root, "v", &version) || version != STATE_VERSION)
        st = fail(ST_UNSUPPORTED, "%s has version %lld, but this program supports %d", path,
                  (long long)version, STATE_VERSION);
    else if (!read_fields(root, a, &s, files))
        st = fail(ST_FORMAT, "%s lacks a field or has a field of the wrong type", path);
    json_decref(root);
    if (st != ST_OK) return st;
    *ret_state = s;
    memcpy(ret_files, files, sizeof files);
    return ST_OK;
}
