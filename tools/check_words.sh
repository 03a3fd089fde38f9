#!/bin/sh
# Words that were retired stay out: prints every line that has one, with the word that replaces it
# (tools/retired_words.txt). Exempt are the logs of measurements (docs/log), and lines that say "old
# name", where an older file's word is still read.
# usage: check_words.sh [LIST [FILE...]]     without files: all of the repository
cd "$(dirname "$0")/.." || exit 1
list=${1:-tools/retired_words.txt}
[ $# -eq 0 ] || shift
[ -r "$list" ] || { echo "check_words.sh: cannot read $list"; exit 2; }
[ $# -gt 0 ] || set -- . ':!docs/log' ':!tools/retired_words.txt' ':!tools/check_words.sh'
found=$(mktemp) lines=$(mktemp)
trap 'rm -f "$found" "$lines"' EXIT
number=0
while read -r line; do
    number=$((number + 1))
    case $line in
    '' | '#'*) continue ;;
    *?' -> '?*) ;;
    *)
        echo "$list:$number: not \"REGEX -> NEW WORD\": $line" >>"$found"
        continue
        ;;
    esac
    old=${line% -> *} new=${line##* -> }
    git grep --untracked --no-color -nIE -e "$old" -- "$@" >"$lines"
    [ $? -le 1 ] || echo "$list:$number: no regular expression: $old" >>"$found"
    grep -v 'old name' "$lines" | awk -v new="$new" '{ print $0 "    [now: " new "]" }' >>"$found"
done <"$list"
! grep . "$found"
