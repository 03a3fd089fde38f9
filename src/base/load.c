#include "base/load.h"

#include "base/clock.h"
#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

const double LOAD_BUSY = 0.1;

bool load_is_busy(double processors)
{
    return processors / (double)sysconf(_SC_NPROCESSORS_ONLN) > LOAD_BUSY;
}

struct load load_start(void)
{
    return (struct load){host_work_now(), clock_ns()};
}

double load_others(const struct load *l)
{
    double seconds = 1e-3 * clock_ms(l->start_ns, clock_ns());
    return host_others(l->work, host_work_now(), seconds) / (double)sysconf(_SC_NPROCESSORS_ONLN);
}

const char *load_words(double share, char buffer[LOAD_WORDS])
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (isnan(share) || share <= LOAD_BUSY) return NULL;
    snprintf(buffer, LOAD_WORDS,
             "other programs took %.0f %% of the %ld processor%s meanwhile: times are longer than "
             "on an idle machine, and vary",
             100 * share, processors, processors == 1 ? "" : "s");
    return buffer;
}

void load_warn(double share)
{
    char words[LOAD_WORDS];
    if (load_words(share, words)) log_warning("%s", words);
}
