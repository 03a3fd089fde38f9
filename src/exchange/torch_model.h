/* torch_model.h - tensors of files of torch.save as those of a model: nanoGPT's ckpt.pt, Hugging
 * Face's pytorch_model.bin. */
#ifndef EXCHANGE_TORCH_MODEL_H
#define EXCHANGE_TORCH_MODEL_H

#include "exchange/exchange.h"
#include "exchange/torch_file.h"

/* Opens a file as the next of m->file, which has room for it, and lets m->private have it. */
enum status torch_model_open(struct exchange_model *m, const char *path, struct arena *a);
/* What was saved. */
const struct pickle_value *torch_model_root(const struct exchange_model *m);
/* Appends a tensor. `transposed`: if it has two dimensions, the file has it as (out,in). */
enum status torch_model_add(struct exchange_model *m, const char *name, enum exchange_part part,
                            bool transposed, const struct pickle_value *v, struct arena *a);
/* A number, or a tensor of one float32. */
enum status torch_model_number(const struct exchange_model *m, const char *name,
                               const struct pickle_value *v, double *ret);
enum { TORCH_NAME_MOST = 200 };
/* A text of the file as one of the arena; NULL if it is none or has more than TORCH_NAME_MOST
 * bytes: a file can name one long text many times. */
const char *torch_model_text(const struct pickle_value *v, struct arena *a);
/* A row's `verify`: of the file that torch_model_open opened; ST_OK if it opened none. */
enum status torch_model_verify(const struct exchange_model *m);

#endif
