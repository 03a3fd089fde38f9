#!/bin/sh
# A kernel of the user's as a rung of `strobe lab`, in C on a CPU and in CUDA on an emulated GPU: a
# template is right; one that is wrong at the edge, writes beyond, crashes, never ends or does not
# compile gets its sentence, and the other rungs keep their times.
# test: slow; the GPU is emulated
. "$(dirname "$0")/tiny.sh"
STROBE_BUILD=${STROBE_BUILD:-$PWD/build/release}
cd "$work"
# shows CODE PATTERN COMMAND...: checks the exit code, and that the output has the pattern.
shows() {
    code=$1 pattern=$2
    shift 2
    expect "$code" "" "$@"
    grep -q -e "$pattern" out || fail "no '$pattern' by: $*: $(cat out)"
}
# own CODE PATTERN FILE [WORD...]: copy with that kernel
own() {
    code=$1 pattern=$2 file=$3
    shift 3
    shows "$code" "$pattern" $STROBE lab copy --kernel="$file" --size=5000 --samples=1 "$@"
}
# keeps FILE RUNG: the table has the time of another rung.
keeps() {
    $STROBE lab copy --kernel="$1" --rungs="$2" --size=5000 --samples=1 --limit=4 --csv >table.csv \
        2>/dev/null && fail "$1 has exit code 0"
    head -2 table.csv | grep -q "^$2,.*,[0-9]" || fail "$1: no time for $2: $(cat table.csv)"
}

# --- C on a CPU
c() {
    printf '#include <stdint.h>\nvoid copy(float *to, const float *from, int64_t n, int threads)\n'
    printf '{\n    (void)threads;\n%s\n}\n' "$1"
}
$STROBE lab copy --device=cpu --template >right.c
c 'for (int64_t i = 0; i < n / 8 * 8; i++) to[i] = from[i];' >edge.c
c 'for (int64_t i = 0; i < (n + 7) / 8 * 8; i++) to[i] = from[i];' >beyond.c
c 'for (int64_t i = 0; i < n; i++) to[i * 1000000007] = from[i];' >wild.c
c 'for (volatile int i = 0; n > 100; i = 0) to[0] = from[0];' >endless.c
c 'for (int64_t i = 0; i < n; i++) to[i] = from[i]' >broken.c
later='static int calls; if (++calls > 30)'
c "$later *(volatile int *)8 = 0; for (int64_t i = 0; i < n; i++) to[i] = from[i];" >late_crash.c
c "$later for (volatile int i = 0;; i = 0) to[0] = 1;
for (int64_t i = 0; i < n; i++) to[i] = from[i];" >late_endless.c
c "extern void exit(int); $later exit(0); for (int64_t i = 0; i < n; i++) to[i] = from[i];" \
    >late_exit.c
c 'extern void exit(int); extern int atexit(void (*)(void)); extern void abort(void);
static int calls; if (!calls++) atexit(abort); for (int64_t i = 0; i < n; i++) to[i] = from[i];' \
    >at_exit.c
(cat right.c && echo 'extern void abort(void); __attribute__((constructor)) void begin(void) {' &&
    echo 'abort(); }') >loaded.c
(cat right.c && echo '__attribute__((constructor)) void begin(void)' &&
    echo '{ for (volatile int i = 0;; i = 0) continue; }') >loads.c
sed 's/constructor/destructor/' loads.c >ends.c
sed 's/int threads)/int threads, void *scratch)/' right.c >scratch.c
echo '// @scratch n - 6000' >>scratch.c
sed 's/void copy/void other/' right.c | sed '/^\/\//d' >other.c
(cat right.c && echo '// @scratch 4 * n' && echo '// @scratch 8 * n') >twice.c
own 0 'right.c .*your kernel' right.c
c 'for (int64_t i = 0; threads == 1 && i < n; i++) to[i] = from[i];' >one_thread.c
own 0 'one_thread.c .*your kernel' one_thread.c --threads=1
own 1 'edge.c: wrong at .*all in elements from .* on: is the last tile guarded?' edge.c
own 1 'beyond.c: at n 1: it wrote element 1 of the output, which ends with element 0' beyond.c
own 1 'wild.c: at n 31: it ' wild.c
own 1 'endless.c: at n 4099: it had not ended after 2 s (--limit)' endless.c --limit=2
own 1 "broken.c does not compile; cc's message is above" broken.c
own 1 'broken.c:5:.*error' broken.c
own 1 'late_crash.c: .* a timed call' late_crash.c --samples=99
grep -q "^floats  .*[0-9]" out || fail "no time for floats: $(cat out)"
own 1 'late_endless.c: a timed call did not return within 1 s' late_endless.c --samples=99 \
    --limit=1
own 1 'late_exit.c: the kernel ended the process with exit code 0 during a timed call' \
    late_exit.c --samples=99
