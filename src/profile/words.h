/* words.h - the answers that people look for in a profile, in sentences. */
#ifndef PROFILE_WORDS_H
#define PROFILE_WORDS_H

#include "profile/profile.h"

enum { WORDS_MOST = 16 };

struct profile_words {
    struct profile_word {
        const char *about, *text; /* "top kernel", a sentence or two */
    } word[WORDS_MOST];
    int words;
};

/* Plans the next rung of the ladder on its way; nothing is run. */
void words_of(const struct profile *p, struct profile_words *ret, struct arena *a);

#endif
