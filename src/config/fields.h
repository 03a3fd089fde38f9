/* fields.h - THE table of configuration keys. Private to config/.
 *
 * To add a key: a member in config.h, a row in fields.c, then `make docs`. */
#ifndef CONFIG_FIELDS_H
#define CONFIG_FIELDS_H

#include "config/config.h"

enum field_kind { FIELD_INT, FIELD_REAL, FIELD_BOOL, FIELD_TEXT, FIELD_ENUM };

struct field {
    const char *key;
    const char *member; /* "model.n_layer": group, dot, member */
    unsigned flags;     /* enum key_flag */
    enum field_kind kind;
    int64_t offset;      /* in struct config */
    const char *initial; /* the default, written as in a file, but text without quotes */
    double min, max;     /* numbers: inclusive limits; ENUM with "word:N": limits of N */
    /* ENUM: words in the enum's order; INT: the only values allowed; ends with NULL. The last word
     * of an ENUM may be "word:N", where the user gives the number N. Then the word before it is
     * "word", which means N = 1, and the value of "word:N" is the index of "word" plus N - 1. */
    const char *const *choice;
    const char *help;
};

enum { FIELD_MOST = 72 };           /* at least the number of rows */
extern const struct field fields[]; /* ends with key == NULL */

/* Finds the key of `length` bytes at `key`; NULL if there is no such key. */
const struct field *field_find(const char *key, int64_t length);
/* The known key most similar to `key`, for an error message; NULL if none is similar. */
const struct field *field_nearest(const char *key, int64_t length);

/* Keys and values of nanoGPT that Strobe does not have (table in nanogpt.c). nanogpt_translate
 * replaces a value by Strobe's, for example device=gpu by cuda; for a refused key or value it fails
 * with ST_USAGE and a message that names Strobe's equivalent. nanogpt_ignores returns true for a
 * key that is ignored with any value, such as wandb_log, and adds the key to `ignored`
 * (config.ignored); nanogpt_print_ignored prints the names of these keys. */
bool nanogpt_is_key(const char *key, int64_t length);
bool nanogpt_ignores(const char *key, int64_t length, uint64_t *ignored);
void nanogpt_print_ignored(uint64_t ignored, struct str *s);
enum status nanogpt_translate(const char *key, int64_t length, const char **value);

/* True if the key alone, without a value, means true. */
bool field_is_switch(const struct field *f);
/* Sets the member from `value`, which has no quotes or escapes. A value out of range fails with
 * ST_USAGE and a message that names the range. Text is copied into the arena; if `a` is NULL, the
 * text is borrowed and must outlive the config. */
enum status field_set(const struct field *f, struct config *c, const char *value, struct arena *a);
/* Prints the member in the syntax of a config file: text is quoted if it needs to be. */
void field_print(const struct field *f, const struct config *c, struct str *s);
void field_print_default(const struct field *f, struct str *s);
/* Prints the allowed values: "1 to 1024", "auto, cpu, cuda"; nothing for text. */
void field_print_range(const struct field *f, struct str *s);
/* The member as a JSON value; the caller releases it with json_decref. */
struct json_t *field_json(const struct field *f, const struct config *c);
void field_print_json(const struct field *f, const struct config *c, struct str *s);

#endif
