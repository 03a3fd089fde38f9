# Strobe: a laboratory for the speed of GPT training
#
#   make              build ./strobe                 make test [T=word]  run the tests whose path has the word
#   make demo         install, build, train, compare, report; FROM=FILE: on a text of your own
#   make check        install, then everything CI does: format, layers, sizes, docs, cppcheck,
#                     tests in release and with AddressSanitizer and UndefinedBehaviorSanitizer
#   make tsan         the tests of threads with ThreadSanitizer
#   make compare-pytorch  Strobe beside PyTorch (PYTHON) on the GPU, or, without one, on the CPU, there with
#                     llm.c too (LLMC, a clone of it); ON=cpu or gpu decides; ARGS="--budget=330 CONFIG"
#   make check-gpu    what only a GPU can show: kernels, losses, bits, memory, sanitizer, start (tools/check_gpu.sh)
#   make deps         install the Debian packages    make docs           rewrite docs/OPS.md and docs/CONFIG.md
#   make install      PREFIX=/usr/local DESTDIR=     make clean
#   MODE=release|debug|asan|tsan        V=1 show commands        lasting choices: config.mk (ignored by git)
#   CUDA=/usr/local/cuda                a toolkit whose headers the GPU's backend is built with; without them there is none
-include config.mk

MODE ?= release
PREFIX ?= /usr/local
PYTHON ?= python3
V ?= 0
T ?=
Q := $(if $(filter 0,$(V)),@)
VERSION := 0.1.0
COMMIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)

BUILD := build/$(MODE)
CFLAGS_release := -O2
CFLAGS_debug := -O0
# The checks that sanitizers insert make gcc see overlaps and cut texts where there are none.
CFLAGS_asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover -fno-omit-frame-pointer \
               -Wno-format-truncation -Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized
# ThreadSanitizer: tools/tsan.sh says why the threads are then LLVM's, and why there is no oneDNN.
LLVM := $(lastword $(sort $(wildcard /usr/lib/llvm-*/lib/libarcher.so)))
CFLAGS_tsan := -O1 -fsanitize=thread -fno-omit-frame-pointer \
               -Wno-format-truncation -Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized
