/* words.h - sentences that summarize a profile: the answers that readers look for first. */
#ifndef PROFILE_WORDS_H
#define PROFILE_WORDS_H

#include "profile/profile.h"

enum { WORDS_MOST = 16 };

struct profile_words {
    struct profile_word *word; /* space for WORDS_MOST */
    int words;
};

/* Plans the next rung of the ladder to compare its kernels; runs nothing. */
struct profile_words words_of(const struct profile *p, struct arena *a);

#endif
