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
# runs FILE: the same of the rows of a profile, whose names end with the function's; the library's
# begin with nvjet
runs() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        /^[^"]*idle$/ || /\(inputs and results\)$/ { next }
        { name = $0; gsub(/"/, "", name); sub(/.* /, "", name); n[name] += $at["runs_per_step"] }
        END { for (name in n) if (name !~ /^nvjet/) print name, n[name] }' "$1" | sort
}

# launched FILE: "FUNCTION|GRID x BLOCK|REGISTERS|..." of each launch of a plan
launched() {
    awk -F'"' '$2 == "entry" { line = $4 }
        $2 == "grid_block" || $2 == "limit" { line = line "|" $4 }
        $2 ~ /^(registers|static_bytes|dynamic_bytes|sm_blocks|sm_warps|waves|tail_percent)$/ {
            gsub(/[^0-9.]/, "", $3); line = line "|" $3 }
        $2 == "tail_percent" && line !~ /^-/ { print line }' "$1" | sort -u
}
# ran_so FILE: the same of the rows of a profile, in whose quotes are commas
ran_so() {
    awk -F'"' -v OFS= '{ for (i = 1; i <= NF; i += 2) gsub(/,/, "|", $i); print }' "$1" |
        awk -F'|' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            $at["grid_block"] == "" { next }
            { line = $NF; sub(/.* /, "", line)
                for (i = at["grid_block"]; i <= at["tail_percent"]; i++) line = line "|" $i
                print line }' | sort -u
}

emulated_machine
step="tiny.conf --device=cuda --n_layer=1 --block_size=16 --gradient_accumulation_steps=3"
export EMU_ARCH=90
$STROBE plan $step --occupancy --json >plan.json || fail "no plan"
launches plan.json >planned
grep -q '^chain 1$' planned && grep -q '^[a-z_]* 3$' planned || fail "$(cat planned)"
grep -q 'does not report the registers' plan.json || fail "no note: $(cat plan.json)"
$STROBE plan $step --occupancy >text || fail "no text"
grep -q '132 SMs, each holds at most 64 warps and 32 blocks' text || fail "$(cat text)"
grep -q 'Kernels of cuBLASLt are chosen' text || fail "no cuBLASLt: $(cat text)"
expect 1 'cannot be compiled: libnvrtc.so.13 is not on this machine; install NVRTC of CUDA 12' \
    env LD_PRELOAD="$emulator/without.so" EMU_WITHOUT=nvrtc $STROBE plan $step --occupancy
[ -e "$emulator/libcupti.so.13" ] || { echo ok, without CUPTI; exit 0; }
# beside PLANNED OPTIONS...: a profile of the same step
beside() {
    planned=$1
    shift
    $STROBE profile $step "$@" --steps=1 --rows=0 --csv >profile.csv 2>log || fail "$(cat log)"
    runs profile.csv >ran
    [ "$(wc -l <ran)" -gt 15 ] || fail "few kernels: $(cat profile.csv)"
    diff "$planned" ran >differ || fail "planned and run: $(cat differ)"
    launched plan.json >planned_so
    ran_so profile.csv >ran_so
    [ "$(wc -l <ran_so)" -gt 15 ] || fail "few launches: $(cat profile.csv)"
    comm -13 planned_so ran_so >differ
    [ ! -s differ ] || fail "the profile has launches unlike those of the plan: $(cat differ)"
}
beside planned
expect 0 'of several nodes shows the one that takes longest. emulated GPU: 132 SMs' \
    env COLUMNS=400 $STROBE profile $step --steps=1 --rows=0 --occupancy
grep -q '^  *[0-9.]*  16 x 128  *LAYERNORM ' out || fail "no launch: $(cat out)"
expect 0 'FLOPs, bytes, floor ms' $STROBE profile $step --steps=1
if grep -q 'grid x block' out; then fail "occupancy without the option: $(cat out)"; fi
expect 2 'is of single kernels: leave out --by=op' $STROBE profile $step --by=op --occupancy
expect 2 'of a GPU: leave it out, or add --device=cuda' \
    $STROBE profile tiny.conf --device=cpu --occupancy
# A bias of float32 is rounded by a kernel of Strobe before cuBLASLt multiplies in bfloat16.
rounds="--dtype=bfloat16 --bias=true --fusion=op"
# shellcheck disable=SC2086
$STROBE plan $step $rounds --occupancy --json >plan.json || fail "no plan of bfloat16"
launches plan.json >rounding
grep -q '^narrow 12$' rounding || fail "no rounding: $(cat rounding)"
# shellcheck disable=SC2086
beside rounding $rounds
echo ok
