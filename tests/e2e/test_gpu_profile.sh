#!/bin/sh
# Profiles of an emulated GPU: by its own record of kernels, also of a recording that is played, and else by events.
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"

# What this GPU can do is not measured here: products of 4096 a side take an emulator minutes.
mkdir -p "$XDG_CACHE_HOME/strobe"
cat >"$XDG_CACHE_HOME/strobe/machine.json" <<END
{"v":1,"machines":[{"gpu":"emulated GPU","isa":"compute capability 9.0, 132 SMs, driver CUDA 13.0",
 "library":"cuBLASLt 13.0.0","threads":1,"date":"2026-01-31T08:00:00Z","quick":true,"others":0,"l2_bytes":52428800,
 "products":[{"dtype":"f32","flops_per_s":1e10,"flops_per_s_one_thread":1e10,"M":4096,"N":4096,"K":4096,"kernel":"cublaslt"}],
 "copies":[{"bytes_per_thread":1048576,"bytes_per_s":1e10,"bytes_per_s_one_thread":1e10},
           {"bytes_per_thread":268435456,"bytes_per_s":1e10,"bytes_per_s_one_thread":1e10}]}]}
END
profile="$STROBE profile tiny.conf --device=cuda --n_layer=1 --block_size=16 --flash=false --steps=3 --gradient_accumulation_steps=2"

# said FILE TEXT: that a profile has it
said() {
    grep -qF -- "$2" "$1/profile.json" || fail "$1/profile.json has no $2: $(cut -c1-2000 "$1/profile.json")"
}

# --- by the device's own record, where a library for it is emulated
by=events
[ -e "$emulator/libcupti.so.13" ] && by=cupti
for replay in false true; do
    expect 0 'matrix products are' $profile --out_dir=$by.$replay --replay=$replay
    said $by.$replay "\"times_by\":\"$by\""
    said $by.$replay '"dropped":0,"unmatched":0'
    if [ $by = cupti ]; then said $by.$replay "\"replay\":$replay"; fi
done
# What was played are the kernels that were started one by one, as often.
runs() {
    grep -o '"node":[0-9]*,"op"\|"device_kernel":"[^"]*"\|"per_step":[0-9.]*' "$1/profile.json"
}
runs $by.false >started
runs $by.true >played
cmp -s started played || fail "a recording has other kernels: $(diff started played | head)"
[ "$(grep -c per_step started)" -gt 40 ] || fail "few rows: $(cat started)"

# --- by events, where that library is missing, which is said
if [ $by = cupti ]; then
    expect 0 'libcupti.so.13 is not on this machine' env LD_PRELOAD="$emulator/without.so" EMU_WITHOUT=libcupti \
        $profile --out_dir=without --replay=true
    said without '"times_by":"events"'
    said without '"replay":false'
fi
