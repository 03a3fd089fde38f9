#!/bin/sh
# A model is trained, evaluated and sampled; wrong usage is refused with a message.
. "$(dirname "$0")/tiny.sh"
cd "$work"
run=runs/a

# --- train
expect 0 '300 iterations' "$STROBE" train tiny.conf --out_dir=$run
for file in config.conf env.json log.jsonl plan.txt plan.json summary.json samples.txt; do
    [ -s $run/$file ] || fail "no $file"
done
[ "$(grep -c '"kind":"step"' $run/log.jsonl)" = 300 ] || fail "not 300 steps in the log"
[ "$(grep -c '"kind":"eval"' $run/log.jsonl)" = 13 ] || fail "not 13 evaluations in the log"
tail -n 1 $run/log.jsonl | grep -q '"kind":"wall","iter":299,"startup":.*"samples":[0-9]' ||
    fail "the log does not end with the wall time: $(tail -n 1 $run/log.jsonl)"
grep -q '"complete": true' $run/summary.json || fail "the summary is not complete"
[ "$(ls $run/ckpt | wc -l)" -le 3 ] || fail "more than three checkpoints are kept"
first=$(sed -n '1s/.*"val_loss":\([0-9]*\.[0-9]\).*/\1/p' $run/log.jsonl)
last=$(sed -n '/"kind":"eval"/h; ${x; s/.*"val_loss":\([0-9]*\.[0-9]\).*/\1/p}' $run/log.jsonl)
[ "$first" = 2.1 ] || [ "$first" = 2.2 ] || fail "the loss of an untrained model is $first"
[ "${last%.*}" = 1 ] || fail "the loss of the trained model is $last"

# --- MFU: where the peaks are known, in the log, the summary and the report; above 100 % if a peak
# was measured too low
"$STROBE" machine --quick --device=cpu --threads=1 >/dev/null
expect 0 ' tokens/s, MFU ' "$STROBE" train tiny.conf --out_dir=runs/mfu --max_iters=20
grep -q '"mfu":[0-9.]*' runs/mfu/log.jsonl || fail "no MFU in $(tail -n 1 runs/mfu/log.jsonl)"
grep -q '"mfu": [0-9]' runs/mfu/summary.json || fail "no MFU in $(cat runs/mfu/summary.json)"
expect 0 ' MFU ' "$STROBE" report runs/mfu
peaks=${XDG_CACHE_HOME:-$HOME/.cache}/strobe/machine.json
sed 's/"\(flops_per_s[a-z_]*\)": *[0-9][0-9.e+]*/"\1": 1e6/g' "$peaks" >low
mkdir -p low_peaks/strobe && mv low low_peaks/strobe/machine.json
STROBE_LOG=info expect 0 '(the peak was measured too low;' env XDG_CACHE_HOME="$work/low_peaks" \
    "$STROBE" train tiny.conf --out_dir=runs/low --max_iters=20
awk '/"mfu"/ { exit !($2 + 0 > 1) }' runs/low/summary.json || fail "$(cat runs/low/summary.json)"

# --- eval: exactly the loss that training logged
"$STROBE" eval $run --json >eval.json
logged=$(sed -n '/"kind":"eval"/h; ${x; s/.*"val_loss":\([0-9.]*\)}/\1/p}' $run/log.jsonl)
grep -q "\"val_loss\": $logged" eval.json || fail "eval has $(cat eval.json), the log $logged"
expect 0 'val loss' "$STROBE" eval $run/ckpt/000300 --eval_iters=3

# --- keys without effect, and the number of threads that OpenMP's variables set
idle() {
    text=$1
    shift
    STROBE_LOG=info expect 0 "$text" "$STROBE" train "$@"
}
idle 'dropout = 0.0019 has no effect' tiny.conf --out_dir=runs/idle --max_iters=25 --dropout=0.0019
idle 'the warm-up of warmup_iters = 30 is' tiny.conf --out_dir=runs/warm --max_iters=25 \
    --warmup_iters=30
idle 'stays at min_lr = 0.001 from iteration 25' tiny.conf --out_dir=runs/idle --dropout=0.0019 \
    --init_from=resume --max_iters=50 --lr_decay_iters=20
STROBE_LOG=info "$STROBE" train tiny.conf --out_dir=runs/heeded --max_iters=12 2>&1 |
    grep -e 'has no effect' -e 'the warm-up of' -e 'stays at' && fail 'a key without effect'
