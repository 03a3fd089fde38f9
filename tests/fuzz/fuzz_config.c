/* A configuration, the file that it includes, and overrides, one a line. */
#include "fuzz.h"

#include "base/str.h"
#include "config/config.h"

#include <string.h>

enum { FIRST, INCLUDED, OVERRIDES, PARTS };

static struct fuzz_part part[PARTS];

static const char *find(const char *name)
{
    return strcmp(name, "a.conf") == 0   ? part[FIRST].bytes
           : strcmp(name, "b.conf") == 0 ? part[INCLUDED].bytes
                                         : NULL;
}

static enum status set_all(struct config *c, char *text, struct arena *a)
{
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        (void)(config_is_override(line) + config_is_key(line));
        if (*line) TRY(config_set(c, line, a));
    }
    return ST_OK;
}

/* Printing takes longer than reading. */
enum { EVERY = 16 };

/* What is printed must read back as the same. */
static void read_back(const struct config *c, struct arena *a)
{
    struct str once = {0}, twice = {0};
    struct config again;
    config_print(c, &once);
    part[FIRST].bytes = once.data;
    config_init(&again);
    config_print_json(c, &twice);
    str_release(&twice);
    BUG_IF(config_read_text(&again, "a.conf", find, a) != ST_OK, "%s", fail_message());
    config_print(&again, &twice);
    BUG_IF(strcmp(once.data, twice.data) != 0, "another configuration is read back");
    str_release(&once);
    str_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    static struct config initial;
    static int turn;
    if (!turn++) config_init(&initial);
    struct config c = initial;
    fuzz_parts(data, size, part, PARTS, &a);
    bool valid = config_read_text(&c, "a.conf", find, &a) == ST_OK;
    if (part[OVERRIDES].bytes && set_all(&c, part[OVERRIDES].bytes, &a) != ST_OK) valid = false;
    if (config_check(&c) != ST_OK) valid = false;
    if (valid && turn % EVERY == 0) read_back(&c, &a);
    return fuzz_end(&a, valid);
}
