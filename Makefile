# make            build/moesol and, where nvcc is, build/libmoesol-cuda.so and libmoesol-attach.so
# make report     install what is missing, build, run a suite on the best device, write the report
# make test       install, build and test everything that needs no GPU
# make test-all   and what takes longer;  make gpu-test: what needs a GPU
# make fuzz       libFuzzer on every parser of untrusted input, FUZZ_SECONDS (60) for each
# make leaderboard  rewrite LEADERBOARD.md, and build/leaderboard, from the entries and reported rows
# make golden     rewrite the expected outputs under tests/golden for review
# make install    under PREFIX;  make format: clang-format;  make clean
# STATIC=1 links jansson and OpenBLAS statically, for a machine that lacks them.

VERSION := 0.1.0
PREFIX ?= /usr/local
CC ?= cc
NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_HOME ?= $(if $(NVCC),$(abspath $(dir $(NVCC))/..))
B ?= build

CFLAGS ?= -O3 -g
# Two warnings depend on how far the optimiser sees, and so on the compiler: shown, not fatal.
WARN := -Wall -Wextra -Werror -Wno-error=maybe-uninitialized -Wno-error=format-truncation
CPPFLAGS += -D_GNU_SOURCE
# No contraction: the normal table and the fp16 roundings are the same bits on every machine.
override CFLAGS += -std=c11 $(WARN) -ffp-contract=off -fopenmp -fPIC -MMD -MP
LDLIBS := $(if $(STATIC),-l:libjansson.a -l:libopenblas.a,-ljansson -lopenblas) -lm -ldl -lpthread