export OMP_NUM_THREADS=1
idle 'threads      1,' tiny.conf --out_dir=runs/omp --max_iters=2 --warmup_iters=0 --threads=0
unset OMP_NUM_THREADS
export OMP_THREAD_LIMIT=1
idle 'threads      1,' tiny.conf --out_dir=runs/limit --max_iters=2 --warmup_iters=0 --threads=2
unset OMP_THREAD_LIMIT
grep -q '"threads": 1,' runs/limit/env.json || fail 'env.json has other threads'

# --- iteration 0 counts for the best loss, and there is no checkpoint of it
words='after 0 iterations, of which there is no checkpoint'
STROBE_LOG=info expect 0 "$words" "$STROBE" train tiny.conf \
    --out_dir=runs/worse --max_iters=25 --learning_rate=10 --min_lr=10 --warmup_iters=0 \
    --grad_clip=0
grep -q '^iter 25:' out || fail "no loss: $(cat out)"
grep -q 'the best yet' out && fail "a worse loss is the best yet: $(cat out)"
expect 2 'is that of iteration 0' "$STROBE" sample runs/worse --best

# --- a text learned by heart: its loss and its bits per byte keep their digits
awk 'BEGIN { while (i++ < 500) printf "abcdefgh" }' >learned
"$STROBE" data learned --from=learned --data_dir=texts >/dev/null
"$STROBE" train tiny.conf --dataset=learned --data_dir=texts --dropout=0 --max_iters=400 \
    --eval_interval=400 --decay_lr=false --out_dir=runs/learned >/dev/null
"$STROBE" eval runs/learned >out
grep -q 'val loss [0-9.]*e-0[5-9]' out || fail "not learned: $(cat out)"
grep -q ' 0\.0000' out && fail "a loss of zero: $(cat out)"

# --- one step has no deviation, and is too short for telemetry
"$STROBE" train tiny.conf --out_dir=runs/once --max_iters=1 >/dev/null
for key in ms_std gauges; do
    grep -q "\"$key\": null" runs/once/summary.json || fail "$key: $(cat runs/once/summary.json)"
done

# --- texts as people have them
awk 1 text >lines
sed 's/$/\r/' lines >crlf
{ printf '\357\273\277' && cat lines; } >bom
tr '\n' '\r' <lines >cr
"$STROBE" data lines --from=- --data_dir=texts <lines >/dev/null
expect 0 'carriage returns' "$STROBE" data crlf --from=crlf --data_dir=texts
expect 0 'byte order mark, which becomes a token' "$STROBE" data bom --from=bom --data_dir=texts
for name in crlf bom cr; do
    "$STROBE" data unix_$name --from=$name --data_dir=texts --newlines=unix >out 2>&1
    [ "$(grep -c -e warning -e carriage out)" = 0 ] || fail "$(cat out)"
    cmp texts/unix_$name/train.bin texts/lines/train.bin || fail "$name is not converted"
done
"$STROBE" data pipe --from=- --data_dir=texts <text >/dev/null
cmp texts/pipe/val.bin data/tiny/val.bin || fail 'a pipe gives another set'
gzip -c text >packed
words='is compressed: unpack it first, as in `gunzip -c FILE'
expect 1 "$words" "$STROBE" data packed --from=packed --data_dir=texts
tr '\n' ' ' <text >line
"$STROBE" data line --from=line --data_dir=texts >/dev/null
expect 0 '2 iterations' "$STROBE" train tiny.conf --dataset=line --data_dir=texts --max_iters=2 \
    --out_dir=runs/line
STROBE_LOG=info expect 0 'starting with its first token' "$STROBE" sample runs/line \
    --num_samples=1 --max_new_tokens=9
{ printf '\357\273\277' && cat tiny.conf; } >bom.conf
expect 0 '2 iterations' "$STROBE" train bom.conf --max_iters=2 --out_dir=runs/bom
expect 2 'only a shell expands ~' "$STROBE" train tiny.conf --out_dir='~/run'
expect 2 'only a shell expands ~' "$STROBE" data tilde --from=text --data_dir='~/data'

# --- a path may contain '=': compare names its runs like that
mkdir runs/x
cp -r $run runs/x/flash=true
expect 0 'val loss' "$STROBE" eval runs/x/flash=true --eval_iters=3
expect 0 'kernels' "$STROBE" plan runs/x/flash=true/config.conf

