# Sourced by the scripts that run on a GPU that is not there (tests/emulator/engine.hpp says what
# that is). What was compiled is kept in the build's folder: a text that did not change is not
# compiled again.
STROBE_BUILD=${STROBE_BUILD:-$PWD/build/release}
emulator=$STROBE_BUILD/emulator
if [ ! -e "$emulator/without.so" ]; then
    echo "skipped: the emulated GPU needs a release build, the CUDA toolkit's headers and a C++ compiler"
    exit 77
fi
export LD_LIBRARY_PATH="$emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export XDG_CACHE_HOME="$emulator/cache"
