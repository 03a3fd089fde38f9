/* pickle.h - reads the dictionaries of texts and whole numbers that Python's pickle writes
 * (protocols 2 to 5).
 *
 * A pickle is a program for a machine with a stack. Only the instructions that such dictionaries
 * need are known here, and they do nothing but build values; any other is refused, so a file cannot
 * run anything. What a file can take is bounded: PICKLE_BYTES_MOST, and PICKLE_ENTRIES_MOST values
 * on the stack, remembered values and entries of dictionaries. */
#ifndef DATA_PICKLE_H
#define DATA_PICKLE_H

#include "base/arena.h"

enum { PICKLE_BYTES_MOST = 1 << 24, PICKLE_ENTRIES_MOST = 1 << 18 };

enum pickle_type { PICKLE_NUMBER, PICKLE_TEXT, PICKLE_DICT, PICKLE_MARK /* private */ };

struct pickle_value {
    enum pickle_type type;
    int64_t number;   /* of a text: its bytes */
    const char *text; /* in the data that was read, without a zero byte at the end; any bytes */
    struct pickle_dict *dict;
};

/* Entries in the order of the file; of those with the same key the last counts. A dictionary can
 * contain itself. */
struct pickle_dict {
    struct pickle_item {
        struct pickle_value key, value;
    } * item;
    int count, capacity;
};

/* Reads `bytes` bytes of a file, which must outlive the result; `path` is for messages. ST_FORMAT:
 * not such a pickle, or past a bound; the message has the byte. */
enum status pickle_read(const char *path, const char *data, int64_t bytes, struct arena *a,
                        struct pickle_value *ret);
/* The value of a key that is a text; NULL: there is none, or `d` is no dictionary. */
const struct pickle_value *pickle_find(const struct pickle_value *d, const char *key);

#endif