# --- a checkpoint with one flipped bit is refused, by its name and through its run
cp -r $run runs/flipped
model=runs/flipped/ckpt/000300/model.safetensors
printf '\377' | dd of=$model bs=1 seek=$(($(wc -c <$model) / 2)) conv=notrunc 2>/dev/null
cmp -s $model $run/ckpt/000300/model.safetensors && fail "the byte did not change"
expect 1 'model.safetensors is corrupt' "$STROBE" eval runs/flipped/ckpt/000300
expect 0 'skipping checkpoint 300, which is damaged' "$STROBE" eval runs/flipped

# --- sample: the same with and without the cache, from the run and from its checkpoint, also in
# another folder
"$STROBE" sample $run --num_samples=2 --max_new_tokens=80 --start='a' >with
"$STROBE" sample --num_samples=2 --max_new_tokens=80 --start='a' $run/ckpt/000300 \
    --cache=false >without
cmp with without || fail "the cache changes the text"
[ "$(head -c 1 with)" = a ] || fail "the prompt is not in the text"
printf deed >prompt
mv data moved # a run carries its vocabulary
expect 0 deed "$STROBE" sample $run --start=FILE:prompt --num_samples=1 --max_new_tokens=5
mv moved data
"$STROBE" sample $run --num_samples=2 --max_new_tokens=80 --start='a' --seed=5 >other
cmp -s with other && fail "another seed gives the same text"
"$STROBE" sample $run --json --num_samples=3 --max_new_tokens=4 | grep -c '^    "' | grep -qx 3 ||
    fail "the JSON does not have three texts"

# --- heads that share keys and values: trained, resumed to the same weights, sampled with a smaller
# cache
shared="--n_head=4 --n_kv_head=2 --max_iters=60 --lr_decay_iters=60 --eval_interval=30"
expect 0 '60 iterations' "$STROBE" train tiny.conf --out_dir=runs/shared $shared
expect 0 '30 iterations' "$STROBE" train tiny.conf --out_dir=runs/half $shared --max_iters=30
expect 0 '30 iterations' "$STROBE" train runs/half --init_from=resume --max_iters=60
cmp runs/shared/ckpt/000060/model.safetensors runs/half/ckpt/000060/model.safetensors ||
    fail "resumed training ends with other weights"
"$STROBE" sample runs/shared --num_samples=1 --max_new_tokens=80 --start='a' >with
"$STROBE" sample runs/shared --num_samples=1 --max_new_tokens=80 --start='a' --cache=false >without
cmp with without || fail "the cache changes the text of a model whose heads share keys"
expect 2 'n_kv_head = 2, not 4' "$STROBE" eval runs/shared --n_kv_head=4
expect 2 'n_head = 4 is not divisible by n_kv_head = 3' "$STROBE" train tiny.conf \
    --out_dir=runs/none --n_head=4 --n_kv_head=3

# Without an iteration there is no checkpoint to name.
expect 0 'next: strobe train runs/zero --init_from=resume --max_iters=N' \
    env STROBE_LOG=info "$STROBE" train tiny.conf --out_dir=runs/zero --max_iters=0
if grep -q 'strobe sample' "$work/out"; then fail "a checkpoint is named: $(cat "$work/out")"; fi
expect 1 'if it was trained with --max_iters=0' "$STROBE" sample runs/zero

# --- SGD with momentum: trained, resumed to the same weights and momentum, half of AdamW's state
sgd="--optimizer=sgd --learning_rate=0.1 --min_lr=0.01"
sgd="$sgd --max_iters=60 --lr_decay_iters=60 --eval_interval=30"
expect 0 '60 iterations' "$STROBE" train tiny.conf --out_dir=runs/sgd $sgd
expect 0 '30 iterations' "$STROBE" train tiny.conf --out_dir=runs/sgd_half $sgd --max_iters=30
expect 2 'optimizer = sgd, not adamw' "$STROBE" train runs/sgd_half --init_from=resume \
    --optimizer=adamw
expect 0 '30 iterations' "$STROBE" train runs/sgd_half --init_from=resume --max_iters=60
for file in model optimizer; do
    cmp runs/sgd/ckpt/000060/$file.safetensors runs/sgd_half/ckpt/000060/$file.safetensors ||
        fail "resumed training with SGD ends with another $file"
done
grep -aq 'wte.weight.momentum' runs/sgd/ckpt/000060/optimizer.safetensors ||
    fail "the momentum has no name"
of_adamw=$(wc -c <$run/ckpt/000300/optimizer.safetensors) \
    of_sgd=$(wc -c <runs/sgd/ckpt/000060/optimizer.safetensors)
