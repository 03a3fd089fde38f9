/* ceilings.h - the measured peaks of this machine, for commands that compare times with them.
 *
 * They are stored in strobe/machine.json of the user's cache ($XDG_CACHE_HOME, else ~/.cache). */
#ifndef VIEW_CEILINGS_H
#define VIEW_CEILINGS_H

#include "machine/machine.h"

/* Reads the stored peaks; false if there are none. Measures nothing. */
bool ceilings_find(struct machine *m, const struct device *device, struct arena *a);
/* The stored peaks of a device; for a CPU, of the current number of threads. Every record is used;
 * ceilings_words tells how good it is. Without a record, the peaks are measured quickly, with
 * progress, and stored; a failure to store them is a warning. */
enum status ceilings_get(struct machine *m, const struct device *device, struct arena *a);
/* Measures and stores the peaks, for `strobe machine`: *m becomes the best of this measurement and,
 * unless `forget`, earlier ones. With `ranks` above 1, also measures all-reduces among as many
 * ranks of a CPU. *ret_path: the file; NULL: the peaks were not stored. */
enum status ceilings_measure(struct machine *m, int ranks, bool quick, bool forget,
                             const char **ret_path, struct arena *a);

/* "356 GFLOP/s", "2.91 TFLOP/s"; "44.3 GB/s", "4.28 TB/s". */
const char *ceilings_flops(double per_second, struct arena *a);
const char *ceilings_bytes(double per_second, struct arena *a);
/* "Intel(R) Xeon(R) ..., 2 threads", "NVIDIA H200" */
const char *ceilings_who(const struct machine *m, struct arena *a);
/* One line: the peaks, their device and date, and how to measure again. */
const char *ceilings_words(const struct machine *m, struct arena *a);

#endif
