# Sourced by the scripts that train: a separate folder, a data set and a model that train in a
# moment.
set -eu
STROBE=${STROBE:-$PWD/strobe}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STROBE_LOG="${STROBE_LOG:-warning}"

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# fewer N FEW: N, or FEW with sanitizers, where a step takes five times as long; for numbers of
# steps that are not what is tested.
fewer() {
    case $STROBE in
    */asan/* | */tsan/*) echo "$2" ;;
    *) echo "$1" ;;
    esac
}

# A few words in a fixed pseudo-random order, some thousand characters.
awk 'BEGIN { n = split("aba cab deed fad bee face a ed", w, " "); x = 1
    for (i = 0; i < 1500; i++) { x = (x * 1103515245 + 12345) % 2147483648
        printf "%s%s", w[int(x / 65536) % n + 1], i % 8 == 7 ? "\n" : " " } }' >"$work/text"
"$STROBE" data tiny --data_dir="$work/data" --from "$work/text" >"$work/data.log"

cat >"$work/tiny.conf" <<EOF
dataset = tiny
data_dir = $work/data
n_layer = 2
n_head = 2
n_embd = 32
block_size = 32
batch_size = 4
dropout = 0.1
max_iters = 300
eval_interval = 25
eval_iters = 2
learning_rate = 1e-2
min_lr = 1e-3
warmup_iters = 10
lr_decay_iters = 300
threads = 1
tune = off
dtype = float32
replay = false
pad_vocab = 0
EOF

# expect CODE TEXT COMMAND...: checks the exit code, and that the output has TEXT.
expect() {
    code=$1 words=$2
    shift 2
    set +e
    "$@" >"$work/out" 2>&1
    got=$?
    set -e
    [ "$got" = "$code" ] || fail "exit code $got instead of $code: $*
$(cat "$work/out")"
    grep -qF -- "$words" "$work/out" || fail "'$words' is not printed by: $*
$(cat "$work/out")"
}

# The log without fields that depend on the clock.
timeless() {
    sed '/"kind":"sample"/d; /"kind":"turn"/d; /"kind":"wall"/d; s/,"ms":.*}/}/' "$1/log.jsonl"
}