[ $((of_sgd * 10)) -lt $((of_adamw * 6)) ] || fail "SGD keeps $of_sgd bytes, AdamW $of_adamw"
state_of() { "$STROBE" memory tiny.conf "$@" --json | sed -n 's/.*"optimizer": *\([0-9]*\).*/\1/p' |
    head -n 1; }
[ "$(state_of)" = $((2 * $(state_of --optimizer=sgd))) ] ||
    fail "strobe memory: $(state_of), $(state_of --optimizer=sgd)"
expect 0 'val loss' "$STROBE" eval runs/sgd

# --- a run that is older than those keys
cp -r $run runs/old
sed -i '/^n_kv_head/d; /^optimizer/d; /^momentum/d' runs/old/config.conf
grep -q n_kv_head $run/config.conf || fail "n_kv_head is missing in the run"
"$STROBE" eval runs/old --json >eval.json
grep -q "\"val_loss\": $logged" eval.json || fail "a run without n_kv_head: $(cat eval.json)"
expect 0 '1 iteration' "$STROBE" train runs/old --init_from=resume --max_iters=301

# --- the checkpoint's own configuration decides; a changed character of config.conf is named
cp -r $run runs/changed
sed -i 's/^n_head = 2/n_head = 4/; s/^gelu = erf/gelu = tanh/' runs/changed/config.conf
expect 0 'n_head = 2, not 4; gelu = erf, not tanh' "$STROBE" eval runs/changed
"$STROBE" eval runs/changed --json >eval.json 2>/dev/null
grep -q "\"val_loss\": $logged" eval.json || fail "changed config.conf: $(cat eval.json)"
expect 0 'n_head = 2, not 4' "$STROBE" sample runs/changed --num_samples=1 --max_new_tokens=5
expect 0 'n_head = 2, not 4' "$STROBE" train runs/changed --init_from=resume --max_iters=301
grep -qx 'n_head = 2' runs/changed/config.conf || fail "the run went on with another n_head"
expect 2 'n_head = 2, not 4' "$STROBE" train runs/changed --init_from=resume --n_head=4
expect 2 'n_head = 2, not 4' "$STROBE" eval runs/changed --n_head=4
head -c 100 $run/config.conf >runs/changed/config.conf # cut within a line
expect 0 'is used' "$STROBE" eval runs/changed
echo 'n_layer' >>runs/changed/config.conf
expect 0 'is used' "$STROBE" train runs/changed --init_from=resume --max_iters=302
[ "$(wc -l <runs/changed/config.conf)" -gt 50 ] || fail "config.conf was not written again"

# --- a name with a newline and a terminal escape is shown, not sent
expect 0 'run          runs/a\nb\x1b[31m' env STROBE_LOG=info "$STROBE" train tiny.conf \
    --max_iters=1 --out_dir="$(printf 'runs/a\nb\033[31m')"

# --- wrong usage
expect 2 'no configuration given' "$STROBE" train
expect 1 'there is no file or folder nowhere;' "$STROBE" train nowhere --init_from=resume
expect 1 'nowhere.conf' "$STROBE" train nowhere.conf
expect 2 'already contains a run, which finished after' "$STROBE" train tiny.conf --out_dir=$run
expect 2 'n_embd = 32, not 64' "$STROBE" train tiny.conf --out_dir=$run --n_embd=64 \
    --init_from=resume
expect 2 'runs/none contains no run to continue' "$STROBE" train tiny.conf --out_dir=runs/none \
    --init_from=resume
expect 2 'contradict each other' "$STROBE" train tiny.conf --overwrite --init_from=resume
expect 2 'n_layers' "$STROBE" train tiny.conf --n_layers=3
expect 1 'strobe data' "$STROBE" train tiny.conf --out_dir=runs/none --dataset=absent
expect 2 'no run given' "$STROBE" eval
expect 2 'neither a run directory nor a checkpoint' "$STROBE" sample data
expect 2 'n_embd = 32, not 64' "$STROBE" eval $run --n_embd=64
expect 2 'the character "Z"' "$STROBE" sample $run --start=Z
expect 2 'two runs' "$STROBE" sample $run $run
[ -e runs/none ] && fail "a refused command created a directory"
expect 1 'strobe data' "$STROBE" train tiny.conf --out_dir=deep/er/none --dataset=absent
[ -e deep ] && fail "a refused command created its parents"

