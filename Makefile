# normgen. `make` builds build/normgen and build/libnormgen.{a,so}; `make help` lists the rest.
#
#? BUILD=dir        where everything goes (default build)
#? SANITIZE=name    address (with undefined behaviour) or thread: use its own BUILD
#? CC=, CXX=        compilers; the thread sanitizer needs clang
#? JOBS=n           compilers at once (default: one a core)

BUILD ?= build
CC ?= gcc
CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -pedantic -Werror
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -I. -fPIC -fvisibility=hidden -ffp-contract=off -pthread $(WARNINGS) $(CFLAGS)
LIBS = -lyaml -lcjson -lxxhash -lm -ldl -pthread

ifeq ($(SANITIZE),address)
CFLAGS = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
ifeq ($(SANITIZE),thread)
CFLAGS = -O1 -g -fsanitize=thread
CC = clang
endif

ifeq ($(SANITIZE),fuzz)
CFLAGS = -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
CC = clang
endif

LIB_SOURCES := $(sort $(wildcard ir/*.c gen/*.c runtime/*.c))
CLI_SOURCES := $(sort $(wildcard runtime/cli/*.c))
TEST_SUPPORT := $(sort $(wildcard tests/support/*.c))
LONG_TESTS := $(addprefix tests/unit/,test_backward.c test_matrix.c test_nvrtc.c test_random_device.c test_sizes.c) # begun first
UNIT_SOURCES := $(LONG_TESTS) $(filter-out $(LONG_TESTS),$(sort $(wildcard tests/unit/test_*.c)))
TEMPLATES := $(sort $(wildcard templates/*.cu templates/*.cuh)) templates/host_api.h

LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/templates.o
CLI_OBJECTS := $(CLI_SOURCES:%.c=$(BUILD)/obj/%.o)
SUPPORT_OBJECTS := $(TEST_SUPPORT:%.c=$(BUILD)/obj/%.o)
UNIT_TESTS := $(UNIT_SOURCES:tests/unit/%.c=$(BUILD)/tests/%)

CLI_PARTS := $(filter-out %/main.o,$(CLI_OBJECTS)) # what unit tests may link
TEST_SCRIPTS := $(sort $(wildcard tests/*/test_*.sh))
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: all clean
all: $(BUILD)/libnormgen.a $(BUILD)/libnormgen.so $(BUILD)/normgen

# The fiber scheduler moves the stack pointer under the sanitizers' feet, so it is built without them.
UNSANITIZED := $(BUILD)/obj/runtime/host_fiber.o
$(UNSANITIZED): ALL_CFLAGS += -fno-sanitize=all

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/templates.c: templates/embed.sh $(TEMPLATES)
	@mkdir -p $(@D)
	sh templates/embed.sh $(TEMPLATES) > $@
$(BUILD)/obj/templates.o: $(BUILD)/templates.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/libnormgen.a: $(LIB_OBJECTS)
	rm -f $@
	ar rcs $@ $^
$(BUILD)/libnormgen.so: $(LIB_OBJECTS)
	$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,libnormgen.so.0 -o $@ $^ $(LIBS)
	ln -sf libnormgen.so $@.0
$(BUILD)/normgen: $(CLI_OBJECTS) $(BUILD)/libnormgen.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libcli.a: $(CLI_PARTS)
	rm -f $@
	ar rcs $@ $^
$(BUILD)/libsupport.a: $(SUPPORT_OBJECTS)
	rm -f $@
	ar rcs $@ $^
TEST_LIBRARIES := $(BUILD)/libsupport.a $(BUILD)/libcli.a $(BUILD)/libnormgen.a
$(BUILD)/tests/%: tests/unit/%.c $(TEST_LIBRARIES)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(TEST_LIBRARIES) -lcmocka $(LIBS)

# ---- what people type ----

.PHONY: help deps demo test unit test-asan test-tsan test-real lint golden
help:
	@sed -n 's/^#? //p' Makefile

