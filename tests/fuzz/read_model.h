/* read_model.h - reads all of an open model of another program. */
#ifndef FUZZ_READ_MODEL_H
#define FUZZ_READ_MODEL_H

#include "exchange/exchange.h"

/* Every parameter and state, with more and with fewer rows in the tables than the file has. */
void read_model(const struct exchange_model *m, struct arena *a);

#endif
