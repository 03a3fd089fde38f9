/* words.h - sentences that summarise a profile: the answers that readers look for first. */
#ifndef PROFILE_WORDS_H
#define PROFILE_WORDS_H

#include "profile/profile.h"

enum { WORDS_MOST = 16 };

struct profile_words {
    struct profile_word {
        const char *about, *text; /* "top kernel", one or two sentences */
    } word[WORDS_MOST];
    int words;
};

/* Plans the next rung of the ladder to compare its kernels; runs nothing. */
void words_of(const struct profile *p, struct profile_words *ret, struct arena *a);

#endif