#? make            build/normgen and build/libnormgen.{a,so}
#? make deps       install what building and testing need (Debian and Ubuntu packages), only what is missing
deps:
	@sh .ci/deps

#? make demo       set up, build, then generate, compile, run and check one example on whatever device there is
demo: deps
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@BUILD=$(BUILD) sh examples/demo.sh

#? make test       set up, build, then the whole suite that needs no GPU
test: deps
	@$(MAKE) --no-print-directory -j$(JOBS) all $(UNIT_TESTS)
	@BUILD=$(BUILD) sh tests/run.sh $(UNIT_TESTS) $(TEST_SCRIPTS)

#? make unit       the unit tests alone
unit: all $(UNIT_TESTS)
	BUILD=$(BUILD) sh tests/run.sh $(UNIT_TESTS)

#? make test-asan  the suite under the address and undefined-behaviour sanitizers, reduced
test-asan:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/asan SANITIZE=address sanitized

#? make test-tsan  the suite under the thread sanitizer (clang), reduced
test-tsan:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/tsan SANITIZE=thread sanitized

.PHONY: sanitized
sanitized: all $(UNIT_TESTS)
	@BUILD=$(BUILD) NORMGEN_TEST_REDUCED=$(SANITIZE) sh tests/run.sh $(UNIT_TESTS) $(TEST_SCRIPTS)

#? make test-real  layer norms of a published model with its own weights (fetched with pip on the first call)
test-real: all
	@BUILD=$(BUILD) sh tests/real/run.sh

#? make lint       layers, forbidden words, sizes, clang-format, clang-tidy
lint: all
	@BUILD=$(BUILD) TEST_LIMIT=1800 sh tests/run.sh $(sort $(wildcard tests/lint/*.sh))

#? make golden     rewrite the golden files of the tests
golden: all $(UNIT_TESTS)
	@BUILD=$(BUILD) UPDATE_GOLDEN=1 sh tests/run.sh $(UNIT_TESTS)

#? make faults     plants faults in a copy of the tree, each of which one quick test must catch (FAULTS="a b": only these)
.PHONY: faults
faults: all $(UNIT_TESTS)
	@BUILD=$(BUILD) FAULTS="$(FAULTS)" FAULT_JOBS=$(JOBS) sh tests/faults/run.sh

#? make fuzz       libFuzzer (clang) on graph files and safetensors files, FUZZ_SECONDS each (600)
.PHONY: fuzz fuzzers
fuzz:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD)/fuzz SANITIZE=fuzz fuzzers
	@BUILD=$(BUILD)/fuzz sh tests/fuzz/run.sh
fuzzers: $(BUILD)/fuzz_graph $(BUILD)/fuzz_safetensors
$(BUILD)/fuzz_%: tests/fuzz/fuzz_%.c $(BUILD)/libcli.a $(BUILD)/libnormgen.a
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $< $(BUILD)/libcli.a $(BUILD)/libnormgen.a $(LIBS)

#? make bench-compile  what ng_compile takes with NVRTC, for every example (BENCH_ROUNDS=7, BENCH_COLUMNS=0,384,...)
BENCH_ROUNDS ?= 7
BENCH_COLUMNS ?= 0,384,1024,4096,8192,16384
.PHONY: bench-compile
bench-compile: $(BUILD)/bench/compile_time $(BUILD)/fake/libcuda.so.1
	FAKE_CUDA=$(BUILD)/fake/libcuda.so.1 $< -r $(BENCH_ROUNDS) -n $(BENCH_COLUMNS) $(sort $(wildcard examples/*.yaml))
$(BUILD)/bench/%: bench/%.c $(BUILD)/libnormgen.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libnormgen.a $(LIBS)
$(BUILD)/fake/libcuda.so.1: tests/fake/cuda.c tests/fake/cuda.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fvisibility=default -shared -Wl,-soname,libcuda.so.1 -o $@ $<

#? make clean      remove build/
clean:
	rm -rf build

-include $(LIB_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(SUPPORT_OBJECTS:.o=.d) $(UNIT_TESTS:=.d)
