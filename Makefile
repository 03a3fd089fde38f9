# Strobe: a laboratory for the speed of GPT training
#
#   make              build ./strobe
#   make test         run the tests; T=WORD: those whose path contains the word (a folder, a file, any
#                     part of a path), and only what they need is built; CASE=NAME: the cases of that
#                     name (* and ? match)
#   make quick        before a commit: format of changed files, layers, sizes, build, the fast tests
#   make check        install packages, then all that CI does: format, layers, headers, sizes, cppcheck,
#                     docs, every test in release and with the sanitizers
#   make tsan         the tests that use threads, under ThreadSanitizer
#   make fuzz         install clang with libFuzzer, then every reader on damaged input for FUZZ_SECONDS
#                     (600) each, with sanitizers; without libFuzzer by simple mutations;
#                     NAME=TARGET...: only these
#   make faults       every call fails, kills, power cuts, two runs at once (docs/RELIABILITY.md);
#                     MODES="calls kills" ARGS="--limit=100"
#   make demo         install packages, build, train, compare, report; FROM=FILE: on your own text
#   make compare-pytorch
#                     Strobe beside PyTorch (PYTHON) on the GPU or, without one, on the CPU, there also
#                     beside llm.c (LLMC: a clone of it); ON=cpu or gpu chooses; ARGS="--budget=330 CONFIG"
#   make check-gpu    what only a GPU can show (tools/check_gpu.sh)
#   make check-interop
#                     token ids beside tiktoken's and Hugging Face's, models beside transformers';
#                     installs all of them into build/interop*
#   make docs         regenerate docs/OPS.md and docs/CONFIG.md
#   make deps         install the Debian packages that the build needs
#   make install      PREFIX=/usr/local DESTDIR=
#   make format, make clean
#
#   MODE=release|debug|asan|tsan    V=1 prints commands    config.mk (ignored by git) keeps choices
#   CUDA=/usr/local/cuda            the CUDA toolkit; without its headers the GPU backend is left out
#   CCACHE=                         build without ccache, which is used where it is installed
#   WERROR=1                        warnings are errors, as in `make quick` and `make check`
#   CC=clang                        build with clang (tools/install_deps.sh --clang)
#   ONEDNN=                         build without oneDNN, to compare with it
#   HARDEN=                         build a release without what hardens it (tools/hardening.sh)
# docs/TESTING.md describes the tests.
-include config.mk

MODE ?= release
PREFIX ?= /usr/local
PYTHON ?= python3
V ?= 0
T ?=
QUICK ?=
CASE ?=
Q := $(if $(filter 0,$(V)),@)
VERSION := 0.1.0
COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
# What the compiler compiles for: x86_64, aarch64.
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif
CCACHE ?= $(shell command -v ccache)
CCACHE := $(CCACHE)
COMPILE := $(if $(findstring ccache,$(CC)),,$(CCACHE)) $(CC)

BUILD := build/$(MODE)
CFLAGS_release := -O2
CFLAGS_debug := -O0
VECTOR_LEVEL := $(if $(filter asan tsan,$(MODE)),-O1,-O3)
# Lines in reports need no more; debuggers want MODE=debug.
DEBUG_asan := -g1
# The checks that sanitizers insert make gcc warn of overlaps and truncations that are not there.
CFLAGS_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover -fno-omit-frame-pointer \
               -Wno-format-truncation -Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized
# The highest version: `sort` alone would take llvm-9 over llvm-14.
newest = $(if $(1),$(shell printf '%s\n' $(1) | sort -V | tail -n 1))
# tools/tsan.sh explains why ThreadSanitizer takes LLVM's OpenMP and no oneDNN.
LLVM = $(call newest,$(wildcard /usr/lib/llvm-*/lib/libarcher.so))
CFLAGS_tsan := -O1 -fsanitize=thread -fno-omit-frame-pointer \
               -Wno-format-truncation -Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized
