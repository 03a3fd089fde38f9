#!/bin/sh
# Lines of code have at most 100 columns, lines of documents at most 120. Prints "FILE:LINE: N
# columns" for each longer line. Exempt are tables: rows of Markdown tables, which cannot wrap, and
# tables of data in code, between `clang-format off` and `clang-format on`. Exempt everywhere are
# lines of one word, such as an address.
cd "$(dirname "$0")/.." || exit 1
# awk counts bytes here, so bytes that continue a UTF-8 character are removed before the count.
git ls-files --cached --others --exclude-standard | grep -E '\.(c|h|cu|cuh|cpp|hpp|sh|py|md)$' |
    while read -r file; do [ ! -f "$file" ] || echo "$file"; done | LC_ALL=C xargs awk '
    FNR == 1 { table = 0; document = FILENAME ~ /\.md$/; most = document ? 120 : 100 }
    /clang-format off/ { table = 1 }
    /clang-format on/ { table = 0 }
    table || length($0) <= most { next }
    document && /^[ \t]*\|/ { next }
    !/[^ \t][ \t]+[^ \t]/ { next }
    {
        gsub(/[\200-\277]/, "")
        if (length($0) > most) print FILENAME ":" FNR ": " length($0) " columns, at most " most
    }' | { ! grep .; }
