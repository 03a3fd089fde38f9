#include "../support/program.h"

#include "../support/workdir.h"
#include "base/file.h"

#include <stdlib.h>
#include <sys/wait.h>

const char *program_stdout, *program_stderr;
struct arena arena;

int program_setup(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

int program_teardown(void **state)
{
    (void)state;
    workdir_close();
    arena_release(&arena);
    return 0;
}

const char *program_text(const char *path)
{
    char *text;
    int64_t size;
    BUG_IF(file_read(path, &arena, &text, &size) != ST_OK, "%s", fail_message());
    return text;
}

int program_run(const char *environment, const char *words)
{
    const char *program = getenv("STROBE");
    const char *out = workdir_path("out"), *err = workdir_path("err");
    int status = system(arena_printf(&arena, "%s %s %s >%s 2>%s", environment,
                                     program ? program : "./strobe", words, out, err));
    program_stdout = program_text(out);
    program_stderr = program_text(err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
