/* torch_model.h - reads models from files of torch.save: nanoGPT's ckpt.pt and Hugging Face's
 * pytorch_model.bin. */
#ifndef EXCHANGE_TORCH_MODEL_H
#define EXCHANGE_TORCH_MODEL_H

#include "exchange/exchange.h"
#include "exchange/torch_file.h"

/* Opens a file, appends it to the array m->file, which must have space, and lets m->private point
 * to the opened file (struct torch_file). */
enum status torch_model_open(struct exchange_model *m, const char *path, struct arena *a);
/* The object that the file contains. */
const struct pickle_value *torch_model_root(const struct exchange_model *m);
/* Appends the tensor `v` to the model. `transposed`: a tensor of two dimensions is stored as
 * (out,in). */
enum status torch_model_add(struct exchange_model *m, const char *name, enum exchange_part part,
                            bool transposed, const struct pickle_value *v, struct arena *a);
/* Reads a number, which may be stored as a tensor of one float32. */
enum status torch_model_number(const struct exchange_model *m, const char *name,
                               const struct pickle_value *v, double *ret);
enum { TORCH_NAME_MOST = 200 };
/* Copies a text to the arena. NULL: it is not a text, or has more than TORCH_NAME_MOST bytes (a
 * file can refer to one long text many times). */
const char *torch_model_text(const struct pickle_value *v, struct arena *a);
/* exchange_format.verify for formats that use torch_model_open; ST_OK if no file was opened. */
enum status torch_model_verify(const struct exchange_model *m);

#endif
