#!/bin/sh
# Absurd values of keys: every command answers in one sentence, soon, and in little memory.
# test: release timeout=300; it limits the address space, which sanitizers need
. tests/e2e/tiny.sh
errors=$work/errors

# refuses TEXT COMMAND...: fails, and says why in one line, within seconds and gigabytes
refuses() {
    words=$1
    shift
    got=0
    (ulimit -v 6000000 2>/dev/null; timeout 60 "$STROBE" "$@" >/dev/null 2>"$errors") || got=$?
    [ "$got" = 1 ] || [ "$got" = 2 ] || fail "exit code $got: $*
$(cat "$errors")"
    grep -v '^warning' "$errors" >"$errors.1" || true
    [ "$(wc -l <"$errors.1")" = 1 ] || fail "not one line: $*
$(cat "$errors")"
    grep -qF -- "$words" "$errors" || fail "'$words' is not said by: $*
$(cat "$errors")"
}

for command in plan memory graph train 'bench --steps=1' profile 'memory --limit=80GiB'; do
    for key in n_layer=1e18 n_layer=1000000000000000000 n_layer=-1 n_head=0 block_size=nan \
        block_size=9223372036854775807 block_size=9223372036854775808 \
        batch_size=-9223372036854775808 n_embd=65537 vocab_size=1048577 \
        gradient_accumulation_steps=65537 d_ff=-1 learning_rate=nan \
        learning_rate=inf dropout=-0.1 rope_theta=1e400 seed=4294967296 recompute=block:0 \
        recompute=block:99999999999999999999 threads=4097; do
        refuses "${key%%=*} must be " $command "$work/tiny.conf" --"$key"
    done
    refuses 'too many tokens' $command "$work/tiny.conf" --batch_size=65536 --block_size=262144
done
slow='--flash=false --n_layer=2 --n_head=1024 --n_embd=1024 --block_size=262144 --batch_size=8191'
for command in plan memory graph 'bench --steps=1' 'memory --limit=80GiB'; do
    refuses 'more than the 16 TiB' $command "$work/tiny.conf" $slow --device=cpu \
        --out_dir="$work/run"
done
refuses '--vocab is 1 to' plan "$work/tiny.conf" --vocab=9223372036854775807
refuses '--vocab is 1 to' memory "$work/tiny.conf" --vocab=-1
refuses '--steps must be' bench "$work/tiny.conf" --steps=9223372036854775807

# Names that are not UTF-8: of a file they work, in a value they are refused.
odd=$(printf 'caf\351')
cp "$work/tiny.conf" "$work/$odd.conf"
"$STROBE" plan "$work/$odd.conf" >"$work/out" || fail "a configuration whose name is not UTF-8"
refuses 'must be text in UTF-8' train "$work/tiny.conf" --out_dir="$work/$odd"
refuses 'must be text in UTF-8' train "$work/tiny.conf" --dataset="$odd"

# An error about an included file does not print the file.
mkdir "$work/sub"
echo 'root:$6$hash:19000:0:99999:7:::' >"$work/secret"
echo 'include = ../secret' >"$work/sub/hostile.conf"
refuses 'expected `key = value`' plan "$work/sub/hostile.conf"
! grep -q 'root:' "$errors" || fail "the included file is printed: $(cat "$errors")"
