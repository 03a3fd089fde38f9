/* written.h - the texts of kernels that are written for the plans of a program, as a compiler shows its output. */
#ifndef CLI_WRITTEN_H
#define CLI_WRITTEN_H

struct program;
struct str;

/* Each text once, behind the nodes that it was written for; one sentence if there is none. */
void written_print(const struct program *p, struct str *s);

#endif
