#!/bin/sh
# `strobe bench` on an emulated GPU: every line of a cell, replayed or not, has the CPU's loss; two
# cells of different types; a memory limit that only one of two cells keeps.
# test: slow; the GPU is emulated
. "$(dirname "$0")/gpu.sh"
. "$(dirname "$0")/tiny.sh"
tiny="$work/tiny.conf --n_layer=1 --batch_size=2 --block_size=16 --dropout=0"
all=--phase=inference,forward,backward,update,step

# losses OPTIONS...: of the cells, one per line
losses() {
    # shellcheck disable=SC2086
    "$STROBE" bench $tiny --warmup=3 --steps=2 --json "$@" 2>"$work/log" >"$work/json" ||
        fail "$*: $(cat "$work/log")"
    sed -n 's/.*"first_loss": \([0-9][0-9.]*\).*/\1/p' "$work/json"
}
near() { # near WHAT A B: to five digits
    awk -v a="$2" -v b="$3" 'BEGIN { d = a - b; exit !(a > 1 && d * d < 1e-10 * a * a) }' ||
        fail "$1: $2 and $3"
}
for line in inference backward step; do
    cpu=$(losses --device=cpu --phase=$line)
    near "$line" "$cpu" "$(losses --device=cuda --phase=$line)"
    near "$line, replayed" "$cpu" "$(losses --device=cuda --replay=true --phase=$line)"
done
near "all lines, replayed" "$(losses --device=cpu $all)" \
    "$(losses --device=cuda --replay=true $all)"
[ "$(grep -c '"samples": 2' "$work/json")" -eq 7 ] || fail "not seven lines: $(cat "$work/json")"
losses --device=cuda --replay=true --flash=true,false --phase=forward >"$work/none"
grep -q 'again in reversed order' "$work/json" ||
    fail "cells of a GPU do not run twice: $(cat "$work/json")"
grep -q 'with fewer than two steps' "$work/json" &&
    fail "it warns about a capture that the warm-up covers: $(cat "$work/json")"
losses --device=cuda --replay=true --warmup=1 --phase=forward >"$work/none"
grep -q 'that step is among the measured ones' "$work/json" ||
    fail "no warning about a capture in the timed steps: $(cat "$work/json")"
losses --device=cuda --block_size=16,512 --flash=false --phase=forward \
    --mem-limit=36MiB >"$work/none"
grep -q 'of memory, the limit is 36.0 MiB' "$work/json" ||
    fail "no cell was refused: $(cat "$work/json")"
[ "$(grep -c '"samples": 2' "$work/json")" -eq 1 ] || fail "not one cell ran: $(cat "$work/json")"

# What precedes the second step: kernels are compiled or read, loaded and chosen.
losses --device=cuda --each-step --phase=step >"$work/none"
for part in compile load choose; do
    [ "$(grep -c "\"${part}_ms\": [0-9]" "$work/json")" -ge 1 ] ||
        fail "no time for $part: $(cat "$work/json")"
done

# A captured graph needs memory that no plan knows of. A cell without that memory reports it, and
# the others run.
export EMU_MEMORY=60000000
losses --device=cuda --replay=true --block_size=16,512,32 --flash=false --warmup=2 \
    --phase=forward >"$work/none"
[ "$(grep -c '"samples": 2' "$work/json")" -eq 3 ] ||
    fail "three cells do not fit: $(cat "$work/json")"
export EMU_RECORDING=20000000
losses --device=cuda --replay=true --block_size=16,512,32 --flash=false --warmup=2 \
    --phase=forward >"$work/none"
grep -q 'did not fit: .*out of memory' "$work/json" ||
    fail "no cell says that it did not fit: $(cat "$work/json")"
[ "$(grep -c '"samples": 2' "$work/json")" -eq 2 ] || fail "not two cells ran: $(cat "$work/json")"
