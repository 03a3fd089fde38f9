#!/bin/sh
# `make check-gpu`, on a machine with a GPU. Checks every kernel variant against the reference,
# Hopper attention at all tile edges, losses against the CPU's, bitwise reproducibility, memory
# against the plan, startup time, trainings that are killed or share the GPU, and runs the sanitizer
# of the CUDA toolkit. One line each: ok or FAIL, with the value and its limit; the exit code is 1
# if one failed. STROBE=FILE selects the program, ATTENTION=FILE test_attention_gpu, TEXT=FILE the
# training text; SMALL=1 uses models of a few thousand parameters, to test this script;
# ONLY="name ..." runs only these parts, and TOOLS="name ..." only these tools of the sanitizer.
set -u
export LC_ALL=C STROBE_LOG="${STROBE_LOG:-warning}"
STROBE=${STROBE:-$PWD/strobe} TEXT=${TEXT:-} SMALL=${SMALL:-} ONLY=${ONLY:-}
ATTENTION=${ATTENTION:-$(dirname "$(readlink -f "$STROBE")")/tests/backend/test_attention_gpu}
configs=$(cd "$(dirname "$0")/../configs" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

said() { # said NAME VALUE LIMIT: ok if the value is a number and at most the limit
    word=FAIL
    case $2 in
    '' | *[!-+.0-9e]*) ;;
    *) if awk "BEGIN { exit !($2 <= $3) }" 2>/dev/null; then word=ok; fi ;;
    esac
    [ $word = ok ] || failed=1
    printf '  %-5s %-52s %12s  at most %s\n' "$word" "$1" "${2:-none}" "$3"
}
broken() { # broken NAME FILE: a command failed; the file has its output
    printf '  FAIL  %s\n' "$1"
    tail -3 "$2" | sed 's/^/        /'
    failed=1
}
wanted() { [ -z "$ONLY" ] || case " $ONLY " in *" $1 "*) true ;; *) false ;; esac; }
chosen() { # those of the tools that TOOLS names
    for one in "$@"; do
        case " ${TOOLS:-$one} " in *" $one "*) echo "$one" ;; esac
    done
}
seconds() { date +%s.%N; }

# sanitized NAME COMMAND...: under $tool
sanitized() {
    name="$tool, $1"
    shift
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$@" >"$work/san.out" 2>&1 && rc=0 || rc=$?
    said "$name: exit code" "$rc" 0
    [ "$rc" = 0 ] || broken "$name" "$work/san.out"
}

# train NAME OPTIONS...: a run in $work/NAME; its output is in $work/NAME.out
train() {
    name=$1
    shift
    "$STROBE" train "$configs/shakespeare_char_cpu.conf" --dataset=check --data_dir="$work/data" \
        --out_dir="$work/$name" --overwrite --log_interval=1 --eval_interval=1000000 \
        --eval_iters=1 $size "$@" >"$work/$name.out" 2>&1 ||
        { broken "train $name" "$work/$name.out"; return 1; }
}
# The largest relative difference of two runs' losses, over all steps of the first.
apart() {
    for run in "$1" "$2"; do
        sed -n 's/.*"iter":\([0-9]*\),"loss":\([-+.0-9e]*\),.*"ms".*/\1 \2/p' \
            "$work/$run/log.jsonl" >"$work/$run.losses"
    done
    awk 'NR == FNR { a[$1] = $2; steps++; next }
        ($1 in a) { d = (a[$1] - $2) / a[$1]; if (d < 0) d = -d; if (d > most) most = d; n++ }
        END { if (n < 2 || n != steps) print "none"; else printf "%.2g\n", most }' \
        "$work/$1.losses" "$work/$2.losses"
}
same_bits() { # same_bits NAME RUN RUN: the last checkpoints' weights and moments
    for file in model.safetensors optimizer.safetensors; do
        a=$(ls "$work/$2"/ckpt/*/$file | tail -1) b=$(ls "$work/$3"/ckpt/*/$file | tail -1)
        cmp -s "$a" "$b" || { said "$1: $file, files that differ" 1 0; return; }
    done
    said "$1: files that differ" 0 0
}

if [ -z "$TEXT" ]; then
    TEXT=$work/text
    awk 'BEGIN {
        n = split("the quick brown fox jumps over a lazy dog while Strobe counts every byte",
            w, " ")
        x = 1
        for (i = 0; i < 60000; i++) { x = (x * 1103515245 + 12345) % 2147483648
            printf "%s%s", w[int(x / 65536) % n + 1], i % 9 == 8 ? ".\n" : " " } }' >"$TEXT"
fi
"$STROBE" data check --data_dir="$work/data" --from "$TEXT" >"$work/data.out" 2>&1 ||
    { broken data "$work/data.out"; exit 1; }