OPENMP := -fopenmp
ifeq ($(MODE),tsan)
$(if $(LLVM),,$(error MODE=tsan needs LLVM's OpenMP library: tools/install_deps.sh --tsan))
OPENMP := -L$(dir $(LLVM)) -Wl,-rpath,$(dir $(LLVM)) -lomp
endif
WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Werror
CFLAGS += -std=c2x -g -fopenmp -D_GNU_SOURCE -Isrc $(WARNINGS) \
          $(or $(CFLAGS_$(MODE)),$(error MODE is release, debug, asan or tsan))
LINK = $(CC) $(filter-out -fopenmp,$(CFLAGS)) $(LDFLAGS)
LDLIBS += $(OPENMP) $(if $(filter x86_64,$(shell uname -m)),-lmvec) -lm

# Libraries: what is there is used. DESIGN: docs/ARCHITECTURE.md.
has = $(shell pkg-config --exists $(1) 2>/dev/null && echo 1)
pkg_cflags = $(shell pkg-config --cflags $(1))
pkg_libs = $(shell pkg-config --libs $(1))
REQUIRED := jansson libcrypto
MISSING := $(strip $(foreach p,$(REQUIRED),$(if $(call has,$(p)),,$(p))))
DEPS := $(if $(MISSING),,$(REQUIRED)) $(if $(call has,libcurl),libcurl) $(if $(call has,zlib),zlib)
CFLAGS += $(call pkg_cflags,$(DEPS)) $(if $(call has,libcurl),-DHAVE_CURL)
LDLIBS += $(call pkg_libs,$(DEPS))
HAS_ZLIB := $(call has,zlib)
# Version 2 of oneDNN; version 3 has another C interface, and products fall back to our own.
ifneq ($(filter-out tsan,$(MODE)),)
ifneq ($(shell grep -s 'DNNL_VERSION_MAJOR 2' /usr/include/oneapi/dnnl/dnnl_version.h \
         /usr/local/include/oneapi/dnnl/dnnl_version.h /usr/include/dnnl_version.h),)
CFLAGS += -DHAVE_DNNL
LDLIBS += -ldnnl
endif
endif

# GPUs: the toolkit's headers are needed to build, its libraries only to run (they are opened then).
CUDA ?= /usr/local/cuda
HAS_CUDA := $(and $(wildcard $(CUDA)/include/cuda.h),$(wildcard $(CUDA)/include/nvrtc.h),$(wildcard $(CUDA)/include/cublasLt.h))
CFLAGS += $(if $(HAS_CUDA),-DHAVE_CUDA -isystem $(CUDA)/include)
# For profiles: the toolkit has these headers here or there, or not at all.
CUPTI := $(patsubst %/cupti.h,%,$(firstword $(wildcard $(CUDA)/include/cupti.h $(CUDA)/extras/CUPTI/include/cupti.h)))
CFLAGS += $(if $(HAS_CUDA),$(if $(CUPTI),-DHAVE_CUPTI $(addprefix -isystem ,$(filter-out $(CUDA)/include,$(CUPTI)))))
NVTX := $(wildcard $(CUDA)/include/nvtx3/nvToolsExt.h)
CFLAGS += $(if $(HAS_CUDA),$(if $(NVTX),-DHAVE_NVTX))

SOURCES := $(wildcard src/*.c src/*/*.c src/*/*/*.c)
SOURCES := $(if $(HAS_CUDA),$(SOURCES),$(filter-out src/backend/cuda/%,$(SOURCES)))
# Kernels in vector types: one text, compiled once for each instruction set.
VECTOR_SOURCES := $(wildcard src/backend/cpu/vector/*.c)
ISAS := $(if $(filter x86_64,$(shell uname -m)),avx512 avx2 sse2) plain
ISA_avx512 := -march=x86-64-v4 -mprefer-vector-width=512
ISA_avx2 := -march=x86-64-v3
ISA_plain := -DVEC_PLAIN
# Kernels that multiply bfloat16: the same, for those that can.
BF16_SOURCES := $(wildcard src/backend/cpu/bf16/*.c)
BF16_ISAS := $(if $(filter x86_64,$(shell uname -m)),amx avx512_bf16)
ISA_avx512_bf16 := $(ISA_avx512) -mavx512bf16
ISA_amx := $(ISA_avx512_bf16) -mamx-tile -mamx-bf16
# Those that work on activations, once more each, for the two types of these.
ACT_SOURCES := $(patsubst %,src/backend/cpu/vector/%.c,\
                 blocked embed gated gelu loss move norm pointwise reduce rms rope softmax)
# And these, but for processors that multiply bf16: bf16/ has what these take.
FLASH_SOURCES := $(patsubst %,src/backend/cpu/vector/%.c,attention attention_grad attention_rows)
# Those of bf16 activations once more, with what they call, for processors that round to bf16 by themselves.
ROUNDING_ISAS := $(filter avx512_bf16,$(BF16_ISAS))
ROUNDING_SOURCES := $(patsubst %,src/backend/cpu/vector/%.c,chain common dropout tables)
OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(VECTOR_SOURCES) $(BF16_SOURCES),$(SOURCES))) \
           $(foreach i,$(ISAS),$(patsubst %.c,$(BUILD)/%.$(i).o,$(VECTOR_SOURCES))) \
           $(foreach i,$(ISAS) $(ROUNDING_ISAS),$(patsubst %.c,$(BUILD)/%.$(i).bf16.o,$(ACT_SOURCES))) \
           $(foreach i,$(ISAS),$(patsubst %.c,$(BUILD)/%.$(i).bf16.o,$(FLASH_SOURCES))) \
           $(foreach i,$(ROUNDING_ISAS),$(patsubst %.c,$(BUILD)/%.$(i).o,$(ROUNDING_SOURCES))) \
           $(foreach i,$(BF16_ISAS),$(patsubst %.c,$(BUILD)/%.$(i).o,$(BF16_SOURCES)))
LIBRARY := $(filter-out $(BUILD)/src/main.o,$(OBJECTS))
TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/*/test_*.c))
TEST_HELPERS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))

