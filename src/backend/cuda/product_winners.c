/* The file of winners: {"v":1, "library":130001, "products":{"bf16 …":{"algorithm":"…", …}, …}}. An algorithm is
 * the library's own bytes, which mean something to this version of it alone. */
#include "backend/cuda/product.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_VERSION = 1, WORDS = 8, DIGITS = 16 };

/* What this process knows, read from the file once. */
static struct winners {
    char device[64];
    json_t *root;
} known;

/* NULL where the user has no folder for such things. */
static const char *path_of(const char *device, struct arena *a)
{
    const char *folder = file_cache_folder(a);
    if (!folder) return NULL;
    char *word = arena_strdup(a, device);
    for (char *p = word; *p; p++)
        if (!isalnum((unsigned char)*p)) *p = '-';
    return arena_printf(a, "%s/products-%s.json", folder, word);
}

static bool is_ours(const json_t *root)
{
    return json_integer_value(json_object_get(root, "v")) == FILE_VERSION &&
           json_integer_value(json_object_get(root, "library")) == cublaslt_version() &&
           json_is_object(json_object_get(root, "products"));
}

/* NULL: there is none of this version of the library. */
static json_t *read_file(const char *device)
{
    struct arena a = {0};
    const char *path = path_of(device, &a);
    json_t *root = path ? json_load_file(path, 0, NULL) : NULL;
    arena_release(&a);
    if (root && is_ours(root)) return root;
    json_decref(root);
    return NULL;
}

/* The winners of that GPU by their products. */
static json_t *winners_of(const char *device)
{
    if (known.root && !strcmp(known.device, device)) return json_object_get(known.root, "products");
    json_decref(known.root);
    snprintf(known.device, sizeof known.device, "%s", device);
    known.root = read_file(device);
    if (!known.root)
        known.root = json_pack("{s:i, s:I, s:{}}", "v", FILE_VERSION, "library",
                               (json_int_t)cublaslt_version(), "products");
    return json_object_get(known.root, "products");
}

/* 16 digits for each word; false if it is anything else. */
static bool read_algorithm(const char *text, cublasLtMatmulAlgo_t *ret)
{
    if (!text || strlen(text) != WORDS * DIGITS) return false;
    if (strspn(text, "0123456789abcdef") != WORDS * DIGITS) return false;
    for (int i = 0; i < WORDS; i++) {
        char word[DIGITS + 1] = "";
        memcpy(word, text + i * DIGITS, DIGITS);
        ret->data[i] = strtoull(word, NULL, 16);
    }
    return true;
}

bool product_winner(const char *device, const char *product, struct product_choice *ret)
{
    _Static_assert(sizeof ret->algorithm.data == WORDS * sizeof(uint64_t), "words of an algorithm");
    const json_t *entry = json_object_get(winners_of(device), product);
    ret->us = json_number_value(json_object_get(entry, "microseconds"));
    return read_algorithm(json_string_value(json_object_get(entry, "algorithm")), &ret->algorithm);
}

static const char *const ways[WAYS] = {
    [WAY_APART] = "apart_microseconds", [WAY_WGMMA] = "wgmma_microseconds"};

double product_way_us(const char *device, const char *product, enum product_way way)
{
    const json_t *entry = json_object_get(winners_of(device), product);
    return json_number_value(json_object_get(entry, ways[way]));
}

/* What other programs found meanwhile stays. */
static void take_in(const char *device)
{
    json_t *root = read_file(device), *own = json_object_get(known.root, "products"), *theirs;
    const char *product;
    json_object_foreach(json_object_get(root, "products"), product, theirs)
    {
        json_t *entry = json_object_get(own, product);
        (void)(entry ? json_object_update_missing(entry, theirs)
                     : json_object_set(own, product, theirs));
    }
    json_decref(root);
}

static enum status write_file(const char *device)
{
    take_in(device);
    struct arena a = {0};
    const char *path = path_of(device, &a);
    enum status st = ST_OK;
    char *text = json_dumps(known.root, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
    if (path && text) {
        TRY_OUT(st, file_make_dirs(file_cache_folder(&a)));
        TRY_OUT(st, file_write(path, text, (int64_t)strlen(text)));
    }
out:
    free(text);
    arena_release(&a);
    return st;
}

static void write_winners(const char *device)
{
    if (write_file(device) != ST_OK) log_debug("products are not kept: %s", fail_message());
}

void product_way_keep(const char *device, const char *product, enum product_way way, double us)
{
    json_t *all = winners_of(device), *entry = json_object_get(all, product);
    if (!entry) { /* the library has no such product */
        json_object_set_new(all, product, json_object());
        entry = json_object_get(all, product);
    }
    if (json_object_set_new(entry, ways[way], json_real(us)) == 0) write_winners(device);
}

void product_winner_keep(const char *device, const char *product,
                         const cublasLtMatmulAlgo_t *winner, const struct product_times *times)
{
    char text[WORDS * DIGITS + 1];
    for (int i = 0; i < WORDS; i++)
        snprintf(text + i * DIGITS, DIGITS + 1, "%016" PRIx64, winner->data[i]);
    json_t *entry =
        json_pack("{s:s, s:f, s:f, s:i}", "algorithm", text, "microseconds", times->best_us,
                  "first_guess_microseconds", times->first_us, "candidates", times->candidates);
    json_t *all = winners_of(device);
    json_object_update_missing(entry, json_object_get(all, product)); /* what other ways take */
    if (json_object_set_new(all, product, entry) == 0) write_winners(device);
}
