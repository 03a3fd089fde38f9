/* Files ckpt.pt that are damaged or hostile: their numbers, names, tensors, pickles and records. */
#include "../support/ckpt.h"
#include "../support/hostile.h"
#include "../support/workdir.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct ckpt ckpt;

static int set_up(void **state)
{
    hostile_set_up(state);
    hostile_folder = workdir_path("ckpt.pt");
    ckpt_init(&ckpt, true);
    return 0;
}

static int tear_down(void **state)
{
    ckpt_release(&ckpt);
    return hostile_tear_down(state);
}

static void write_ckpt(void)
{
    unlink(hostile_folder); /* writing a new file waits for no disk */
    ckpt_write(&ckpt, hostile_folder);
}

/* Writes the file and resets what was changed. */
static void refuse(const char *what, const char *part)
{
    write_ckpt();
    hostile_for(what, part);
    ckpt_init(&ckpt, true);
}

static void refuse_part(enum ckpt_part part, struct ckpt_value v, const char *message)
{
    ckpt.part[part] = v;
    refuse(message, message);
}

/* The unchanged file is not refused, so each refusal has its reason. */
static void test_good_file_is_taken(void **)
{
    struct exchange_model m;
    write_ckpt();
    if (hostile_open(&m, HOSTILE_BYTES, &hostile_arena) != ST_OK) fail_msg("%s", fail_message());
    exchange_close(&m);
}

/* --- model_args ------------------------------------------------------------------------------- */

#define REAL_2 "G\x40\0\0\0\0\0\0\0"

static void test_sizes(void **)
{
    static const char *const sizes[] = {"n_layer", "n_head", "n_embd", "block_size", "vocab_size"};
    const struct ckpt_value values[] = {
        CKPT_NOTHING,
        CKPT_VALUE("K\0"),
        CKPT_VALUE("K\x10"),
        CKPT_VALUE("M\0\4"),
        CKPT_VALUE("J\xff\xff\xff\xff"),
        CKPT_VALUE("J\0\0\0\x80"),
        CKPT_VALUE("J\0\xca\x9a\x3b"),  /* 1e9 */
        CKPT_VALUE("\x8a\5\2\0\0\0\1"), /* 2^32 + 2 */
        CKPT_VALUE("\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f"),
        CKPT_VALUE("\x8a\x8\0\0\0\0\0\0\0\x80"),
        CKPT_VALUE("\x8a\x9\0\0\0\0\0\0\0\0\1"), /* 2^64 */
        CKPT_VALUE(REAL_2),
        CKPT_VALUE("X\1\0\0\0"
                   "2"),
        CKPT_VALUE("\x88"),
        CKPT_VALUE("N"),
        CKPT_VALUE("]"),
        CKPT_VALUE("}"),
        CKPT_VALUE(CKPT_SCALAR("0")),
        CKPT_VALUE("ctorch\nFloatStorage\n"),
    };
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int k = 0; k < COUNT_OF(values); k++) {
            ckpt_set(&ckpt, sizes[i], values[k]);
            refuse(arena_printf(&hostile_arena, "%s, value %d", sizes[i], k), "");
        }
    ckpt_set(&ckpt, "n_head", CKPT_VALUE("K\2"));
    refuse("2 heads", "n_embd = 9 is not divisible by n_head = 2");
    ckpt_set(&ckpt, "n_layer", CKPT_VALUE("M\0\4"));
    ckpt.part[CKPT_OPTIMIZER] = CKPT_NOTHING;
    refuse("1024 layers", "has no tensor h.2.");
    ckpt_set(&ckpt, "n_layer", CKPT_VALUE("K\1"));
    ckpt.part[CKPT_OPTIMIZER] = CKPT_NOTHING;
    refuse("1 layer", "which a GPT with n_layer = 1 lacks");
    ckpt_set(&ckpt, "bias", CKPT_VALUE("N"));
    refuse("no bias", "bias in model_args is not True or False");
}

/* --- parts of other types --------------------------------------------------------------------- */

