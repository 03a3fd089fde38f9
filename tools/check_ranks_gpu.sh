#!/bin/sh
# What only several GPUs can show: losses of 1, 2 ... GPUs at one batch, with and without shards;
# checkpoints continued on other numbers of ranks; memory beside the plan; a rank that is killed or
# stopped; at last Strobe beside PyTorch (reference/compare_ddp.py). One line each: ok or FAIL, with
# the value and its limit; the exit code is 1 if one failed. Made to take under nine minutes.
# usage: check_ranks_gpu.sh [--device=cpu]: cpu: the same with processes on the CPU
# STROBE=FILE selects the program, GPUS=N uses N of the GPUs, SMALL=1 uses models of a few thousand
# parameters, ROUNDS=N (1) is for the comparison, ONLY="name ..." runs only these parts: losses zero
# resume memory kill compare.
set -u
export LC_ALL=C STROBE_LOG="${STROBE_LOG:-warning}"
STROBE=${STROBE:-$PWD/strobe} SMALL=${SMALL:-} ONLY=${ONLY:-} GPUS=${GPUS:-}
device=cuda
case "$*" in
'') ;;
--device=cpu) device=cpu ;;
*)
    echo "usage: check_ranks_gpu.sh [--device=cpu]" >&2
    exit 2
    ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
begun=$(date +%s)

said() { # said NAME VALUE LIMIT: ok if the value is a number and at most the limit
    word=FAIL
    case $2 in
    '' | *[!-+.0-9e]*) ;;
    *) if awk "BEGIN { exit !($2 <= $3) }" 2>/dev/null; then word=ok; fi ;;
    esac
    [ $word = ok ] || failed=1
    printf '  %-52s %12s  at most %-8s %s\n' "$1" "${2:-none}" "$3" "$word"
}
broken() { # broken NAME FILE: a command failed; the file has its output
    printf '  %-82s FAIL\n' "$1"
    tail -3 "$2" | sed 's/^/        /'
    failed=1
}
wanted() { [ -z "$ONLY" ] || case " $ONLY " in *" $1 "*) true ;; *) false ;; esac; }

# with RANKS OPTIONS...: the options of a training with that many ranks
with() {
    [ "$1" = 1 ] || printf -- '--ranks=%s --ranks_by=mpi' "$1"
}
# train NAME RANKS OPTIONS...: a run in $work/NAME; its output is in $work/NAME.out
train() {
    name=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2046,SC2086
    "$STROBE" train "$root/configs/shakespeare_char_cpu.conf" --dataset=check \
        --data_dir="$work/data" --out_dir="$work/$name" --overwrite --log_interval=1 \
        --eval_interval=1000000 --eval_iters=1 --device=$device --dtype=float32 --threads=1 \
        --bucket_mb=1 --gradient_accumulation_steps="$most" --max_iters=$steps $size \
        $(with "$ranks") "$@" >"$work/$name.out" 2>&1 ||
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

most=$GPUS
if [ $device = cuda ]; then
    there=$("$STROBE" info | grep -c 'compute capability [0-9.]*, [0-9]* SMs')
    most=${most:-$there}
    [ "$there" -ge "$most" ] && [ "$most" -ge 2 ] || {
        echo "skipped: this machine has $there GPUs, and ${GPUS:-2} are needed"
        exit 77
    }
fi
most=${most:-2}
counts=$(for n in 2 4 8; do [ $n -gt "$most" ] || echo $n; done)
size='' steps=30 vocab=50257
[ -z "$SMALL" ] ||
    size='--n_layer=1 --n_head=2 --n_embd=32 --block_size=16 --batch_size=2' steps=6 vocab=257
awk 'BEGIN { n = split("the quick brown fox jumps over a lazy dog while it counts bytes", w, " ")
    x = 1
    for (i = 0; i < 60000; i++) { x = (x * 1103515245 + 12345) % 2147483648
        printf "%s%s", w[int(x / 65536) % n + 1], i % 9 == 8 ? ".\n" : " " } }' >"$work/text"
"$STROBE" data check --data_dir="$work/data" --from "$work/text" >"$work/data.out" 2>&1 ||
    { broken data "$work/data.out"; exit 1; }
"$STROBE" info | grep -E '^(version|gpu|ranks)|  (driver|NCCL) ' | sed 's/^/  /'

if wanted losses || wanted zero || wanted resume; then train one 1 || exit 1; fi
if wanted losses; then
    for n in $counts; do
        for overlap in flat bucket; do
            train several "$n" --overlap=$overlap &&
                said "losses of $n ranks, $overlap, against one" "$(apart several one)" 1e-5
        done
    done
    [ $device = cpu ] || for n in $counts; do
        train half "$n" --reduce_dtype=bfloat16 &&
            said "losses of $n ranks, summed in bf16, against one" "$(apart half one)" 5e-3
    done
