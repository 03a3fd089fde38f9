#include "config/config.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "base/str.h"
#include "config/fields.h"
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

static struct config c;
static struct arena arena;

static int setup(void **state)
{
    (void)state;
    workdir_open();
    config_init(&c);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    workdir_close();
    arena_release(&arena);
    return 0;
}

static enum status read_text(const char *text)
{
    return config_read(&c, workdir_text("x.conf", text), &arena);
}

/* The message is the path of x.conf and then `rest`: ":3: there is no key ...". */
static void assert_refused(const char *text, const char *rest)
{
    assert_int_equal(read_text(text), ST_USAGE);
    const char *path = workdir_path("x.conf");
    assert_memory_equal(fail_message(), path, strlen(path));
    assert_string_equal(fail_message() + strlen(path), rest);
}

static void assert_advice(const char *text, const char *advice)
{
    assert_int_equal(read_text(text), ST_USAGE);
    if (!strstr(fail_message(), advice)) fail_msg("%s: %s", text, fail_message());
}

static void assert_not_set(const char *text, const char *sentence)
{
    assert_int_equal(config_set(&c, text, &arena), ST_USAGE);
    assert_string_equal(fail_message(), sentence);
}

static void test_defaults_are_nanogpts(void **state)
{
    (void)state;
    assert_int_equal(c.model.n_layer, 12);
    assert_int_equal(c.model.n_embd, 768);
    assert_int_equal(c.model.block_size, 1024);
    assert_false(c.model.bias);
    assert_string_equal(c.data.data_dir, "data");
    assert_int_equal(c.data.batch_size, 12);
    assert_int_equal(c.train.gradient_accumulation_steps, 1);
    assert_float_equal(c.train.learning_rate, 6e-4, 0);
    assert_float_equal(c.train.min_lr, 6e-5, 0);
    assert_float_equal(c.train.beta2, 0.95, 0);
    assert_int_equal(c.train.max_iters, 600000);
    assert_int_equal(c.train.seed, 1337);
    assert_true(c.train.decay_lr);
    assert_int_equal(c.plan.fusion, FUSION_FULL);
    assert_true(c.plan.flash);
    assert_true(c.plan.reuse);
    assert_string_equal(c.sample.start, "\n");
    assert_int_equal(c.sample.top_k, 200);
    assert_int_equal(config_check(&c), ST_OK);
}

static void test_read(void **state)
{
    (void)state;
    assert_int_equal(read_text("# a comment\n"
                               "\n"
                               "  n_layer=3 # behind a value\n"
                               "n_embd\t=\t96\r\n"
                               "learning_rate = 1e-3\n"
                               "bias = True\n"
                               "dtype = 'float32'\n"
                               "gelu = tanh\n"
                               "pad_vocab = 64\n"
                               "dataset = not#a comment # but this\n"
                               "flash = false"),
                     ST_OK);
    assert_int_equal(c.model.n_layer, 3);
    assert_int_equal(c.model.n_embd, 96);
    assert_float_equal(c.train.learning_rate, 1e-3, 0);
    assert_true(c.model.bias);
    assert_int_equal(c.model.gelu, GELU_TANH);
    assert_int_equal(c.model.pad_vocab, 64);
    assert_string_equal(c.data.dataset, "not#a comment");
    assert_false(c.plan.flash);
    assert_int_equal(c.model.n_head, 12);
}

