#!/bin/sh
# same_code.sh [COMMIT] - whether the C and CUDA files differ from COMMIT (HEAD) in comments and
# layout alone. Prints each file whose code differs; exit code 1 if there is one.
set -eu
base=${1:-HEAD}
tokens() {
    gcc -fpreprocessed -dD -E -P -x c++ -w - 2>/dev/null | tr -s ' \t\n' '\n\n\n' | tr -d '\n'
}
differ=0
for f in $(git diff --name-only --diff-filter=d "$base" -- '*.c' '*.h' '*.cpp' '*.cu' '*.cuh'); do
    before=$(git show "$base:$f" 2>/dev/null | tokens | sha256sum)
    after=$(tokens <"$f" | sha256sum)
    [ "$before" = "$after" ] || { echo "$f: the code differs"; differ=1; }
done
[ $differ = 1 ] || echo "same code as $base"
exit $differ
