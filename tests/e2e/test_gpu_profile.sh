#!/bin/sh
# Profiles of an emulated GPU: by its own record of kernels, also of a replayed graph, and else by
# events.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"

emulated_machine
profile="$STROBE profile tiny.conf --device=cuda --tune=auto --n_layer=1 --block_size=16"
profile="$profile --flash=false --steps=3 --gradient_accumulation_steps=2"

# expect_text FILE TEXT: checks that a profile has the text
expect_text() {
    grep -qF -- "$2" "$1/profile.json" ||
        fail "$1/profile.json has no $2: $(cut -c1-2000 "$1/profile.json")"
}

# --- by the device's own record, if the emulator has a library for it
by=events
[ -e "$emulator/libcupti.so.13" ] && by=cupti
for replay in false true; do
    expect 0 'matmuls take' $profile --out_dir=$by.$replay --replay=$replay --counters
    expect_text $by.$replay "\"times_by\":\"$by\""
    expect_text $by.$replay '"dropped":0,"unmatched":0'
    if [ $by = cupti ]; then
        expect_text $by.$replay "\"replay\":$replay"
        expect_text $by.$replay '"counters_why":null'
    fi
done

# --- hardware counters: of every kernel, as the emulator makes them up; else why there are none
if [ $by = cupti ]; then
    grep -q '^Hardware counters of one more step' out || fail "no table: $(cat out)"
    grep -q '^counters  *the step.s kernels move ' out || fail "no sentence: $(cat out)"
    for replay in false true; do
        counted=$(sed 's/.*"counted":\([0-9]*\).*/\1/' $by.$replay/profile.json)
        rows=$(grep -o '"device_kernel":"[^"]*"' $by.$replay/profile.json |
            grep -vc '"copy\|memset')
        with=$(grep -o '"counters":{"dram_read":[1-9]' $by.$replay/profile.json | wc -l)
        [ "$with" = "$rows" ] && [ "$counted" -ge "$rows" ] ||
            fail "$counted kernels counted, in $with of $rows rows"
    done
    expect 0 'tensor_percent' env EMU_CUPTI_COUNTERS=35 $profile --out_dir=refused --counters --csv
    expect_text refused 'NVreg_RestrictProfilingToAdminUsers=0'
    expect_text refused '"times_by":"cupti"'
fi
# --- the trace: every kernel of the profile, launched one by one (as the host's row shows) or
# replayed
trace="$STROBE_BUILD/tests/profile/test_trace_file"
kernels=$(grep -o '"kernels_per_step":[0-9]*' $by.false/profile.json | cut -d: -f2)
# has FOLDER STEPS STARTS: checks the kernels of STEPS steps, and the host's launches
has() {
    gzip -dc "$1/trace.json.gz" >trace
    "$trace" trace >facts || fail "$1: $(cat facts)"
    grep -q "host $((3 * $2 + $3))," facts ||
        fail "$1: not $((3 * $2 + $3)) host launches: $(cat facts)"
    seen=$(sed 's/kernels \([0-9]*\),.*/\1/' facts)
    [ "$seen" -ge $(($2 * kernels)) ] || fail "$1: fewer than $2 x $kernels kernels: $(cat facts)"
}
has $by.false 3 $((3 * kernels))
cp facts facts.started
if [ $by = cupti ]; then
    has $by.true 3 0
    for what in kernels ranges; do
        [ "$(grep -o "$what [0-9]*" facts)" = "$(grep -o "$what [0-9]*" facts.started)" ] ||
            fail "$what differ: $(cat facts facts.started)"
    done
    # A captured graph clears the counters of all its matmuls at once.
    awk '/copies/ { n[++i] = substr($0, index($0, "copies ") + 7) + 0 }
        END { exit !(n[1] < n[2] && n[1] > 0) }' facts facts.started ||
        fail "as many copies as without replay: $(cat facts facts.started)"
fi
# A replay runs the same kernels as single launches, equally often, except for the clearing.
runs() {
    grep -o '"node":[0-9]*,"op"\|"device_kernel":"[^"]*"\|"per_step":[0-9.]*' "$1/profile.json" |
        awk '/"node"/ { node = $0; next } /memset/ { getline; next } { print node, $0 }'
}
runs $by.false >started
runs $by.true >replayed
cmp -s started replayed || fail "a replay has other kernels: $(diff started replayed | head)"
[ "$(grep -c per_step started)" -gt 40 ] || fail "few rows: $(cat started)"

# --- by events, if that library is missing, with a message
if [ $by = cupti ]; then
    expect 0 'libcupti.so.13 is not on this machine' env LD_PRELOAD="$emulator/without.so" \
        EMU_WITHOUT=libcupti $profile --out_dir=without --replay=true
    expect_text without '"times_by":"events"'
    expect_text without '"replay":false'
    has without 3 $((3 * kernels))
fi

# --- an attached NVIDIA profiler has CUPTI for itself, records only the measured steps, and
# receives the profile's ranges
if [ -e "$emulator/listener.so" ]; then
    env NVTX_INJECTION64_PATH="$emulator/listener.so" EMU_VERBOSE=1 $profile --out_dir=heard \
        --replay=true --trace-steps=1 >out 2>heard.log ||
        fail "$(cat heard.log)"
    expect_text heard '"times_by":"events"'
    has heard 1 $kernels
    sed -n 's/.*\(cuProfilerStart\|cuProfilerStop\|listener: [0-9].*\)/\1/p' heard.log >ranges
    [ "$(head -n 1 ranges)" = cuProfilerStart ] && [ "$(tail -n 1 ranges)" = cuProfilerStop ] &&
        [ "$(grep -c cuProfiler ranges)" = 2 ] ||
        fail "not between one start and one stop: $(cat ranges)"
    [ "$(grep -c '^listener: 0 step$' ranges)" = 3 ] || fail "not 3 steps: $(cat ranges)"
    for words in '0 generate tokens' '0 wait' '1 forward' '1 backward' '1 update' '2 block 0' \
        '3 attention' '4 scores' '4 softmax' '4 weighted sum'; do
        grep -qx "listener: $words" ranges || fail "'$words' was not received: $(cat ranges)"
    done
    # The same names, as often as in the trace.
    names() { grep "$1" trace | grep -o '"name":"scores"' | wc -l; }
    [ "$(grep -cx 'listener: 4 scores' ranges)" = $((3 * $(names '"cat":"range"'))) ] ||
        fail "other ranges than in the trace: $(cat ranges)"
fi
