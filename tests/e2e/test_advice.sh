#!/bin/sh
# Types every command that Strobe advises: after training, comparing, measuring and refusing, in a
# folder whose name has blanks and an equals sign. Each must end with exit code 0. Left out: what
# names a placeholder in capitals, downloads, or measures the machine for a long time.
# test: timeout=300
. "$(dirname "$0")/tiny.sh"
mkdir "$work/my runs"
cd "$work/my runs"
export STROBE_LOG=info STROBE_NO_BROWSER=1
sed "s/^max_iters.*/max_iters = 6/; s/^eval_interval.*/eval_interval = 3/; s/^lr_decay.*//
    s/^warmup.*//" ../tiny.conf >tiny.conf

# advice FILE: the commands in a text, one per line: in `quotes`, after a colon or "with" at the end
# of a line, or a line of their own.
advice() {
    {
        grep -o '`strobe [^`]*`' "$1" | tr -d '`'
        sed -n 's/^.*next: \(strobe .*\)$/\1/p; s/^.*page with \(strobe .*\)$/\1/p
            s/^  \(strobe [a-z].*\)$/\1/p; s/^ *\(strobe train .* --init_from=resume\)$/\1/p' "$1"
    } | grep -v "\b[A-Z][A-Z][A-Z]*\b\|strobe machine\|data shakespeare_char$\|^strobe train$" |
        sort -u
}

# type_all: types what the last command advised, unless it was typed before; not what that advises.
: >typed
type_all() {
    advice out >advised
    while read -r line; do
        grep -qxF -- "$line" typed && continue
        echo "$line" >>typed
        echo "typing: $line"
        (eval "$(echo "$line" | sed "s|^strobe|'$STROBE'|")") >typed.out 2>&1 </dev/null ||
            fail "exit code $?: $line
$(cat typed.out)
which was advised by: $1
$(cat out)"
    done <advised
}
# run CODE COMMAND...: runs it, then types what it advises
run() {
    code=$1
    shift
    set +e
    "$STROBE" "$@" >out 2>&1
    got=$?
    set -e
    [ "$got" = "$code" ] || fail "exit code $got instead of $code: strobe $*
$(cat out)"
    type_all "strobe $*"
}

run 0 train tiny.conf --out_dir='a run'
run 2 train tiny.conf --out_dir='a run'
run 0 train tiny.conf --out_dir='a run' --init_from=resume
run 0 train tiny.conf --out_dir='flash=true'
run 0 eval 'a run'
run 0 sample 'a run' --max_new_tokens=4
run 0 report 'a run'
run 0 compare tiny.conf --flash=false,true --out_dir='a comparison'
run 2 compare tiny.conf --flash=false,true --out_dir='a comparison'
(cd 'a comparison' && "$STROBE" sample flash=true --max_new_tokens=4 >/dev/null)
run 0 profile tiny.conf --out_dir='a profile'
run 0 bench tiny.conf --batch_size=1,2 --phase=step --steps=2 --out_dir='a bench'
run 0 bench attention --T=16,32 --tokens=64 --samples=1 --svg='an attention.svg'
run 0 lab copy --device=cpu --size=1000 --samples=1 --save='a lab.json'
run 0 memory tiny.conf
run 0 plan tiny.conf
run 0 info
run 0 check --op=ADD --device=cpu
run 2 sample nowhere
run 2 sample 'a run' --nothing=1
run 2 train tiny.conf --learning_rat=1
run 2 lab nothing
run 2 nothing
"$STROBE" train tiny.conf --out_dir='a stop' --max_iters=100000 --lr_decay_iters=100000 >out 2>&1 &
until grep -q 'iter 3:' out 2>/dev/null; do sleep 0.1; done
kill -TERM $!
wait $! || :
grep -q 'Continue with' out || fail "no advice after a stop: $(cat out)"
advice out | grep -q "strobe train 'a stop' --init_from=resume" || fail "no command: $(cat out)"
# A run that was killed before its first checkpoint.
"$STROBE" train tiny.conf --out_dir='no checkpoint' --max_iters=100000 --eval_interval=100000 \
    --lr_decay_iters=100000 >out 2>&1 &
until grep -q 'iter 0:' out 2>/dev/null; do sleep 0.1; done
kill -KILL $!
wait $! || :
sed -i 's/^max_iters.*/max_iters = 4/' 'no checkpoint/config.conf'
run 1 sample 'no checkpoint'
grep -q "train 'no checkpoint' --init_from=resume" typed || fail "not typed: $(cat typed)"
run 0 train tiny.conf --out_dir=-x
[ "$(wc -l <typed)" -ge 8 ] || fail "few commands were typed: $(cat typed)"
echo ok
