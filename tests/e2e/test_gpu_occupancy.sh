#!/bin/sh
# `strobe plan --occupancy` beside a profile of the same step on an emulated GPU: the same kernels,
# launched as often. The emulator's compiler reports no registers.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"

# launches FILE: "FUNCTION LAUNCHES" of Strobe's own kernels, summed over the rows of a plan
launches() {
    awk -F'"' '$2 == "entry" { entry = $4 }
        $2 == "launches" && entry != "-" { gsub(/[^0-9]/, "", $3); n[entry] += $3 }
        END { for (entry in n) print entry, n[entry] }' "$1" | sort
}
# runs FILE: the same of the rows of a profile
runs() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["name"], $at["runs_per_step"] }' "$1" | sort
}

for arch in 80 90; do
    export EMU_ARCH=$arch
    step="tiny.conf --device=cuda --n_layer=1 --block_size=16 --gradient_accumulation_steps=3"
    $STROBE plan $step --occupancy --json >plan.json || fail "plan $arch"
    launches plan.json >planned
    grep -q '^chain 1$' planned && grep -q '^[a-z_]* 3$' planned || fail "$(cat planned)"
    grep -q 'does not report the registers' plan.json || fail "no note: $(cat plan.json)"
    $STROBE plan $step --occupancy >text || fail "plan $arch as text"
    grep -q '132 SMs, each holds at most 64 warps and 32 blocks' text || fail "$(cat text)"
    grep -q 'Kernels of cuBLASLt are chosen' text || fail "no cuBLASLt: $(cat text)"
    $STROBE profile $step --steps=1 --rows=0 --csv >profile.csv 2>log || fail "$(cat log)"
    runs profile.csv >ran
    cat planned ran
done
