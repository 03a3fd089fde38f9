#include "data/tokenizers.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/download.h"

#include <string.h>

#define GPT2_URL "https://huggingface.co/openai-community/gpt2/resolve/main/"

static const struct gpt2_file {
    const char *name;
    struct remote_file remote;
} gpt2_files[] = {
    {"vocab.json",
     {.url = GPT2_URL "vocab.json",
      .sha256 = "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
      .bytes = 1042301}},
    {"merges.txt",
     {.url = GPT2_URL "merges.txt",
      .sha256 = "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
      .bytes = 456318}},
};

/* Whether the file exists and has the expected SHA-256. */
static bool is_cached(const char *path, const struct remote_file *f, struct arena *a)
{
    char digest[HASH_HEX], *data;
    int64_t bytes;
    if (!file_exists(path) || file_read_most(path, f->bytes, a, &data, &bytes) != ST_OK)
        return false;
    hash_bytes(data, bytes, digest);
    if (!strcmp(digest, f->sha256)) return true;
    log_warning("%s is damaged (SHA-256 %.12s...): downloading it again", path, digest);
    return false;
}

static enum status get_gpt2(const char *folder, struct arena *a)
{
    for (int i = 0; i < COUNT_OF(gpt2_files); i++) {
        const struct gpt2_file *f = &gpt2_files[i];
        const char *path = arena_printf(a, "%s/%s", folder, f->name);
        if (is_cached(path, &f->remote, a)) continue;
        TRY(file_make_dirs(folder));
        enum status st = download(&f->remote, path);
        if (st != ST_OK)
            return fail_in(st,
                           "no tokenizer of GPT-2 (vocab.json and merges.txt can be put into "
                           "%s by hand)",
                           folder);
    }
    return ST_OK;
}

static enum status open_gpt2(struct tokenizer *t, struct arena *a)
{
    const char *cache = file_cache_folder(a);
    if (!cache) return fail(ST_IO, "there is no folder for the cache: HOME is not set");
    const char *folder = arena_printf(a, "%s/gpt2", cache);
    TRY(get_gpt2(folder, a));
    return tokenizer_open(t, folder, a);
}

/* A tokenizer without merges: id i is byte i, and id 256 is <|endoftext|>. */
static enum status open_bytes(struct tokenizer *t, struct arena *a)
{
    enum { BYTES = 256 };
    static const char end[] = "<|endoftext|>";
    struct token_text *text = ARENA_NEW(a, struct token_text, BYTES + 1);
    struct special_token *special = ARENA_NEW(a, struct special_token, 1);
    char *bytes = arena_alloc(a, 2 * BYTES); /* a zero follows each byte */
    for (int i = 0; i < BYTES; i++) {
        bytes[2 * i] = (char)i;
        text[i] = (struct token_text){bytes + 2 * i, 1};
    }
    text[BYTES] = (struct token_text){end, sizeof end - 1};
    *special = (struct special_token){text[BYTES], BYTES};
    *t = (struct tokenizer){.special = special, .specials = 1};
    return bpe_build(&t->bpe, text, BYTES + 1, NULL, 0, a);
}

enum status tokenizers_find(struct tokenizer *t, const char *word, struct arena *a)
{
    bool folder = file_is_dir(word);
    if (!folder && !strcmp(word, "gpt2")) return open_gpt2(t, a);
    if (!folder && !strcmp(word, "bytes")) return open_bytes(t, a);
    return tokenizer_open(t, word, a);
}
