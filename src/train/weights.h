/* weights.h - the parameters and moments of an engine, drawn anew or shared with a checkpoint. */
#ifndef TRAIN_WEIGHTS_H
#define TRAIN_WEIGHTS_H

#include "engine/engine.h"
#include "train/checkpoint.h"

/* Draws initial weights; moments become zero. */
enum status weights_draw(struct engine *e);
/* A row for each parameter, pointing into the engine's own memory where the host can read it, else into a copy that the
 * next two functions bring up to date; moments are NULL where the engine has no GRAPH_UPDATE. */
struct checkpoint_tensor *weights_tensors(const struct engine *e, struct arena *a);
/* Before the rows are read: from the device. */
enum status weights_fetch(const struct engine *e, const struct checkpoint_tensor *tensors);
/* After they were written: to the device, and into what is derived from the weights. */
enum status weights_bring(struct engine *e, const struct checkpoint_tensor *tensors);

#endif