/* nanoGPT's words are taken as meant or refused with Strobe's equivalent. */
static void test_words_of_nanogpt(void **state)
{
    (void)state;
    assert_int_equal(read_text("# train a miniature character-level shakespeare model\n"
                               "out_dir = 'out-shakespeare-char'\n"
                               "eval_interval = 250 # keep frequent because we'll overfit\n"
                               "always_save_checkpoint = False\n"
                               "wandb_log = False # override via command line if you like\n"
                               "wandb_project = 'shakespeare-char'\n"
                               "wandb_run_name = 'mini-gpt'\n"
                               "max_iters = 5e3\nwarmup_iters = 2.5e2\n"
                               "gradient_accumulation_steps = 5 * 8 # simulate 8 GPUs\n"
                               "device = 'gpu'\ndtype = bf16\ncompile = True\n"),
                     ST_OK);
    assert_string_equal(c.train.out_dir, "out-shakespeare-char");
    assert_int_equal(c.train.max_iters, 5000);
    assert_int_equal(c.train.warmup_iters, 250);
    assert_int_equal(c.train.gradient_accumulation_steps, 40);
    assert_int_equal(c.plan.device, DEVICE_CUDA);
    assert_int_equal(c.plan.dtype, PRECISION_BFLOAT16);
    assert_advice("eval_only = True\n", "`strobe eval RUN`");
    assert_advice("dtype = float16\n", "leave dtype out");
    assert_advice("device = mps\n", "write --device=cpu");
    assert_advice("lr = 1e-3\n", "lr is called learning_rate here");
    assert_advice("context_length = 256\n", "context_length is called block_size here");
    assert_refused("out_dir = 'open\n",
                   ":1: out_dir: the closing ' is missing; write \\' for a literal quote");
    assert_true(config_is_key("--compile=False") && !config_is_key("--ddp=1"));
}

/* Lines of nanoGPT's config files that are Python: an import, a name computed from the time, the
 * value of another key. No other expression is evaluated. */
