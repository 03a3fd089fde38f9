/* opt.h - command-line options, parsed by a table. */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "base/base.h"

struct str;

/* A size is bytes, given with its unit: 80GiB, 24GB, 512MiB; at least 1. */
enum opt_kind { OPT_FLAG, OPT_TEXT, OPT_INT, OPT_SIZE };

struct opt {
    const char *name; /* "json": given as --json, --json=true, or --from=FILE, --from FILE */
    enum opt_kind kind;
    void *member;           /* bool *, const char **; of OPT_INT and OPT_SIZE int64_t * */
    const char *value_name; /* "FILE"; NULL for a flag */
    const char *help;       /* NULL: an option for processes that Strobe starts; not in the help */
};

/* Parses the options of the table (which ends with name == NULL) and removes them from argv. The
 * remaining words (words without dashes, --options for which `keep` returns true, everything after
 * a lone `--`) move to the front of argv, and *argc becomes their number. An unknown option is
 * ST_USAGE; the message suggests the nearest known option. With `keep`, an unknown option that
 * resembles none in the table remains too, because the code that parses the remaining words can
 * report it better. A text that begins with ~ is ST_USAGE (file_check_place).
 *
 * -h or --help is ST_HELP: no member is set, and opt_help describes the options. */
enum status opt_parse(const struct opt *table, int *argc, char **argv,
                      bool (*keep)(const char *word));
/* The help text for the opt_parse call of this thread that last returned ST_HELP. */
const char *opt_help(void);
void opt_print(const struct opt *table, struct str *s);

#endif
