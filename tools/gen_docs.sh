#!/bin/sh
# Writes docs/CONFIG.md and docs/OPS.md from the program's own tables. --check: fails if they are
# stale.
cd "$(dirname "$0")/.." || exit 1
strobe=${STROBE:-./strobe}
mkdir -p build docs
bad=0

# document NAME WORDS...: the output of `strobe WORDS` is docs/NAME
document() {
    name=$1
    shift
    new=build/$name.new
    "$strobe" "$@" >"$new" || { bad=1; return; }
    if [ "$mode" != --check ]; then
        mv "$new" "docs/$name"
    elif ! cmp -s "$new" "docs/$name"; then
        echo "docs/$name is stale: run \`make docs\`"
        bad=1
    fi
    rm -f "$new"
}

mode=${1-}
document CONFIG.md config --reference --markdown
document OPS.md info --ops
exit $bad