OPENMP := -fopenmp
ifeq ($(MODE),tsan)
$(if $(LLVM),,$(error MODE=tsan needs LLVM's OpenMP library: tools/install_deps.sh --tsan))
OPENMP := -L$(dir $(LLVM)) -Wl,-rpath,$(dir $(LLVM)) -lomp
endif
FATAL := $(if $(filter 1,$(WERROR)),-Werror)
# A row of a table leaves out the fields that are zero, as clang alone warns.
WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla $(FATAL) \
            $(if $(findstring clang,$(CC)),-Wno-missing-field-initializers)

comma := ,

# Libraries: what is installed is used (docs/ARCHITECTURE.md). One call of pkg-config for each question.
REQUIRED := jansson libcrypto
PACKAGES := $(foreach p,$(REQUIRED) libcurl zlib libzstd,$(shell pkg-config --exists $(p) 2>/dev/null && echo $(p)))
MISSING := $(filter-out $(PACKAGES),$(REQUIRED))
has = $(filter $(1),$(PACKAGES))
PACKAGE_CFLAGS := $(if $(PACKAGES),$(shell pkg-config --cflags $(PACKAGES))) $(if $(call has,libcurl),-DHAVE_CURL)
PACKAGE_LIBS := $(if $(PACKAGES),$(shell pkg-config --libs $(PACKAGES)))
# oneDNN 2 or 3: its version by its header; ONEDNN= builds without it.
MATMULS := matmuls without oneDNN, as asked
ifeq ($(origin ONEDNN)$(filter tsan,$(MODE)),undefined)
ONEDNN := $(shell echo DNNL_VERSION_MAJOR.DNNL_VERSION_MINOR.DNNL_VERSION_PATCH | \
            $(CC) $(CFLAGS) -include oneapi/dnnl/dnnl_version.h -E -P - 2>/dev/null | sed -n '$$s/ //gp')
MATMULS := $(if $(ONEDNN),oneDNN $(ONEDNN) is not supported,no oneDNN): matmuls on a CPU are slower, in bfloat16 \
           with AMX several times; install oneDNN 2 or 3 (make deps) and run make again
endif
ifneq ($(filter 2.% 3.%,$(ONEDNN)),)
PACKAGE_CFLAGS += -DHAVE_DNNL
PACKAGE_LIBS += -ldnnl
MATMULS := matmuls by oneDNN $(ONEDNN)
endif

# GPUs: the toolkit's headers are needed to build; its libraries are opened at run time.
CUDA ?= /usr/local/cuda
HAS_CUDA := $(and $(wildcard $(CUDA)/include/cuda.h),$(wildcard $(CUDA)/include/nvrtc.h),\
                  $(wildcard $(CUDA)/include/cublasLt.h))
# For profiles: where the toolkit keeps these headers varies, and some have none.
CUPTI := $(patsubst %/cupti.h,%,$(firstword $(wildcard $(CUDA)/include/cupti.h $(CUDA)/extras/CUPTI/include/cupti.h)))
NVTX := $(wildcard $(CUDA)/include/nvtx3/nvToolsExt.h)
CUDA_CFLAGS := $(if $(HAS_CUDA),-DHAVE_CUDA -isystem $(CUDA)/include \
    $(if $(CUPTI),-DHAVE_CUPTI $(addprefix -isystem ,$(filter-out $(CUDA)/include,$(CUPTI)))) \
    $(if $(NVTX),-DHAVE_NVTX))

# The objects of src/ go into the program and into the library of the tests, so they are position
# independent. Without interposition calls inside a file are inlined as ever, and the linker turns
# the remaining indirections of the program into direct ones.
PIC := -fPIC -fno-semantic-interposition -ftls-model=initial-exec
# Releases are hardened with what the compiler has (tools/hardening.sh); HARDEN= builds without,
# to compare the time of a step. Not with -O0 or a sanitizer, which FORTIFY does not suit.
HARDEN ?= 1
HARDENING := $(if $(and $(HARDEN),$(filter release,$(MODE)),\
               $(if $(filter -O0 -fsanitize%,$(CFLAGS)),,fits)),$(shell tools/hardening.sh '$(CC)' $(BUILD)/hardening))
FLAGS := -std=c2x $(or $(DEBUG_$(MODE)),-g) -fopenmp -D_GNU_SOURCE -Isrc $(WARNINGS) \
         $(or $(CFLAGS_$(MODE)),$(error MODE is release, debug, asan or tsan)) \
         $(filter-out -Wl$(comma)%,$(HARDENING)) $(PACKAGE_CFLAGS) $(CUDA_CFLAGS) $(CFLAGS)
LINK := $(CC) $(filter-out -fopenmp,$(FLAGS)) $(filter -Wl$(comma)%,$(HARDENING)) $(LDFLAGS)
LIBS := $(PACKAGE_LIBS) $(OPENMP) $(if $(filter x86_64,$(MACHINE)),-lmvec) -lm $(LDLIBS)

SOURCES := $(filter-out %/template.c,$(wildcard src/*.c src/*/*.c src/*/*/*.c src/*/*/*/*.c src/*/*/*/*/*.c))
SOURCES := $(if $(HAS_CUDA),$(SOURCES),$(filter-out src/backend/cuda/%,$(SOURCES)))
# Kernels in vector types: each file is compiled once for each instruction set.
VECTOR_SOURCES := $(wildcard src/backend/cpu/vector/*.c)
ISAS := $(if $(filter x86_64,$(MACHINE)),avx512 avx2 sse2) $(if $(filter aarch64,$(MACHINE)),neon) plain
ISA_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
ISA_avx2 := -march=x86-64-v3
ISA_plain := -DVEC_PLAIN
# So is each rung of a ladder on a CPU.
RUNG_SOURCES := $(filter-out %/template.c,$(wildcard src/lab/*/cpu/*.c))
# Kernels that multiply bfloat16: the same, for the instruction sets that can.
BF16_SOURCES := $(wildcard src/backend/cpu/bf16/*.c)
BF16_ISAS := $(if $(filter x86_64,$(MACHINE)),amx avx512_bf16)
ISA_avx512_bf16 := $(ISA_avx512) -mavx512bf16
ISA_amx := $(ISA_avx512_bf16) -mamx-tile -mamx-bf16
# Those that work on activations, once more for activations in bf16.
ACT_SOURCES := $(patsubst %,src/backend/cpu/vector/%.c,\
                 blocked embed gated gelu loss move norm pointwise reduce rms rope softmax)
# Also these, except for processors that multiply bf16, for which bf16/ has kernels of its own.
FLASH_SOURCES := $(patsubst %,src/backend/cpu/vector/%.c,attention attention_grad attention_rows)
# Those of bf16 activations once more, with what they call, for processors that round to bf16.
ROUNDING_ISAS := $(filter avx512_bf16,$(BF16_ISAS))
ROUNDING_SOURCES := $(patsubst %,src/backend/cpu/vector/%.c,chain common dropout tables)
OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(VECTOR_SOURCES) $(BF16_SOURCES) $(RUNG_SOURCES),$(SOURCES))) \
           $(foreach i,$(ISAS),$(patsubst %.c,$(BUILD)/%.$(i).o,$(VECTOR_SOURCES) $(RUNG_SOURCES))) \
           $(foreach i,$(ISAS) $(ROUNDING_ISAS),$(patsubst %.c,$(BUILD)/%.$(i).bf16.o,$(ACT_SOURCES))) \
           $(foreach i,$(ISAS),$(patsubst %.c,$(BUILD)/%.$(i).bf16.o,$(FLASH_SOURCES))) \
           $(foreach i,$(ROUNDING_ISAS),$(patsubst %.c,$(BUILD)/%.$(i).o,$(ROUNDING_SOURCES))) \
           $(foreach i,$(BF16_ISAS),$(patsubst %.c,$(BUILD)/%.$(i).o,$(BF16_SOURCES)))
LIBRARY := $(BUILD)/libstrobe.so

# Tests: those whose path contains a word of T; with QUICK, those that are not slow.
SELECTED := $(strip $(foreach t,$(wildcard tests/*/test_*.c tests/*/test_*.sh),\
              $(if $(or $(if $(strip $(T)),,all),$(strip $(foreach w,$(T),$(findstring $(w),$(t))))),$(t))))
ifneq ($(QUICK),)
SELECTED := $(if $(SELECTED),$(shell grep -LE '^[ /*\#]*test: [^;]*slow' $(SELECTED)))
endif
ifneq ($(filter test test-programs,$(MAKECMDGOALS)),)
$(if $(SELECTED),,$(error no path of a test contains $(T)))
endif
SCRIPTS := $(filter %.sh,$(SELECTED))
# Some scripts call test programs.
PROGRAMS := $(sort $(patsubst %.c,$(BUILD)/%,$(filter %.c,$(SELECTED))) \
              $(if $(SCRIPTS),$(addprefix $(BUILD),$(shell grep -oh '/tests/[a-z]*/test_[a-z0-9_]*' $(SCRIPTS)))))
TEST_HELPERS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))

.PHONY: all test test-programs quick check tsan faults fuzz fuzz-programs demo compare-pytorch check-gpu check-interop deps docs install clean format FORCE need
.DELETE_ON_ERROR:
.SECONDARY: $(OBJECTS) $(TEST_HELPERS) $(PROGRAMS:=.o)

all: need $(BUILD)/strobe
	$(Q)ln -sf $(BUILD)/strobe strobe

need:
ifneq ($(MISSING),)
	$(error $(MISSING) not found: `make deps` installs what is needed)
endif

# Rewritten only when the content differs, so a change of flags rebuilds everything. Whether warnings
# are errors changes no object.
RECORDED = $(filter-out $(FATAL),$(CC) $(FLAGS) $(HARDENING) $(PIC) $(LIBS) $(LDFLAGS) $(ISAS) $(ONEDNN))
$(BUILD)/flags: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(RECORDED)' | cmp -s - $@ || echo '$(RECORDED)' >$@
# MPI joins ranks that are processes: its header is needed to build, the library is opened at run time.
MPI_FOLDERS := $(shell mpicc --showme:libdirs 2>/dev/null)
MPI_NAME := $(if $(MPI_FOLDERS),$(shell readelf -d $(MPI_FOLDERS:%=%/libmpi.so) 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p'))
MPI := $(if $(MPI_NAME),-DHAVE_MPI -DMPI_LIBRARY='"$(MPI_NAME)"' $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile)))
$(BUILD)/mpi: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo "$(MPI)" | cmp -s - $@ || echo "$(MPI)" >$@
$(BUILD)/src/backend/ranks/mpi.o: $(BUILD)/mpi
$(BUILD)/src/backend/ranks/mpi.o: private FLAGS += $(MPI)
$(BUILD)/version: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(VERSION) $(COMMIT)' | cmp -s - $@ || echo '$(VERSION) $(COMMIT)' >$@

# The processor fetches code in lines of 64 bytes: a loop of a few instructions takes twice as long
# if it happens to cross one.
$(foreach i,$(ISAS),$(patsubst %.c,$(BUILD)/%.$(i).o,$(RUNG_SOURCES))): private FLAGS += -falign-loops=64
# What kernels are compared with takes most of the time of test_ops with sanitizers.
build/asan/src/check/%.o build/asan/src/backend/cpu/ref/%.o build/asan/src/base/rng.o: private FLAGS += -O2
$(BUILD)/src/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  cc $<")
	$(Q)$(COMPILE) $(FLAGS) $(PIC) $(DEFINES) -MMD -MP -c -o $@ $<
# isa_rule ISA,TYPE,SUFFIX
define isa_rule
$(BUILD)/%.$(3).o: %.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(if $$(Q),@echo "  cc $$< ($(3))")
	$$(Q)$$(COMPILE) $$(FLAGS) $$(PIC) $$(VECTOR_LEVEL) -ffp-contract=fast -fno-math-errno -fno-trapping-math \
	    $$(ISA_$(1)) -DISA=$(1) -DACT_TYPE=$(2) -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$(i),f32,$(i))) $(eval $(call isa_rule,$(i),bf16,$(i).bf16)))
