#include "run_fixture.h"

#include "base/file.h"
#include "base/str.h"
#include "workdir.h"

#include <string.h>

int fixture_setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.root = workdir_open()};
    *state = &fixture;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    arena_release(&f->arena);
    workdir_close();
    return 0;
}

char *fixture_path(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "%s/%s", f->root, name);
}

void fixture_write(struct fixture *f, const char *name, const char *text)
{
    char *path = fixture_path(f, name);
    char *folder = arena_printf(&f->arena, "%.*s", (int)(strrchr(path, '/') - path), path);
    BUG_IF(file_make_dirs(folder) != ST_OK, "%s", fail_message());
    BUG_IF(file_write(path, text, (int64_t)strlen(text)) != ST_OK, "%s", fail_message());
}

char *fixture_run(struct fixture *f, const char *name, const char *flash, double ms, double memory,
                  double val)
{
    struct arena *a = &f->arena;
    struct str log = {0};
    for (int i = 1; i <= 10; i++) /* the first two are slow */
        str_printf(&log,
                   "{\"v\":1,\"kind\":\"step\",\"iter\":%d,\"loss\":%g,\"lr\":0.001,"
                   "\"grad_norm\":1.5,\"ms\":%g,\"tokens_per_s\":%g}\n",
                   i - 1, 4.0 - 0.1 * i, i < 3 ? 10 * ms : ms + (i % 2 ? 0.5 : -0.5), 1e6 / ms);
    str_printf(&log,
               "{\"v\":1,\"kind\":\"eval\",\"iter\":5,\"train_loss\":3.5,\"val_loss\":3.5}\n"
               "{\"v\":1,\"kind\":\"eval\",\"iter\":10,\"train_loss\":3.0,\"val_loss\":%g}\n",
               val);
    fixture_write(f, arena_printf(a, "%s/log.jsonl", name), str_text(&log));
    str_release(&log);
    fixture_write(f, arena_printf(a, "%s/config.conf", name),
                  arena_printf(a,
                               "# model\nn_layer = 2\n\nflash = %s\ndata_dir = /%s\nout_dir = %s\n",
                               flash, name, name));
    fixture_write(f, arena_printf(a, "%s/env.json", name),
                  "{\"version\":\"0.1.0\",\"cpu\":\"A processor\",\"threads\":4,"
                  "\"libraries\":{\"oneDNN\":\"2.6.3\"},\"date\":\"2025-01-02T03:04:05Z\"}");
    fixture_write(f, arena_printf(a, "%s/plan.json", name),
                  arena_printf(a,
                               "{\"v\":1,\"parameters\":5000,\"tokens_per_step\":1000,"
                               "\"memory\":{\"weights\":100,\"total\":%g}}",
                               memory));
    fixture_write(f, arena_printf(a, "%s/summary.json", name),
                  "{\"v\":1,\"iters\":10,\"peak_rss\":9000,\"complete\":true}");
    return fixture_path(f, name);
}