size='' steps=50 more=200
[ -z "$SMALL" ] ||
    size='--n_layer=1 --n_head=2 --n_embd=32 --block_size=16 --batch_size=2' steps=6 more=6
"$STROBE" info | grep -iE '^(gpu|strobe|cuda|driver)' | sed 's/^/  /'

if wanted rows; then
    "$STROBE" check --device=cuda >"$work/check.out" 2>&1 && rc=0 || rc=$?
    if [ "$rc" = 0 ]; then
        said "check: rows that differ from the reference" 0 0
    else
        broken "strobe check --device=cuda" "$work/check.out"
    fi
fi
hopper() { "$STROBE" info | grep -q 'compute capability 9.0'; }
if wanted attention && hopper; then
    "$ATTENTION" ${SMALL:+--small} >"$work/attention.out" 2>&1 && rc=0 || rc=$?
    grep '^  ' "$work/attention.out"
    failures=$(sed -n 's/^[0-9]* tests, \([0-9]*\) failures$/\1/p; s/^skipped.*/skipped/p' \
        "$work/attention.out" | tail -1)
    said "attention's rows for Hopper: failures" "$failures" 0
    [ "$rc" = 0 ] || broken "$ATTENTION" "$work/attention.out"
fi
if wanted losses; then
    train cpu --device=cpu --max_iters="$more"
    train fp32 --device=cuda --max_iters="$steps" &&
        said "losses of $steps steps, fp32 against the CPU" "$(apart fp32 cpu)" 1e-4
    train again --device=cuda --max_iters="$more" --recompute=block --replay=true &&
        said "the same, $more steps, recompute, replay" "$(apart again cpu)" 1e-4
    train tf32 --device=cuda --max_iters="$more" --dtype=tfloat32 &&
        said "the same, TF32" "$(apart tf32 cpu)" 1e-3
    for flash in true false; do
        train bf16 --device=cuda --max_iters="$more" --dtype=bfloat16 --flash=$flash \
            --replay=true &&
            said "losses of $more steps, bf16, flash=$flash" "$(apart bf16 cpu)" 2e-2
    done
fi
if wanted dropout; then
    train cpu --device=cpu --max_iters="$steps" --dropout=0.2
    for flash in true false; do
        train drop --device=cuda --max_iters="$steps" --dropout=0.2 --flash=$flash &&
            said "dropout, fp32, flash=$flash against the CPU" "$(apart drop cpu)" 1e-3
    done
fi
# deterministic NAME DTYPE OPTIONS...: trains deterministically, with dropout
deterministic() {
    run=$1 dtype=$2
    shift 2
    train "$run" --device=cuda --dtype="$dtype" --deterministic=true --dropout=0.2 \
        --max_iters="$steps" "$@"
}
if wanted bits; then
    for dtype in float32 bfloat16; do
        for run in one two; do deterministic $run $dtype; done
        same_bits "two runs, deterministic, $dtype" one two
        deterministic two $dtype --replay=true && same_bits "replayed and not, $dtype" one two
        deterministic two $dtype --recompute=block &&
            same_bits "recomputed and not, $dtype" one two
    done
    # At longer sequences the fastest attention backward adds in no fixed order, so deterministic
    # runs use another variant.
    [ -n "$SMALL" ] || for run in one two; do
        deterministic $run bfloat16 --block_size=320 --batch_size=4
    done
    [ -n "$SMALL" ] || same_bits "two runs, deterministic, bfloat16, T 320" one two
fi
# memory LIMIT OPTIONS...: device memory of two steps, measured against planned
memory() {
    limit=$1
    shift
    name="memory apart, %:$(printf ' %s' "$@" | sed 's/--[a-z]*_size=/T /; s/--//g')"
    # shellcheck disable=SC2086
    "$STROBE" memory "$configs/gpt2_124m.conf" --vocab=50257 --pad_vocab=64 \
        --gradient_accumulation_steps=1 --batch_size=16 $size --device=cuda --dtype=bfloat16 \
        --replay=true --measure --json "$@" >"$work/memory.json" 2>"$work/memory.out" ||
        { broken "$name" "$work/memory.out"; return; }
    plan=$(sed -n 's/.*"predicted": *\([0-9][0-9]*\).*/\1/p' "$work/memory.json")
    took=$(sed -n 's/.*"measured": *\([0-9][0-9]*\).*/\1/p' "$work/memory.json")
    apart=$(awk "BEGIN {
        x = 100 * (${took:-0} / ${plan:-1} - 1); printf \"%.2f\", x < 0 ? -x : x }")
    said "$name" "$apart" "$limit"
}
if wanted memory; then
    lengths='256 1024'
    [ -z "$SMALL" ] || lengths='8 16'
    for flash in false true; do
        for length in $lengths; do
            for recompute in none block; do
                memory 2 --block_size="$length" --flash=$flash --recompute=$recompute
            done
        done
    done
