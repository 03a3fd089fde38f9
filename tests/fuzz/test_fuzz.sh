#!/bin/sh
# Every fuzz target: its corpus, where past findings are kept, then a few seconds of new inputs.
# test: slow release; it builds its own programs with sanitizers
set -eu
if [ -z "$(ls build/fuzz 2>/dev/null | grep -v -e found -e corpus)" ]; then
    echo 'skipped: the fuzz targets are not built (make fuzz-programs)'
    exit 77
fi
FUZZ_JOBS=2 exec sh tests/fuzz/run.sh 4
