#!/bin/sh
# From a fresh clone to a result: installs what is missing, builds, gets a text, trains the small model of
# configs/shakespeare_char_cpu.conf twice, without and with flash attention, and shows what differs.
# usage: demo.sh [FROM]     or     make demo [FROM=FILE]: FILE is a text of your own
set -eu
cd "$(dirname "$0")/.."
from=${1:-}
data=shakespeare_char
[ -z "$from" ] || data=demo

say() { printf '\n--- %s\n' "$*"; }

say "dependencies"
tools/install_deps.sh

say "build"
make -j "$(nproc)"

say "data"
if [ -n "$from" ]; then
    ./strobe data $data --from "$from" --force
elif [ -e data/$data ]; then
    ./strobe data $data
else
    ./strobe data $data --fall_back
fi

say "two trainings, the same but for flash attention"
./strobe compare configs/shakespeare_char_cpu.conf --dataset=$data --flash=false,true \
    --out_dir=runs/demo --overwrite

say "what the second model writes"
cat runs/demo/flash=true/samples.txt

say "to look at"
echo "$PWD/runs/demo/report.html    curves and tables, in any browser"
echo "./strobe sample runs/demo/flash=true --start='O '"
