#!/bin/sh
# Memory of the host: what does not fit is refused before it starts, in one sentence that names the
# need, what is there, by which limit, and a batch size that fits; what runs out later ends in one
# sentence, with a checkpoint where there was room for one. Never a signal.
# test: release timeout=900; sanitizers reserve terabytes of addresses, and end where malloc fails
. "$(dirname "$0")/tiny.sh"
cd "$work"
export OMP_NUM_THREADS=1
large="tiny.conf --n_embd=256 --n_layer=4 --block_size=256 --batch_size=256 --max_iters=1
    --eval_interval=1 --eval_iters=1 --overwrite"

# --- limits of the process
limited() {
    limit=$1
    shift
    (ulimit "$limit" 500000 && exec "$@") # KiB
}
for limit in -v -d; do
    # shellcheck disable=SC2086
    expect 1 'strobe: this needs ' limited $limit "$STROBE" train $large --out_dir=refused
    there="[0-9.]+ MiB are free under RLIMIT_(AS|DATA) \(ulimit $limit\), 488\.3 MiB"
    advice="--batch_size=[0-9]+ is the largest that fits; \`strobe memory\` shows"
    grep -qE "needs [0-9.]+ GiB of memory, and $there: [0-9.]+ GiB are missing; $advice" out ||
        fail "the sentence lacks a part: $(cat out)"
    grep -q '0\.0 GiB' out && fail "a size is 0.0 GiB: $(cat out)"
    [ ! -e refused/ckpt ] || fail "a run that was refused has left something"
    batch=$(sed -n 's/.*--batch_size=\([0-9]*\) is the largest.*/\1/p' out)
    # shellcheck disable=SC2086
    expect 0 '1 iteration' limited $limit "$STROBE" train $large --out_dir=fits \
        --batch_size="$batch"
    # shellcheck disable=SC2086
    expect 1 'are missing' limited $limit "$STROBE" train $large --out_dir=refused \
        --batch_size=$((batch + 1))
done
# the same words before a measurement
words=' is the largest that fits; '
# shellcheck disable=SC2086
expect 1 "$words" limited -v "$STROBE" memory ${large%--overwrite} --measure
# shellcheck disable=SC2086
expect 1 "$words" limited -v "$STROBE" profile ${large%--overwrite} --json

# --- control groups: the files of one, in place of those of this machine
if unshare -rm true 2>/dev/null; then
    # shellcheck disable=SC2086
    in_group() {
        unshare -rm sh -c 'mount --bind "$1" /sys/fs/cgroup && shift && exec "$@"' - "$@"
    }
    mib=1048576
    mkdir -p one/memory two
    echo $((400 * mib)) | tee one/memory/memory.limit_in_bytes >two/memory.max
    echo $((100 * mib)) | tee one/memory/memory.usage_in_bytes >two/memory.current
    for version in one two; do
        name=memory.max line='^0::'
        [ $version = two ] || { name=memory.limit_in_bytes line=:memory:; }
        grep -q "$line" /proc/self/cgroup || continue
        # shellcheck disable=SC2086
        expect 1 "300.0 MiB are free under $name of the control group /, 400.0 MiB: " \
            in_group $version "$STROBE" train $large --out_dir=refused
        grep -q ' is the largest that fits; ' out || fail "no batch size: $(cat out)"
        # shellcheck disable=SC2086
        expect 0 '1 iteration' in_group $version "$STROBE" train $large --out_dir=fits \
            --batch_size=1
    done
else
    echo "skipped: control groups (no namespaces here)"
fi

# --- allocations that fail, one by one: the n-th, or all from the n-th on
cat >failing.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static long count, at, all;
static int fails(void)
{
    long n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (!at || (n != at && !(all && n > at))) return 0;
    errno = ENOMEM;
    return 1;
}
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails() ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { return fails() ? NULL : __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n)
{
    if (fails()) return ENOMEM;
    return (*p = __libc_memalign(a, n)) ? 0 : ENOMEM;
}
/* Counts from main on: what the loader and constructors of libraries do without is theirs. */
int __libc_start_main(int (*main)(int, char **, char **), int c, char **v, void (*i)(void),
                      void (*f)(void), void (*r)(void), void *end)
{
    int (*next)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                void (*)(void), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    const char *which = getenv("FAIL_AT");
    count = 0;
    at = which ? atol(which) : 0;
    all = getenv("FAIL_ALL") != NULL;
    return next(main, c, v, i, f, r, end);
}
__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAIL_COUNT");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) fprintf(f, "%ld\n", count), fclose(f);
}
C
${CC:-cc} -w -O1 -shared -fPIC -o failing.so failing.c
short="tiny.conf --max_iters=12 --eval_interval=4 --eval_iters=1 --overwrite --isa=${ISA:-auto}"
preloaded() {
    env LD_PRELOAD="$work/failing.so" "$@"
}
# shellcheck disable=SC2086
expect 0 '12 iterations' preloaded FAIL_COUNT="$work/count" "$STROBE" train $short --out_dir=whole
total=$(cat count)
[ "$total" -gt 1000 ] || fail "only $total allocations were seen"
saved=0 refused=0
for way in once always; do
    i=0 all=$([ $way = once ] || echo FAIL_ALL=1)
    while [ $i -lt 14 ]; do
        # six over the whole run, the others in its last part, where the steps are
        at=$((1 + i * total / 6))
        [ $i -lt 6 ] || at=$((total - total / 8 + (i - 6) * total / 64))
        i=$((i + 1))
        rm -rf run
        set +e
        # shellcheck disable=SC2086
        preloaded FAIL_AT=$at $all "$STROBE" train $short --out_dir=run >out 2>&1
        code=$?
        set -e
        case $code in
        0) continue ;;
        1) grep -qiE 'strobe: .*(memory|cannot allocate)|libgomp: .*memory' out ||
            fail "allocation $at ($way): $(cat out)" ;;
        *) fail "allocation $at ($way): exit code $code: $(cat out)" ;;
        esac
        refused=$((refused + 1))
        grep -q 'the checkpoint is saved' out || continue
        saved=$((saved + 1))
        # shellcheck disable=SC2086
        "$STROBE" train run --init_from=resume >>out 2>&1 || fail "does not resume: $(cat out)"
        cmp whole/ckpt/000012/model.safetensors run/ckpt/000012/model.safetensors ||
            fail "allocation $at ($way): resumed to other weights"
    done
done
[ $saved -gt 0 ] || fail "no checkpoint was saved when memory ran out ($refused runs ended)"
echo ok
