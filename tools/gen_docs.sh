#!/bin/sh
# Writes docs/CONFIG.md and docs/OPS.md from the program's own tables. --check: fails if they are stale.
cd "$(dirname "$0")/.." || exit 1
strobe=${STROBE:-./strobe}
mkdir -p build docs
bad=0

# document NAME TITLE WORDS...: the output of `strobe WORDS`, under a title
document() {
    name=$1 title=$2
    shift 2
    new=build/$name.new
    {
        printf '# %s\n\n' "$title"
        printf 'Written by `make docs` from `strobe %s`; do not edit.\n\n' "$*"
        "$strobe" "$@"
    } >"$new" || { bad=1; return; }
    if [ "$mode" != --check ]; then
        mv "$new" "docs/$name"
    elif ! cmp -s "$new" "docs/$name"; then
        echo "docs/$name is stale: run \`make docs\`"
        bad=1
    fi
    rm -f "$new"
}

mode=${1-}
document CONFIG.md 'The keys of a configuration' config --reference
if "$strobe" info -h | grep -q -e --ops; then
    document OPS.md 'The operators' info --ops
fi
exit $bad