fi
if wanted start; then
    cache=$work/cache
    for which in first second; do
        from=$(seconds)
        XDG_CACHE_HOME=$cache "$STROBE" bench "$configs/gpt2_124m.conf" --vocab=50257 \
            --pad_vocab=64 --gradient_accumulation_steps=1 --device=cuda --dtype=bfloat16 \
            --warmup=0 --steps=1 $size >"$work/start.out" 2>&1 || broken "start" "$work/start.out"
        took=$(awk "BEGIN { printf \"%.1f\", $(seconds) - $from }")
        case $which in
        first) said "GPT-2 124M, first start to first step, seconds" "$took" 30 ;;
        second) said "the same, second start" "$took" 2 ;;
        esac
    done
fi
if wanted faults; then
    # Trainings that are killed, share the GPU, or find their cache of kernels damaged.
    disturbed() { deterministic "$1" bfloat16 --replay=true --eval_interval=10; }
    before=${XDG_CACHE_HOME:-$HOME/.cache}
    export XDG_CACHE_HOME="$work/cache"
    kills=20 differ=0 hits=0
    [ -z "$SMALL" ] || kills=2
    disturbed whole && from=$(seconds) && disturbed whole &&
        took=$(awk "BEGIN { print $(seconds) - $from }")
    for i in $(seq $kills); do
        rm -rf "$work/killed"
        disturbed killed >/dev/null 2>&1 &
        child=$!
        sleep "$(awk "BEGIN { printf \"%.3f\", ${took:-1} * $i / $kills }")"
        pkill -KILL -f "out_dir=$work/killed" && hits=$((hits + 1))
        wait $child
        [ ! -e "$work/killed/config.conf" ] ||
            "$STROBE" train "$work/killed" --init_from=resume >"$work/killed.out" 2>&1 ||
            broken "resume after a kill" "$work/killed.out"
        [ -e "$work/killed/config.conf" ] || disturbed killed
        cmp -s "$work/whole/ckpt/"*"$steps/model.safetensors" \
            "$work/killed/ckpt/"*"$steps/model.safetensors" || differ=$((differ + 1))
    done
    said "resumed after $hits kills: trainings that differ" "$differ" 0
    disturbed one &
    child=$!
    disturbed two
    wait $child
    same_bits "one of two trainings at once" whole one
    same_bits "the other one" whole two
    while [ ! -e "$work/stop" ]; do
        file=$(ls "$XDG_CACHE_HOME/strobe/kernels/"* 2>/dev/null | shuf -n 1)
        size=$(stat -c %s "$file" 2>/dev/null || echo 0)
        case $((size % 3)) in
        0) : >"$file" ;;
        1) head -c $((size / 2)) "$file" >"$work/cut" && cp "$work/cut" "$file" ;;
        2) printf x | dd of="$file" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null ;;
        esac
        sleep 0.05
    done 2>/dev/null &
    child=$!
    for i in 1 2 3; do
        disturbed one && same_bits "kernel cache damaged in use, $i" whole one
    done
    : >"$work/stop"
    wait $child
    XDG_CACHE_HOME=$before
fi
if wanted sanitizer; then
    PATH=$PATH:/usr/local/cuda/bin
    if command -v compute-sanitizer >/dev/null; then
        for tool in $(chosen memcheck racecheck); do
            for dtype in float32 bfloat16; do
                for flash in true false; do
                    sanitized "$dtype, flash=$flash" \
                        "$STROBE" train "$configs/shakespeare_char_cpu.conf" --dataset=check \
                        --data_dir="$work/data" --out_dir="$work/san" --overwrite \
                        --eval_interval=1000000 --eval_iters=1 --n_layer=1 --n_head=2 --n_embd=32 \
                        --block_size=40 --batch_size=2 --dropout=0.1 --max_iters=2 --device=cuda \
                        --dtype=$dtype --flash=$flash
                done
            done
            for op in ATTENTION ATTENTION_GRAD ADD_LAYERNORM LAYERNORM_GRAD_DROP EMBED_GRAD \
                CROSS_ENTROPY_BOTH CHAIN; do
                sanitized "every row of $op" "$STROBE" check --device=cuda --op=$op
            done
        done
        # Kernels for Hopper; only they use barriers in shared memory (synccheck).
        for tool in $(chosen memcheck racecheck synccheck); do
            hopper || continue
            sanitized "attention, T 320" "$ATTENTION" races
            for op in LINEAR_GELU MATMUL_GELU_GRAD MATMUL; do
                sanitized "$op wgmma" "$STROBE" check --device=cuda --op=$op --row=wgmma
            done
        done
    else
        echo "  skipped: compute-sanitizer is not on this machine"
    fi
fi
exit $failed
