/* device.h - the device that a configuration runs on, and whether it can run there. */
#ifndef ENGINE_DEVICE_H
#define ENGINE_DEVICE_H

#include "backend/backend.h"
#include "engine/program.h"

/* The name of the configuration's backend; device=auto selects a GPU if one can be used. */
const char *device_backend(const struct config *c);
/* The number of the device among the devices of its backend. */
int device_number(const struct config *c);
/* The configuration's device. Fails if this build has no such backend. */
enum status device_of(const struct config *c, struct device *ret);
/* True if the ranks synchronize on the host in each step, so that no step can be captured: ranks in
 * threads do; ranks in processes synchronize on the GPUs (NCCL). */
bool device_ranks_sync_on_host(const struct config *c);
/* For a checkpoint of another machine: replaces values of `trained` that this machine does not
 * support by supported ones, and prints a line for each. Keys that `c` overrides stay. */
void device_adapt(struct config *c, const struct config *trained);
/* Fails if backend `b`, called `name`, cannot run the configuration or does not exist (b NULL). */
enum status device_check(const struct config *c, const struct backend *b, const char *name);
/* Fails if the target does not support the dtype of the configuration. */
enum status device_check_type(const struct config *c, const struct target *target);
/* The target to compile for: the configuration's device. If this device does not exist, fails if
 * `there`, else returns the backend's default target. Limits the instruction sets to plan.isa. */
enum status device_target(const struct config *c, const char *backend, bool there,
                          struct target *ret);

#endif