# --- a data set of the same name with other characters, equally many, so that the shapes match
tr a z <text >other_text
"$STROBE" data tiny --data_dir=other_data --from other_text >/dev/null
expect 2 'differs from that of the run' "$STROBE" eval $run --data_dir=other_data
expect 2 'differs from that of the run' "$STROBE" train $run --init_from=resume \
    --data_dir=other_data
grep -q '"z"' $run/vocabulary.json && fail "what was refused changed the run"

# --- replaced on request
expect 0 '2 iterations' "$STROBE" train tiny.conf --out_dir=$run --max_iters=2 --overwrite
[ "$(grep -c '"kind":"step"' $run/log.jsonl)" = 2 ] || fail "the older log was not replaced"
[ "$(ls $run/ckpt)" = 000002 ] || fail "older checkpoints were not removed"

# --- checkpoints that are gone, or no folder: nothing is changed
mv $run/ckpt kept_ckpt
cp $run/log.jsonl before
expect 1 'its checkpoints are gone' "$STROBE" train $run --init_from=resume
cmp before $run/log.jsonl || fail "the log of a run without its checkpoints was changed"
echo mine >$run/ckpt
expect 2 'ckpt is not a folder' "$STROBE" train tiny.conf --out_dir=$run --max_iters=2 --overwrite
[ "$(cat $run/ckpt)" = mine ] || fail "a file named ckpt was removed"
rm $run/ckpt
mv kept_ckpt $run/ckpt

# --- a diverging run stops, reports where, and keeps its checkpoints
wild="--learning_rate=10 --weight_decay=10 --grad_clip=0 --decay_lr=false --eval_interval=2"
expect 1 'check_nan=true' "$STROBE" train tiny.conf --out_dir=runs/wild $wild
grep -q 'iteration' out || fail "the iteration is not printed: $(cat out)"
[ -e runs/wild/ckpt/000002/DONE ] || fail "the earlier checkpoint is gone"
last=$(ls runs/wild/ckpt | tail -n 1 | sed 's/^0*//')
expect 2 "which did not finish (its last checkpoint is of iteration $last): continue it with" \
    "$STROBE" train tiny.conf --out_dir=runs/wild
grep -qF '`strobe train runs/wild --init_from=resume`' out || fail "no command: $(cat out)"
expect 1 'is NaN or infinite' "$STROBE" train runs/wild --init_from=resume --check_nan=true
grep -q 'node [0-9]* [A-Z_]* ' out || fail "the operator is not printed: $(cat out)"

# --- comparisons
expect 0 'flash=true' "$STROBE" compare tiny.conf --flash=false,true --max_iters=20 --out_dir=runs/c
[ -s runs/c/flash=false/summary.json ] && [ -s runs/c/flash=true/summary.json ] ||
    fail "a run is missing"
[ -s runs/c/report.html ] || fail "no page"
of=$(sed -n 's/.*"kind":"turn".*"of":\([0-9]*\),.*/\1/p' runs/c/flash=*/log.jsonl | sort -u)
[ "$(echo "$of" | wc -w)" = 1 ] || fail "the variants did not take turns with each other: $of"
for flash in false true; do # a warm-up of five steps, then one step a turn
    [ "$(grep -c '"kind":"turn"' runs/c/flash=$flash/log.jsonl)" = 15 ] ||
        fail "flash=$flash: not 15 turns: $(grep '"kind":"turn"' runs/c/flash=$flash/log.jsonl)"
done
grep -q 'in 15 turns' out || fail "no verdict by turns: $(cat out)"
# a variant that diverges does not end the other, and the report and the gate say so
expect 1 'learning_rate=10 diverged' "$STROBE" compare tiny.conf --learning_rate=1e-3,10 \
    --weight_decay=10 --grad_clip=0 --decay_lr=false --max_iters=40 --out_dir=runs/d
[ "$(grep -c '"kind":"step"' runs/d/learning_rate=1e-3/log.jsonl)" = 40 ] ||
    fail "the other variant did not finish: $(cat out)"
[ -s runs/d/report.html ] || fail "no page"
grep -q '"end": "nan"' runs/d/learning_rate=10/summary.json || fail "no record of the end"
grep -q '"end": "finished"' runs/d/learning_rate=1e-3/summary.json || fail "no record of the end"
expect 3 'regression: learning_rate=10 diverged' "$STROBE" report \
    --baseline=runs/d/learning_rate=1e-3 runs/d/learning_rate=10
expect 0 'has the same plan as seed=1' "$STROBE" compare tiny.conf --seed=1,2 --dropout=0 \
    --max_iters=12 --out_dir=runs/e
