#!/bin/sh
# `make tsan`: runs the multithreaded code under ThreadSanitizer. gcc's OpenMP library is not
# instrumented, so the sanitizer would report a race in every parallel region. LLVM's library runs
# the same programs (it also implements gcc's entry points) and informs the sanitizer, through
# Archer, when threads start, synchronize and end (Atzeni et al., ARCHER, IPDPS 2016). oneDNN is
# left out because the sanitizer does not see its memory accesses: matmuls use our own loops. With
# isa=plain every memory access is instrumented; vector instructions hide some.
# usage: tsan.sh [--ranks] [THREADS...]     default: 2 and 4; --ranks: only ranks that are threads
cd "$(dirname "$0")/.." || exit 1
# Without address space randomization, because the kernel may spread addresses more widely than the
# sanitizer's shadow memory supports.
if [ -z "${TSAN_KEPT_TOGETHER-}" ] && setarch "$(uname -m)" -R true 2>/dev/null; then
    TSAN_KEPT_TOGETHER=1 exec setarch "$(uname -m)" -R tools/tsan.sh "$@"
fi
only_ranks=
[ "${1-}" != --ranks ] || { only_ranks=1 && shift; }
[ $# -gt 0 ] || set -- 2 4
tools/install_deps.sh --tsan || exit 1
tests=tests/backend/test_communicator
[ "$only_ranks" ] || tests="$tests tests/backend/test_attention tests/backend/test_attention_bf16
    tests/backend/test_matmul tests/backend/test_vector"
build=build/tsan
make -s -j "$(nproc)" MODE=tsan $build/strobe $(for t in $tests; do echo $build/$t; done) || exit 1

archer=$(ls /usr/lib/llvm-*/lib/libarcher.so | sort | tail -n 1)
export KMP_BLOCKTIME=0 OMP_TOOL_LIBRARIES="$archer" STROBE_LOG=error
export STROBE="$PWD/$build/strobe" STROBE_BUILD="$PWD/$build"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66 halt_on_error=1 ${TSAN_OPTIONS-}"
. tests/e2e/tiny.sh
set +e
passed=0 failed=0 limit='timeout 600'

# try NAME COMMAND...: a line; all that was said where a race or another failure was found
try() {
    name=$1
    shift
    start=$(date +%s)
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "  ok    $name ($(($(date +%s) - start)) s)"
    else
        failed=$((failed + 1))
        echo "  FAIL  $name"
        cat "$work/log"
    fi
}

# Wide enough that every kernel shares its work. What has no kernels on this machine has no plan
# either.
train() {
    shape='--n_embd=64 --block_size=64 --max_iters=3 --eval_iters=1'
    if "$STROBE" plan "$work/tiny.conf" $shape "$@" >"$work/log" 2>&1; then
        try "train $*" $limit "$STROBE" train "$work/tiny.conf" --out_dir="$work/run" --overwrite \
            $shape "$@"
    else
        echo "  --    train $*: $(cat "$work/log")"
    fi
}

# ends CODE DEED OPTIONS...: a training of ranks that are threads, with two buckets of gradients,
# evaluations and checkpoints. DEED is done after its first steps; it ends with CODE.
ends() {
    code=$1 deed=$2
    shift 2
    rm -rf "$work/run"
    "$STROBE" train "$work/tiny.conf" --out_dir="$work/run" --n_embd=128 --block_size=16 \
        --batch_size=1 --bucket_mb=1 --ranks=2 --ranks_by=threads --gradient_accumulation_steps=2 \
        --eval_interval=2 --eval_iters=1 --sample_interval=0 --max_iters=1000000 "$@" &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ "$(cat "$work/run/log.jsonl" 2>/dev/null | wc -l)" -lt 6 ]
    do
        sleep 0.1
    done
    $deed
    $limit tail --pid=$pid -f /dev/null || kill -KILL $pid
    wait $pid
    got=$?
    [ $got = "$code" ] || { echo "exit code $got instead of $code" && return 1; }
}
interrupt() { kill -INT $pid; }

# ranks OPTIONS...: Ctrl-C ends it, because the text of a training that is done takes minutes.
ranks() { try "ranks $*" ends 130 interrupt "$@"; }

# A sanitizer that finds nothing may be one that sees nothing.
race="$work/race" library=${archer%/*} OMP_NUM_THREADS=4
export OMP_NUM_THREADS
${CC:-gcc} -O1 -g -fopenmp -fsanitize=thread -c -o "$race.o" tools/tsan_race.c || exit 1
${CC:-gcc} -fsanitize=thread -o "$race" "$race.o" "-L$library" "-Wl,-rpath,$library" -lomp || exit 1
try 'no race is found where there is none' "$race"
try 'a planted race is found' sh -c '"$0" planted >"$0.log" 2>&1; grep "data race" "$0.log"' "$race"

for t in $tests; do try "$t" $limit "$build/$t"; done

# Each row has what no row before it has.
ranks --overlap=none
ranks --overlap=flat --isa=plain
ranks --overlap=parameter
ranks --overlap=bucket --isa=plain
ranks --gradient_accumulation_steps=4 --dtype=bfloat16
ranks --ranks=3 --gradient_accumulation_steps=3 --threads=2
ranks --ranks=4 --gradient_accumulation_steps=8 --isa=plain --fusion=primitive --flash=false
ranks --zero=1 --isa=plain
ranks --zero=1 --overlap=flat --ranks=3 --gradient_accumulation_steps=6
ranks --zero=3 --isa=plain
ranks --zero=3 --overlap=none --threads=2
ranks --zero=3 --ranks=4 --gradient_accumulation_steps=8 --recompute=block
ranks --zero=3 --check_nan=true --poison=true
train --n_embd=32 --block_size=32 --ranks=2 --ranks_by=threads --gradient_accumulation_steps=2 \
    --zero=3
try 'a rank with NaN' ends 1 : --learning_rate=10 --weight_decay=10 --grad_clip=0 \
    --decay_lr=false --check_nan=true

if [ "$only_ranks" ]; then
    set --
else
    for t in tests/e2e/test_tokenize.sh tests/e2e/test_corpus.sh; do try $t $limit sh $t; done
fi
for threads in "$@"; do
    export OMP_NUM_THREADS="$threads"
    for isa in auto plain; do
        for dtype in float32 bfloat16; do
            for flash in true false; do
                train --threads="$threads" --isa=$isa --dtype=$dtype --flash=$flash
            done
        done
    done
    train --threads="$threads" --fusion=op
    train --threads="$threads" --fusion=primitive --flash=false
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
