#!/bin/sh
# Faults of a GPU, its driver and its libraries, on an emulated GPU: each gives one message that
# says what to do next.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
mkdir -p cache/strobe
mine=cache/strobe/kernels
ln -s "$kernels" $mine
export XDG_CACHE_HOME="$work/cache"
short="tiny.conf --max_iters=1 --eval_interval=1 --eval_iters=1 --threads=0 --overwrite"
train="$STROBE train $short --out_dir=run"
without() {
    names=$1
    shift
    env LD_PRELOAD="$emulator/without.so" EMU_WITHOUT="$names" "$@"
}
# sentence CODE SENTENCE COMMAND...: checks the exact message; no other line begins with `strobe: `
sentence() {
    code=$1 words=$2
    shift 2
    expect "$code" "$words" "$@"
    grep -qxF -- "strobe: $words" out || fail "not exactly '$words' is printed by: $*
$(cat out)"
}

# --- no GPU
none='no NVIDIA GPU can be used'
sentence 1 "$none: libcuda.so.1 is not on this machine; use device=cpu" without libcuda $train \
    --device=cuda
sentence 1 "$none: the driver reports: no CUDA-capable device is detected; use device=cpu" \
    env EMU_DEVICES=0 $train --device=cuda
sentence 1 'there is no cuda:1; this machine has 1 GPU, counted from 0' $train --device=cuda:1
expect 0 "gpu        none: $none: libcuda.so.1 is not on this machine; use device=cpu" \
    without libcuda "$STROBE" info
without 'libcuda libcublasLt' "$STROBE" info --json >info.json
grep -q "\"gpu\": \"none: $none: libcuda.so.1 is not on this machine; use device=cpu\"" info.json ||
    fail "info --json: $(cat info.json)"

# --- an old driver: missing functions; a CUDA version that it does not support
mkdir old
echo 'int cuInit(unsigned flags) { return (int)flags; }' |
    ${CC:-cc} -shared -fPIC -x c -o old/libcuda.so.1 -
old="it has no cuDriverGetVersion; install a newer one"
sentence 1 "$none: libcuda.so.1 is too old: $old; use device=cpu" \
    env LD_LIBRARY_PATH="$work/old:$LD_LIBRARY_PATH" $train --device=cuda
mkdir newer
ln -s "$emulator/libnvrtc.so.13" newer/libnvrtc.so.12 # of CUDA 13 all the same
message='the driver is too old for this NVRTC: it supports CUDA 12.4, kernels were compiled for'
message="$message CUDA 13, and it reports: device kernel image is invalid"
message="$message (CUDA_ERROR_INVALID_IMAGE); update the driver, or install the NVRTC of CUDA 12"
expect 1 "$message" \
    env EMU_DRIVER=12040 LD_LIBRARY_PATH="$work/newer:$LD_LIBRARY_PATH" \
    "$STROBE" check --device=cuda --op=gelu

# --- no NVRTC: refused; device=auto uses the CPU and says why
missing='libnvrtc.so.13 is not on this machine'
why="$missing (NVRTC of CUDA 12 or 13, Debian: libnvrtc)"
sentence 1 "kernels cannot be compiled: $why; use device=cpu" without libnvrtc $train --device=cuda
why="$missing; kernels cannot be compiled, so no GPU can be used"
expect 0 "the CPU is used, not the GPU: NVRTC: $why" without libnvrtc $train
[ "$(grep -c 'the CPU is used' out)" = 1 ] || fail "it is printed more than once: $(cat out)"
grep -q '"device": null' run/env.json || fail "not trained on the CPU: $(cat run/env.json)"

# --- no cuBLASLt: matmuls run on built-in kernels
slower='matmuls run on built-in kernels without tensor cores, many times slower'
expect 0 "cuBLASLt   missing: libcublasLt.so.13 is not on this machine; $slower" \
    without libcublasLt "$STROBE" info
expect 0 '1 iteration' without libcublasLt $train --device=cuda --n_layer=1 --batch_size=1
grep -q tiles run/plan.txt || fail "no matmuls without the library: $(cat run/plan.txt)"

# --- a GPU below 8.0
why='emulated GPU has compute capability 7.5 and 8.0 is needed'
sentence 1 "this device does not support dtype=bfloat16: $why; use dtype=float32" \
    env EMU_ARCH=75 $train --device=cuda --dtype=bfloat16
why='emulated GPU has compute capability 8.6 and 8.9 is needed'
sentence 1 "this device does not support dtype=float8: $why; use dtype=bfloat16" \
    env EMU_ARCH=86 $train --device=cuda --dtype=float8
why="its matmuls need cuBLASLt, which is not installed"
sentence 1 "this device does not support dtype=float8: $why; use dtype=bfloat16" \
    without libcublasLt $train --device=cuda --dtype=float8
expect 0 '1 iteration' env EMU_ARCH=75 $train --device=cuda
sentence 1 'emulated GPU is too old (compute capability 6.1; 7.5 is needed); use device=cpu' \
    env EMU_ARCH=61 $train --device=cuda

