/* ladders.h - the ladders that ladders.c lists; one C file each. */
#ifndef LAB_LADDERS_H
#define LAB_LADDERS_H

#include "lab/lab.h"

extern const struct lab_ladder lab_copy, lab_transpose, lab_reduce;

#endif
