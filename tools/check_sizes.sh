#!/bin/sh
# Files have at most 600 lines. Exempt are lists and generated files.
cd "$(dirname "$0")/.." || exit 1
git ls-files --cached --others --exclude-standard src tests tools |
    grep -E '\.(c|h|cu|cuh|cpp|hpp|sh|py|js|css)$' | grep -vE '(^|/)op_list\.h$|generated' |
    while read -r file; do
        [ -f "$file" ] || continue
        lines=$(wc -l <"$file")
        [ "$lines" -le 600 ] || echo "$file: $lines lines; split it, 600 are the most"
    done | { ! grep .; }