grep -q "^floats  .*[0-9]" out || fail "no time for floats: $(cat out)"
own 0 'at_exit.c .*your kernel' at_exit.c # a table, and only one
[ "$(grep -c '^lab copy' out)" = 1 ] || fail "several tables: $(cat out)"
own 1 'loaded.c: at its loading: it crashed: Aborted' loaded.c
own 1 'loads.c: at its loading: it had not ended after 2 s' loads.c --limit=2
own 0 'ends.c .*your kernel' ends.c --limit=2
own 1 'scratch.c: at n 1: line [0-9]*: @scratch is -5999 for this size' scratch.c
own 2 'other.c has no function copy; strobe lab copy --template --device=cpu prints' other.c
own 2 'twice.c:[0-9]*: @scratch is already in line' twice.c
for k in edge beyond wild endless; do keeps $k.c floats; done
# Its inputs make e^x overflow: a softmax that does not subtract the largest x is wrong.
$STROBE lab softmax --device=cpu --template | sed 's/ - most//g' >overflows.c
shows 1 'overflows.c: wrong at rows .*NaN' $STROBE lab softmax --kernel=overflows.c \
    --rungs=online --size=20x30 --samples=1
ls "${TMPDIR:-/tmp}" | grep '^strobe-......$' && fail "the compiler's folder is still there"
own 2 '--registers, --shared and --blocks limit kernels of a GPU' right.c --blocks=1
own 1 'nothere.c' nothere.c
own 2 'as in mine.cu, or of C, as in mine.c; found right.o' right.o
shows 2 '--watch needs --kernel=FILE' $STROBE lab copy --device=cpu --watch

# --watch: again when the file changes, and after an error
cp edge.c watched.c
$STROBE lab copy --kernel=watched.c --rungs=floats --size=5000 --samples=1 --watch --limit=90 \
    >watch.txt 2>&1 &
watch=$!
# saw N TEXT: waits until TEXT is there N times
saw() {
    for i in $(seq 300); do
        [ "$(grep -c "$2" watch.txt)" -ge "$1" ] && return
        sleep 0.1
    done
    kill $watch
    fail "not $1 times \"$2\": $(cat watch.txt)"
}
saw 1 'is the last tile guarded'
cp right.c new.c && mv new.c watched.c
saw 2 '^lab copy'
saw 2 '^watched.c .*your kernel'
kill $watch
wait $watch && fail "--watch ended with exit code 0"

# --- CUDA on an emulated GPU
[ -e "$STROBE_BUILD/emulator/without.so" ] || { echo ok, without a GPU; exit 0; }
. "$OLDPWD/tests/e2e/gpu.sh"
export EMU_ARCH=80 EMU_KERNEL_US=3000
cu() {
    printf '#include "device.cuh"\n// @blocks  (n + 255) / 256\n// @threads 256\n'
    printf 'extern "C" __global__ void copy(ELEMENT *to, const ELEMENT *from, long long n)\n{\n'
    printf '    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n%s\n}\n' "$1"
}
cu 'if (i < n / 32 * 32) to[i] = from[i];' >edge.cu
cu 'to[i] = from[i];' >beyond.cu
cu 'if (i < n) to[i * 100000007] = from[i];' >wild.cu
cu 'while (n > 100 && *(volatile ELEMENT *)to != 77) to[0] = from[0];' >endless.cu
cu 'if (i < n) to[i] = from[i]' >broken.cu
cu '' | sed 's/void copy/void other/' >other.cu
cu 'if (i < n) to[i] = from[i];' | sed 's/(n + 255) . 256/n \/ 256/' >few.cu
# template LADDER SIZE RUNG WORD...; NVRTC compiles those of all ladders in test_cuda_texts
template() {
    ladder=$1 size=$2 rung=$3
    shift 3
    $STROBE lab "$ladder" --device=cuda --template >"$ladder.cu"
    shows 0 "^$ladder.cu .*your kernel" $STROBE lab "$ladder" --kernel="$ladder.cu" --size="$size" \
        --rungs="$rung" --samples=1 "$@"
}
template copy 5000 coalesced
template reduce 5000 shuffles --dtype=bfloat16 # its output is zeroed
template softmax 20x300 warp                   # shared memory
template matmul 40x50x60 tiled --dtype=bfloat16
few=--rungs=coalesced
own 1 'edge.cu: wrong at .*all in elements from .* on: is the last tile guarded?' edge.cu $few
own 1 'beyond.cu: at n 1: it wrote element 1 of the output, which ends' beyond.cu $few
own 1 'wild.cu: at n 31: .*illegal memory access' wild.cu $few
own 1 'endless.cu: at n .*: it had not ended after 2 s (--limit)' endless.cu $few --limit=2
own 1 'broken.cu does not compile; the compiler.s message is above' broken.cu $few
own 1 'broken.cu:7:.*error' broken.cu $few
own 2 'other.cu has no function copy' other.cu $few
own 1 'few.cu: at n 1: line 2: @blocks is 0 for this size, .*(n + 255) / 256 rounds up' few.cu $few
for k in edge beyond wild endless; do keeps $k.cu coalesced; done
own 1 'no rung can run: uses 256 threads .*, and --threads allows 128; .* or other limits' copy.cu \
    --threads=128
own 1 'copy.cu: uses 20 blocks of the grid, and --blocks allows 19' copy.cu --blocks=19
own 0 'limits: 256 threads of a block; a score of 100 is the fastest kernel' copy.cu --threads=256
own 1 'does not say how many registers of a thread a kernel uses' copy.cu --registers=64
own 2 'right.c is for a CPU; choose another --device' right.c --device=cuda
own 2 'copy.cu is for a GPU; choose another --device' copy.cu --device=cpu
$STROBE lab copy --kernel=copy.cu --ptx=copy.cu | grep -qx '// emulated GPU: no PTX' || fail "--ptx"
echo ok
