/* ops_doc.h - docs/OPS.md: the list of operators joined with the kernels of the CPU. */
#ifndef CHECK_OPS_DOC_H
#define CHECK_OPS_DOC_H

struct str;

/* Appends the document in Markdown; it is the same on every machine with the same libraries. */
void ops_doc_print(struct str *s);

#endif
