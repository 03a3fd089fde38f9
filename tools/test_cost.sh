#!/bin/sh
# Where the processor time of `make check` went: by kind of test, the five slowest tests, and those
# that need over 60 s and are not in the table tests/slow.txt (or are there without need).
# usage: test_cost.sh BUILD...     reads BUILD/test_times: lines "CLOCK PROCESSOR NAME [SHARD]"
cd "$(dirname "$0")/.." || exit 1
for build in "$@"; do
    sed "s|^|$build |" "$build/test_times"
done | awk -v most=60 '
    function exists(name, path, line) {
        path = name (name ~ /\.sh$/ ? "" : ".c")
        if (!(name in known)) known[name] = (getline line < path) > 0
        return known[name]
    }
    function kind(build, name) {
        if (build ~ /asan/) return "sanitizers"
        if (name ~ /\/test_gpu_/) return "emulated GPU"
        if (name ~ /test_cuda_texts/) return "kernel sources"
        return name ~ /\/e2e\// ? "end to end" : "unit"
    }
    BEGIN {
        while ((getline line < "tests/slow.txt") > 0)
            if (line !~ /^(#|$)/) { split(line, word, " "); listed[word[1]] = 1 }
    }
    exists($4) {
        by_kind[kind($1, $4)] += $3
        all += $3
        test[$4 ($1 ~ /asan/ ? " (sanitizers)" : "")] += $3
    }
    END {
        printf "%.0f s of processor time:", all
        n = split("emulated GPU,kernel sources,end to end,unit,sanitizers", order, ",")
        for (i = 1; i <= n; i++)
            printf "%s %s %.0f", (i == 1 ? "" : ","), order[i], by_kind[order[i]]
        printf "\nslowest:"
        for (i = 0; i < 5; i++) {
            top = ""
            for (name in test)
                if (!(name in shown) && (top == "" || test[name] > test[top])) top = name
            if (top == "") break
            shown[top] = 1
            printf "%s %s %.0f s", (i ? "," : ""), top, test[top]
        }
        print ""
        for (name in test) {
            plain = name
            sub(/ .*/, "", plain)
            if (test[name] > most / 2) slow[plain] = 1
            if (test[name] > most && !(plain in listed))
                printf "%s needs %.0f s and is not in tests/slow.txt\n", name, test[name]
        }
        for (name in listed)
            if (!(name in slow))
                printf "%s is in tests/slow.txt and needs at most %d s\n", name, most / 2
    }'
