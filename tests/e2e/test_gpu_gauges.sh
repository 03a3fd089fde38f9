#!/bin/sh
# NVML telemetry during training, on an emulated GPU: in the log, the summary, the report and the
# ladder; and the messages if there is none.
# test: alone slow; it samples at intervals
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
cd "$work"
export STROBE_LOG=info
train="$STROBE train tiny.conf --threads=0 --overwrite --device=cuda --max_iters=6"
train="$train --eval_interval=3 --sample_interval=5"
missing="libnvidia-ml.so.1 is not on this machine"
missing="$missing (a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility to see it)"
samples() { grep '"kind":"sample"' "$1/log.jsonl"; }
summary() { sed -n 's/.*"'"$2"'": *\([-0-9.e]*\).*/\1/p' "$1/summary.json" | head -1; }
# among LOW X HIGH
among() { awk -v a="$1" -v x="$2" -v b="$3" 'BEGIN { exit !(x != "" && x >= a && x <= b) }'; }

# --- two GPUs, which NVML numbers in the opposite order
expect 0 'device 9' env EMU_DEVICES=2 $train --out_dir=first
expect 0 ' of 1755 MHz, 600 W; ' env EMU_DEVICES=2 $train --device=cuda:1 --out_dir=second
samples first | grep -q '"clock_max_mhz":1980,' || fail "not the first GPU: $(samples first)"
samples second | grep -q '"clock_max_mhz":1755,' || fail "not the second GPU: $(samples second)"
[ "$(samples second | grep -c '"clock_max_mhz":1980,')" = 0 ] || fail "both GPUs: $(samples second)"
for key in utilization memory_utilization power_w memory_bytes temperature_c power_limit_w \
    throttled; do
    samples first | grep -q "\"$key\":[0-9]" || fail "no $key: $(samples first)"
done
samples first | grep -q '"steady":true' || fail "no steady sample: $(samples first)"
# The GPU draws 600 W; 5 steps of 128 tokens are counted.
tokens=$((5 * 128))
joules=$(summary first energy_j)
among 0.9 "$(awk -v j="$(summary first joules_per_token)" -v e="$joules" -v t="$tokens" \
    'BEGIN { print j * t / e }')" 1.1 ||
    fail "energy: $joules J of $tokens tokens are not $(summary first joules_per_token) J each"
grep -q '"throttled": 0.0' first/summary.json || fail "throttled: $(cat first/summary.json)"

# --- the clock is throttled once by power and then by heat
expect 0 'device ' env EMU_THROTTLE=3 $train --out_dir=slowed
samples slowed | grep -q '"clock_mhz":1200,.*"throttled":1,"throttle":\["power limit"\]}' ||
    fail "no throttle: $(samples slowed)"
samples slowed | grep -q '"throttle":\["power limit","heat"\]}' || fail "no heat: $(samples slowed)"
[ "$(samples slowed | grep -c '"throttle":')" = 2 ] || fail "not two samples: $(samples slowed)"
"$STROBE" report first slowed --csv >table.csv 2>text || fail "report: $(cat text)"
head -1 table.csv | grep -q 'utilization,clock_mhz,power_w,tokens_per_joule,throttled' ||
    fail "wrong table: $(head -1 table.csv)"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["power_w"] < 590 || $at["power_w"] > 610 { exit 1 }
    $at["clock_mhz"] < 1200 || $at["tokens_per_joule"] <= 0 { exit 1 }' table.csv ||
    fail "wrong numbers: $(cat table.csv)"

# --- hardware counters: in the log, the summary and one sentence of the report; or why not
expect 0 'device 9' env EMU_NVML_MS=110 $train --out_dir=counted --max_iters=30 --eval_interval=30
samples counted | grep -q '"sm_active":95,"tensor_active":22,"dram_active":71' ||
    fail "no counters: $(samples counted)"
"$STROBE" report counted >text 2>&1 || fail "report: $(cat text)"
sentence='counters, counted keeps memory 71 % busy and tensor cores 22 %, with work on 95 % of its'
grep -q "$sentence" text || fail "no sentence about counters: $(cat text)"
expect 0 'are not sampled: this GPU has no GPM' env EMU_NVML=old $train --out_dir=uncounted
samples uncounted | grep -q sm_active && fail "counters without GPM: $(samples uncounted)"
expect 0 'reports: Insufficient Permissions; the report estimates' \
    env EMU_NVML=forbids $train --out_dir=uncounted

# --- other programs on the GPU: in the line, the summary and the report; unknown in a container
expect 0 'another program (process 31) was on the GPU for 100 % of the time' \
    env EMU_OTHERS="31 32" $train --out_dir=beside
