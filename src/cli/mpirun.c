#include "cli/mpirun.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words of this process, after the first; *ret_count of them. */
static char **words_of_process(int *ret_count, struct arena *a)
{
    char *text;
    int64_t bytes, at = 0;
    int count = 0, capacity = 0;
    char **word = NULL;
    *ret_count = 0;
    if (file_read("/proc/self/cmdline", a, &text, &bytes) != ST_OK) return NULL;
    for (; at < bytes; at += (int64_t)strlen(text + at) + 1) {
        ARENA_GROW(a, word, count, capacity);
        word[count++] = text + at;
    }
    *ret_count = count ? count - 1 : 0;
    return count ? word + 1 : NULL;
}

const char *mpirun_words(struct arena *a)
{
    int words;
    char **word = words_of_process(&words, a);
    const char *all = "";
    for (int i = 0; i < words; i++) all = arena_printf(a, "%s%s%s", all, i ? " " : "", word[i]);
    return all;
}

bool mpirun_is_there(void)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        char file[4200];
        int length = (int)strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/mpirun", length, path);
        if (access(file, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* Ranks share processors by `threads`, so MPI must not bind them. On Ctrl-C rank 0 needs time to
 * save. `-q`: without this, MPI adds pages to the one sentence. */
enum status mpirun_exec(int64_t ranks, struct arena *a)
{
    static char *const fixed[] = {"mpirun",
                                  "-q",
                                  "--bind-to",
                                  "none",
                                  "--oversubscribe",
                                  "--mca",
                                  "odls_base_sigkill_timeout",
                                  "600",
                                  "-n"};
    char self[4096];
    int words, n = 0;
    char **word = words_of_process(&words, a);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0 || !words) return fail(ST_IO, "/proc/self cannot be read: use ranks_by=threads");
    self[length] = '\0';
    char **all = ARENA_NEW(a, char *, COUNT_OF(fixed) + 4 + words);
    for (int i = 0; i < COUNT_OF(fixed); i++) all[n++] = fixed[i];
    all[n++] = arena_printf(a, "%lld", (long long)ranks);
    if (geteuid() == 0) all[n++] = (char *)"--allow-run-as-root";
    all[n++] = self;
    for (int i = 0; i < words; i++) all[n++] = word[i];
    fflush(stdout);
    execvp(all[0], all);
    return fail(ST_IO, "mpirun cannot be started: %s; use ranks_by=threads", strerror(errno));
}