$(foreach i,$(BF16_ISAS),$(eval $(call isa_rule,$(i),bf16,$(i))) $(eval $(call isa_rule,$(i),bf16,$(i).bf16)))

$(BUILD)/src/base/gzip.o: DEFINES := $(if $(call has,zlib),-DHAVE_ZLIB)
UNPACKERS := $(if $(call has,zlib),-DHAVE_ZLIB) $(if $(call has,libzstd),-DHAVE_ZSTD)
$(BUILD)/src/base/unpack.o: DEFINES := $(UNPACKERS)
$(BUILD)/src/cli/version.o: DEFINES := -DVERSION='"$(VERSION)"' -DCOMMIT='"$(COMMIT)"' -DMODE='"$(MODE)"'
$(BUILD)/src/cli/version.o: $(BUILD)/version
# What .incbin includes is a dependency that the compiler does not list: kernel sources and their
# headers, as F(folder, name) for runtime/texts.c, configurations, the page's files.
KERNELS := $(wildcard src/backend/cuda/*/*.cu src/backend/cuda/*/*/*.cu)
KERNEL_HEADERS := $(wildcard src/backend/cuda/*/*.cuh src/backend/cuda/*/*/*.cuh)
kernel_list = $(foreach f,$(1:src/backend/cuda/%=%),F($(patsubst %/,%,$(dir $(f))),$(basename $(notdir $(f)))))
$(BUILD)/src/backend/cuda/runtime/texts.o: DEFINES := '-DTEXTS(F)=$(call kernel_list,$(KERNELS))' \
                                                     '-DHEADERS(F)=$(call kernel_list,$(KERNEL_HEADERS))'