static void test_lines_of_nanogpt(void **state)
{
    (void)state;
    struct str ignored = {0};
    assert_int_equal(read_text("import time\n\n"
                               "wandb_log = True # feel free to turn on\n"
                               "wandb_run_name = 'ft-' + str(time.time())\n"
                               "compile = False\nbackend = 'gloo'\n"
                               "learning_rate = 3e-5\nmin_lr = learning_rate\n"
                               "max_iters = 20\nlr_decay_iters = max_iters # as usual\n"),
                     ST_OK);
    assert_int_equal(c.train.lr_decay_iters, 20);
    assert_true(c.train.min_lr == 3e-5);
    nanogpt_print_ignored(c.ignored, &ignored);
    assert_string_equal(str_text(&ignored), "compile, backend, wandb_log, wandb_run_name");
    str_release(&ignored);
    assert_refused("max_iters = len(text)\n",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got len(text)");
    assert_refused("max_iters = learning_rate\n",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got learning_rate");
    assert_int_equal(read_text("import time\r\nimport time  # names\r\nmax_iters = 7\r\n"), ST_OK);
    assert_int_equal(c.train.max_iters, 7);
    assert_int_equal(read_text("max_iters = 600_000\nlr_decay_iters = 1_000 * 2\n"), ST_OK);
    assert_int_equal(c.train.max_iters, 600000);
    assert_int_equal(c.train.lr_decay_iters, 2000);
    assert_refused("max_iters = 5_\n",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got 5_");
    assert_refused("import timer\n", ":1: expected `key = value`, found `import timer`");
    assert_refused("max_iters = 'eval_iters'\n",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got eval_iters");
    assert_refused("max_iters = pad_vocab\n",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got pad_vocab");
    assert_int_equal(config_set(&c, "--lr_decay_iters=max_iters", &arena), ST_USAGE);
    assert_refused("import os\n", ":1: expected `key = value`, found `import os`");
}

/* "--key value" is "--key=value". */
static void test_a_value_may_be_the_next_word(void **state)
{
    (void)state;
    assert_true(config_takes("--batch_size", "8") && config_takes("--flash", "false,true"));
    assert_true(config_takes("--wandb_log", "True") && config_takes("--start", "a.conf"));
    assert_false(config_takes("--flash", "a.conf"));
    assert_false(config_takes("--batch_size=4", "8"));
    assert_false(config_takes("--batch_size", "--flash"));
    assert_false(config_takes("--batch_size", NULL));
    assert_false(config_takes("--json", "8") || config_takes("batch_size", "8"));
}

static void test_quotes_and_escapes(void **state)
{
    (void)state;
    assert_int_equal(read_text("start = \"a\\n# \\\"b\\\" \\\\ \" # comment\n"
                               "out_dir = '  spaced  '\n"
                               "dataset = bare\\tword\n"
                               "data_dir = \"\"\n"),
                     ST_OK);
    assert_string_equal(c.sample.start, "a\n# \"b\" \\ ");
    assert_string_equal(c.train.out_dir, "  spaced  ");
    assert_string_equal(c.data.dataset, "bare\tword");
    assert_string_equal(c.data.data_dir, "");
}

static void test_errors_name_the_line(void **state)
{
    (void)state;
    assert_refused("n_layer = 2\n\nn_layers = 3\n", ":3: there is no key n_layers; the nearest is "
                                                    "n_layer");
    assert_refused("ddp_rank = 2\n",
                   ":1: there is no key ddp_rank; `strobe config --reference` lists all keys");
    assert_refused("n_layer = 0", ":1: n_layer must be a whole number, 1 to 1024; got 0");
    assert_refused("n_layer = 1025", ":1: n_layer must be a whole number, 1 to 1024; got 1025");
    assert_refused("n_layer = 2.5", ":1: n_layer must be a whole number, 1 to 1024; got 2.5");
    assert_refused("n_layer =",
                   ":1: n_layer must be a whole number, 1 to 1024; got an empty value");
    assert_refused("seed = 99999999999999999999999",
                   ":1: seed must be a whole number, 0 to 4294967295; got "
                   "99999999999999999999999");
    assert_refused("dropout = 1", ":1: dropout must be a number, 0 to 0.99; got 1");
    assert_refused("dropout = nan", ":1: dropout must be a number, 0 to 0.99; got nan");
    assert_refused("flash = yes", ":1: flash must be one of: true, false; got yes");
    assert_refused("dtype = half",
                   ":1: dtype must be one of: float32, tfloat32, bfloat16, float8, auto; got half");
    assert_refused("max_iters = 1e-3",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got 1e-3");
    assert_refused("max_iters = 5 *",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got 5 *");
    assert_refused("max_iters = 2.0",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got 2.0");
    assert_refused("max_iters = 5 * 1e9",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got 5 * 1e9");
    assert_refused("max_iters = 0x10",
                   ":1: max_iters must be a whole number, 0 to 1000000000; got 0x10");
    assert_refused("pad_vocab = 32", ":1: pad_vocab must be one of: auto, 0, 64, 128; got 32");
    assert_refused("= 3\n", ":1: expected `key = value`, found `= 3`");
    assert_refused("n_head = 2\n# between\nn_head = 3\n",
                   ":3: n_head is set twice, first on line 1");
    assert_refused("start = \"open\n",
                   ":1: start: the closing \" is missing; write \\\" for a literal quote");
    assert_refused("start = \"a\" b\n", ":1: start: nothing may follow the closing \"; write \\\" "
                                        "for a literal quote");
    assert_refused("start = \\q\n", ":1: start: \\q is not an escape; write \\\\ for a backslash");
    assert_refused("start = \xff\n", ":1: start must be text in UTF-8");
    assert_int_equal(config_read(&c, workdir_path("missing"), &arena), ST_ABSENT);
    workdir_write(workdir_path("x.conf"), "n_layer = 2\0", 12);
    assert_int_equal(config_read(&c, workdir_path("x.conf"), &arena), ST_FORMAT);
}

static void test_include(void **state)
{
    (void)state;
    assert_int_equal(file_make_dirs(workdir_path("sub")), ST_OK);
    workdir_text("base.conf", "n_layer = 2\nn_head = 2\n");
    const char *top =
        workdir_text("sub/top.conf", "# on top\ninclude = ../base.conf\nn_head = 4\n");
    assert_int_equal(config_read(&c, top, &arena), ST_OK);
    assert_int_equal(c.model.n_layer, 2);
    assert_int_equal(c.model.n_head, 4);

    assert_refused("n_layer = 2\ninclude = base.conf\n",
                   ":2: include must come before all keys of a file, and only once");
    assert_int_equal(read_text("include = nowhere.conf\n"), ST_ABSENT);
    workdir_text("base.conf", "\nn_layer = 0\n");
    assert_int_equal(read_text("include = base.conf\n"), ST_USAGE);
    assert_non_null(strstr(fail_message(), "x.conf:1: "));
    assert_non_null(strstr(fail_message(), "base.conf:2: n_layer must be"));
}

/* A file that includes the next one, up to `depth`; the last one sets a key. */
static void write_chain(int depth)
{
    char name[32], text[64];
    for (int i = 0; i <= depth; i++) {
        snprintf(name, sizeof name, "%d.conf", i);
        snprintf(text, sizeof text, "include = %d.conf\n", i + 1);
        workdir_text(name, i < depth ? text : "n_layer = 7\n");
    }
}

static void test_include_depth_and_cycles(void **state)
{
    (void)state;
    assert_int_equal(read_text("include = x.conf\n"), ST_USAGE);
    assert_non_null(strstr(fail_message(), "x.conf includes itself"));
    workdir_text("b.conf", "include = ./x.conf\n");
    assert_int_equal(read_text("include = b.conf\n"), ST_USAGE);
    assert_non_null(strstr(fail_message(), "x.conf includes itself"));
    write_chain(8);
    assert_int_equal(config_read(&c, workdir_path("0.conf"), &arena), ST_OK);
    assert_int_equal(c.model.n_layer, 7);
    write_chain(9);
    assert_int_equal(config_read(&c, workdir_path("0.conf"), &arena), ST_USAGE);
    assert_non_null(strstr(fail_message(), "includes are nested more than 8 deep"));
    assert_int_equal(read_text("include = /dev/zero\n"), ST_USAGE);
    assert_non_null(strstr(fail_message(), "/dev/zero is not a regular file"));
}

/* Reads sub/top.conf, which includes `file` with `text`; the message must not contain `secret`. */
static void assert_hidden(const char *file, const char *text, const char *secret, const char *rest)
{
    workdir_text(file, text);
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    char top[128];
    snprintf(top, sizeof top, "include = %s%s\n", strchr(file, '/') ? "" : "../", name);
    assert_int_equal(config_read(&c, workdir_text("sub/top.conf", top), &arena), ST_USAGE);
    if (strstr(fail_message(), secret)) fail_msg("quoted: %s", fail_message());
    if (!strstr(fail_message(), rest)) fail_msg("%s\ndoes not say: %s", fail_message(), rest);
}

static void test_include_quotes_nothing_foreign(void **state)
{
    (void)state;
    static const char form[] = "this is not a line of a configuration, which has the form";
    assert_int_equal(file_make_dirs(workdir_path("sub")), ST_OK);
    assert_hidden("shadow", "root:$6$aBc.dEf:19000:0:99999:7:::\n", "root",
                  "/shadow:1: expected `key = value`");
    assert_hidden("shadow", "\ntoken=aBcDeF\n", "token", "/shadow:2: this is not a line");
    assert_hidden("shadow", "n_layer = aBcDeF\n", "aBcDeF", "/shadow:1: n_layer cannot have");
    assert_hidden("shadow", "start = \"aBcDeF\n", "aBcDeF", "/shadow:1: start cannot have");
    assert_hidden("sub/key", "c2VjcmV0\n", "c2VjcmV0", "/key:1: expected `key = value`");
    assert_hidden("sub/key", "c2VjcmV0==\n", "c2VjcmV0", form);
    assert_hidden("sub/key", "TOKEN = aBcDeF\n", "TOKEN", form);
    /* What is a key is named, and a wrong value of one in the folder is shown. */
    assert_hidden("sub/key", "n_layers = 3\n", "= 3", "there is no key n_layers");
    assert_hidden("sub/key", "n_layer = 0\n", "=", "must be a whole number, 1 to 1024; got 0");
    /* A link does not count as a file of the folder. */
    workdir_text("shadow", "secret = 1\n");
    assert_int_equal(symlink(workdir_path("shadow"), workdir_path("sub/link")), 0);
    const char *top = workdir_text("sub/top.conf", "include = link\n");
    assert_int_equal(config_read(&c, top, &arena), ST_USAGE);
    assert_null(strstr(fail_message(), "secret"));
}

static void test_large_file(void **state)
{
    (void)state;
    static char text[(1 << 20) + 2];
    memset(text, '#', sizeof text - 1);
    assert_int_equal(read_text(text), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "has 1048577 bytes; a configuration has at most"));
}

static void test_overrides(void **state)
{
    (void)state;
    assert_int_equal(config_set(&c, "--batch_size=3", &arena), ST_OK);
    assert_int_equal(config_set(&c, "n_head=4", &arena), ST_OK);
    assert_int_equal(config_set(&c, "--bias", &arena), ST_OK);
    assert_int_equal(config_set(&c, "--flash=false", &arena), ST_OK);
    assert_int_equal(config_set(&c, "--start=To be # \\n ", &arena), ST_OK);
    assert_int_equal(config_set(&c, "--out_dir=a=b", &arena), ST_OK);
    assert_int_equal(c.data.batch_size, 3);
    assert_int_equal(c.model.n_head, 4);
    assert_true(c.model.bias);
    assert_false(c.plan.flash);
    assert_string_equal(c.sample.start, "To be # \n ");
    assert_string_equal(c.train.out_dir, "a=b");
    assert_not_set("--batch_sise=3", "there is no key batch_sise; the nearest is batch_size");
    assert_not_set("--batch_size", "--batch_size needs a value: --batch_size=VALUE");
    assert_not_set("--batch_size=",
                   "batch_size must be a whole number, 1 to 65536; got an empty value");
    assert_true(config_is_key("--batch_size=3"));
    assert_true(config_is_key("--flash"));
    assert_false(config_is_key("--flashy"));
    assert_false(config_is_key("flash"));
    assert_false(config_is_key("--json"));
}

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *set[2];
        enum status st;
        const char *names[2]; /* both are in the message */
    } cases[] = {
        {{"batch_size=65536", "block_size=262144"}, ST_USAGE, {"batch_size", "block_size"}},
        {{"warmup_iters=20", "lr_decay_iters=10"}, ST_USAGE, {"warmup_iters", "lr_decay_iters"}},
        {{"learning_rate=1e-5", "min_lr=1e-4"}, ST_USAGE, {"min_lr", "learning_rate"}},
        {{"out_dir="}, ST_USAGE, {"out_dir is empty"}},
        {{"data_dir="}, ST_USAGE, {"data_dir is empty"}},
        {{"device=cuda"}, ST_OK, {0}}, /* checked only when the device is opened */
        {{"dtype=tfloat32"}, ST_OK, {0}},
        {{"dtype=tfloat32", "device=cpu"}, ST_UNSUPPORTED, {"--device=cuda", "dtype=float32"}},
        {{"dtype=bfloat16"}, ST_OK, {0}},
        {{"pack_weights=true", "fusion=op"}, ST_USAGE, {"pack_weights", "fusion=full"}},
        {{"pack_weights=true"}, ST_OK, {0}},
        {{"replay=true"}, ST_OK, {0}},
        {{"replay=true", "device=cpu"}, ST_UNSUPPORTED, {"replay=true", "replay=false"}},
        {{"recompute=gelu"}, ST_OK, {0}},
        {{"recompute=block"}, ST_OK, {0}},
        {{"recompute=block:12"}, ST_OK, {0}},
        {{"recompute=block:13"}, ST_USAGE, {"recompute=block:13", "n_layer = 12"}},
        {{"device=cpu", "deterministic=true"}, ST_OK, {0}},
        {{"decay_lr=false", "warmup_iters=1000000"}, ST_OK, {0}},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        config_init(&c);
        for (int k = 0; k < 2; k++)
            if (cases[i].set[k]) assert_int_equal(config_set(&c, cases[i].set[k], &arena), ST_OK);
        assert_int_equal(config_check(&c), cases[i].st);
        for (int k = 0; k < 2; k++)
            if (cases[i].names[k]) assert_non_null(strstr(fail_message(), cases[i].names[k]));
    }
}

/* Values of a word and a number: reading, printing and refusing them. */
static void test_words_with_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *set, *printed;
        int recompute;
    } good[] = {{"none", "none", RECOMPUTE_NONE},
                {"gelu", "gelu", RECOMPUTE_GELU},
                {"block", "block", RECOMPUTE_BLOCK},
                {"block:1", "block", RECOMPUTE_BLOCK},
                {"block:2", "block:2", RECOMPUTE_BLOCK + 1},
                {"block:1024", "block:1024", RECOMPUTE_BLOCK + 1023}};
    for (int i = 0; i < COUNT_OF(good); i++) {
        assert_int_equal(config_set(&c, arena_printf(&arena, "recompute=%s", good[i].set), &arena),
                         ST_OK);
        assert_int_equal(c.plan.recompute, good[i].recompute);
        assert_string_equal(config_value_text(&c, "recompute", &arena), good[i].printed);
        struct str s = {0};
        config_print_json(&c, &s);
        assert_non_null(strstr(str_text(&s),
                               arena_printf(&arena, "\"recompute\": \"%s\",\n", good[i].printed)));
        str_release(&s);
    }
    static const char *const bad[] = {"block:",   "block:0", "block:1025", "block:-1", "block:2x",
                                      "block: 2", "block:N", "blocks",     "gelu:2",   "2"};
    for (int i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(config_set(&c, arena_printf(&arena, "recompute=%s", bad[i]), &arena),
                         ST_USAGE);
        assert_non_null(strstr(fail_message(), "none, gelu, block, block:N (N 1 to 1024)"));
    }
}

static void count_difference(void *user, const char *key, const char *in_a, const char *in_b)
{
    struct str *s = user;
    str_printf(s, "%s: %s -> %s\n", key, in_a, in_b);
}

static void test_print_reads_back(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "n_layer=3",         "dropout=0.1",      "bias",        "gelu=tanh",
        "pad_vocab=128",     "dataset=a b",      "data_dir=",   "out_dir= x#y ",
        "seed=4294967295",   "min_lr=1.2345e-9", "fusion=op",   "start=\"\\\"Hé\\\\\\n\\t' #\"",
        "learning_rate=0.1", "temperature=1",    "device=cuda", "beta1=0.123456789012345678",
        "recompute=block:7", "init_from=resume", "flash=false", "replay=true",
    };
    for (int i = 0; i < COUNT_OF(changes); i++)
        assert_int_equal(config_set(&c, changes[i], &arena), ST_OK);
    struct str printed = {0}, differences = {0};
    config_print(&c, &printed);
    struct config written = c;
    config_init(&c);
    config_diff(&written, &c, count_difference, &differences);
    int lines = 0;
    for (const char *p = str_text(&differences); (p = strchr(p, '\n')); p++) lines++;
    assert_int_equal(lines, COUNT_OF(changes));
    assert_non_null(strstr(str_text(&differences), "min_lr: 1.2345e-09 -> 6e-05\n"));
    assert_non_null(strstr(str_text(&differences), "data_dir: \"\" -> data\n"));

    assert_int_equal(read_text(str_text(&printed)), ST_OK);
    str_release(&differences);
    config_diff(&written, &c, count_difference, &differences);
    assert_string_equal(str_text(&differences), "");
    assert_true(c.train.beta1 == written.train.beta1); /* to the last bit */
    assert_string_equal(c.sample.start, "\"Hé\\\n\t' #");
    str_release(&printed);
    str_release(&differences);
}

static void test_json(void **state)
{
    (void)state;
    struct str s = {0};
    assert_int_equal(config_set(&c, "start=\"\\\"q\\\"\\n\"", &arena), ST_OK);
    config_print_json(&c, &s);
    json_t *j = json_loads(str_text(&s), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(j);
    int rows = 0;
    while (fields[rows].key) rows++;
    assert_int_equal(json_object_size(j), rows);
    assert_string_equal(json_string_value(json_object_get(j, "start")), "\"q\"\n");
    assert_string_equal(json_string_value(json_object_get(j, "fusion")), "full");
    assert_int_equal(json_integer_value(json_object_get(j, "n_layer")), 12);
    assert_float_equal(json_number_value(json_object_get(j, "min_lr")), 6e-5, 0);
    assert_true(json_is_true(json_object_get(j, "flash")));
    json_decref(j);
    str_release(&s);
}

static void test_value_text(void **state)
{
    (void)state;
    assert_string_equal(config_value_text(&c, "flash", &arena), "true");
    assert_string_equal(config_value_text(&c, "start", &arena), "\"\\n\"");
    assert_string_equal(config_value_text(&c, "learning_rate", &arena), "0.0006");
    assert_null(config_value_text(&c, "flas", &arena));
}

/* The table of keys: unique, with help, and documented in the reference. */
static void test_table(void **state)
{
    (void)state;
    struct str s = {0};
    config_print_reference_markdown(&s);
    for (const struct field *f = fields; f->key; f++) {
        char row[80];
        snprintf(row, sizeof row, "| `%s` | ", f->key);
        assert_non_null(strstr(str_text(&s), row));
        assert_true(field_find(f->key, (int64_t)strlen(f->key)) == f);
        assert_true(strlen(f->help) > 5);
        for (const struct field *g = f + 1; g->key; g++) assert_true(f->offset != g->offset);
    }
    str_release(&s);
}

static void test_every_file_in_configs(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob("configs/*.conf", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        config_init(&c);
        enum status st = config_read(&c, found.gl_pathv[i], &arena);
        if (st != ST_OK) fail_msg("%s", fail_message());
        st = model_check(&c);
        if (st != ST_OK && st != ST_UNSUPPORTED)
            fail_msg("%s: %s", found.gl_pathv[i], fail_message());
    }
    globfree(&found);
}

/* Keys that resuming a run refuses to change, and keys that only name paths. */
static void test_key_flags(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        unsigned flags;
    } keys[] = {{"model", KEY_MODEL},     {"n_kv_head", KEY_MODEL},
                {"pad_vocab", KEY_MODEL}, {"block_size", KEY_MODEL},
                {"dataset", KEY_RUN},     {"seed", KEY_RUN},
                {"optimizer", KEY_RUN},   {"out_dir", KEY_PLACE},
                {"init_from", KEY_PLACE}, {"dropout", 0},
                {"learning_rate", 0},     {"fusion", 0},
                {"no_such_key", 0}};
    for (int i = 0; i < COUNT_OF(keys); i++)
        if (config_key_flags(keys[i].key) != keys[i].flags)
            fail_msg("%s has the flags %u", keys[i].key, config_key_flags(keys[i].key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_flags),
        cmocka_unit_test_setup_teardown(test_defaults_are_nanogpts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words_of_nanogpt, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lines_of_nanogpt, setup, teardown),
        cmocka_unit_test(test_a_value_may_be_the_next_word),
        cmocka_unit_test_setup_teardown(test_quotes_and_escapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_errors_name_the_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_include, setup, teardown),
        cmocka_unit_test_setup_teardown(test_include_depth_and_cycles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_include_quotes_nothing_foreign, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overrides, setup, teardown),
        cmocka_unit_test_setup_teardown(test_check, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words_with_a_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_print_reads_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_value_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_file_in_configs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