static void test_parts(void **)
{
    static const char *const messages[CKPT_PARTS] = {
        [CKPT_ROOT] = "has no dictionary \"model\"",
        [CKPT_MODEL] = "has no dictionary \"model\"",
        [CKPT_OPTIMIZER] = "has no state of an optimizer",
        [CKPT_STATE] = "has no state of an optimizer",
        [CKPT_GROUPS] = "are not grouped as in nanoGPT",
        [CKPT_ARGS] = "n_layer in model_args is missing or is not a positive number",
        [CKPT_ITER] = "iter_num is not a number of iterations",
        [CKPT_BEST] = "best_val_loss is not a number",
        [CKPT_STEP] = "step of the optimizer is not a number",
    };
    const struct ckpt_value values[] = {
        CKPT_VALUE("X\1\0\0\0"
                   "x"),
        CKPT_VALUE("\x88"),
        CKPT_VALUE("]"),
        CKPT_VALUE("(K\1K\2t"),
        CKPT_VALUE("ctorch\nFloatStorage\n"),
        CKPT_VALUE("K\1\x85Q"),
        CKPT_VALUE("ctorch._utils\n_rebuild_parameter\n)R"),
        CKPT_VALUE("](K\1K\2e"),
    };
    for (int part = 0; part < CKPT_PARTS; part++)
        for (int k = 0; k < COUNT_OF(values); k++) {
            ckpt.part[part] = values[k];
            bool is_call = k == 6; /* a parameter without a tensor */
            refuse(arena_printf(&hostile_arena, "part %d, value %d", part, k),
                   is_call ? "" : messages[part]);
        }
    refuse_part(CKPT_ITER, CKPT_VALUE("J\xff\xff\xff\xff"), "iter_num is not a number");
    refuse_part(CKPT_BEST,
                CKPT_VALUE(CKPT_STORAGE("FloatStorage", CKPT_KEY("3"),
                                        "K\x2d") "K\0K\2\x85K\1\x85" CKPT_END),
                "best_val_loss is not a number");
    refuse_part(CKPT_BEST,
                CKPT_VALUE(CKPT_STORAGE("IntStorage", CKPT_KEY("1"), "K\1") "K\0))" CKPT_END),
                "best_val_loss is not a number");
    refuse_part(CKPT_STEP, CKPT_VALUE("G\x7f\xf8\0\0\0\0\0\0"), "has done nan steps");
    refuse_part(CKPT_STEP, CKPT_VALUE("G\x7f\xf0\0\0\0\0\0\0"), "has done inf steps");
}

/* --- names ------------------------------------------------------------------------------------ */

static void refuse_name(const char *name, const char *part)
{
    ckpt_tensor(&ckpt, "wpe.weight")->name = name;
    refuse(arena_printf(&hostile_arena, "a tensor named %.200s", name), part);
}

static void test_names(void **)
{
    refuse_name("transformer.wte.weight", "has tensor wte.weight twice");
    refuse_name("wte.weight", "has tensor wte.weight twice");
    refuse_name("module.wte.weight", "has tensor wte.weight twice");
    refuse_name("_orig_mod.transformer.wte.weight", "has tensor wte.weight twice");
    refuse_name("transformer.transformer.wte.weight", "has tensor wte.weight twice");
    refuse_name("transformer.", "has no tensor wpe.weight");
    refuse_name("", "has no tensor wpe.weight");
    refuse_name("transformer.h.0.attn.bias", "has no tensor wpe.weight");
    refuse_name("transformer.h.2.ln_1.weight", "has no tensor wpe.weight");
    refuse_name("transformer.h.-1.ln_1.weight", "has no tensor wpe.weight");
    refuse_name("transformer.wpe.weight.m", "has no tensor wpe.weight");
    refuse_name("a\nb\033[31m", "has no tensor wpe.weight");
    refuse_name("%s%n%s", "has no tensor wpe.weight");
    refuse_name(hostile_repeat("n", 201), "the name of a tensor is not text of at most 200 bytes");
    refuse_name(hostile_repeat("module.", 20000), "the name of a tensor is not text");
    ckpt_add(&ckpt, "transformer.more\n", 1, (int64_t[]){3});
    ckpt.part[CKPT_OPTIMIZER] = CKPT_NOTHING;
    refuse("one more", "which a GPT with n_layer = 2 lacks");
    ckpt_remove(&ckpt, "h.1.mlp.c_fc.weight");
    ckpt.part[CKPT_OPTIMIZER] = CKPT_NOTHING;
    refuse("one less", "has no tensor h.1.mlp.c_fc.weight");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}K\1NsK\2Ns"), "the name of a tensor is not text");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}NNs"), "the name of a tensor is not text");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}X\3\0\0\0a\0bNs"), "the name of a tensor is not text");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}X\2\0\0\0a\nNs"), "is not a tensor");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}"), "has no tensor wte.weight");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}}Ns"), "a key is a dictionary");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}]Ns"), "a key is neither a text nor a number");
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* A view of the 45 floats of wpe.weight. */
#define VIEW(text) CKPT_VALUE(CKPT_STORAGE("FloatStorage", CKPT_KEY("2"), "K\x2d") text CKPT_END)
#define LARGE      "\x8a\x8\0\0\0\0\0\0\0\x40"

