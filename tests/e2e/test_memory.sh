#!/bin/sh
# Memory of the host: what does not fit is refused before it starts, in one sentence that names the
# need, what is there, by which limit, and a batch size that fits; what runs out later ends in one
# sentence, with a checkpoint where there was memory for one. Never a signal.
# test: slow release timeout=900; sanitizers reserve terabytes, and end where malloc fails
. "$(dirname "$0")/tiny.sh"
here=$PWD
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

# --- allocations of Strobe that fail, one by one: the n-th, or all from the n-th on
preload=${STROBE_BUILD:-$here/build/release}/faults/preload.so
short="tiny.conf --max_iters=12 --eval_interval=4 --eval_iters=1 --overwrite --isa=${ISA:-auto}"
# 98: an address that the library cannot filter, by chance; again with another
preloaded() {
    for try in 1 2 3; do
        code=0
        env LD_PRELOAD="$preload" FAULTS_UNDER="$work" "$@" || code=$?
        [ $code = 98 ] || break
    done
    return $code
}
set +e
# shellcheck disable=SC2086
preloaded FAULTS_SHARED="$work/shared" "$STROBE" train $short --out_dir=whole >out 2>&1
code=$?
set -e
[ $code != 99 ] || { echo "skipped: allocations that fail: $(cat out)"; exit 0; }
[ $code = 0 ] || fail "with the preloaded library: exit code $code: $(cat out)"
names=$(sed -n '/define FAULTS_NAMES/,/}/p' "$here/tests/faults/faults.h" | grep -o '"[a-z]*"')
counts() { # NAME: of the counters, which are in the order of the names
    at=$(echo "$names" | grep -nx "\"$1\"" | cut -d: -f1)
    od -A n -t u8 -j $((8 * (at - 1))) -N 8 shared | tr -d ' '
}
total=$(counts malloc)
[ "$total" -gt 1000 ] || fail "only $total allocations were seen"
echo "allocations: $total of Strobe and the libraries that it answers for;" \
    "$(counts onednn) of oneDNN, which do not fail"
saved=0 refused=0 tried=0
for way in once always; do
    i=0 all=$([ $way = once ] || echo FAULTS_ON=1)
    while [ $i -lt 18 ]; do
        at=$((1 + i * total / 18))
        i=$((i + 1)) tried=$((tried + 1))
        rm -rf run
        set +e
        # shellcheck disable=SC2086
        preloaded FAULTS_CALL=malloc FAULTS_ERROR=ENOMEM FAULTS_AT=$at $all \
            "$STROBE" train $short --out_dir=run >out 2>&1
        code=$?
        set -e
        case $code in
        0) cmp whole/ckpt/000012/model.safetensors run/ckpt/000012/model.safetensors ||
            fail "allocation $at ($way): other weights"
            continue ;;
        1) grep -qiE 'strobe: .*(memory|cannot allocate)' out ||
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
[ $saved -gt 0 ] || fail "of $refused runs without memory none saved a checkpoint"
echo "$refused of $tried runs ended without memory, $saved of them with a checkpoint"
