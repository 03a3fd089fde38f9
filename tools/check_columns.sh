#!/bin/sh
# Lines of code have at most 100 columns, lines of documents at most 120. Prints "FILE:LINE: N
# columns" for each that has more. Exempt in documents are rows of tables, which cannot wrap, and
# everywhere lines that are one word, such as an address.
cd "$(dirname "$0")/.." || exit 1
# In bytes, of which those that continue a character of UTF-8 are not counted.
git ls-files --cached --others --exclude-standard | grep -E '\.(c|h|cu|cuh|cpp|hpp|sh|py|md)$' |
    while read -r file; do [ ! -f "$file" ] || echo "$file"; done | LC_ALL=C xargs awk '
    FNR == 1 { document = FILENAME ~ /\.md$/; most = document ? 120 : 100 }
    length($0) <= most { next }
    document && /^[ \t]*\|/ { next }
    !/[^ \t][ \t]+[^ \t]/ { next }
    {
        gsub(/[\200-\277]/, "")
        if (length($0) > most) print FILENAME ":" FNR ": " length($0) " columns, at most " most
    }' | { ! grep .; }