[ "$(summary beside others)" = 1.0 ] || fail "others: $(cat beside/summary.json)"
[ "$(summary first others)" = 0.0 ] || fail "the parent counts: $(cat first/summary.json)"
"$STROBE" report first beside >text 2>&1 || fail "report: $(cat text)"
grep -q 'Other programs were on the GPU for 100 % of the time while beside ran' text ||
    fail "no note: $(cat text)"
expect 0 'device 9' env EMU_OTHERS=31 EMU_NVML=hidden $train --out_dir=hidden
grep -q '"others": null' hidden/summary.json || fail "others: $(cat hidden/summary.json)"
grep -q 'another program' out && fail "it cannot be known: $(cat out)"

# --- no step waits for a slow sample, and the cost of a sample is reported
expect 0 'device ' env EMU_NVML_MS=300 $train --out_dir=slow --max_iters=40 --eval_interval=40
among 100 "$(summary slow sample_ms)" 400 || fail "a sample takes $(summary slow sample_ms) ms"
among 0 "$(summary slow ms_median)" 150 ||
    fail "steps wait for samples: $(summary slow ms_median) ms each"

# --- drivers that report less: energy is computed from power, or unknown
expect 0 'MHz, 5' env EMU_NVML=old $train --out_dir=old
among 500 "$(awk -v e="$(summary old energy_j)" -v s="$(summary old seconds)" \
    -v g="$(grep -A3 '"gauges"' old/summary.json | sed -n 's/.*"seconds": \([0-9.]*\).*/\1/p')" \
    'BEGIN { print e / g }')" 590 || fail "energy is not power times time: $(cat old/summary.json)"
expect 0 'device 1' env EMU_NVML=poor $train --out_dir=poor
grep -q '"power_w": null' poor/summary.json || fail "power is known: $(cat poor/summary.json)"
samples poor | grep -q power && fail "power is known: $(samples poor)"

# --- NVML is unavailable: training continues, and the reason is printed once
for case in "EMU_NVML=refuses:libnvidia-ml.so.1 reports: Driver/library version mismatch" \
    "EMU_WITHOUT=libnvidia-ml LD_PRELOAD=$emulator/without.so:$missing"; do
    expect 0 "device telemetry (clock, power) is not sampled: ${case#*:}" env ${case%%:*} $train \
        --out_dir=silent
    [ "$(grep -c 'not sampled' out)" = 1 ] || fail "printed more than once: $(cat out)"
    [ -z "$(samples silent)" ] || fail "samples: $(samples silent)"
    grep -q '"gauges": null' silent/summary.json || fail "gauges: $(cat silent/summary.json)"
    unknown="the GPU's utilization, clock, power and temperature are unknown"
    expect 0 "NVML       missing: ${case#*:}; $unknown" env ${case%%:*} "$STROBE" info
done
expect 0 '6 iterations' $train --out_dir=off --sample_interval=0
[ -z "$(samples off)" ] || fail "sampled although switched off: $(samples off)"
grep -q 'not sampled' out && fail "a reason is printed although sampling is off: $(cat out)"

# --- the ladder has clock and power of each rung; the GPU's peaks are written here, not measured
mkdir -p cache/strobe
ln -s "$XDG_CACHE_HOME/strobe/kernels" cache/strobe/kernels
driver=$("$STROBE" info | sed -n 's/^ *driver *//p')
cat >cache/strobe/machine.json <<END
{"v":1, "machines":[{"gpu":"emulated GPU", "isa":"compute capability 9.0, 132 SMs, driver $driver",
 "library":"cuBLASLt 13.0.0", "threads":1, "date":"2026-01-01T00:00:00Z", "quick":true, "others":0,
 "l2_bytes":52428800, "products":[
 {"dtype":"f32","flops_per_s":1e12,"flops_per_s_one_thread":1e12,"M":64,"N":64,"K":64,"kernel":"none"},
 {"dtype":"tf32","flops_per_s":1e12,"flops_per_s_one_thread":1e12,"M":64,"N":64,"K":64,"kernel":"none"},
 {"dtype":"bf16","flops_per_s":1e12,"flops_per_s_one_thread":1e12,"M":64,"N":64,"K":64,"kernel":"none"}],
 "copies":[{"bytes_per_thread":65536,"bytes_per_s":1e12,"bytes_per_s_one_thread":1e12},
 {"bytes_per_thread":1073741824,"bytes_per_s":1e12,"bytes_per_s_one_thread":1e12}]}]}
END
export XDG_CACHE_HOME="$work/cache"
timeout 300 "$STROBE" ladder tiny.conf --device=cuda --steps=3 --sample_interval=5 \
    --csv >ladder.csv 2>log || fail "ladder: $(cat log)"
sed 's/"[^"]*"/text/g' ladder.csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["ms_median"] == "" { next }
    $at["clock_mhz"] < 1200 || $at["power_w"] < 590 || $at["power_w"] > 610 { print; bad = 1 }
    END { exit bad || NR < 3 }' || fail "ladder: $(cat ladder.csv)"
echo ok
