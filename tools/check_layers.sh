#!/bin/sh
# Every #include "folder/x.h" of src/ must be allowed by tools/layers.txt; src/main.c may
# include all.
cd "$(dirname "$0")/.." || exit 1
find src -mindepth 2 -name '*.[ch]' | sort | xargs awk '
    FILENAME == "tools/layers.txt" {
        if ($0 !~ /^#/ && split($0, part, ":") == 2) {
            known[part[1]] = 1
            for (n = split(part[2], below, " "); n > 0; n--) allowed[part[1], below[n]] = 1
        }
        next
    }
    function layer_of(path) { # the longest folder that the table names
        do sub("/[^/]*$", "", path); while (!(path in known) && path ~ "/")
        return path
    }
    FNR == 1 { from = layer_of(substr(FILENAME, 5)) }
    !(from in known) { print FILENAME ": its folder is not in tools/layers.txt"; bad = 1; nextfile }
    match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]+\/[^"]+\.h"/) {
        header = $0; sub(/^[^"]*"/, "", header); sub(/".*/, "", header)
        to = layer_of(header)
        if (to != from && !((from, to) in allowed)) {
            print FILENAME ":" FNR ": " from " must not include " to " (" header ")"; bad = 1
        }
    }
    END { exit bad }' tools/layers.txt
