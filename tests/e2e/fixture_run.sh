#!/bin/sh
# Writes a run directory as `strobe train` leaves it, with invented numbers.
# usage: fixture_run.sh DIR NAME=VALUE...   iters, ms, floor (the limit of the loss), flash,
# activations, watt (0: no telemetry), mhz
set -eu
dir=$1
shift
iters=400 ms=100 floor=1.45 flash=true activations=100000000 seed=1 watt=0 mhz=1980
for pair in "$@"; do eval "${pair%%=*}='${pair#*=}'"; done
mkdir -p "$dir"
cat >"$dir/config.conf" <<END
# model
n_layer = 4
n_head = 4
n_embd = 128
block_size = 64
dataset = shakespeare_char
batch_size = 12
max_iters = $iters
out_dir = $dir
flash = $flash
dtype = float32
END
cat >"$dir/env.json" <<END
{"version": "0.1.0", "commit": "0123456789ab", "compiler": "gcc 12.2.0", "cpu": "A processor",
 "cores": 4, "threads": 4, "memory": 16000000000, "os": "Linux", "date": "2025-01-02T03:04:05Z",
 "libraries": {"oneDNN": "2.6.3"}}
END
total=$((3 * 4 * 800000 + 3200000 + activations))
cat >"$dir/plan.json" <<END
{"v":1,"parameters":800000,"tokens_per_step":768,"kernels_per_step":310,"flops_per_step":3.9e9,
 "bytes_per_step":5.1e8,"memory":{"weights":3200000,"gradients":3200000,"optimizer":6400000,
 "activations":$activations,"total":$total}}
END
awk -v n="$iters" -v ms="$ms" -v watt="$watt" -v mhz="$mhz" -v activations="$activations" \
    -v floor="$floor" -v seed="$seed" 'BEGIN {
    srand(seed)
    for (i = 0; i <= n; i++) {
        loss = floor + 2.7 * exp(-i / (n / 9)) + 0.25 * exp(-i / (n / 2))
        if (i % int(n / 10) == 0)
            printf "{\"v\":1,\"kind\":\"eval\",\"iter\":%d,\"train_loss\":%.5f," \
                "\"val_loss\":%.5f}\n",
                i, loss - 0.02, loss + 0.03 + 0.004 * rand()
        if (i == n) break
        if (watt && i % 5 == 4) {
            slowed = i > n / 2 && i % 40 < 20
            printf "{\"v\":1,\"kind\":\"sample\",\"iter\":%d,\"ms\":%.1f,\"steady\":%s," \
                "\"utilization\":%.4g,\"clock_mhz\":%d,\"power_w\":%.4g,\"memory_bytes\":%.0f," \
                "\"temperature_c\":60,\"clock_max_mhz\":1980,\"power_limit_w\":700," \
                "\"throttled\":%.2g%s}\n",
                i, 5 * ms, (i > 5 ? "true" : "false"), 97 + 2 * rand(),
                slowed ? mhz - 200 - 100 * rand() : mhz - 15 * int(3 * rand()),
                slowed ? watt + 40 : watt + 20 * rand(), activations * 9, slowed,
                slowed ? ",\"throttle\":[\"power limit\"]" : ""
        }
        t = ms * (1 + 0.05 * rand()) * (i < 2 ? 3 : 1)
        printf "{\"v\":1,\"kind\":\"step\",\"iter\":%d,\"loss\":%.5f,\"lr\":%.6f," \
            "\"grad_norm\":%.4f,\"ms\":%.3f,\"tokens_per_s\":%.1f}\n",
            i + 1, loss + 0.12 * (rand() - 0.5), 0.001, 0.5 + rand(), t, 768000 / t
    }
}' >"$dir/log.jsonl"
cat >"$dir/samples.txt" <<'END'
ROMEO:
What light is this, that breaks </script><b>the</b> night & the day?

JULIET:
A lamp, my lord; <!-- and thou the moth. -->
END
cat >"$dir/summary.json" <<END
{"v":1,"iters":$iters,"peak_rss":250000000,"complete":true}
END
