/* generated.h - prints the source of kernels that are generated for a plan. */
#ifndef CLI_GENERATED_H
#define CLI_GENERATED_H

struct program;
struct str;

/* Prints each kernel source once, after the nodes that use it; one sentence if there is none. */
void generated_print(const struct program *p, struct str *s);

#endif
