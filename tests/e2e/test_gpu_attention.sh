#!/bin/sh
# `strobe bench attention` on an emulated GPU: the kernel rows of the plans, derived numbers,
# errors, and clocks that the GPU reports or does not report.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
set -eu
STROBE=${STROBE:-$PWD/strobe}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
# A kernel takes a millisecond, so two are enough for a sample. The GPU's peaks are written here,
# not measured.
export STROBE_LOG=warning EMU_SMS=3 EMU_KERNEL_US=1000
mkdir -p cache/strobe "$XDG_CACHE_HOME/strobe/kernels"
ln -s "$XDG_CACHE_HOME/strobe/kernels" cache/strobe/kernels
export XDG_CACHE_HOME="$work/cache"
driver=$("$STROBE" info | sed -n 's/^ *driver *//p')
cat >cache/strobe/machine.json <<END_OF_RECORD
{"v":1, "machines":[{"gpu":"emulated GPU", "isa":"compute capability 9.0, 3 SMs, driver $driver",
 "library":"cuBLASLt 13.0.0", "threads":1, "date":"2026-01-01T00:00:00Z", "quick":true, "others":0,
 "l2_bytes":52428800, "products":[
 {"dtype":"bf16","flops_per_s":1e10,"flops_per_s_one_thread":1e10,"M":64,"N":64,"K":64,"kernel":"none"}],
 "copies":[{"bytes_per_thread":65536,"bytes_per_s":9e12,"bytes_per_s_one_thread":9e12},
 {"bytes_per_thread":1073741824,"bytes_per_s":1e9,"bytes_per_s_one_thread":1e9}]}]}
END_OF_RECORD
bench() {
    timeout 300 "$STROBE" bench attention --device=cuda --tokens=128 --heads=2 --kv_heads=1 \
        --samples=2 --flash_only --csv "$@" 2>log ||
        fail "$*: $(cat log)"
}
# column NAME: of the table in the file csv, without the heading
column() {
    awk -F, -v name="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; if (!at) exit 1; next }
        { print $at }' csv ||
        fail "no column $1: $(head -1 csv)"
}
is() { # is COLUMN VALUES
    [ "$(column "$1" | tr '\n' ' ' | sed 's/ $//')" = "$2" ] ||
        fail "$1: $(column "$1" | tr '\n' ' ')instead of $2"
}

# --- two head sizes, both masks, every variant of flash attention
bench --T=64 --head_size=64,128 --causal=true,false --hopper=true,false --deterministic=false,true \
    >csv
is head_size '64 64 64 64 64 64 64 64 128 128 128 128 128 128 128 128'
is causal 'true true true true false false false false true true true true false false false false'
is attention "$(for i in 1 2 3 4; do printf '%s ' flash 'flash portable' 'flash deterministic' \
    'flash portable deterministic'; done | sed 's/ $//')"
rows="wgmma mma wgmma mma"
is forward_kernel "$rows $rows $rows $rows"
rows="wgmma mma_sums wgmma mma"
is backward_kernel "$rows $rows $rows $rows"
# Two sequences of two heads. Only time and clock are measured; the other numbers are derived.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    function of(name) { return $at[name] }
    function wrong(what) { print what ": " $0; bad = 1 }
    function near(what, a, b) {
        if (a < 0.999 * b || a > 1.001 * b) wrong(what ": " a " and " b)
    }
    function flash() { return of("attention") == "flash" }
    flash() { f = of("forward_ms"); b = of("backward_ms") }
    { mhz = of("clock_mhz")
      near("clock", mhz / 1965, mhz < 1950 || mhz > 1980 ? 0 : mhz / 1965)
      near("clocks", of("forward_clocks_per_tile"), of("forward_ms") * mhz * 1e3 * 3 / 4)
      near("clocks", of("backward_clocks_per_tile"), of("backward_ms") * mhz * 1e3 * 3 / 4)
      flops = 4 * 2 * 2 * 64 * 64 * of("head_size") / (of("causal") == "true" ? 2 : 1)
      near("rate", of("forward_gflop_per_s"), flops / of("forward_ms") * 1e-6)
      near("rate", of("backward_gflop_per_s"), 2.5 * flops / of("backward_ms") * 1e-6)
      bytes = 2 * 128 * (4 + 2) * of("head_size")
      bound = flops / 1e10 > bytes / 1e9 ? flops / 1e10 : bytes / 1e9
      near("bound", of("forward_bound_percent"), 1e5 * bound / of("forward_ms"))
      bound = 2.5 * flops / 1e10 > 2 * bytes / 1e9 ? 2.5 * flops / 1e10 : 2 * bytes / 1e9
      near("bound", of("backward_bound_percent"), 1e5 * bound / of("backward_ms"))
      y = of("error_y"); dqkv = of("error_dqkv")
      if (!(y > 1e-4 && y < 3e-3 && dqkv > 1e-4 && dqkv < 5e-3)) wrong("error")
      if (flash() != (of("forward_times_flash") == "")) wrong("relative to flash")
      if (!flash()) near("relative to flash", of("forward_times_flash"), f / of("forward_ms"))
      if (!flash()) near("relative to flash", of("backward_times_flash"), b / of("backward_ms")) }
    END { exit bad || NR != 17 }' csv >wrong || fail "$(cat wrong; cat csv)"
grep -q 'GFLOP/s</title>' attention.svg &&
    grep -q 'flash portable deterministic, bf16, D 128, full' attention.svg ||
    fail "wrong picture: $(head -c 2000 attention.svg)"

# --- a GPU without telemetry has its nominal clock; errors are checked only on request
EMU_NVML=refuses bench --T=64 --head_size=64 --kv_heads=2 --check=false --hopper=false >csv
is clock_mhz 1500
is attention 'flash portable'
is backward_kernel mma_short
is error_y ''
is forward_times_flash ''

# --- Markdown: the names of the variants are explained in a separate paragraph
timeout 300 "$STROBE" bench attention --device=cuda --tokens=128 --heads=2 --samples=2 \
    --flash_only --T=64 --head_size=64 --hopper=true,false --markdown >table.md 2>log ||
    fail "--markdown: $(cat log)"
grep -B1 '^portable: without the kernels for compute capability 9.0' table.md | head -1 |
    grep -qx '' || fail "no such paragraph: $(cat table.md)"
grep -q '^20.*, emulated GPU, strobe .* ([0-9a-f]\{7,\}.*)\.$' table.md ||
    fail "no line with machine and commit: $(cat table.md)"

echo ok