SOURCES := moesol.c $(wildcard core/*.c cases/*.c kernels/*.c profiler/*.c analysis/*.c reports/*.c)
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(B)/build_info.o
LIBRARY := $(filter-out $(B)/moesol.o,$(OBJECTS))

# Device code for Ampere and Hopper, PTX for what comes after; wgmma exists in sm_90a only.
CUDA_SOURCES := $(wildcard kernels/cuda/*.cu profiler/cuda/*.cu)
CUDA_OBJECTS := $(CUDA_SOURCES:%.cu=$(B)/%.cu.o)
# What `moesol attach` loads into a program: the collector, and its thread and NVTX subscription.
INJECT_OBJECTS := $(patsubst %.cu,$(B)/%.cu.o,$(wildcard profiler/cuda/inject/*.cu) \
    $(addprefix profiler/cuda/,activity.cu counters.cu counters_host.cu)) \
    $(addprefix $(B)/,core/error.o core/text.o profiler/launch_name.o profiler/counter_combine.o \
    profiler/attach_wire.o)
WGMMA_SOURCES := $(wildcard kernels/cuda/wgmma_*.cu kernels/cuda/hopper*.cu)
GENCODE := -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90]
$(WGMMA_SOURCES:%.cu=$(B)/%.cu.o): GENCODE := -gencode=arch=compute_90a,code=sm_90a
CUPTI := $(firstword $(wildcard $(CUDA_HOME)/extras/CUPTI $(CUDA_HOME)))
NVCCFLAGS := -std=c++17 -O3 -lineinfo -Xcompiler -fPIC,-Wall,-Wextra,-Wno-unused-parameter -I$(CUPTI)/include
CUDA_LIBS := -lcublas -L$(CUDA_HOME)/lib64 -L$(CUPTI)/lib64 -lcupti -ldl
CUDA_RPATH := -Xlinker -rpath=$(CUDA_HOME)/lib64:$(CUPTI)/lib64

.PHONY: all report test test-all gpu-test asan fuzz fuzz-compiler golden leaderboard install format clean deps FORCE
.DELETE_ON_ERROR:
.SECONDARY:
all: $(B)/moesol $(if $(NVCC),$(B)/libmoesol-cuda.so $(B)/libmoesol-attach.so)

$(B)/moesol: $(OBJECTS)
	$(CC) $(CFLAGS) -rdynamic -o $@ $^ $(LDFLAGS) $(LDLIBS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# The module takes the plain C functions it needs from the command that loads it; what is loaded into
# a stranger's program has them inside.
$(B)/libmoesol-cuda.so: $(CUDA_OBJECTS)
	$(NVCC) -shared -cudart static -o $@ $^ $(CUDA_LIBS) $(CUDA_RPATH)

$(B)/libmoesol-attach.so: $(INJECT_OBJECTS)
	$(NVCC) -shared -cudart static -Xlinker --no-undefined -o $@ $^ -L$(CUPTI)/lib64 -lcupti -ldl -lpthread $(CUDA_RPATH)

$(B)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(GENCODE) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(B)/build_info.c: FORCE
	@mkdir -p $(@D)
	@tools/build_info.sh '$(VERSION)' '$(PREFIX)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(B)/build_info.o: $(B)/build_info.c
	$(CC) $(CPPFLAGS) -I. $(CFLAGS) -c -o $@ $<

# --- tests: one program an area, tests/test_*.c; shell tests are tests/test_*.sh -----------------
TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/test_*.c))
GPU_TESTS := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/gpu_*.c))

$(B)/tests/test_%: $(B)/tests/test_%.o $(LIBRARY)
	$(CC) $(CFLAGS) -rdynamic -o $@ $^ $(LDFLAGS) $(LDLIBS) -lcmocka
$(B)/tests/gpu_%: $(B)/tests/gpu_%.o $(LIBRARY)
	$(CC) $(CFLAGS) -rdynamic -o $@ $^ $(LDFLAGS) $(LDLIBS)

# Fuzz targets, tests/fuzz/fuzz_*.c, with a main of our own that replays the committed corpus.
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(LIBRARY)
	$(CC) $(CFLAGS) -rdynamic -o $@ $^ $(LDFLAGS) $(LDLIBS)

# The C half once more with address and undefined-behaviour sanitizers; leaks are failures. What
# takes long runs so in test-all only.
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
ASAN_SLOW := $(filter %_process %_compare %_html %_draw %_zipf,$(TESTS))
ASAN_TESTS := $(filter-out $(ASAN_SLOW),$(TESTS)) $(FUZZERS:%=$(B)/tests/fuzz/%)
ASAN_RUN := $(patsubst $(B)/%,$(B)/asan/%,$(ASAN_TESTS))
asan: $(B)/moesol $(TESTS) $(FUZZERS:%=$(B)/tests/fuzz/%)
# Jobs for all cores, unless the caller said how many.
JOBS = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
ASAN_ARGUMENTS = --no-print-directory $(JOBS) B=$(B)/asan NVCC= CFLAGS='$(SANITIZE)' asan

deps:
	@tools/install_deps.sh

# The packages come first, then everything else may use its headers.
test: deps
	@$(MAKE) --no-print-directory $(JOBS) all $(TESTS)
	@$(MAKE) $(ASAN_ARGUMENTS)
	@tests/run.sh $(B)/moesol $(TESTS) $(ASAN_RUN) $(wildcard tests/test_*.sh)

test-all: deps
	@$(MAKE) --no-print-directory $(JOBS) all $(TESTS)
	@$(MAKE) $(ASAN_ARGUMENTS)
	@MOESOL_TEST_ALL=1 tests/run.sh $(B)/moesol $(TESTS) $(ASAN_RUN) $(wildcard tests/test_*.sh)
	@tests/run.sh $(B)/asan/moesol $(patsubst $(B)/%,$(B)/asan/%,$(ASAN_SLOW))

# libFuzzer comes with clang (Debian: clang, libclang-rt-dev). What it finds is left in
# $(B)/fuzz as crash-*; new inputs that reach new code go to $(B)/fuzz/new-TARGET, not to the tree.
FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang
FUZZ_FLAGS := -std=c11 -O1 -g -ffp-contract=off -fno-omit-frame-pointer -fsanitize=address,undefined \
    -fno-sanitize-recover=all -MMD -MP
FUZZ_SOURCES := $(wildcard core/*.c cases/*.c analysis/*.c reports/*.c) \
    profiler/command_text.c profiler/worker_protocol.c
FUZZ_OBJECTS := $(FUZZ_SOURCES:%.c=$(B)/fuzz/%.o) $(B)/fuzz/build_info.o
$(B)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -c -o $@ $<
$(B)/fuzz/build_info.o: $(B)/build_info.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CPPFLAGS) -I. $(FUZZ_FLAGS) -c -o $@ $<
$(B)/fuzz/fuzz_%: $(B)/fuzz/tests/fuzz/fuzz_%.o $(FUZZ_OBJECTS)
	$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ -ljansson -lm -ldl -lpthread
fuzz-compiler:
	@echo 'int LLVMFuzzerTestOneInput(void){return 0;}' | \
	    $(FUZZ_CC) -x c -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null || \
	    { echo 'moesol: no libFuzzer with $(FUZZ_CC); apt-get install clang libclang-rt-14-dev, or' \
	    'set FUZZ_CC' >&2; exit 1; }
fuzz: fuzz-compiler
	@$(MAKE) --no-print-directory $(FUZZERS:%=$(B)/fuzz/%)
	@set -e; for target in $(FUZZERS); do \
	    echo "$$target: $(FUZZ_SECONDS) s"; mkdir -p $(B)/fuzz/new-$$target; \
	    $(B)/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=10 -verbosity=0 \
	        -print_final_stats=1 -artifact_prefix=$(B)/fuzz/ $(B)/fuzz/new-$$target \
	        tests/fuzz/corpus/$${target#fuzz_}; done

# Where jansson's header is missing (a GPU machine with the CUDA Toolkit only), what was built with
# STATIC=1 elsewhere is used as it is.
gpu-test:
	@if echo '#include <jansson.h>' | $(CC) -E - >/dev/null 2>&1; then \
	    $(MAKE) --no-print-directory $(JOBS) all $(GPU_TESTS); fi
	@tests/run.sh $(B)/moesol $(GPU_TESTS) $(wildcard tests/gpu_*.sh)

leaderboard: all
	@mkdir -p $(B)/leaderboard
	@tools/leaderboard.sh $(B)/moesol $(B)/leaderboard > $(B)/LEADERBOARD.md
	@cp $(B)/LEADERBOARD.md LEADERBOARD.md

golden: $(TESTS)
	MOESOL_GOLDEN=write tests/run.sh $(B)/moesol $(TESTS)

report: deps
	@$(MAKE) --no-print-directory $(JOBS) all
	@tools/report.sh $(B)/moesol

DATA := $(DESTDIR)$(PREFIX)/share/moesol
install: all
	@MOESOL_SOURCE_DIR= $(MAKE) --no-print-directory B=$(B)/install $(B)/install/moesol
	install -D -m 755 $(B)/install/moesol $(DESTDIR)$(PREFIX)/bin/moesol
	if [ -e $(B)/libmoesol-cuda.so ]; then for module in libmoesol-cuda.so libmoesol-attach.so; do \
	    install -D -m 755 $(B)/$$module $(DESTDIR)$(PREFIX)/lib/moesol/$$module; done; fi
	find cases -type f \( -path '*/records/*' -o ! -name '*.[ch]' \) -exec install -D -m 644 {} $(DATA)/{} ';'
	for header in kernels/kernel.h cases/case.h; do \
	    install -D -m 644 $$header $(DESTDIR)$(PREFIX)/include/moesol/$$header; done
	install -D -m 644 doc/moesol.1 $(DESTDIR)$(PREFIX)/share/man/man1/moesol.1

clean:
	rm -rf $(B)

format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' ':!cases/*/records/**')

-include $(OBJECTS:.o=.d) $(TESTS:=.d) $(GPU_TESTS:=.d) $(FUZZ_OBJECTS:.o=.d) \
    $(FUZZERS:%=$(B)/fuzz/tests/fuzz/%.d) $(FUZZERS:%=$(B)/tests/fuzz/%.d) $(B)/tests/fuzz/replay.d \
    $(sort $(CUDA_OBJECTS:.o=.d) $(INJECT_OBJECTS:.o=.d))
