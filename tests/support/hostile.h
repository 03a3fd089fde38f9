/* hostile.h - opens damaged and hostile model folders: each must be refused with a message of one
 * line, in limited memory, and without leaving a file open. */
#ifndef SUPPORT_HOSTILE_H
#define SUPPORT_HOSTILE_H

#include "exchange/exchange.h"
#include "hf.h"

/* The state of one case; hostile_tried counts the refusals of all cases. */
extern struct arena hostile_arena;
extern struct hf hostile_hf;
extern const char *hostile_folder;
extern int hostile_tried;
int hostile_set_up(void **);
int hostile_tear_down(void **);

/* The path of a file of the folder. */
const char *hostile_path(const char *name);
void hostile_text(const char *name, const char *text);
char *hostile_repeat(const char *part, int times);

/* The parameters of a model of 1024 layers, the maximum, take half of HOSTILE_BYTES. */
enum { HOSTILE_MEGABYTE = 1 << 20, HOSTILE_BYTES = 12 * HOSTILE_MEGABYTE };
/* Opens the folder while the process may grow by at most `most` bytes; it ends if it needs more. */
enum status hostile_open(struct exchange_model *m, int64_t most, struct arena *a);
/* Checks that the folder is refused within HOSTILE_BYTES or `most` bytes. `what` describes the
 * change of the folder; the message must contain `part`. */
void hostile_case(const char *what);
void hostile_within(const char *what, int64_t most);
void hostile_for(const char *what, const char *part);
/* Checks the same after replacing the file `name` by a folder, a FIFO, a link, or a huge file. */
void hostile_kinds(const char *name);

#endif
