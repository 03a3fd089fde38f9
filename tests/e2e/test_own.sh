#!/bin/sh
# Strobe deletes and replaces only what it wrote: every command that could, on files of the user.
. "$(dirname "$0")/tiny.sh"
cd "$work"
short="--max_iters=2 --eval_iters=1"

# keeps FILES... -- WORDS COMMAND...: it is refused with WORDS, and no byte below FILES is changed.
sums() { find "$@" -type f -exec cksum {} + | sort; }
keeps() {
    files=
    while [ "$1" != -- ]; do
        files="$files $1"
        shift
    done
    words=$2
    shift 2
    sums $files >before
    "$@" >out 2>&1 && fail "not refused: $*"
    grep -qF -- "$words" out || fail "'$words' is not printed by: $*: $(cat out)"
    sums $files >after
    cmp before after || fail "files were changed by: $*: $(cat out)"
}

# --- data: the folder of nanoGPT, of all sets, and a set with a file of the user
mkdir -p data/nano
cp text data/nano/input.txt
for f in prepare.py train.bin val.bin meta.pkl; do echo mine >data/nano/$f; done
keeps data -- 'was not written by Strobe' "$STROBE" data nano --from=data/nano/input.txt --force
keeps data -- 'was not written by Strobe' "$STROBE" data nano --from=text
keeps data -- 'was not written by Strobe' "$STROBE" data data --from=text --data_dir=. --force
keeps data -- 'make one under another name' "$STROBE" train tiny.conf --dataset=nano --out_dir=no
grep -q -- --force out && fail "--force is advised for a folder of nanoGPT: $(cat out)"
cp -r data/tiny data/noted
echo mine >data/noted/notes
keeps data -- 'data/noted/notes was not written' "$STROBE" data noted --from=text --force
truncate -s 10 data/noted/train.bin
keeps data -- 'under another name' "$STROBE" data noted
ln -s tiny data/link
keeps data -- 'data/link is a symbolic link' "$STROBE" data link --from=text --force

# --- train: a folder of the user, names like those of a run, a link, checkpoints with more in them
mkdir mine
echo mine >mine/notes
keeps mine -- 'mine/notes is not part of a Strobe run' "$STROBE" train tiny.conf $short \
    --out_dir=mine
mv mine/notes mine/config.conf
words='mine/config.conf is not part of a Strobe run'
keeps mine -- "$words" "$STROBE" train tiny.conf --out_dir=mine --overwrite
"$STROBE" train tiny.conf $short --out_dir=run >/dev/null
echo mine >run/notes
"$STROBE" train tiny.conf $short --out_dir=run --overwrite >/dev/null
[ "$(cat run/notes)" = mine ] || fail "a file of the user was removed from the run"
again="$STROBE train tiny.conf $short --out_dir=run --overwrite"
echo mine >run/ckpt/000002/notes
keeps run -- 'ckpt/000002/notes was not written' $again
rm run/ckpt/000002/notes
more="--init_from=resume --eval_interval=1"
"$STROBE" train run $more --max_iters=4 >/dev/null
echo mine >run/ckpt/000003/notes
"$STROBE" train run $more --max_iters=9 >out 2>&1 || fail "$(cat out)"
words='could not remove an old checkpoint: run/ckpt/000003/notes was not'
grep -q "$words" out || fail "$(cat out)"
[ "$(cat run/ckpt/000003/notes)" = mine ] || fail "a file of the user was removed with a checkpoint"
rm run/ckpt/000003/notes
ln -s run linked
for name in linked linked/; do
    keeps run -- 'linked is a symbolic link' "$STROBE" train tiny.conf --out_dir=$name --overwrite
done
rm linked
mv run/report.html page
echo mine >run/report.html
"$STROBE" train run --init_from=resume --max_iters=9 >out 2>&1 || fail "$(cat out)"
[ "$(cat run/report.html)" = mine ] || fail "a page of the user was removed by a resume"
mv page run/report.html
# a configuration that was printed does not make a folder a run
mkdir printed
"$STROBE" config tiny.conf >printed/config.conf
keeps printed -- 'printed/config.conf is not part of a Strobe run' "$STROBE" train \
    printed/config.conf --out_dir=printed
mv run/log.jsonl log
ln -s ../log run/log.jsonl
for c in "report run" "train run --init_from=resume --max_iters=12"; do
    keeps run log -- 'run/log.jsonl is a symbolic link' "$STROBE" $c
done
rm run/log.jsonl
mv log run/log.jsonl
mv run/samples.txt samples
ln -s ../text run/samples.txt
keeps run text -- 'run/samples.txt is a symbolic link' "$STROBE" report run
rm run/samples.txt
mv samples run/samples.txt

# --- a file that the user names
keeps text -- 'text already exists and is not a page' "$STROBE" report run --html=text
keeps run -- 'is not a page' "$STROBE" report run --html=run/log.jsonl
keeps run -- 'is not a sheet' "$STROBE" bench tiny.conf --save=run/ckpt/000009/DONE
keeps run -- 'is not a picture' "$STROBE" memory tiny.conf --svg=run/report.html
words='only a shell expands ~'
keeps text -- "$words" "$STROBE" report run --html='~/page.html'
keeps text -- "$words" "$STROBE" memory tiny.conf --svg='~/a.svg'
mkdir profile
echo '{}' >profile/profile.json
keeps profile -- 'is not a profile' "$STROBE" profile tiny.conf --out_dir=profile
"$STROBE" report run --html=page.html >/dev/null
"$STROBE" report run --html=page.html >/dev/null
"$STROBE" memory tiny.conf --svg=a.svg >/dev/null
"$STROBE" memory tiny.conf --svg=a.svg >/dev/null

# --- the cache: a link to a file of the user
mkdir -p cache/strobe
echo mine >precious
ln -s ../../precious cache/strobe/machine.json
XDG_CACHE_HOME=$work/cache "$STROBE" machine --quick >out 2>&1 || :
[ "$(cat precious)" = mine ] || fail "a link in the cache was followed"
