/* hostile.h - opens damaged and hostile folders of models: each must be refused in one sentence,
 * without more memory than the files have, and without a file that stays open. */
#ifndef SUPPORT_HOSTILE_H
#define SUPPORT_HOSTILE_H

#include "exchange/exchange.h"
#include "hf.h"

/* Of one case; `hostile_tried` counts the refusals of all. */
extern struct arena hostile_arena;
extern struct hf hostile_hf;
extern const char *hostile_folder;
extern int hostile_tried;
int hostile_set_up(void **);
int hostile_tear_down(void **);

/* A file of the folder. */
const char *hostile_path(const char *name);
void hostile_text(const char *name, const char *text);
char *hostile_repeat(const char *part, int times);

/* The parameters of 1024 layers, which is the most, take half of it. */
enum { HOSTILE_MEGABYTE = 1 << 20, HOSTILE_BYTES = 12 * HOSTILE_MEGABYTE };
/* Opens the folder where the process may grow by `most` bytes; beyond them it would end. */
enum status hostile_open(struct exchange_model *m, int64_t most, struct arena *a);
/* The folder must be refused, within HOSTILE_BYTES or `most`; `what` was changed, and the sentence
 * has `part`. */
void hostile_case(const char *what);
void hostile_within(const char *what, int64_t most);
void hostile_for(const char *what, const char *part);
/* The same for the file `name` if it is a folder, a FIFO, a link, or far too large. */
void hostile_kinds(const char *name);

#endif