.PHONY: all test check tsan demo compare-pytorch check-gpu deps docs install clean format FORCE need
.DELETE_ON_ERROR:
.SECONDARY: $(OBJECTS) $(TEST_HELPERS)

all: need $(BUILD)/strobe
	$(Q)ln -sf $(BUILD)/strobe strobe

need:
ifneq ($(MISSING),)
	$(error $(MISSING) not found: `make deps` installs what is needed)
endif

# Rewritten only when it differs, so a change of flags rebuilds everything.
$(BUILD)/flags: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(CC) $(CFLAGS) $(LDLIBS) $(ISAS)' | cmp -s - $@ || echo '$(CC) $(CFLAGS) $(LDLIBS) $(ISAS)' >$@
$(BUILD)/version: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(VERSION) $(COMMIT)' | cmp -s - $@ || echo '$(VERSION) $(COMMIT)' >$@

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  cc $<")
	$(Q)$(CC) $(CFLAGS) $(CFLAGS_$(subst /,_,$*)) -MMD -MP -c -o $@ $<
# isa_rule ISA,TYPE,ENDING
define isa_rule
$(BUILD)/%.$(3).o: %.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(if $$(Q),@echo "  cc $$< ($(3))")
	$$(Q)$$(CC) $$(CFLAGS) -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math $$(ISA_$(1)) -DISA=$(1) -DACT_TYPE=$(2) -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call isa_rule,$(i),f32,$(i))) $(eval $(call isa_rule,$(i),bf16,$(i).bf16)))
$(foreach i,$(BF16_ISAS),$(eval $(call isa_rule,$(i),bf16,$(i))) $(eval $(call isa_rule,$(i),bf16,$(i).bf16)))

