#!/bin/sh
# Several ranks train what one rank trains: losses, checkpoints, resuming with another number of
# ranks; and what happens if a rank fails.
# test: slow
. "$(dirname "$0")/tiny.sh"
cd "$work"
more="--gradient_accumulation_steps=4 --max_iters=30 --bucket_mb=1"

# losses RUN: the losses of steps and evaluations
losses() {
    sed -n 's/.*"loss":\([^,}]*\).*/\1/p; s/.*"val_loss":\([^,}]*\).*/\1/p' "$1/log.jsonl"
}

# near A B [MOST]: the same losses within 1e-5, or MOST
near() {
    losses "$1" >a
    losses "$2" >b
    [ "$(wc -l <a)" -ge 30 ] || fail "$1 has too few losses"
    paste a b | awk -v most="${3:-1e-5}" '{ d = $1 - $2; if (d < 0) d = -d
        if (d > most * $2) bad = 1 }
        END { exit bad || NR < 30 }' || fail "$1 has other losses than $2"
    [ "$(wc -l <a)" = "$(wc -l <b)" ] || fail "$1 has another number of losses than $2"
}

"$STROBE" train tiny.conf $more --out_dir=one >log
for ranks in 2 4; do
    "$STROBE" train tiny.conf $more --out_dir=threads$ranks --ranks=$ranks --ranks_by=threads >log
    near threads$ranks one
done
for overlap in none flat parameter; do
    "$STROBE" train tiny.conf $more --out_dir=$overlap --ranks=2 --ranks_by=threads \
        --overlap=$overlap >log
    near $overlap one
    cmp $overlap/ckpt/000030/model.safetensors threads2/ckpt/000030/model.safetensors ||
        fail "$overlap: other weights"
done
grep -q '^ranks = 2$' threads2/config.conf || fail "config.conf has no ranks"

for ranks in 2 4; do
    "$STROBE" train tiny.conf $more --out_dir=zero$ranks --ranks=$ranks --ranks_by=threads \
        --zero=1 >log
    near zero$ranks one
done
expect 2 "zero=1 needs overlap=flat or overlap=bucket" \
    "$STROBE" train tiny.conf $more --out_dir=no --ranks=2 --zero=1 --overlap=none

# zero=3: also if sizes are odd, and what was not written is NaN; repeated bit for bit
for ranks in 2 4; do
    "$STROBE" train tiny.conf $more --out_dir=units$ranks --ranks=$ranks --ranks_by=threads \
        --zero=3 >log
    near units$ranks one
done
cmp units2/samples.txt one/samples.txt || fail "zero=3: other samples"
odd="--gradient_accumulation_steps=3 --eval_iters=5 --n_embd=18 --n_head=3"
"$STROBE" train tiny.conf $more $odd --out_dir=odd >log
for run in "bucket --poison=true --check_nan=true" "none --reuse=false" \
    "bucket --recompute=block"; do
    "$STROBE" train tiny.conf $more $odd --out_dir=odd3 --ranks=3 --ranks_by=threads --zero=3 \
        --overlap=$run >log
    near odd3 odd
    file=odd3/ckpt/000030/model.safetensors
    [ ! -e weights ] || cmp weights $file || fail "zero=3 $run: other weights"
    cp $file weights
    rm -rf odd3
done
"$STROBE" train tiny.conf $more --out_dir=sixteen --dtype=bfloat16 >log
"$STROBE" train tiny.conf $more --out_dir=sixteen2 --dtype=bfloat16 --ranks=2 --zero=3 \
    --ranks_by=threads >log
near sixteen2 sixteen 2e-3
expect 2 "zero=3 needs overlap=none or overlap=bucket" \
    "$STROBE" train tiny.conf $more --out_dir=no --ranks=2 --zero=3 --overlap=flat
expect 1 "zero=3 does not know dtype=float8" \
    "$STROBE" train tiny.conf $more --out_dir=no --ranks=2 --zero=3 --dtype=float8

# held ZERO RANKS: bytes of a rank for weights, gradients and the optimizer's state
held() {
    "$STROBE" memory tiny.conf --n_layer=8 --n_embd=128 --vocab=16 --gradient_accumulation_steps=4 \
        --zero="$1" --ranks="$2" --csv |
        awk -F, '/^(weights|gradients|optimizer state),/ { n += $2 } END { print n }'
}
echo "$(held 0 1) $(held 3 4)" | awk '{ exit !($1 / $2 > 3.99 && $1 / $2 < 4.01) }' ||
    fail "memory: $(held 0 1) bytes of one rank, $(held 3 4) of four with zero=3"

# rank 0 gathers a bucket at a time, here 1 MiB, into two moments of 1.5 million parameters
expect 0 "rank 0 gathers them in 13.1 MiB more of host memory, each other rank in 1.0 MiB" \
    "$STROBE" memory tiny.conf --n_layer=8 --n_embd=128 --vocab=16 --gradient_accumulation_steps=4 \
    --zero=1 --ranks=2 --bucket_mb=1