fi
if wanted zero; then
    for zero in 1 3; do
        for n in $counts; do
            train zero "$n" --zero="$zero" &&
                said "losses of $n ranks, zero=$zero, against one" "$(apart zero one)" 1e-5
        done
    done
fi
if wanted resume; then
    half=$((steps / 2))
    for n in 1 2; do
        train saved "$most" --zero=1 --max_iters=$half || continue
        # shellcheck disable=SC2046
        "$STROBE" train "$work/saved" --init_from=resume --max_iters=$steps --zero=0 --ranks="$n" \
            >"$work/saved.out" 2>&1 || { broken "resume on $n" "$work/saved.out"; continue; }
        said "saved by $most ranks, continued by $n, against one" "$(apart saved one)" 1e-5
    done
fi
# used RUN: what the first GPU had in use
used() { sed -n 's/.*"memory_bytes":\([0-9]*\).*/\1/p' "$work/$1/log.jsonl" | sort -n | tail -1; }
# planned OPTIONS...: what a rank needs by its plan
planned() {
    # shellcheck disable=SC2086
    "$STROBE" memory "$root/configs/gpt2_124m.conf" --vocab=$vocab --pad_vocab=64 --batch_size=8 \
        $size --device=cuda --dtype=bfloat16 --json "$@" |
        sed -n '/"total"/ { s/[^0-9]//g; p; q; }'
}
# large NAME RANKS OPTIONS...: GPT-2 124M
large() {
    name=$1 ranks=$2
    shift 2
    # shellcheck disable=SC2046,SC2086
    "$STROBE" train "$root/configs/gpt2_124m.conf" --dataset=check --data_dir="$work/data" \
        --vocab_size=$vocab --pad_vocab=64 --out_dir="$work/$name" --overwrite --device=cuda \
        --dtype=bfloat16 --batch_size=8 --eval_interval=1000000 --eval_iters=1 --max_iters=10 \
        --gradient_accumulation_steps="$ranks" $size $(with "$ranks") "$@" \
        >"$work/$name.out" 2>&1 || { broken "train $name" "$work/$name.out"; return 1; }
}
if [ $device = cuda ] && [ -z "$SMALL" ] && wanted memory; then
    large alone 1 && base=$(($(used alone) - $(planned --gradient_accumulation_steps=1)))
    for zero in 0 1 3; do
        ranks="--ranks=$most --gradient_accumulation_steps=$most --zero=$zero"
        # shellcheck disable=SC2086
        plan=$(planned $ranks)
        large several "$most" --zero=$zero && said \
            "memory of a rank beside the plan, zero=$zero, % (NCCL's included)" "$(awk "BEGIN {
                x = 100 * ($(used several) - ${base:-0} - ${plan:-0}) / ${plan:-1}
                printf \"%.2f\", x < 0 ? -x : x }")" 2
    done
fi
# ended SIGNAL WORDS: a signal to the last rank ends all
ended() {
    run=$work/endless.$1
    train "endless.$1" "$most" --max_iters=1000000 --eval_interval=10 --rank_timeout=5 \
        >"$work/lines" 2>&1 &
    child=$!
    waited=0
    while ! ls "$run"/ckpt/*/DONE >/dev/null 2>&1 && [ $waited -lt 600 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    last=$(pgrep -f "out_dir=$run " | sort -n | tail -n 1)
    from=$(date +%s)
    kill "-$1" "$last"
    wait $child
    said "SIG$1 to a rank: seconds until all ended" $(($(date +%s) - from)) 20
    sentences=$(grep '^strobe: ' "$run.out" | grep -v ': warning: ')
    found=$(printf '%s\n' "$sentences" | grep -c "(process $last on .*) $2")
    said "SIG$1: sentences that do not name process $last" $((found != 1)) 0
    printf '%s\n' "$sentences" | sed 's/^/        /'
    "$STROBE" eval "$run" >"$work/eval.out" 2>&1 && rc=0 || rc=$?
    said "SIG$1: exit code of eval with its last checkpoint" $rc 0
}
if wanted kill; then
    ended KILL "has ended"
    ended STOP "is stopped"
fi
if [ $device = cuda ] && wanted compare; then
    if python3 -c 'import torch' 2>/dev/null; then
        python3 "$root/reference/compare_ddp.py" --strobe="$STROBE" --gpus="$most" \
            --rounds="${ROUNDS:-1}" 2>"$work/compare.out" ||
            broken compare_ddp.py "$work/compare.out"
    else
        echo "  skipped: compare_ddp.py (python3 has no torch)"
    fi
fi
echo "  $(($(date +%s) - begun)) s"
exit $failed