$(BUILD)/src/backend/cuda/runtime/texts.o: $(KERNELS) $(KERNEL_HEADERS)
# The rungs of ladders and their headers, for --show and for GPUs: F(ladder, device, name, ending).
RUNG_FILES := $(sort $(wildcard src/lab/*/cpu/*.[ch] src/lab/*/gpu/*.cu src/lab/*/gpu/*.cuh))
rung_words = $(subst ., ,$(subst /, ,$(1:src/lab/%=%)))
rung_list = $(foreach f,$(RUNG_FILES),F($(word 1,$(call rung_words,$(f))),$(word 2,$(call rung_words,$(f))),$(word 3,$(call rung_words,$(f))),$(word 4,$(call rung_words,$(f)))))
$(BUILD)/src/lab/ladders.o: DEFINES = '-DRUNGS(F)=$(rung_list)'
$(BUILD)/src/lab/ladders.o: $(RUNG_FILES)
$(BUILD)/src/suite/texts.o: $(wildcard configs/*.conf)
$(BUILD)/src/view/published.o: $(wildcard configs/published/*.json)
$(BUILD)/src/present/assets.o: $(wildcard src/present/web/* /usr/share/javascript/dygraphs/dygraph.min.*)

$(BUILD)/strobe: $(OBJECTS)
	$(if $(Q),@echo "  ld $@")
	$(Q)$(LINK) $(if $(HARDENING),-pie) -o $@ $^ $(LIBS)
	@echo "  $(MATMULS)"
# What the tests link with; a test is linked again only when the test itself changes.
$(LIBRARY): $(filter-out $(BUILD)/src/main.o,$(OBJECTS))
	$(if $(Q),@echo "  ld $@")
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -o $@ $^ $(LIBS)
# The loops that tests compare with run on one thread: watching them would only take time.
build/tsan/tests/%.o: FLAGS := $(filter-out -fsanitize=thread,$(FLAGS))
$(BUILD)/tests/%.o: tests/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  cc $<")
	$(Q)$(COMPILE) $(FLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(TEST_HELPERS) | $(LIBRARY)
	$(if $(Q),@echo "  ld $@")
	$(Q)$(LINK) -o $@ $^ $(LIBRARY) -Wl,-rpath,'$$ORIGIN/../..' $(LIBS) -lcmocka

# The emulated GPU (tests/emulator/engine.hpp); in release alone, as sanitizers do not know the stacks
# of its fibers.
CXX_THERE := $(shell command -v $(CXX) 2>/dev/null)
EMULATOR := $(if $(and $(HAS_CUDA),$(CXX_THERE),$(filter release,$(MODE))),$(addprefix $(BUILD)/emulator/,\
                 libcuda.so.1 libnvrtc.so.13 libcublasLt.so.13 libnvidia-ml.so.1 libnccl.so.2 without.so \
                 $(if $(CUPTI),libcupti.so.13) $(if $(NVTX),listener.so)))
EMULATED := tests/emulator
EMULATOR_HEADERS := $(wildcard $(EMULATED)/*.hpp)
SHARED = $(CXX) -std=c++17 -O3 -g -Wall -Wextra $(FATAL) -fPIC -shared -isystem $(CUDA)/include $(addprefix -isystem ,$(CUPTI)) -o $@ $(filter %.cpp %.so.1,$^)
$(BUILD)/emulator/%: $(EMULATOR_HEADERS) $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  c++ $@")
	$(Q)$(SHARED) $(EMULATOR_FLAGS)
$(BUILD)/emulator/libcuda.so.1: $(addprefix $(EMULATED)/,cuda.cpp streams.cpp engine.cpp \
                                       wgmma.cpp barriers.cpp tensors.cpp)
$(BUILD)/emulator/libcuda.so.1: EMULATOR_FLAGS := -Wl,-soname,libcuda.so.1
$(BUILD)/emulator/libnvrtc.so.13: $(EMULATED)/nvrtc.cpp
# Its content is part of its version, so modules in the cache from an older one are not used.
$(BUILD)/emulator/libnvrtc.so.13: EMULATOR_FLAGS = -DEMU_FOLDER='"$(CURDIR)/$(EMULATED)"' -DEMU_CXX='"$(CXX)"' \
    -DEMU_CONTENT=$(firstword $(shell { $(CXX) --version; cat $(EMULATED)/nvrtc.cpp $(EMULATOR_HEADERS); } | cksum))u
$(BUILD)/emulator/libcublasLt.so.13: $(EMULATED)/cublaslt.cpp $(BUILD)/emulator/libcuda.so.1
$(BUILD)/emulator/libcublasLt.so.13: EMULATOR_FLAGS := -Wl,-rpath,'$$ORIGIN'
$(BUILD)/emulator/libnvidia-ml.so.1: $(EMULATED)/nvml.cpp $(BUILD)/emulator/libcuda.so.1
$(BUILD)/emulator/libnvidia-ml.so.1: EMULATOR_FLAGS := -Wl,-rpath,'$$ORIGIN'
$(BUILD)/emulator/libnccl.so.2: $(EMULATED)/nccl.cpp $(BUILD)/emulator/libcuda.so.1
$(BUILD)/emulator/libnccl.so.2: EMULATOR_FLAGS := -Wl,-rpath,'$$ORIGIN'
$(BUILD)/emulator/libcupti.so.13: $(addprefix $(EMULATED)/,cupti.cpp cupti_ranges.cpp) $(BUILD)/emulator/libcuda.so.1
$(BUILD)/emulator/libcupti.so.13: EMULATOR_FLAGS := -Wl,-rpath,'$$ORIGIN'
$(addprefix $(BUILD)/emulator/,without.so listener.so): $(BUILD)/emulator/%.so: $(EMULATED)/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  cc $@")
	$(Q)$(CC) -std=c2x -O2 -Wall -Wextra $(FATAL) -D_GNU_SOURCE -isystem $(CUDA)/include -fPIC -shared -o $@ $<

# Fuzz targets (tests/fuzz/fuzz.h), the same in all modes: with libFuzzer where clang has it, else
# with gcc and tests/fuzz/driver.c. What reads files, and not what it calls to compute.
FUZZER := $(call newest,$(foreach f,\
            $(wildcard /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-$(MACHINE).a),\
            $(wildcard $(firstword $(subst /lib/clang/, ,$(f)))/bin/clang)))
FUZZ_CC := $(or $(FUZZER),$(CC))
FUZZ_FLAGS := -std=c2x -O1 -g1 -D_GNU_SOURCE -Isrc -fno-omit-frame-pointer -fno-sanitize-recover=all \
              -fsanitize=$(if $(FUZZER),fuzzer-no-link$(comma))address,undefined \
              $(if $(HAS_CUDA),-isystem $(CUDA)/include)
FUZZ_WRAPPED := $(addprefix -Wl$(comma)--wrap=,file_exists file_read file_read_most file_open file_read_range \
                  trust_check trust_path hash_open hash_add hash_close hash_bytes)
FUZZ_SOURCES := $(wildcard $(patsubst %,src/%/*.c,base result config text data exchange present report tuning)) \
                src/train/state_file.c src/train/runlog.c src/machine/machine_file.c src/machine/machine_best.c $(wildcard src/graph/*.c src/model/*.c) \
                $(if $(HAS_CUDA),src/backend/cuda/runtime/jit_cache.c)
FUZZ_OBJECTS := $(patsubst %.c,build/fuzz/%.o,$(filter-out src/base/threads.c,$(FUZZ_SOURCES)))
FUZZ_SHARED := $(patsubst %,build/fuzz/tests/fuzz/%.o,fuzz read_model zip_image $(if $(FUZZER),,driver))
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_TARGETS := $(if $(HAS_CUDA),$(FUZZ_TARGETS),$(filter-out %/kernel_cache,$(FUZZ_TARGETS)))
FUZZ_SECONDS ?= 600
.SECONDARY: $(FUZZ_OBJECTS) $(FUZZ_SHARED)

build/fuzz/flags: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(FUZZ_CC) $(FUZZ_FLAGS) $(UNPACKERS) $(FUZZ_WRAPPED)' | cmp -s - $@ || \
	    echo '$(FUZZ_CC) $(FUZZ_FLAGS) $(UNPACKERS) $(FUZZ_WRAPPED)' >$@
build/fuzz/src/present/assets.o: $(wildcard src/present/web/* /usr/share/javascript/dygraphs/dygraph.min.*)
build/fuzz/src/base/unpack.o: DEFINES := $(UNPACKERS)
build/fuzz/tests/%.o: WARNED := -Wall -Wextra $(FATAL)
build/fuzz/%.o: %.c build/fuzz/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  fuzz cc $<")
	$(Q)$(CCACHE) $(FUZZ_CC) $(FUZZ_FLAGS) $(WARNED) $(DEFINES) -MMD -MP -c -o $@ $<
build/fuzz/libreaders.a: $(FUZZ_OBJECTS)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(FUZZ_TARGETS): build/fuzz/%: build/fuzz/tests/fuzz/fuzz_%.o $(FUZZ_SHARED) build/fuzz/libreaders.a
	$(if $(Q),@echo "  fuzz ld $@")
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) $(if $(FUZZER),-fsanitize=fuzzer) $(FUZZ_WRAPPED) -o $@ $^ \
	    -ljansson -lcrypto $(if $(call has,zlib),-lz) $(if $(call has,libzstd),-lzstd) -lm
fuzz-programs: $(FUZZ_TARGETS)
# A second make, as the first has looked for clang before it is installed.
fuzz:
	$(Q)tools/install_deps.sh --fuzz || echo "libFuzzer is not installed; continuing without it" >&2
	$(Q)$(MAKE) --no-print-directory fuzz-programs
	$(Q)FUZZ_KEEP=build/fuzz/corpus sh tests/fuzz/run.sh $(FUZZ_SECONDS) $(NAME)
# The harness of tests/faults: a driver, and a library that the program preloads.
FAULTS := $(addprefix $(BUILD)/faults/,faults preload.so)
FAULTS_CC = $(CC) -std=c2x -D_GNU_SOURCE -O1 -g $(WARNINGS) -o $@ $(filter %.c,$^)
$(BUILD)/faults/%: tests/faults/faults.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  cc $@")
	$(Q)$(FAULTS_CC) $(FAULTS_FLAGS)
$(BUILD)/faults/preload.so: tests/faults/preload.h $(wildcard tests/faults/preload*.c) $(BUILD)/strobe
$(BUILD)/faults/preload.so: FAULTS_FLAGS = -fPIC -shared '-DONEDNN_FUNCTIONS(F)=$(shell \
    nm -D --undefined-only $(BUILD)/strobe | sed -n 's/.* U \(dnnl_[a-z0-9_]*\).*/F(\1)/p')'
$(BUILD)/faults/faults: tests/faults/driver.h tests/faults/disk.h \
                        $(filter-out tests/faults/preload%,$(wildcard tests/faults/*.c))

$(BUILD)/run_tests: tools/run_tests.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu2x -D_GNU_SOURCE -O1 -Wall -Wextra $(FATAL) -o $@ $<
RUN_TESTS = $(if $(filter asan tsan,$(MODE)),STROBE_NO_BROWSER=1) CASE='$(CASE)' $(BUILD)/run_tests $(BUILD) $(if $(filter asan tsan,$(MODE)),--sanitized) $(RUN_OPTIONS)

# Only what the selected tests need: the programs among them, and the emulated GPU for its scripts.
test-programs: all $(BUILD)/run_tests $(PROGRAMS) $(if $(findstring tests/fuzz/,$(SELECTED)),fuzz-programs) \
               $(if $(findstring /test_gpu_,$(SELECTED))$(findstring /e2e/test_lab_,$(SELECTED)),$(EMULATOR)) \
               $(if $(findstring /test_faults,$(SELECTED))$(findstring /test_memory,$(SELECTED)),$(FAULTS))
test: test-programs
	$(Q)$(RUN_TESTS) $(SELECTED)

quick:
	$(Q)tools/quick.sh
check:
	$(Q)tools/check.sh
tsan:
	$(Q)tools/tsan.sh
faults: all $(FAULTS)
	$(Q)tools/faults.sh $(BUILD) $(ARGS)
demo:
	$(Q)tools/demo.sh $(if $(FROM),'$(FROM)')
compare-pytorch: all
	$(Q)on='$(ON)'; [ "$$on" ] || { ./strobe info | grep -qE '^gpu +(no|not|none)\b' && on=cpu || on=gpu; }; \
	$(PYTHON) reference/compare_$$on.py $(if $(LLMC),--llmc='$(LLMC)') $(ARGS)
check-gpu: all $(BUILD)/tests/backend/test_attention_gpu
	$(Q)tools/check_gpu.sh
check-interop: all
	$(Q)tools/check_interop.sh tokenizer --texts=100000
	$(Q)tools/check_interop.sh gpt2
	$(Q)tools/check_interop.sh nanogpt
deps:
	$(Q)tools/install_deps.sh
docs: all
	$(Q)tools/gen_docs.sh
format:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp')

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/strobe/configs
	install -m 755 $(BUILD)/strobe $(DESTDIR)$(PREFIX)/bin/strobe
	install -m 644 configs/*.conf $(DESTDIR)$(PREFIX)/share/strobe/configs

clean:
	rm -rf build strobe

-include $(shell find build/$(MODE) build/fuzz -name '*.d' 2>/dev/null)