expect 0 'measured ' "$STROBE" compare tiny.conf --flash=false,true --max_iters=20 \
    --out_dir=runs/f --one-by-one
[ -z "$(cat runs/f/*/log.jsonl | grep '"kind":"turn"')" ] || fail "--one-by-one took turns"
"$STROBE" train tiny.conf --out_dir=runs/g --flash=false --max_iters=20 >out 2>&1
timeless runs/g >alone
timeless runs/c/flash=false >turned
cmp alone turned || fail "turns change what is learned"
# --- the same runs as a gate: slow attention plans more memory
expect 3 'regression: flash=false ' "$STROBE" report --baseline=runs/c/flash=true \
    runs/c/flash=false --junit=gate.xml
grep -q '<failure message="flash=false has .* of planned memory' gate.xml || fail "$(cat gate.xml)"
expect 0 'passed       memory' "$STROBE" report --baseline=runs/e/seed=1 runs/e/seed=2
"$STROBE" report --baseline=runs/e/seed=1 runs/e/seed=2 --json >json 2>out
grep -q '"gate": {' json || fail "--json has no gate: $(cat json)"
expect 2 'needs something to hold against it' "$STROBE" report --baseline=runs/g runs/g
for of in g p; do
    [ $of = g ] || set -- --n_layer=4
    "$STROBE" profile tiny.conf --steps=2 --trace-steps=0 --out_dir=runs/$of "$@" >/dev/null
done
expect 3 'regression   memory         p has' "$STROBE" report --baseline=runs/g runs/p
expect 2 'flash=true has no profile, and the baseline has no run' "$STROBE" report \
    --baseline=runs/p runs/c/flash=true
expect 2 'p is a profile, and the baseline has none' "$STROBE" report \
    --baseline=runs/c/flash=true runs/c/flash=false runs/p
expect 2 'needs --baseline' "$STROBE" report runs/g --junit=gate.xml
expect 1 'learning_rate=10 failed; its message is above' "$STROBE" compare tiny.conf \
    --learning_rate=1e-2,10 --max_iters=$(fewer 2000 400) --out_dir=runs/h \
    $(echo $wild | cut -d' ' -f2-)
[ -n "$(ls runs/h/learning_rate=1e-2/ckpt)" ] || fail "the other variant was not saved: $(cat out)"
# One that is killed while it waits for its turn: the other is stopped, so that it waits surely,
# and then trains to its end.
pids_of() { # OUT_DIR: its processes that train
    for at in /proc/[0-9]*; do
        cat "$at/cmdline" 2>/dev/null | tr '\0' ' ' | grep -q "^strobe train .*=$1 " &&
            echo "${at#/proc/}"
    done || :
}
timeout -s KILL 300 "$STROBE" compare tiny.conf --seed=1,2 --max_iters=$(fewer 3000 1000) \
    --out_dir=runs/k >out 2>&1 &
compare=$! tries=0
until grep -qs '"kind":"turn"' runs/k/seed=2/log.jsonl; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || fail "no turn within 100 s: $(cat out)"
    sleep 0.1
done
first=$(pids_of runs/k/seed=1) second=$(pids_of runs/k/seed=2)
kill -STOP $first
sleep 1
kill -KILL $second
kill -CONT $first
code=0
wait $compare || code=$?
[ $code = 1 ] || fail "exit code $code after a variant was killed: $(cat out)"
grep -q 'seed=2 was killed by a signal: Killed' out || fail "$(cat out)"
expect 2 'already contains a run' "$STROBE" compare tiny.conf --flash=false,true --out_dir=runs/c
"$STROBE" train tiny.conf --out_dir='my run' --max_iters=2 >out 2>&1
expect 2 "strobe train 'my run' --init_from=resume" "$STROBE" train tiny.conf --out_dir='my run'
cp $run/report.html before
expect 0 'flash=true' "$STROBE" compare $run --flash=false,true --max_iters=2
cmp before $run/report.html || fail "the page of a run was replaced by a comparison"
[ -s $run-variants/report.html ] || fail "no page of the variants"
expect 2 'nothing to compare' "$STROBE" compare tiny.conf --flash=false
expect 2 'flash must be one of: true, false' "$STROBE" compare tiny.conf --flash=false,maybe \
    --out_dir=runs/d
expect 2 'more than 16 runs' "$STROBE" compare tiny.conf --seed=1,2,3,4,5,6 --n_head=1,2,4 \
    --out_dir=runs/d
echo ok
