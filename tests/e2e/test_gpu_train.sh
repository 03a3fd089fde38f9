#!/bin/sh
# Training on an emulated GPU: losses are the CPU's, in every precision and at every rung. With or
# without replay, interrupted or not, the bits are the same.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
steps=4
short="--max_iters=$steps --eval_interval=2 --eval_iters=1"
short="$short --threads=0 --learning_rate=1e-3 --warmup_iters=2"

# train NAME OPTIONS...
train() {
    run=$1
    shift
    # shellcheck disable=SC2086
    "$STROBE" train tiny.conf --out_dir="$run" $short "$@" >"$run.log" 2>&1 ||
        fail "$run: $(cat "$run.log")"
    [ "$(losses "$run" | wc -l)" = $steps ] || fail "$run: not $steps losses"
}
losses() {
    sed -n 's/.*"kind":"step".*"loss":\([0-9.e+-]*\),.*/\1/p' "$1/log.jsonl"
}

# near A B MOST: checks that no loss differs by more than MOST
near() {
    losses "$1" >a
    losses "$2" >b
    worst=$(paste a b | awk 'function abs(x) { return x < 0 ? -x : x }
        { d = abs($1 - $2); if (d > w) w = d } END { printf "%.2e", w }')
    awk -v w="$worst" -v m="$3" 'BEGIN { exit !(w <= m) }' ||
        fail "losses of $1 and $2 differ by $worst, limit $3"
    echo "$1, $2: losses differ by at most $worst"
}
same() {
    timeless "$1" >a
    timeless "$2" >b
    cmp a b || fail "$2: the log differs from that of $1"
    cmp "$1/ckpt/00000$steps/model.safetensors" "$2/ckpt/00000$steps/model.safetensors" ||
        fail "$2: the weights differ from those of $1"
}

# --- fp32, at every rung, with dropout: the masks are the same as well
train cpu --device=cpu
train f32 --device=cuda
near cpu f32 1e-4
train op --device=cuda --fusion=op --flash=false
near cpu op 1e-4
train primitive --device=cuda --fusion=primitive --flash=false
near cpu primitive 1e-4
train tf32 --device=cuda --dtype=tfloat32
near cpu tf32 1e-2

# --- bf16, with the library's fused epilogues and heads of 64
wide="--n_embd=128 --gelu=tanh --bias=true --pad_vocab=64 --gradient_accumulation_steps=2"
# shellcheck disable=SC2086
{
    train cpu_wide --device=cpu $wide
    train bf16 --device=cuda --dtype=bfloat16 --deterministic=true $wide
    near cpu_wide bf16 2e-2
    grep -q cublaslt bf16/plan.txt || fail "the library is not used"
    train again --device=cuda --dtype=bfloat16 --deterministic=true $wide
    same bf16 again
    # What is chosen on such a GPU.
    STROBE_LOG=info train replay --device=cuda --dtype=auto --replay=auto --deterministic=true $wide
    same bf16 replay
    grep -q '^chosen for speed: dtype=bfloat16, replay=true; to override, --dtype=' replay.log ||
        fail "no word about the choice: $(cat replay.log)"
    [ "$(grep -cxE 'dtype = bfloat16|replay = true' replay/config.conf)" = 2 ] ||
        fail "the choice is not stored: $(cat replay/config.conf)"
    # A comparison chooses nothing but what it varies.
    expect 0 'seed=2' "$STROBE" compare tiny.conf --device=cuda --max_iters=2 --eval_interval=2 \
        --eval_iters=1 --warmup_iters=0 --seed=1,2 --dtype=auto --out_dir=pair
    [ "$(grep -cxE 'dtype = float32|replay = false|pad_vocab = 0' pair/seed=1/config.conf)" = 3 ] ||
        fail "a comparison chose: $(cat pair/seed=1/config.conf)"
}

# --- built-in matmuls where they measured faster; hopper=false leaves them out
kernels=$XDG_CACHE_HOME/strobe/kernels
mkdir -p "$kernels" tuned/strobe
ln -s "$kernels" tuned/strobe/kernels
wide="--n_embd=128 --gelu=tanh --bias=false --pad_vocab=64 --gradient_accumulation_steps=2"
# shellcheck disable=SC2086
(
    export XDG_CACHE_HOME="$work/tuned" EMU_KERNEL_US=300
    wide="$wide --tune=auto --n_layer=1"
    train cpu_plain --device=cpu $wide
    train measured --device=cuda --dtype=bfloat16 $wide
    file=tuned/strobe/tuning-emulated-GPU.json
    "$STROBE" plan tiny.conf --device=cuda --dtype=bfloat16 $wide --json | tr '{' '\n' |
        sed -n -e 's/^.*"matmul": *"\([^"]*\)".*"candidates".*$/\1/p' \
            -e 's/^.*"launch": *"\([0-9a-f]*\)".*$/=\1/p' >launches
    # Puts a built-in candidate in front of the others of each matmul that has one.
    awk 'NR == FNR { if (/^=/) launch[key] = substr($0, 2); else key = $0; next }
        { print }
        /^  ".*": \[$/ { key = $0; gsub(/^  "|": \[$/, "", key)
            if (key in launch) printf "{\"variant\":\"wgmma\",\"us\":0.001,\"spread_us\":0," \
                "\"launch\":\"%s\"},\n", launch[key] }' launches "$file" >faster
    cp faster "$file"
    train own --device=cuda --dtype=bfloat16 $wide
    near cpu_plain own 2e-2
    [ "$(grep -c 'MATMUL *wgmma' own/plan.txt)" -ge 10 ] ||
        fail "matmuls that measured faster are not used"
    train own_replay --device=cuda --dtype=bfloat16 --replay=true $wide
    same own own_replay
    train portable --device=cuda --dtype=bfloat16 --hopper=false $wide
    ! grep -q wgmma portable/plan.txt || fail "hopper=false uses wgmma"
)

# --- matmuls of blocks in 8 bits: quantized values are the CPU's to the last bit, sums are close
for gradients in e5m2 e4m3; do
    narrow="--gradient_accumulation_steps=2 $([ $gradients = e5m2 ] &&
        echo "--bias=true --n_embd=128" || echo "--bias=false")"
    # shellcheck disable=SC2086
    {
        train cpu8_$gradients --device=cpu --dtype=float8 --float8_gradients=$gradients $narrow
        train float8_$gradients --device=cuda --dtype=float8 --float8_gradients=$gradients \
            --deterministic=true $narrow
        near cpu8_$gradients float8_$gradients 1e-2
        [ "$(grep -c 'MATMUL_SCALED *cublaslt' float8_$gradients/plan.txt)" -ge 24 ] ||
            fail "matmuls of two blocks are not in 8 bits"
        [ $gradients = e4m3 ] || grep -q 'QUANTIZE_ADD_LAYERNORM *bf16' float8_e5m2/plan.txt ||
            fail "a norm does not quantize its output itself"
        [ $gradients = e5m2 ] || grep -q 'QUANTIZE_GELU_GRAD *tiles' float8_e4m3/plan.txt ||
            fail "the gradient of GELU is not quantized in the same kernel"
        train replay8_$gradients --device=cuda --dtype=float8 --float8_gradients=$gradients \
            --deterministic=true --replay=true $narrow
        same float8_$gradients replay8_$gradients
    }
done

train replay_f32 --device=cuda --replay=true
same f32 replay_f32

# --- RMSNorm, rotary positions, gated MLPs, and joined matmuls
cs336="--model=cs336 --n_embd=64 --d_ff=96 --dropout=0"
# shellcheck disable=SC2086
{
    train cpu_cs336 --device=cpu $cs336
    train cs336 --device=cuda $cs336
    near cpu_cs336 cs336 1e-4
    train cs336_op --device=cuda --fusion=op --flash=false $cs336
    near cpu_cs336 cs336_op 1e-4
    train cs336_primitive --device=cuda --fusion=primitive --flash=false $cs336
    near cpu_cs336 cs336_primitive 1e-4
    train cs336_bf16 --device=cuda --dtype=bfloat16 --deterministic=true $cs336
    near cpu_cs336 cs336_bf16 2e-2
    grep -q 'RMSNORM_GRAD_ADD *beside' cs336_bf16/plan.txt ||
        fail "dw of an RMS norm takes a second launch"
    train cs336_replay --device=cuda --dtype=bfloat16 --deterministic=true --replay=true $cs336
    same cs336_bf16 cs336_replay
}

# --- a run that stopped half-way resumes and ends in the same bits
"$STROBE" train tiny.conf --out_dir=half $short --device=cuda --max_iters=2 >log 2>&1 ||
    fail "half: $(cat log)"
"$STROBE" train half --init_from=resume --max_iters=$steps >log 2>&1 ||
    fail "half does not resume: $(cat log)"
same f32 half

# --- the trained model is evaluated and sampled
"$STROBE" eval f32 --device=cuda --json >eval.json 2>log || fail "eval: $(cat log)"
logged=$(sed -n '/"kind":"eval"/h; ${x; s/.*"val_loss":\([0-9.]*\)}/\1/p}' f32/log.jsonl)
grep -q "\"val_loss\": $logged" eval.json || fail "eval has $(cat eval.json), the log $logged"
for cache in true false; do
    "$STROBE" sample f32 --device=cuda --num_samples=1 --max_new_tokens=40 --start=a \
        --cache=$cache >text.$cache 2>log ||
        fail "sample: $(cat log)"
done
cmp text.true text.false || fail "the cache changes the text"

# --- memory by the driver equals the plans' prediction, whatever part of a step runs
for phase in inference backward step; do
    for options in --replay=true "--recompute=block:2 --gradient_accumulation_steps=2"; do
        # shellcheck disable=SC2086
        "$STROBE" memory tiny.conf --device=cuda --measure --json --phase=$phase $options \
            >memory.json 2>log || fail "memory: $(cat log)"
        predicted=$(sed -n 's/.*"predicted": *\([0-9][0-9]*\).*/\1/p' memory.json)
        used=$(sed -n 's/.*"measured": *\([0-9][0-9]*\).*/\1/p' memory.json)
        grep -q '"by": "driver"' memory.json || fail "memory: not measured by the driver"
        awk -v f="$predicted" -v t="$used" 'BEGIN { exit !(t >= f && t <= 1.02 * f + 4096) }' ||
            fail "memory, $phase, $options: $predicted bytes predicted, $used used"
    done
done
echo ok
