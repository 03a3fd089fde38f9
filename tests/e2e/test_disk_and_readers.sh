#!/bin/sh
# A disk that is too small is refused before the first step; no save waits for a reader; files of a
# checkpoint are read only up to the size that they can have.
# test: slow release; readers that stall and disks that fill up concern the system, not memory
. "$(dirname "$0")/tiny.sh"
cd "$work"

# --- the disk
mkdir small
cat >inner <<'E2'
mount -t tmpfs -o size=500k tmpfs small 2>/dev/null || exit 0
"$STROBE" train tiny.conf --out_dir=small/run >out 2>&1
echo $? >code
ls small/run >left 2>/dev/null
"$STROBE" train tiny.conf --out_dir=small/run $one >one 2>&1
echo $? >code_of_one
rm -r small/run
"$STROBE" train tiny.conf --out_dir=small/run --eval_iters=1 --max_iters=1000000 \
    --eval_interval=1000000 --log_interval=1000000 >full 2>&1 &
while ! [ -e small/run/log.jsonl ]; do sleep 0.1; done
while ! grep -q eval small/run/log.jsonl; do sleep 0.1; done
dd if=/dev/zero of=small/others bs=1k count=$(($(df -k --output=avail small | tail -n 1) - 40)) 2>&1
kill -TERM $!
wait $!
cp small/run/summary.json full.json
E2
export STROBE one="--eval_iters=1 --max_iters=4 --eval_interval=4"
unshare -rm sh inner 2>/dev/null || :
if [ -e code ]; then
    [ "$(cat code)" = 1 ] || fail "a disk that is too small is not refused: $(cat out)"
    grep -q 'this run will write .* to small/run .* it replaces: free some' out || fail "$(cat out)"
    grep -q '^iter 0' out && fail "it is noticed late: $(cat out)"
    [ ! -s left ] || fail "files are left: $(cat left)"
    [ "$(cat code_of_one)" = 0 ] || fail "one checkpoint fits: $(cat one)"
    grep -q '"end": "no disk"' full.json || fail "the disk was full: $(cat full full.json)"
fi
STROBE_LOG=info expect 0 ' for 1 checkpoint of' "$STROBE" train tiny.conf --out_dir=run \
    --eval_iters=1 --max_iters=4 --eval_interval=4

# --- a reader that stalls: the pipe is full, and SIGTERM still saves and ends the training
mkfifo pipe
exec 3<>pipe # no one reads it
dd if=/dev/zero of=pipe bs=4096 count=13 2>/dev/null
STROBE_LOG=info "$STROBE" train tiny.conf --out_dir=stalled --max_iters=1000000 --eval_interval=1 \
    --eval_iters=1 >pipe 2>&1 3>&- &
training=$!
size=-1
tries=0
while :; do # until it waits for the reader
    tries=$((tries + 1))
    [ $tries -lt 120 ] || fail "the training does not wait for its reader"
    sleep 1
    now=$(cat stalled/log.jsonl 2>/dev/null | wc -c)
    [ "$now" != "$size" ] || [ "$now" = 0 ] || break
    size=$now
done
kill -TERM $training
i=0
while kill -0 $training 2>/dev/null; do
    i=$((i + 1))
    [ $i -lt 200 ] || fail "SIGTERM waits for a reader"
    sleep 0.1
done
code=0
wait $training || code=$?
[ "$code" = 130 ] || fail "exit code $code"
last=$(sed -n 's/.*"kind":"step","iter":\([0-9]*\),.*/\1/p' stalled/log.jsonl | tail -n 1)
[ -e stalled/ckpt/$(printf %06d $((last + 1)))/DONE ] || fail "not saved: $(ls stalled/ckpt)"

# --- no stderr
"$STROBE" compare tiny.conf --max_iters=2 --eval_iters=1 --n_layer=1,2 --out_dir=both >out 2>&- ||
    fail "compare without stderr: $(cat out)"
[ -e both/n_layer=2/summary.json ] || ls both | grep -q . || fail "nothing was trained"

# --- sizes
cp -r run large
truncate -s 64G large/ckpt/000004/DONE
expect 1 'DONE has 68719476736 bytes, more than the 65 that are possible' "$STROBE" eval large
sed 's/n_layer = 2\\n/n_layer = 1024\\n/' run/ckpt/000004/state.json >state
printf '%s\n' "$(sha256sum <state | cut -c 1-64)" >run/ckpt/000004/DONE
cp state run/ckpt/000004/state.json
words="bytes of weights, but the model of its configuration has" # before its graphs are built
expect 1 "$words" "$STROBE" eval run
expect 1 "$words" "$STROBE" train run --init_from=resume --max_iters=9
