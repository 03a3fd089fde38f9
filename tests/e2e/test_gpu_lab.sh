#!/bin/sh
# The ladders of `strobe lab` on an emulated GPU: every rung is right at odd sizes in every type,
# with blocks in both orders.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
# rungs FILE: checks that every rung has a time, unless it needs a newer GPU, and that one has
rungs() {
    sed 's/"[^"]*"/text/g' "$1" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        !NF { exit }
        /needs compute capability 9.0$/ || /not available for this device/ { next }
        $(at["ms_median"]) == "" { print; bad = 1 }
        { timed++ }
        END { exit bad || !timed }' || fail "a rung has no time: $(cat "$1")"
}
# size LADDER: small, but not a multiple of any tile
size() {
    case $1 in
    copy) echo 5003 ;;
    transpose) echo 70x131 ;;
    elu) echo 9001 ;;
    reduce) echo 9001 ;;
    softmax) echo 7x1030 ;;
    layernorm) echo 7x1030 ;;
    divergence) echo 5003 ;;
    matmul) echo 72x136x40 ;;
    attention) echo 1x2x72 ;;
    *) fail "no size for $1" ;;
    esac
}
ladders=$($STROBE lab --csv | sed -n '2,$s/,.*//p')
[ "$ladders" ] || fail "no ladders"
# Without --warm a rung runs some 250 times, on 64 sets of tensors, which is the same for all
# ladders: only copy, which is fast, has them (below).
for ladder in $ladders; do
    n=$(size "$ladder")
    run="env EMU_KERNEL_US=3000 $STROBE lab $ladder --device=cuda --samples=1 --warm --size=$n"
    forward=float32 reversed=bfloat16
    [ "$ladder" != matmul ] || forward="float32 tf32 bfloat16" reversed="tf32 bfloat16"
    for type in $forward; do
        $run --dtype=$type --csv >"$ladder.csv" || fail "$ladder, $type"
        rungs "$ladder.csv"
    done
    # Compute capability 8.0, and then in the same order the rungs that need 9.0, on one SM: a block
    # of the persistent matmuls computes several tiles, all of which are stored by TMA.
    export EMU_REVERSE=1
    for type in $reversed; do
        EMU_ARCH=80 $run --dtype=$type --csv >"$ladder.csv" || fail "$ladder, $type, 8.0"
        rungs "$ladder.csv"
        newer=$(sed -n 's/^\([^,]*\),.*,needs compute capability 9.0$/\1/p' "$ladder.csv" |
            paste -sd, -)
        [ "$newer" ] || continue
        [ "$ladder" != matmul ] || n=300x320x40
        EMU_SMS=1 $run --size=$n --dtype=$type "--rungs=$newer" --csv >"$ladder.csv" ||
            fail "$ladder, $type, $newer"
        rungs "$ladder.csv"
    done
    unset EMU_REVERSE
    [ "$ladder" = attention ] || continue
    for type in float32 bfloat16; do
        $run --form=full --dtype=$type --csv >full.csv || fail "$ladder, full, $type"
        rungs full.csv
    done
done
run="env EMU_KERNEL_US=3000 $STROBE lab copy --device=cuda --samples=1 --size=5003"
$run | grep -q 'ceiling: the driver.s copy' || fail "no ceiling"
$run --save=copy.json --json >/dev/null || fail "--save"
$STROBE report copy.json | grep -q vectorized || fail "no report of the sheet"
few="$STROBE lab copy --device=cuda --samples=1 --size=500"
EMU_KERNEL_US=3000 $few '--rungs=stride 8,bulk' --csv | cut -d, -f1 | head -3 | tr '\n' ' ' |
    grep -qx 'rung stride 8 bulk ' || fail "--rungs"
expect 2 'takes names of these rungs in float32: stride 32,stride 8,' $few \
    --rungs=bulk,nothing
# A rung is compiled once.
XDG_CACHE_HOME="$work/fresh" EMU_KERNEL_US=3000 $few --rungs=coalesced >/dev/null
ls fresh/strobe/kernels | grep -q '^[0-9]*_coalesced-.*\.cubin$' || fail "a rung is not kept"
# Of the emulated counters, a kernel writes 1 byte and reads fewer than 65,536.
env EMU_KERNEL_US=3000 $few --counters --rungs=coalesced --csv | sed 's/"[^"]*"/text/g' |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        NR == 2 {
            x = $(at["mb_measured"])
            ok = x > 0 && x < 0.0656 && $(at["mb_counted"]) == 0.004
        }
        END { exit !ok }' || fail "--counters"
# Of problems with FLOPs they are loads and stores of warps, 25 and 50 sectors of each kernel; where
# tensor maps copy, 75 bytes from L2 instead of the loads. `matrices` has three kernels, and 132
# bytes for each of 2 x 128 x 129 / 2 pairs beside its output of 32,768 bytes. `queries` reads 96
# keys and values on average for each 64 queries, wgmma 128 for each 128; both read the queries and
# write the output, wgmma in half sectors.
env EMU_KERNEL_US=3000 EMU_ARCH=90 $STROBE lab attention --device=cuda --samples=1 --size=1x2x128 \
    --counters --rungs=matrices,queries,wgmma --csv >attention.csv || fail "attention --counters"
sed 's/"[^"]*"/text/g' attention.csv |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $(at["mb_counted"]) != "" {
            printf "%s %.0f %.0f\n", $1, 1e6 * $(at["mb_counted"]), 1e6 * $(at["mb_measured"]) }' \
    >bytes
printf '%s\n' 'matrices 2212352 7200' 'queries 163840 2400' 'wgmma 163840 1675' |
    diff - bytes >differ || fail "bytes of attention: $(cat differ)"
env EMU_CUPTI_COUNTERS=35 EMU_KERNEL_US=3000 $few --counters --rungs=coalesced |
    grep -q '^no hardware counters: this user may not read' || fail "no sentence about counters"
show="$STROBE lab copy --device=cuda --show"
$show='stride 8' | head -1 | grep -qx '// compiled with -DSTRIDE=8' || fail "no constants"
expect 2 'no rung nothing on this device; it has stride 32' $show=nothing
$STROBE lab copy --device=cuda --ptx=async | grep -qx '// emulated GPU: no PTX' || fail "--ptx"
env EMU_KERNEL_US=3000 $STROBE lab copy --device=cuda --samples=1 --size=500,5003 --save=two.json \
    >two.txt || fail "two sizes"
grep -q '^lab copy, 2 sizes' two.txt || fail "two sizes: $(cat two.txt)"
grep -q '"unit": "GB/s"' two.json || fail "no curves: $(head -c 3000 two.json)"
env EMU_KERNEL_US=3000 $STROBE lab copy --device=cuda --samples=1 --size=500 --svg=bars.svg \
    >/dev/null || fail "--svg"
grep -q "<svg" bars.svg && grep -q vectorized bars.svg || fail "no picture"
expect 2 'take the path of a file' $STROBE lab copy --device=cuda --save=
expect 2 'as in 4096x4096' $STROBE lab transpose --device=cuda --size=512
expect 2 'product at most 2^36' $STROBE lab transpose --device=cpu \
    --size=4294967296x4294967296
expect 1 'in the second dimension' $STROBE lab transpose --device=cuda --warm --size=4300000x1
$STROBE lab copy --device=cpu --show=bulk | grep -q cp.async.bulk || fail "--show of a GPU's rung"
expect 1 'may be used; choose a smaller --size' $STROBE lab copy --device=cuda --size=9999999999
echo ok
