/* opt.h - the options of one command, from a table. */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "base/base.h"

struct str;

enum opt_kind { OPT_FLAG, OPT_TEXT, OPT_INT, OPT_REAL };

struct opt {
    const char *name; /* "json": given as --json, --json=true, or --from=FILE, --from FILE */
    enum opt_kind kind;
    void *member;           /* bool *, const char **, int64_t *, double * */
    const char *value_name; /* "FILE"; NULL for a flag */
    const char *help;
};

/* Takes the options of the table (which ends with name == NULL) out of the words; what is left (words
 * without dashes, --options that `keep` claims, and all behind a lone `--`) is moved to the front of
 * argv and counted. An option that nobody knows is ST_USAGE and names the nearest one. With a `keep`,
 * one that is near to none of the table is left too: whoever reads the kept ones words it better.
 *
 * -h or --help among the words is ST_HELP: nothing was set, and opt_help has the options as text. */
enum status opt_parse(const struct opt *table, int *argc, char **argv,
                      bool (*keep)(const char *word));
/* What opt_print wrote for the table of this thread's last ST_HELP. */
const char *opt_help(void);
void opt_print(const struct opt *table, struct str *s);

#endif