# --- not enough memory: reported before any is allocated, with a batch size that fits and runs
small="env EMU_MEMORY=35000000 $train --device=cuda"
expect 1 'of the device'"'"'s memory, and 33.4 MiB are free on it: ' $small --batch_size=64
batch=$(sed -n 's/.* are missing; --batch_size=\([0-9]*\) is the largest that fits; .*/\1/p' out)
[ -n "$batch" ] || fail "no batch size that fits is printed: $(cat out)"
expect 0 '' $small --batch_size="$batch"
expect 1 ' are missing; ' $small --batch_size=$((batch + 1))
expect 1 'are missing, and no batch fits; try a smaller model or block_size' \
    env EMU_MEMORY=100000 $train --device=cuda

# --- damaged compiled kernels, in a copy of the cache, are compiled again
$train --device=cuda --out_dir=whole >log 2>&1 || fail "$(cat log)"
rm $mine
cp -r "$kernels" $mine 2>/dev/null || : # another test may rename a file meanwhile
for name in attention_f32 norm loss; do
    for module in $mine/$name-*; do
        size=$(wc -c <"$module") || fail "no module is called $name"
        case $name in
        norm) printf 'x' | dd of="$module" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null ;;
        loss) head -c $((size / 2)) "$module" >cut && cp cut "$module" ;;
        *) : >"$module" ;;
        esac
    done
done
$train --device=cuda >log 2>&1 || fail "damaged kernels: $(cat log)"
cmp whole/ckpt/000001/model.safetensors run/ckpt/000001/model.safetensors ||
    fail "damaged kernels were used"
expect 0 '' $train --device=cuda
grep -q kernels out && fail "kernels that were compiled again are not cached: $(cat out)"

# --- kernels that another user could have written are not used; the run goes on without them
chmod 0666 "$mine"/norm-*
expect 0 "is not used, because other users can write " $train --device=cuda
used=$(find "$mine" -name 'norm-*' -perm 600 | head -n 1)
[ -n "$used" ] || fail "no file was replaced: $(ls -l "$mine"/norm-*)"
chmod 0777 "$mine"
rm "$used"
expect 0 "compiled kernels are not kept: " $train --device=cuda
[ ! -e "$used" ] || fail "a kernel was written where others can write"
cmp whole/ckpt/000001/model.safetensors run/ckpt/000001/model.safetensors || fail "other weights"
chmod 0755 "$mine"
# damaged while a run uses it: what was read is in memory, and was verified there
$train --device=cuda --max_iters=20 >log 2>&1 &
sleep 0.5
for module in "$mine"/*; do : >"$module"; done
wait $! || fail "kernels damaged in use: $(cat log)"
rm -r $mine
ln -s "$kernels" $mine

# --- a failed launch: its node, the shapes, CUDA's message
train="$train --eval_interval=2 --max_iters=2"
node='node [0-9]* ATTENTION_GRAD h\.1\.attn f32 (4,32,32), f32 (4,32,96), f32 (4,32,32)'
node="$node, f32 (4,2,32), i32 (1) -> f32 (4,32,96)"
# expect_message PATTERN COMMAND...: checks the whole message
expect_message() {
    pattern=$1
    shift
    expect 1 '' "$@"
    grep -qx -- "strobe: $pattern" out || fail "'$pattern' is not printed by: $*
$(cat out)"
}
launch='the GPU cannot launch it: too many resources requested for launch'
launch="kernel attention_grad_keys of attention_grad_f32\.cu: $launch"
expect_message "iteration 0: $node: $launch (CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)" \
    env EMU_FAIL=attention_grad_keys $train --device=cuda

# --- a fault while a kernel runs: the kernel is unknown; the message says how to find it, and that
# works
illegal='an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)'
advice='run again with --check_nan=true, which waits for each kernel and names the one that fails'
failed="one of the kernels in flight on the GPU failed: $illegal; $advice"
for replay in false true; do
    expect_message "\(iteration [01]: \)\{0,1\}$failed" \
        env EMU_FAULT=attention_grad_keys $train --device=cuda --replay=$replay
done
kernels='attention_grad_delta, attention_grad_queries, attention_grad_keys'
expect_message "iteration 0: $node: one of the kernels $kernels failed: $illegal" \
    env EMU_FAULT=attention_grad_keys $train --device=cuda --check_nan=true
expect_message "GELU, erf: kernel gelu failed: $illegal" env EMU_FAULT=gelu "$STROBE" check \
    --device=cuda --op=gelu

# --- the device is lost in the middle of a run: one sentence, which tells where to continue
later="env EMU_FAULT=attention_grad_keys EMU_FAULT_AFTER=25"
long="$STROBE train tiny.conf --max_iters=20 --eval_interval=4 --eval_iters=1 --threads=0"
long="$long --overwrite --device=cuda --out_dir=lost"
saved='the checkpoint of iteration [0-9]* is saved: `strobe train lost --init_from=resume`'
saved="$saved continues from it"
advice='`dmesg | grep Xid` and `nvidia-smi -q` tell more, and a reset (`nvidia-smi -r`) or another'
for code in 214 46 999; do
    lost="the GPU is lost to this program: .* (CUDA_ERROR_.*); $advice GPU helps"
    expect_message ".*$lost; $saved" $later EMU_FAULT_CODE=$code $long
done
failed='one of the kernels in flight on the GPU failed: .*(CUDA_ERROR_LAUNCH_FAILED)'
expect_message ".*$failed.*; $saved" $later EMU_FAULT_CODE=719 $long
expect 0 '' "$STROBE" train lost --init_from=resume
echo ok
