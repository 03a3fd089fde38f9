/* pickle.h - reads what Python's pickle writes (protocols 2 to 5): dictionaries of texts and whole
 * numbers, or the checkpoints of tensors that torch.save writes.
 *
 * A pickle is a program for a machine with a stack. Only the instructions that such files need are
 * known here, and they do nothing but build values; any other is refused, and so is every import
 * that is not in a short list, so a file cannot run anything. What a file can take is bounded:
 * PICKLE_BYTES_MOST, and PICKLE_ENTRIES_MOST values on the stack, remembered values, and entries of
 * dictionaries and lists. */
#ifndef DATA_PICKLE_H
#define DATA_PICKLE_H

#include "base/arena.h"

enum { PICKLE_BYTES_MOST = 1 << 24, PICKLE_ENTRIES_MOST = 1 << 18 };

/* What may be in a pickle. */
enum pickle_kind {
    PICKLE_PLAIN, /* numbers, texts, dictionaries */
    PICKLE_TORCH, /* every type below */
};

enum pickle_type {
    PICKLE_NUMBER,
    PICKLE_TEXT,
    PICKLE_DICT, /* also an OrderedDict; its fields are ignored */
    PICKLE_REAL,
    PICKLE_BOOL,
    PICKLE_NONE,
    PICKLE_LIST,       /* or a tuple */
    PICKLE_NAME,       /* a function or class, "torch.FloatStorage", which is not imported */
    PICKLE_CALL,       /* of a function, "torch._utils._rebuild_tensor_v2", which is not run */
    PICKLE_PERSISTENT, /* stored outside of the pickle: the tuple that names it */
    PICKLE_MARK,       /* private */
};

struct pickle_value {
    enum pickle_type type;
    int64_t number; /* of a text: its bytes; of a BOOL: 0 or 1 */
    double real;
    const char *text; /* in the data that was read, without a zero byte at the end; any bytes. Of a
                         NAME or CALL: from the list of names, with a zero byte */
    struct pickle_dict *dict;
    struct pickle_list *list; /* of a LIST, of a PERSISTENT; of a CALL: the arguments */
};

/* Entries in the order of the file; of those with the same key the last counts. A dictionary or a
 * list can contain itself. */
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

/* Reads `bytes` bytes of a file, which must outlive the result; `path` is for messages. ST_FORMAT:
 * not such a pickle, or past a bound; the message has the byte, and what it imports. */
enum status pickle_read(enum pickle_kind kind, const char *path, const char *data, int64_t bytes,
                        struct arena *a, struct pickle_value *ret);
/* The value of a key that is a text; NULL: there is none, or `d` is no dictionary. */
const struct pickle_value *pickle_find(const struct pickle_value *d, const char *key);

#endif
