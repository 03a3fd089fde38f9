/* transfer.h - copies between the host and one GPU, with pinned memory and a second stream. Private
 * to backend/cuda.
 *
 * Uploads and downloads are ordered with the kernels on the stream of the kernels. The host waits
 * for a download, and for earlier uploads if the ring of pinned memory is full. Staged copies have
 * a separate stream, so they run concurrently with kernels. */
#ifndef BACKEND_CUDA_RUNTIME_TRANSFER_H
#define BACKEND_CUDA_RUNTIME_TRANSFER_H

#include "backend/cuda/runtime/driver.h"

struct transfer;

/* `stream` is the stream of the kernels and must outlive *ret. A failure leaves nothing allocated.
 */
enum status transfer_open(CUstream stream, struct transfer **ret);
void transfer_close(struct transfer *t);

enum status transfer_upload(struct transfer *t, void *dst, const void *src, int64_t size);
enum status transfer_download(struct transfer *t, void *dst, const void *src, int64_t size);
/* dst is filled by transfer_hand_out. */
enum status transfer_download_later(struct transfer *t, void *dst, const void *src, int64_t size);
/* The number of deferred downloads begun so far. */
int64_t transfer_downloads(const struct transfer *t);
/* Copies the results of the first `downloads` deferred downloads to their destinations; the device
 * must have completed these downloads. */
void transfer_hand_out(struct transfer *t, int64_t downloads);
/* The host waits for the stream of the kernels; all deferred downloads are copied out. */
enum status transfer_sync(struct transfer *t);

/* See backend.h. */
enum status transfer_stage(struct transfer *t, void *staging, const void *src, int64_t size);
enum status transfer_unstage(struct transfer *t, void *dst, const void *staging, int64_t size);

#endif
