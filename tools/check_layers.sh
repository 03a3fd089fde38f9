#!/bin/sh
# Every #include "folder/x.h" of src/ must be allowed by the line "May include:" of the README.md
# of its folder, or of the next folder above that has one; src/main.c may include all.
cd "$(dirname "$0")/.." || exit 1
find src -name README.md | sort | xargs awk '
    FNR == 1 { folder = FILENAME; sub("^src/", "", folder); sub("/README.md$", "", folder); on = 0 }
    /^May include:/ { on = 1 }
    on { gsub(/^May include:|[`,.]/, " "); below[folder] = below[folder] " " $0 }
    END { for (folder in below) print folder ":" below[folder] }' |
    awk '
    FILENAME == "-" {
        split($0, part, ":")
        known[part[1]] = 1
        for (n = split(part[2], below, " "); n > 0; n--) allowed[part[1], below[n]] = 1
        next
    }
    function layer_of(path) { # the longest folder whose README.md says what it may include
        do sub("/[^/]*$", "", path); while (!(path in known) && path ~ "/")
        return path
    }
    FNR == 1 { from = layer_of(substr(FILENAME, 5)) }
    !(from in known) { print FILENAME ": no README.md says what it may include"; bad = 1; nextfile }
    match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]+\/[^"]+\.h"/) {
        header = $0; sub(/^[^"]*"/, "", header); sub(/".*/, "", header)
        to = layer_of(header)
        if (to != from && !((from, to) in allowed)) {
            print FILENAME ":" FNR ": " from " must not include " to " (" header ")"; bad = 1
        }
    }
    END { exit bad }' - $(find src -mindepth 2 -name '*.[ch]' | sort)
