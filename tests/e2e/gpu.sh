# Sourced by the scripts that run on the emulated GPU (described in tests/emulator/engine.hpp).
# Compiled kernels stay in the build folder; an unchanged source is not compiled again.
STROBE_BUILD=${STROBE_BUILD:-$PWD/build/release}
emulator=$STROBE_BUILD/emulator
if [ ! -e "$emulator/without.so" ]; then
    echo "skipped: the emulated GPU needs a release build, CUDA's headers and a C++ compiler"
    exit 77
fi
export LD_LIBRARY_PATH="$emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export XDG_CACHE_HOME="$emulator/cache"