static void test_tensors(void **)
{
    const struct {
        struct ckpt_value value;
        const char *part;
    } cases[] = {
        {VIEW("K\0K\1K\x9\x86K\x9K\1\x86"), "tensor wte.weight is (1,9), but by the sizes"},
        {VIEW("K\0K\x2d\x85K\1\x85"), "tensor wte.weight is (45), but by the sizes"},
        {VIEW("K\0))"), "tensor wte.weight is (), but by the sizes"},
        {VIEW("K\0K\xbK\x9\x86K\x9K\1\x86"), "reaches beyond its storage"},
        {VIEW("K\x2cK\1K\2\x86K\2K\1\x86"), "reaches beyond its storage"},
        {VIEW(LARGE "K\1K\1\x86K\1K\1\x86"), "reaches beyond its storage"},
        {VIEW("J\xff\xff\xff\xffK\1K\1\x86K\1K\1\x86"), "an offset that is not a number"},
        {VIEW("K\0K\x9K\5\x86K\1K\x9\x86"), "its elements are not in order"},
        {VIEW("K\0K\5K\x9\x86K\0K\0\x86"), "its elements are not in order"},
        {VIEW("K\0K\5K\x9\x86K\x9\x85"), "no shape with as many strides"},
        {VIEW("K\0K\5K\x9\x86NN\x86"), "a shape or strides that are not numbers"},
        {VIEW("K\0" LARGE LARGE "\x86K\1K\1\x86"), "a shape that is too large"},
        {VIEW("K\0J\xff\xff\xff\xffK\x9\x86K\x9K\1\x86"), "a shape or strides"},
        {VIEW("K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1t(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"), "9 dimensions"},
        {CKPT_VALUE(CKPT_STORAGE("FloatStorage", CKPT_KEY("2"), "K\x2e") "K\0))" CKPT_END),
         "which has 180 bytes instead of 46 elements of 4"},
        {CKPT_VALUE(CKPT_STORAGE("FloatStorage", CKPT_KEY("2"), LARGE) "K\0))" CKPT_END),
         "which has 180 bytes instead"},
        {CKPT_VALUE(
             CKPT_STORAGE("FloatStorage", CKPT_KEY("2"), "J\xff\xff\xff\xff") "K\0))" CKPT_END),
         "of a form that torch.save does not write"},
        {CKPT_VALUE(CKPT_STORAGE("HalfStorage", CKPT_KEY("2"), "K\x2d") "K\0))" CKPT_END),
         "which has 180 bytes instead"},
        {CKPT_VALUE(CKPT_STORAGE("LongStorage", CKPT_KEY("2"), "K\x2d") "K\0))" CKPT_END),
         "which has 180 bytes instead"},
        {CKPT_VALUE(CKPT_STORAGE("FloatStorage", CKPT_KEY("x"), "K\x2d") "K\0))" CKPT_END),
         "is in data/x, which the file does not have"},
        {CKPT_VALUE(CKPT_STORAGE("FloatStorage", "X\x9\0\0\0../../etc", "K\x2d") "K\0))" CKPT_END),
         "which the file does not have"},
        {CKPT_VALUE(CKPT_STORAGE("FloatStorage", "K\2", "K\x2d") "K\0))" CKPT_END),
         "of a form that torch.save does not write"},
        {CKPT_VALUE("ctorch._utils\n_rebuild_tensor_v2\n)R"), "is not a tensor"},
        {CKPT_VALUE("ctorch._utils\n_rebuild_parameter\nK\1\x85R"), "is not a tensor"},
        {CKPT_VALUE("ctorch._utils\n_rebuild_tensor_v2\n(K\1K\0))tR"), "has no storage"},
        {CKPT_VALUE("K\1"), "wte.weight is not a tensor"},
        {CKPT_VALUE("}"), "wte.weight is not a tensor"},
        {CKPT_VALUE("N"), "wte.weight is not a tensor"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        ckpt_tensor(&ckpt, "wte.weight")->raw = cases[i].value;
        ckpt_remove(&ckpt, "lm_head.weight");
        ckpt.part[CKPT_OPTIMIZER] = CKPT_NOTHING;
        refuse(cases[i].part, cases[i].part);
    }
    static const enum safetensors_type types[] = {SAFETENSORS_I32};
    for (int i = 0; i < COUNT_OF(types); i++) {
        ckpt_tensor(&ckpt, "h.0.mlp.c_fc.weight")->type = types[i];
        refuse("integers", "F64, F32, F16 and BF16 are read");
    }
    struct ckpt_tensor *t = ckpt_tensor(&ckpt, "h.0.mlp.c_fc.weight"); /* as of Conv1D */
    t->dim[0] = CKPT_EMBD;
    t->dim[1] = (int64_t)4 * CKPT_EMBD;
    refuse("Conv1D", "tensor h.0.mlp.c_fc.weight is (36,9), but by the sizes of the model it is "
                     "(9,36)");
}

/* --- the optimizer ---------------------------------------------------------------------------- */

#define STEP_7 "X\4\0\0\0stepK\7s"

static void test_states(void **)
{
    refuse_part(CKPT_STATE, CKPT_VALUE("}K\1}s"), "no state of parameter 0, wte.weight");
    refuse_part(CKPT_STATE, CKPT_VALUE("}K\x63}s"), "no state of parameter 0, wte.weight");
    refuse_part(CKPT_STATE, CKPT_VALUE("}J\xff\xff\xff\xff}s"), "no state of parameter 0");
    refuse_part(CKPT_STATE, CKPT_VALUE("}" LARGE "}s"), "no state of parameter 0");
    refuse_part(CKPT_STATE,
                CKPT_VALUE("}X\1\0\0\0"
                           "0}s"),
                "no state of parameter 0");
    refuse_part(CKPT_STATE, CKPT_VALUE("}K\0Ns"), "no state of parameter 0");
    refuse_part(CKPT_STATE, CKPT_VALUE("}X\0\0\0\0}s"), "no state of parameter 0");
    refuse_part(CKPT_STATE, CKPT_VALUE("}\x8a\x8\0\0\0\0\0\0\0\xc0}s"), "no state of parameter 0");
    refuse_part(CKPT_STATE, CKPT_VALUE("}K\0K\0s"), "no state of parameter 0");
    refuse_part(CKPT_STATE, CKPT_VALUE("}K\0}s"), "step of the optimizer is not a number");
    refuse_part(CKPT_STATE, CKPT_VALUE("}K\0}" STEP_7 "s"), "wte.weight is not a tensor");
    refuse_part(CKPT_STATE, CKPT_VALUE("}K\0}" STEP_7 "X\7\0\0\0exp_avg" CKPT_SCALAR("0") "ss"),
                "wte.weight is not a tensor");
    refuse_part(CKPT_STATE,
                CKPT_VALUE("}K\0}" STEP_7 "X\7\0\0\0exp_avg" CKPT_SCALAR(
                    "0") "sX\xa\0\0\0exp_avg_sq" CKPT_SCALAR("0") "ss"),
                "no state of parameter 1, wpe.weight");
}

/* --- what a pickle must not do ---------------------------------------------------------------- */

static void test_imports(void **)
{
    static const char *const names[] = {
        "os\nsystem",
        "posix\nsystem",
        "builtins\neval",
        "builtins\nexec",
        "builtins\ngetattr",
        "__main__\nGPT",
        "__main__\n",
        "model\nGPTConfig",
        "torch.nn.modules.linear\nLinear",
        "torch\nload",
        "torch.jit\nload",
        "torch._utils\n_rebuild_tensor",
        "torch\nsize",
        "torch._utils\n",
        "subprocess\nPopen",
        "numpy.core.multiarray\nscalar",
        "collections\nOrderedDict ",
        "a\033[31m\nb",
        "\n",
        "torch.FloatStorage\nx",
    };
    for (int i = 0; i < COUNT_OF(names); i++) {
        const char *text = arena_printf(&hostile_arena, "c%s\n(X", names[i]);
        for (int part = 0; part < CKPT_STEP; part++) {
            ckpt.part[part] = (struct ckpt_value){text, (int64_t)strlen(text)};
            refuse(names[i], "Strobe runs no code that a file contains");
        }
    }
    refuse_part(CKPT_ITER, CKPT_VALUE("X\2\0\0\0osX\6\0\0\0system\x93)R"), "imports os.system");
    refuse_part(CKPT_ITER, CKPT_VALUE("(ios\nsystem\n"), "runs no code");
    refuse_part(CKPT_ITER, CKPT_VALUE("(cos\nsystem\no"), "runs no code");
    refuse_part(CKPT_ITER, CKPT_VALUE("\x82\1"), "runs no code");
    refuse_part(CKPT_ITER, CKPT_VALUE("ctorch\nFloatStorage\n)\x81"), "runs no code");
    refuse_part(CKPT_ITER, CKPT_VALUE("ctorch\nFloatStorage\nK\1R"), "a call is not one");
    refuse_part(CKPT_ITER, CKPT_VALUE("K\1)R"), "a call is not one");
    refuse_part(CKPT_ITER, CKPT_VALUE("}}b"), "fields belong to something else");
    refuse_part(CKPT_ITER, CKPT_VALUE("K\7."), "the pickle ends without a single value");
    refuse_part(CKPT_ITER, CKPT_VALUE("h\1"), "a value was not remembered before");
}

#define MODEL "X\5\0\0\0model"
#define ARGS  "X\xa\0\0\0model_args"

/* A dictionary or list that is its own element. */
static void test_containers_in_themselves(void **)
{
    refuse_part(CKPT_ROOT, CKPT_VALUE("}q\0" MODEL "h\0s"), "no dictionary \"model_args\"");
    refuse_part(CKPT_ROOT, CKPT_VALUE("}q\0" MODEL "h\0s" ARGS "h\0s"),
                "n_layer in model_args is missing");
    refuse_part(CKPT_MODEL, CKPT_VALUE("}q\0X\x1\0\0\0xh\0s"), "x is not a tensor");
    refuse_part(CKPT_ARGS, CKPT_VALUE("}q\0X\7\0\0\0n_layerh\0s"),
                "n_layer in model_args is missing");
    refuse_part(CKPT_OPTIMIZER, CKPT_VALUE("}q\0X\5\0\0\0stateh\0s"), "not grouped");
    refuse_part(CKPT_STATE, CKPT_VALUE("}q\0K\0h\0s"), "step of the optimizer is not a number");
    refuse_part(CKPT_STATE, CKPT_VALUE("}q\0K\0h\0sX\4\0\0\0steph\0s"), "step of the optimizer");
    refuse_part(CKPT_GROUPS, CKPT_VALUE("]q\0(h\0h\0e"), "not grouped");
    refuse_part(CKPT_GROUPS, CKPT_VALUE("]q\0(}X\6\0\0\0paramsh\0s}e"), "not grouped");
    refuse_part(CKPT_ITER, CKPT_VALUE("]q\0h\0a"), "iter_num is not a number");
    ckpt_tensor(&ckpt, "wpe.weight")->raw =
        CKPT_VALUE("ctorch._utils\n_rebuild_parameter\n]q\0h\0a\x85R");
    refuse("a parameter of a list in itself", "is not a tensor");
}

/* --- many entries ----------------------------------------------------------------------------- */

enum { MANY = 100000 };

/* `begin`, then `each` MANY times, with a number in decimal where it has "#####", then `end`. */
static struct ckpt_value many(struct ckpt_value begin, struct ckpt_value each,
                              struct ckpt_value end)
{
    char *text = arena_alloc(&hostile_arena, begin.n + MANY * each.n + end.n + 1), *at = text;
    at = (char *)memcpy(at, begin.bytes, (size_t)begin.n) + begin.n;
    const char *found = memmem(each.bytes, (size_t)each.n, "#####", 5);
    for (int i = 0; i < MANY; i++, at += each.n) {
        char digits[16];
        snprintf(digits, sizeof digits, "%05d", i % 100000);
        memcpy(at, each.bytes, (size_t)each.n);
        if (found) memcpy(at + (found - each.bytes), digits, 5);
    }
    memcpy(at, end.bytes, (size_t)end.n);
    return (struct ckpt_value){text, begin.n + MANY * each.n + end.n};
}

static void refuse_many(enum ckpt_part part, struct ckpt_value v, const char *message)
{
    if (part != CKPT_OPTIMIZER && part != CKPT_STATE && part != CKPT_GROUPS)
        ckpt.part[CKPT_OPTIMIZER] = CKPT_NOTHING;
    ckpt.part[part] = v;
    write_ckpt();
    hostile_within(message, 128 * HOSTILE_MEGABYTE);
    if (!strstr(fail_message(), message)) fail_msg("%s lacks %s", fail_message(), message);
    ckpt_release(&ckpt);
    ckpt = (struct ckpt){};
    ckpt_init(&ckpt, true);
}

static void test_many_entries(void **)
{
    const struct ckpt_value entries = CKPT_VALUE("}("), list = CKPT_VALUE("]("),
                            close = CKPT_VALUE("u"), close_list = CKPT_VALUE("e");
    refuse_many(CKPT_MODEL,
                many(CKPT_VALUE("}(X\1\0\0\0x" CKPT_SCALAR("0") "q\0"),
                     CKPT_VALUE("X\x7\0\0\0a.#####h\0"), close),
                "has no tensor wte.weight");
    refuse_many(
        CKPT_MODEL,
        many(CKPT_VALUE("}(X\1\0\0\0x" CKPT_SCALAR("0") "q\0"), CKPT_VALUE("X\1\0\0\0xh\0"), close),
        "has tensor x twice");
    refuse_many(CKPT_ARGS, many(entries, CKPT_VALUE("X\7\0\0\0a.#####K\1"), close),
                "n_layer in model_args is missing");
    refuse_many(CKPT_ROOT, many(entries, CKPT_VALUE("X\7\0\0\0a.#####K\1"), close),
                "has no dictionary \"model\"");
    refuse_many(CKPT_STATE, many(entries, CKPT_VALUE("K\0N"), close), "no state of parameter 0");
    refuse_many(CKPT_GROUPS, many(list, CKPT_VALUE("N"), close_list), "not grouped");
    refuse_many(CKPT_ITER, many(list, CKPT_VALUE("]"), close_list), "iter_num is not a number");
    refuse_many(CKPT_ITER, many(CKPT_VALUE("N"), CKPT_VALUE("\x85"), CKPT_VALUE("")),
                "iter_num is not a number");
    refuse_many(CKPT_ITER, many(CKPT_VALUE("N"), CKPT_VALUE("(((N"), CKPT_VALUE("")),
                "too many values");
    refuse_many(CKPT_ITER, many(list, CKPT_VALUE("]]]"), close_list), "too many entries");
    refuse_many(CKPT_ITER, many(CKPT_VALUE(""), CKPT_VALUE("}0"), CKPT_VALUE("")), "runs no code");
    /* One name of 1 MB for all of them, which are masks: each copy would take 1 MB. */
    const int name = HOSTILE_MEGABYTE;
    char *text = arena_alloc(&hostile_arena, name + 16);
    memcpy(text, "}(X\0\0\x10\0", 7);
    memset(text + 7, 'n', (size_t)name);
    memcpy(text + 7 + name - 10, ".attn.bias", 10);
    memcpy(text + 7 + name, "q\0N", 3);
    refuse_many(CKPT_MODEL,
                many((struct ckpt_value){text, 7 + name + 3}, CKPT_VALUE("h\0N"), close),
                "the name of a tensor is not text of at most 200 bytes");
}

/* --- records ---------------------------------------------------------------------------------- */

/* Writes the good file again, without the entry `drop` and with the entry `name`. */
static void rewrite(const char *drop, const char *name, const char *bytes, int64_t n)
{
    struct zip_file z;
    struct zip_writer w;
    write_ckpt();
    assert_int_equal(zip_open(&z, hostile_folder, &hostile_arena), ST_OK);
    assert_int_equal(zip_writer_open(&w, hostile_folder, &hostile_arena), ST_OK);
    for (int i = 0; i < z.count; i++) {
        const struct zip_entry *e = &z.entry[i];
        char *data = arena_alloc(&hostile_arena, e->bytes + 1);
        if (drop && !strcmp(drop, e->name)) continue;
        assert_int_equal(zip_read(&z, e, data), ST_OK);
        zip_writer_add(&w, e->name, data, e->bytes);
    }
    zip_close(&z);
    if (name) zip_writer_add(&w, name, bytes, n);
    assert_int_equal(zip_writer_commit(&w), ST_OK);
}

static void test_records(void **)
{
    static const struct {
        const char *drop, *name, *bytes;
        int n;
        const char *part;
    } cases[] = {
        {"archive/data.pkl", NULL, NULL, 0, "is a zip file without NAME/data.pkl"},
        {"archive/data.pkl", "data.pkl", "\x80\2}.", 4, "is a zip file without NAME/data.pkl"},
        {"archive/data.pkl", "a/b/data.pkl", "\x80\2}.", 4, "is a zip file without NAME/data.pkl"},
        {"archive/data.pkl", "other/data.pkl", "\x80\2}.", 4, "has no dictionary \"model\""},
        {"archive/data.pkl", "archive/data.pkl", "", 0, "is not a pickle of protocol 2 to 5"},
        {"archive/data.pkl", "archive/data.pkl", "\x80\2", 2, "ends before the pickle does"},
        {"archive/data.pkl", "archive/data.pkl", "\x80\2.", 3, "without a single value"},
        {"archive/data.pkl", "archive/data.pkl", "\x80\2}.}.", 6, "goes on after the end"},
        {"archive/data.pkl", "archive/data.pkl", "\x80\1}.", 4, "a pickle of protocol 1"},
        {"archive/data.pkl", "archive/data.pkl", "(dp0\n.", 6, "is not a pickle of protocol"},
        {NULL, "other/data.pkl", "\x80\2}.", 4, "torch.save writes only one"},
        {NULL, "archive/constants.pkl", "", 0, "is a program of TorchScript"},
        {"archive/byteorder", "archive/byteorder", "big", 3, "only little is read"},
        {"archive/data/0", NULL, NULL, 0, "which the file does not have"},
        {"archive/data/2", NULL, NULL, 0, "which the file does not have"},
        {"archive/data/9", "archive/data/9", "", 0, "which has 0 bytes instead of"},
        {"archive/data/9", "archive/data/9", "abcdefgh", 8, "which has 8 bytes instead of"},
        {"archive/data/9", "archive/Data/9", "abcdefgh", 8, "which the file does not have"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        rewrite(cases[i].drop, cases[i].name, cases[i].bytes, cases[i].n);
        hostile_for(cases[i].part, cases[i].part);
    }
    /* The same name twice, and the name of one entry outside of the folder. */
    static const char *const patches[][3] = {
        {"archive/data.pk_", "archive/data.pkl", "archive/data.pkl is there twice"},
        {"archive/data/__1", "archive/../../x1", "has an absolute name, one with \"..\""},
    };
    for (int i = 0; i < COUNT_OF(patches); i++) {
        char *bytes, *at;
        int64_t n;
        rewrite(NULL, patches[i][0], "\x80\2}.", 4);
        assert_int_equal(file_read(hostile_folder, &hostile_arena, &bytes, &n), ST_OK);
        while ((at = memmem(bytes, (size_t)n, patches[i][0], strlen(patches[i][0]))))
            memcpy(at, patches[i][1], strlen(patches[i][1]));
        workdir_write(hostile_folder, bytes, n);
        hostile_for(patches[i][2], patches[i][2]);
    }
}

static void test_lengths(void **)
{
    enum { CUTS = 40 };
    write_ckpt();
    int64_t n = workdir_size(hostile_folder);
    for (int i = 0; i < CUTS; i++) {
        int64_t to = i < CUTS / 2 ? 1 + n * i / (CUTS / 2) : n - 1 - 7 * (i - CUTS / 2);
        write_ckpt();
        workdir_truncate(hostile_folder, to);
        hostile_case(arena_printf(&hostile_arena, "cut to %d bytes", (int)to));
    }
    write_ckpt();
    workdir_truncate(hostile_folder, n + 1);
    hostile_case("a byte more");
    workdir_truncate(hostile_folder, (int64_t)1 << 40);
    hostile_case("1 TB");
    unlink(hostile_folder);
    assert_int_equal(symlink("/dev/zero", hostile_folder), 0);
    hostile_case("/dev/zero");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_good_file_is_taken),
        TEST(test_sizes),
        TEST(test_parts),
        TEST(test_names),
        TEST(test_tensors),
        TEST(test_states),
        TEST(test_imports),
        TEST(test_containers_in_themselves),
        TEST(test_many_entries),
        TEST(test_records),
        TEST(test_lengths),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d files were refused\n", hostile_tried);
    return failed;
}
