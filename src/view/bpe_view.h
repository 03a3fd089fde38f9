/* bpe_view.h - a run of the ladder bpe (lab/bpe/bpe.h) as a sheet. */
#ifndef VIEW_BPE_VIEW_H
#define VIEW_BPE_VIEW_H

#include "lab/bpe/bpe.h"
#include "present/sheet.h"

/* `what`: names the text and the tokenizer in the title. */
void bpe_sheet(const struct bpe_run *r, const char *what, struct sheet *s, struct arena *a);

#endif
