/* cupti_library.h - CUPTI, NVIDIA's tracing library. Without it profiles use events.
 *
 * The functions are in one table, as in driver.h, with the toolkit's names. */
#ifndef BACKEND_CUDA_RUNTIME_CUPTI_LIBRARY_H
#define BACKEND_CUDA_RUNTIME_CUPTI_LIBRARY_H

#include "base/base.h"

/* True if CUPTI is available; otherwise *ret_why (may be NULL) states why it is not. The first call
 * opens CUPTI. */
bool cupti_available(const char **ret_why);
/* Writes CUPTI's version: "13.0.1", or, before CUDA 13, the number of its API: "API 22". Writes an
 * empty string if the version is unknown. */
void cupti_version(char ret[48]);

#ifdef HAVE_CUPTI
#include "backend/cuda/runtime/driver.h"

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#if __has_include(<cupti_range_profiler.h>)
#define HAVE_CUPTI_RANGES
#include "backend/cuda/runtime/cupti_host.h"
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#endif

/* clang-format off */
#define CUPTI_LIST(F)                                                                             \
    F(cuptiGetVersion) F(cuptiGetResultString) F(cuptiGetTimestamp) F(cuptiActivityEnable)        \
    F(cuptiActivityDisable) F(cuptiActivityRegisterCallbacks) F(cuptiActivityGetNextRecord)       \
    F(cuptiActivityGetNumDroppedRecords) F(cuptiActivityFlushAll)                                 \
    F(cuptiActivityPushExternalCorrelationId) F(cuptiActivityPopExternalCorrelationId)            \
    F(cuptiGetCallbackName)
/* Functions for hardware counters. They are optional: CUPTI before CUDA 12.6 lacks them, and their
 * pointers are then NULL. */
#ifdef HAVE_CUPTI_RANGES
#define CUPTI_RANGE_LIST(F)                                                                       \
    F(cuptiProfilerInitialize) F(cuptiProfilerDeInitialize) F(cuptiDeviceGetChipName)             \
    F(cuptiProfilerGetCounterAvailability) F(cuptiProfilerHostInitialize)                         \
    F(cuptiProfilerHostDeinitialize) F(cuptiProfilerHostConfigAddMetrics)                         \
    F(cuptiProfilerHostGetConfigImageSize) F(cuptiProfilerHostGetConfigImage)                     \
    F(cuptiProfilerHostEvaluateToGpuValues) F(cuptiRangeProfilerEnable)                           \
    F(cuptiRangeProfilerDisable) F(cuptiRangeProfilerGetCounterDataSize)                          \
    F(cuptiRangeProfilerCounterDataImageInitialize) F(cuptiRangeProfilerSetConfig)                \
    F(cuptiRangeProfilerStart) F(cuptiRangeProfilerStop) F(cuptiRangeProfilerDecodeData)          \
    F(cuptiRangeProfilerGetCounterDataInfo)
#else
#define CUPTI_RANGE_LIST(F)
#endif
/* clang-format on */

struct cupti {
    CUPTI_LIST(LIBRARY_MEMBER)
    CUPTI_RANGE_LIST(LIBRARY_MEMBER)
};

/* NULL if CUPTI is not available. */
const struct cupti *cupti(const char **ret_why);
/* Fails with "CUPTI cannot begin: CUPTI_ERROR_...", and the likely cause. */
enum status cupti_check(CUptiResult r, const char *doing);
#endif

#endif