# a checkpoint does not depend on the number of ranks: saved by 4, continued by 2 and by 1
for ranks in 1 2 4; do
    cp -r threads4 from4_$ranks
    "$STROBE" train from4_$ranks --init_from=resume --max_iters=40 --ranks=$ranks \
        --ranks_by=threads >log
done
for zero in 0 1; do
    cp -r zero4 zero4_$zero
    "$STROBE" train zero4_$zero --init_from=resume --max_iters=40 --ranks=2 --zero=$zero \
        --ranks_by=threads >log
done
for options in "1 0" "2 0" "2 1" "4 3"; do
    from=units4_$(echo $options | tr ' ' _)
    cp -r units4 $from
    "$STROBE" train $from --init_from=resume --max_iters=40 --ranks=${options% *} \
        --zero=${options#* } --ranks_by=threads >log
done
cp -r one one40
"$STROBE" train one40 --init_from=resume --max_iters=40 >log
for run in from4_1 from4_2 from4_4 zero4_0 zero4_1 units4_1_0 units4_2_0 units4_2_1 units4_4_3; do
    near $run one40
done

# OMP_NUM_THREADS counts the threads of each rank
OMP_NUM_THREADS=3 "$STROBE" train tiny.conf $more --max_iters=2 --ranks=2 --ranks_by=threads \
    --threads=0 --out_dir=openmp >log 2>err
grep -q '"threads": 3' openmp/*.json || fail "OMP_NUM_THREADS=3: other threads"

# refusals
expect 2 "cannot be dealt to ranks = 3" "$STROBE" train tiny.conf $more --ranks=3 --out_dir=no
two="--ranks=2 --gradient_accumulation_steps=2 --vocab=16 --steps=2"
expect 1 "this command runs one rank" "$STROBE" bench tiny.conf $two
expect 1 "only whole steps can be timed" "$STROBE" bench tiny.conf $two --phase=forward,step
expect 1 "only \`strobe profile\` measures" \
    "$STROBE" bench tiny.conf $two --phase=step --ranks_by=mpi
expect 2 "the ladder sets overlap itself" "$STROBE" ladder tiny.conf $two --overlap=flat
"$STROBE" bench tiny.conf $two --phase=step --ranks=1,2 >table || fail "bench: $(cat table)"
awk '/^tiny/ && $2 == 1 { one = $NF } /^tiny/ && $2 == 2 { two = $NF }
    END { d = one - two; exit !(one > 1 && d * d < 1e-8) }' table || fail "losses: $(cat table)"
[ -e no ] && fail "a refused training left its folder"
"$STROBE" graph tiny.conf --ranks=2 --gradient_accumulation_steps=2 --vocab=16 >graph
grep -q ALL_REDUCE graph || fail "no ALL_REDUCE in the graph"

# a profile of two ranks: hidden and exposed communication, and a row of tracks for each rank
export XDG_CACHE_HOME="$work/cache"
"$STROBE" profile tiny.conf $two --out_dir=profile >table || fail "profile: $(cat table)"
grep -q 'strobe machine --ranks=2' table || fail "no word of the link: $(cat table)"
expect 0 '64.0 MiB, sent by each rank' "$STROBE" machine --quick --ranks=2
expect 2 "must be 1 to 1024" "$STROBE" machine --quick --ranks=0
"$STROBE" profile tiny.conf $two --zero=3 --out_dir=profile >table || fail "profile: $(cat table)"
grep -q '^weights.1 *ALL_GATHER' table && grep -q '^gradients.1 *REDUCE_SCATTER' table ||
    fail "zero=3: no collectives: $(cat table)"
"$STROBE" profile tiny.conf $two --out_dir=profile >table || fail "profile: $(cat table)"
grep -q 'of link' table || fail "no ceiling: $(cat table)"
grep -q '^bucket.0 *ALL_REDUCE' table || fail "no collective: $(cat table)"
grep -q 'rank 0 ... 1 waits for' table || fail "no waiting: $(cat table)"
trace=profile/trace.json
[ -e $trace ] || gzip -d $trace.gz
for name in 'rank 0, device: cpu' 'rank 1"' '"communication"' 'wait for the slowest rank'; do
    grep -q "$name" $trace || fail "no $name in the trace"
done
# the communication of a step is as long in the trace of both steps as the profile says
said=$(grep -o '"communication":{"ms":[0-9.e-]*' profile/profile.json | sed 's/.*://')
row=$(sed -n '/"communication"}/{s/.*"pid":\([0-9]*,"tid":[0-9]*\).*/\1/p;q;}' $trace)
shown=$(grep "\"ph\":\"X\",\"pid\":$row," $trace | sed 's/.*"dur":\([0-9.]*\).*/\1/' |
    awk '{ us += $1 } END { printf "%.4f", us / 2000 }')
