/* pickle.h - reads files of Python's pickle (protocols 2 to 5): dictionaries of texts and integers,
 * or the checkpoints of tensors that torch.save writes.
 *
 * A pickle is a program for a stack machine. This reader supports only the instructions that such
 * files need; they just build values. It refuses all other instructions, and all imports that are
 * not in a short list, so a file cannot run code. A file may have at most PICKLE_BYTES_MOST bytes,
 * and at most PICKLE_ENTRIES_MOST values on the stack, values in the memo, and entries of
 * dictionaries and lists. */
#ifndef DATA_PICKLE_H
#define DATA_PICKLE_H

#include "base/arena.h"

enum { PICKLE_BYTES_MOST = 1 << 24, PICKLE_ENTRIES_MOST = 1 << 18 };

/* The types of values that a pickle may contain. */
enum pickle_kind {
    PICKLE_PLAIN, /* numbers, texts, dictionaries */
    PICKLE_TORCH, /* every type below */
};

enum pickle_type {
    PICKLE_NUMBER,
    PICKLE_TEXT,
    PICKLE_DICT, /* or an OrderedDict, whose fields are ignored */
    PICKLE_REAL,
    PICKLE_BOOL,
    PICKLE_NONE,
    PICKLE_LIST,       /* or a tuple */
    PICKLE_NAME,       /* a function or class, "torch.FloatStorage", which is not imported */
    PICKLE_CALL,       /* a call of "torch._utils._rebuild_tensor_v2" or the like; never executed */
    PICKLE_PERSISTENT, /* an object outside of the pickle; `list` is the tuple that identifies it */
    PICKLE_MARK,       /* private to pickle.c */
};

struct pickle_value {
    enum pickle_type type;
    int64_t number; /* TEXT: the number of bytes; BOOL: 0 or 1 */
    double real;
    const char *text; /* TEXT: any bytes, inside the data that was read, without a zero byte at the
                         end. NAME or CALL: a C string */
    struct pickle_dict *dict;
    struct pickle_list *list; /* LIST or PERSISTENT: the elements; CALL: the arguments */
};

/* The entries in the order of the file; if several have the same key, the last one counts. A
 * dictionary or a list can contain itself. */
struct pickle_dict {
    struct pickle_item {
        struct pickle_value key, value;
    } * item;
    int count, capacity;
    bool is_ordered; /* made as an OrderedDict */
};

struct pickle_list {
    struct pickle_value *item;
    int count, capacity;
    bool is_tuple;
};

/* Reads a pickle of `bytes` bytes at `data`, which must outlive the result; `path` is for messages.
 * ST_FORMAT: the data is not such a pickle or exceeds a limit; the message has the position or the
 * name of the refused import. */
enum status pickle_read(enum pickle_kind kind, const char *path, const char *data, int64_t bytes,
                        struct arena *a, struct pickle_value *ret);
/* The value for a text key; NULL: there is none, or `d` is not a dictionary. */
const struct pickle_value *pickle_find(const struct pickle_value *d, const char *key);

#endif
