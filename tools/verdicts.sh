#!/bin/sh
# Planted ties and planted differences, each compared many times while another program takes one
# core in bursts: what `compare`, `profile` and a grid say of them. Prints one table row per kind.
#
# usage: tools/verdicts.sh [OPTION ...]
#   --times=N          trials of each (30)
#   --kinds=...        which commands (all three)
#   --folder=DIR       where runs and results go (a temporary folder, removed at the end)
#   --quiet-machine    without the other program
#
# same plan      two learning rates (bench, which has no data: two seeds): equal plans
# tie            two beta2 of AdamW: other plans, the same speed
# difference     d_ff so that a step has about a tenth more work
#
# A trial of a tie fails if a winner is named; one of a difference fails if it is turned round. The
# exit code is 1 if one fails, or if less than nine of ten differences are found or uncertain.
set -eu
STROBE=${STROBE:-$PWD/strobe}
times=30 kinds=compare,profile,bench folder= burst=true
for word; do
    case $word in
    --times=*) times=${word#*=} ;;
    --kinds=*) kinds=$(echo "${word#*=}" | tr , ' ') ;;
    --folder=*) folder=${word#*=} ;;
    --quiet-machine) burst=false ;;
    *) echo "usage: tools/verdicts.sh [--times=N] [--kinds=compare,profile,bench] [--folder=DIR]" \
        "[--quiet-machine]" >&2; exit 2 ;;
    esac
done
kinds=$(echo "$kinds" | tr , ' ')
own=false
[ -n "$folder" ] || { folder=$(mktemp -d); own=true; }
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
load=
finish() {
    [ -z "$load" ] || kill "$load" 2>/dev/null || :
    [ $own = false ] || rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

# --- the other program: busy for 0.2 to 2 s, idle for 0.2 to 2 s, on any core
if [ $burst = true ]; then
    awk 'BEGIN {
        srand(7)
        for (;;) {
            end = now() + 0.2 + 1.8 * rand()
            while (now() < end) for (i = 0; i < 20000; i++) x += i * i
            system("sleep " (0.2 + 1.8 * rand()))
        }
    }
    function now(   line) { # seconds, with hundredths
        getline line <"/proc/uptime"
        close("/proc/uptime")
        return line + 0
    }' &
    load=$!
fi

# --- a model whose step takes some milliseconds
awk 'BEGIN { n = split("aba cab deed fad bee face a ed", w, " "); x = 1
    for (i = 0; i < 8000; i++) { x = (x * 1103515245 + 12345) % 2147483648
        printf "%s%s", w[int(x / 65536) % n + 1], i % 8 == 7 ? "\n" : " " } }' >"$folder/text"
[ -d "$folder/data/tiny" ] ||
    "$STROBE" data tiny --data_dir="$folder/data" --from "$folder/text" >"$folder/data.log" 2>&1
cat >"$folder/model.conf" <<END
model = cs336
dataset = tiny
data_dir = $folder/data
n_layer = 2
n_head = 2
n_embd = 64
block_size = 64
batch_size = 4
d_ff = 256
dropout = 0
max_iters = 480
eval_interval = 480
eval_iters = 1
threads = 1
replay = false
END
export STROBE_LOG=warning

# what KIND CASE: the values of the key that is varied
keys() {
    case $2 in
    same-plan) [ "$1" = bench ] && echo --seed=1,2 || echo --learning_rate=1e-3,2e-3 ;;
    tie) echo --beta2=0.95,0.96 ;;
    difference) echo --d_ff=256,320 ;;
    esac
}

# verdict KIND FILE: faster, slower, same, uncertain, equal; of the second beside the first
verdict() {
    case $1 in
    compare | profile)
        if grep -q 'has the same plan as' "$2"; then echo equal
        elif grep -q 'cannot be told apart in speed\|measured too few' "$2"; then echo uncertain
        elif grep -q 'times as slow as' "$2"; then echo slower
        elif grep -q 'times as fast as' "$2"; then echo faster
        elif grep -q 'is as fast as' "$2"; then echo same
        else echo none; fi ;;
    bench)
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "verdict") at = i }
            NR > 1 && $at != "" { v = $at }
            END {
                if (v == "same plan") v = "equal"
                if (v == "cannot tell") v = "uncertain"
                print v == "" ? "none" : v
            }' "$2" ;;
    esac
}

# run KIND CASE NUMBER: one trial
run() {
    key=$(keys "$1" "$2")
    out=$folder/out/$1-$2-$3
    mkdir -p "$folder/out"
    case $1 in
    compare) "$STROBE" compare "$folder/model.conf" "$key" --overwrite --out_dir="$folder/run" ;;
    profile) "$STROBE" profile "$folder/model.conf" "$key" --trace-steps=0 \
        --out_dir="$folder/profile" ;;
    bench) "$STROBE" bench "$folder/model.conf" "$key" --phase=step --steps=60 --warmup=5 \
        --order=rounds --csv --out_dir="$folder/bench" ;;
    esac >"$out" 2>"$out.log" || { echo "$1 $2 failed: $(cat "$out.log")" >&2; exit 1; }
    verdict "$1" "$out"
}

bad=0
printf '%-8s %-11s %6s %6s %10s %7s %7s %6s  %s\n' command case equal same uncertain faster slower \
    none 'what it means'
for kind in $kinds; do
    for case in same-plan tie difference; do
        equal=0 same=0 uncertain=0 faster=0 slower=0 none=0 i=0
        while [ $i -lt "$times" ]; do
            v=$(run "$kind" $case $i) || exit 1
            eval "$v=\$(($v + 1))"
            i=$((i + 1))
        done
        word=ok
        case $case in
        same-plan) [ $equal = "$times" ] || word=FAILED ;;
        tie) [ $((faster + slower + none)) = 0 ] || word=FAILED ;;
        difference)
            [ $((faster + same + none)) = 0 ] &&
                [ $((10 * (slower + uncertain))) -ge $((9 * times)) ] || word=FAILED ;;
        esac
        [ $word = ok ] || bad=1
        printf '%-8s %-11s %6d %6d %10d %7d %7d %6d  %s\n' "$kind" $case $equal $same $uncertain \
            $faster $slower $none "$word"
    done
done
exit $bad
