/* strobe tokenize, strobe detokenize: text to the ids of a tokenizer, and back. */
#include "base/file.h"
#include "base/interrupt.h"
#include "base/threads.h"
#include "cli/command.h"
#include "data/tokenizers.h"
#include "text/transcode.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct arguments {
    const char *tokenizer, *file;
    bool jsonl, raw, special;
};

/* A progress bar in MB. A pipe has no bar, because its size is not known. */
struct shown {
    struct progress progress;
    int64_t bytes;
};

static void show(void *user, int64_t bytes)
{
    struct shown *s = user;
    char done[32];
    str_bytes(done, (double)bytes);
    progress_show(&s->progress, min_i64(bytes, s->bytes) / 1000000, done);
}

static int64_t size_of(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
}

static enum status run_on(const struct arguments *args, int fd, const struct tokenizer *tokenizer,
                          const char *what, enum status (*work)(const struct transcode *t))
{
    struct shown shown = {.bytes = size_of(fd)};
    threads_unbind();
    struct transcode t = {.tokenizer = tokenizer,
                          .form = args->jsonl ? FORM_JSONL
                                  : args->raw ? FORM_RAW
                                              : FORM_WORDS,
                          .special = args->special,
                          .threads = threads_count(),
                          .in = fd,
                          .out = STDOUT_FILENO,
                          .in_name = fd == STDIN_FILENO ? "the standard input" : args->file,
                          .out_name = "the standard output",
                          .each = shown.bytes ? show : NULL,
                          .user = &shown};
    interrupt_catch();
    if (shown.bytes) progress_start(&shown.progress, what, 0, shown.bytes / 1000000);
    enum status st = work(&t);
    if (shown.bytes) progress_end(&shown.progress);
    interrupt_release();
    return st;
}

static enum status open_and_run(const struct arguments *args, const char *what,
                                enum status (*work)(const struct transcode *t), struct arena *a)
{
    struct tokenizer t;
    int fd = STDIN_FILENO;
    int64_t bytes;
    if (!args->tokenizer)
        return fail(ST_USAGE,
                    "no tokenizer given: add --tokenizer=gpt2, or a folder with tokenizer.json or "
                    "with vocab.json and merges.txt");
    if (args->jsonl && args->raw) return fail(ST_USAGE, "choose one of --jsonl and --raw");
    if (args->raw && work == tokenize && isatty(STDOUT_FILENO))
        return fail(ST_USAGE, "--raw writes bytes, not text: send them to a file, as in "
                              "`strobe tokenize --raw ... > tokens.bin`");
    TRY(tokenizers_find(&t, args->tokenizer, a));
    enum status st = args->file ? file_open(args->file, &fd, &bytes) : ST_OK;
    if (st == ST_OK) st = run_on(args, fd, &t, what, work);
    if (fd != STDIN_FILENO) close(fd);
    return st;
}

static enum status transcode(const char *what, const struct opt *options, struct arguments *args,
                             int argc, char **argv, enum status (*work)(const struct transcode *t),
                             struct arena *a)
{
    TRY(opt_parse(options, &argc, argv, NULL));
    if (argc > 1) return fail(ST_USAGE, "name one file only; found %s and %s", argv[0], argv[1]);
    if (argc && strcmp(argv[0], "-") != 0) args->file = argv[0];
    return open_and_run(args, what, work, a);
}

static const char tokenizer_help[] =
    "gpt2, or bytes (each byte is a token), or a folder with tokenizer.json or with vocab.json and "
    "merges.txt, or a file of tiktoken's ranks";

enum status cmd_tokenize(int argc, char **argv, struct arena *a)
{
    struct arguments args = {};
    const struct opt options[] = {
        {"tokenizer", OPT_TEXT, &args.tokenizer, "NAME", tokenizer_help},
        {"jsonl", OPT_FLAG, &args.jsonl, NULL,
         "a document in each line, {\"text\": \"...\"}, becomes a line {\"ids\": [...]}"},
        {"raw", OPT_FLAG, &args.raw, NULL,
         "write ids as little-endian numbers of 2 bytes, or of 4 bytes if the vocabulary has more "
         "than 65,536 ids"},
        {"special", OPT_FLAG, &args.special, NULL,
         "special tokens that are written in the text, such as <|endoftext|>, become one id; "
         "without this option they are ordinary text"},
        {},
    };
    return transcode("tokenize", options, &args, argc, argv, tokenize, a);
}

enum status cmd_detokenize(int argc, char **argv, struct arena *a)
{
    struct arguments args = {};
    const struct opt options[] = {
        {"tokenizer", OPT_TEXT, &args.tokenizer, "NAME", tokenizer_help},
        {"jsonl", OPT_FLAG, &args.jsonl, NULL,
         "a line {\"ids\": [...]} becomes a line {\"text\": \"...\"}"},
        {"raw", OPT_FLAG, &args.raw, NULL, "read ids as strobe tokenize --raw writes them"},
        {},
    };
    return transcode("detokenize", options, &args, argc, argv, detokenize, a);
}