echo "$said $shown" | awk '{ exit !($1 > 0 && $2 > 0.999 * $1 && $2 < 1.001 * $1) }' ||
    fail "communication of $said ms in the profile, $shown ms in the trace"

# Ctrl-C: the step ends, and rank 0 saves
"$STROBE" train tiny.conf $more --out_dir=long --ranks=2 --ranks_by=threads --max_iters=100000 \
    --eval_interval=1000000 2>err >log &
pid=$!
while ! [ -s long/log.jsonl ] || [ "$(wc -l <long/log.jsonl)" -lt 5 ]; do sleep 0.1; done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code = 130 ] || fail "Ctrl-C: exit code $code: $(cat err)"
grep -q "checkpoint is saved" err || fail "Ctrl-C: $(cat err)"
last=$(ls long/ckpt | tail -n 1 | sed 's/^0*//')
"$STROBE" train long --init_from=resume --max_iters=$((last + 2)) >log

command -v mpirun >/dev/null && "$STROBE" info 2>/dev/null | grep -q 'joined by MPI' || {
    echo "skipped: ranks that are processes (no MPI)"
    exit 0
}

# MPI and its plugins do not release all of their memory
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
"$STROBE" train tiny.conf $more --out_dir=mpi2 --ranks=2 --ranks_by=mpi >log
near mpi2 one
"$STROBE" train tiny.conf $more --out_dir=mpi_zero --ranks=2 --ranks_by=mpi --zero=1 >log
near mpi_zero one
"$STROBE" train tiny.conf $more --out_dir=mpi_units --ranks=4 --ranks_by=mpi --zero=3 >log
near mpi_units one
mpi="mpirun -q --oversubscribe --bind-to none"
[ "$(id -u)" = 0 ] && mpi="$mpi --allow-run-as-root"
$mpi -n 4 "$STROBE" train tiny.conf $more --out_dir=mpi4 >log 2>err || fail "mpirun: $(cat err)"
near mpi4 one
expect 2 "MPI started 2 processes" $mpi -n 2 "$STROBE" train tiny.conf $more --ranks=4 --out_dir=no
expect 2 "was started by another command" \
    $mpi -n 1 "$STROBE" train tiny.conf $more --out_dir=no : \
    -n 1 "$STROBE" train tiny.conf $more --out_dir=other

[ "$(STROBE_LOG=info "$STROBE" compare tiny.conf $more --max_iters=2 --ranks=2 --ranks_by=mpi \
    --overlap=flat,none --out_dir=compared 2>&1 >log | grep -c 'joined by mpi')" = 2 ] ||
    fail "compare: the ranks are not processes"

# a profile of processes has the collectives of rank 0; the others do not print
"$STROBE" profile tiny.conf $two --ranks_by=mpi --out_dir=by_mpi >table 2>err ||
    fail "profile by MPI: $(cat table err)"
[ "$(grep -c '^bucket.0 *ALL_REDUCE' table)" = 1 ] || fail "profile by MPI: $(cat table)"
grep -q 'includes the time in which it waits' table || fail "profile by MPI: $(cat table)"
expect 2 "MPI started 2 processes" $mpi -n 2 "$STROBE" profile tiny.conf $more --ranks=4
expect 2 "--vocab is 1 to" "$STROBE" profile tiny.conf $two --ranks_by=mpi --vocab=-1

# start RANKS: a training by MPI that goes on until it is stopped; $pid, and $last: the last rank
start() {
    rm -rf endless
    $mpi -n "$1" "$STROBE" train tiny.conf $more --out_dir=endless --max_iters=100000 \
        --rank_timeout=3 --eval_interval=20 >log 2>err &
    pid=$!
    while [ "$(ls endless/ckpt 2>/dev/null | wc -l)" -lt 1 ]; do sleep 0.1; done
    last=$(pgrep -P "$pid" -x strobe | sort -n | tail -n 1)
}

# ended WORDS: within 30 s, with one sentence, and its last checkpoint is whole. A rank that mpirun
# continues after all have ended says that rank 0 did.
ended() {
    at=$(date +%s)
    code=0
    wait $pid || code=$?
    [ $(($(date +%s) - at)) -lt 30 ] || fail "$1: all ended only after 30 s"
    [ $code != 0 ] || fail "$1: exit code 0"
    grep -q "$1" err || fail "$1: $(cat err)"
    [ "$(grep '^strobe: ' err | grep -vc ': warning: \|: rank 0 .* has ended$')" = 1 ] ||
        fail "$1: not one sentence: $(cat err)"
    "$STROBE" eval endless >log || fail "$1: the checkpoint cannot be read"
}

start 2
kill -9 "$last"
ended "rank 1 (process $last on .*) has ended"
start 2
kill -STOP "$last"
ended "rank 1 (process $last on .*) is stopped"
start 4
kill -9 "$last"
ended "rank 3 (process $last on .*) has ended"
