/* fields.h - THE table of keys. Private to config/.
 *
 * A new key: a member in config.h, a row in fields.c, `make docs`. */
#ifndef CONFIG_FIELDS_H
#define CONFIG_FIELDS_H

#include "config/config.h"

struct str;

enum field_kind { FIELD_INT, FIELD_REAL, FIELD_BOOL, FIELD_TEXT, FIELD_ENUM };

struct field {
    const char *key;
    const char *member; /* "model.n_layer"; what stands before the dot is the group */
    unsigned flags;     /* enum key_flag */
    enum field_kind kind;
    int64_t offset;      /* in struct config */
    const char *initial; /* the default: text as it is, all else as it is written in a file */
    double min, max;     /* numbers: both ends included; ENUM with "word:N": of N */
    /* ENUM: names in the enum's order; INT: the only values; ends with NULL. The last of an ENUM may be "word:N", a
     * word with a number; it stands behind "word", which is N = 1, and N - 2 is added to its place. */
    const char *const *choice;
    const char *help;
};

enum { FIELD_MOST = 64 };           /* no fewer than there are rows */
extern const struct field fields[]; /* ends with key == NULL */

/* NULL if there is no such key. The key is the `length` bytes at `key`. */
const struct field *field_find(const char *key, int64_t length);
/* The key that `key` may have meant; NULL if it is like none. */
const struct field *field_nearest(const char *key, int64_t length);

/* Sets the member from `value`, without quotes or escapes. Out of range: ST_USAGE, with the range.
 * Text is copied into the arena; without one it is borrowed for good. */
enum status field_set(const struct field *f, struct config *c, const char *value, struct arena *a);
/* The member as config_read takes it: text in quotes where it needs them. */
void field_print(const struct field *f, const struct config *c, struct str *s);
void field_print_default(const struct field *f, struct str *s);
/* "1 to 1024", "auto, cpu, cuda"; nothing for text. */
void field_print_range(const struct field *f, struct str *s);
/* The member as JSON has it; the caller releases the object with json_decref. */
struct json_t *field_json(const struct field *f, const struct config *c);
void field_print_json(const struct field *f, const struct config *c, struct str *s);

#endif
