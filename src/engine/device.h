/* device.h - the device that a configuration runs on, and whether it can run there. */
#ifndef ENGINE_DEVICE_H
#define ENGINE_DEVICE_H

#include "backend/backend.h"
#include "engine/program.h"

/* The name of the configuration's backend; device=auto is a GPU if one can be used. */
const char *device_backend(const struct config *c);
/* The number of the device among its kind. */
int device_number(const struct config *c);
/* The configuration's device. Fails if this build has no such backend. */
enum status device_of(const struct config *c, struct device *ret);
/* Sets dtype, replay and pad_vocab where they are auto (config_choose); `before` is the
 * configuration of the run that goes on, or NULL. `say`: one line tells of any choice for a new run
 * but the plain one, float32 without replay. Limits the instruction sets to plan.isa. */
enum status device_choose(struct config *c, const struct config *before, bool say);
/* For a checkpoint that was trained elsewhere: keys that have the value of `trained` and that this
 * machine does not support get one that it does, and one line tells of each. */
void device_adapt(struct config *c, const struct config *trained);
/* Fails if the backend of that name cannot run the configuration, or does not exist (b NULL). */
enum status device_check(const struct config *c, const struct backend *b, const char *name);
/* The same for the types that a target computes in. */
enum status device_check_type(const struct config *c, const struct target *target);
/* The target to compile for: the configuration's device. `there`: the device must exist; otherwise
 * the backend's default target stands in for it. Limits the CPU's instruction sets to plan.isa. */
enum status device_target(const struct config *c, const char *backend, bool there,
                          struct target *ret);

#endif