$(BUILD)/src/base/gzip.o: CFLAGS += $(if $(HAS_ZLIB),-DHAVE_ZLIB)
$(BUILD)/src/cli/version.o: CFLAGS += -DVERSION='"$(VERSION)"' -DCOMMIT='"$(COMMIT)"' -DMODE='"$(MODE)"'
$(BUILD)/src/cli/version.o: $(BUILD)/version
# What .incbin takes in, the compiler does not name.
KERNELS := src/backend/cuda/kernels
texts_of = $(patsubst $(KERNELS)/%.$(1),F(%),$(wildcard $(KERNELS)/*.$(1)))
$(BUILD)/src/backend/cuda/texts.o: CFLAGS += '-DTEXTS(F)=$(call texts_of,cu)' '-DHEADERS(F)=$(call texts_of,cuh)'
$(BUILD)/src/backend/cuda/texts.o: $(wildcard $(KERNELS)/*)
$(BUILD)/src/suite/texts.o: $(wildcard configs/*.conf)
$(BUILD)/src/view/published.o: $(wildcard configs/published/*.json)
$(BUILD)/src/present/assets.o: $(wildcard src/present/web/* /usr/share/javascript/dygraphs/dygraph.min.*)

$(BUILD)/strobe: $(OBJECTS)
	$(if $(Q),@echo "  ld $@")
	$(Q)$(LINK) -o $@ $^ $(LDLIBS)
# The loops that tests compare with run on one thread: watching them would only take time.
build/tsan/tests/%.o: CFLAGS := $(filter-out -fsanitize=thread,$(CFLAGS))
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(TEST_HELPERS) $(LIBRARY)
	$(if $(Q),@echo "  ld $@")
	$(Q)$(LINK) -o $@ $^ $(LDLIBS) -lcmocka

# A GPU that is not there (tests/emulator/engine.hpp); in release alone, for fibers are none of a sanitizer's stacks.
CXX_THERE := $(shell command -v $(CXX) 2>/dev/null)
EMULATOR := $(if $(and $(HAS_CUDA),$(CXX_THERE),$(filter release,$(MODE))),$(addprefix $(BUILD)/emulator/,\
                 libcuda.so.1 libnvrtc.so.13 libcublasLt.so.13 libnvidia-ml.so.1 without.so \
                 $(if $(CUPTI),libcupti.so.13) $(if $(NVTX),listener.so)))
EMULATED := tests/emulator
EMULATOR_HEADERS := $(wildcard $(EMULATED)/*.hpp)
SHARED = $(CXX) -std=c++17 -O3 -g -Wall -Wextra -Werror -fPIC -shared -isystem $(CUDA)/include -isystem $(CUPTI) -o $@ $(filter %.cpp %.so.1,$^)
$(BUILD)/emulator/%: $(EMULATOR_HEADERS) $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),@echo "  c++ $@")
	$(Q)$(SHARED) $(EMULATOR_FLAGS)
$(BUILD)/emulator/libcuda.so.1: $(addprefix $(EMULATED)/,cuda.cpp streams.cpp engine.cpp \
                                       products.cpp barriers.cpp tensors.cpp)
$(BUILD)/emulator/libcuda.so.1: EMULATOR_FLAGS := -Wl,-soname,libcuda.so.1
$(BUILD)/emulator/libnvrtc.so.13: $(EMULATED)/nvrtc.cpp
# What it compiles with is a version of its own, so modules that are kept from an older one are not taken.
$(BUILD)/emulator/libnvrtc.so.13: EMULATOR_FLAGS = -DEMU_FOLDER='"$(CURDIR)/$(EMULATED)"' -DEMU_CXX='"$(CXX)"' \
    -DEMU_CONTENT=$(firstword $(shell cat $(EMULATED)/nvrtc.cpp $(EMULATOR_HEADERS) | cksum))u
$(BUILD)/emulator/libcublasLt.so.13: $(EMULATED)/cublaslt.cpp $(BUILD)/emulator/libcuda.so.1
$(BUILD)/emulator/libcublasLt.so.13: EMULATOR_FLAGS := -Wl,-rpath,'$$ORIGIN'
$(BUILD)/emulator/libnvidia-ml.so.1: $(EMULATED)/nvml.cpp $(BUILD)/emulator/libcuda.so.1
$(BUILD)/emulator/libnvidia-ml.so.1: EMULATOR_FLAGS := -Wl,-rpath,'$$ORIGIN'
$(BUILD)/emulator/libcupti.so.13: $(EMULATED)/cupti.cpp $(BUILD)/emulator/libcuda.so.1
$(BUILD)/emulator/libcupti.so.13: EMULATOR_FLAGS := -Wl,-rpath,'$$ORIGIN'
$(addprefix $(BUILD)/emulator/,without.so listener.so): $(BUILD)/emulator/%.so: $(EMULATED)/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  cc $@")
	$(Q)$(CC) -std=c2x -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -isystem $(CUDA)/include -fPIC -shared -o $@ $<

test: all $(TESTS) $(EMULATOR)
	$(Q)tools/run_tests.sh $(BUILD) '$(T)'

check:
	$(Q)tools/check.sh
tsan:
	$(Q)tools/tsan.sh
demo:
	$(Q)tools/demo.sh $(if $(FROM),'$(FROM)')
compare-pytorch: all
	$(Q)on='$(ON)'; [ "$$on" ] || { ./strobe info | grep -qE '^gpu +(no|not|none)\b' && on=cpu || on=gpu; }; \
	$(PYTHON) reference/compare_$$on.py $(if $(LLMC),--llmc='$(LLMC)') $(ARGS)
check-gpu: all $(BUILD)/tests/backend/test_attention_gpu
	$(Q)tools/check_gpu.sh
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

-include $(shell find build/$(MODE) -name '*.d' 2>/dev/null)
