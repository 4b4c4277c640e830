# normgen. `make` builds build/normgen and build/libnormgen.{a,so}; `make help` lists the rest.
#
#   BUILD=dir        where everything goes (default build)
#   SANITIZE=name    address (with undefined behaviour) or thread: use its own BUILD
#   CC=, CXX=        compilers; the thread sanitizer needs clang

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

LIB_SOURCES := $(sort $(wildcard ir/*.c gen/*.c runtime/*.c))
CLI_SOURCES := $(sort $(wildcard runtime/cli/*.c))
TEST_SUPPORT := $(sort $(wildcard tests/support/*.c))
UNIT_SOURCES := $(sort $(wildcard tests/unit/test_*.c))
TEMPLATES := $(sort $(wildcard templates/*.cu templates/*.cuh))

LIB_OBJECTS := $(LIB_SOURCES:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/templates.o
CLI_OBJECTS := $(CLI_SOURCES:%.c=$(BUILD)/obj/%.o)
SUPPORT_OBJECTS := $(TEST_SUPPORT:%.c=$(BUILD)/obj/%.o)
UNIT_TESTS := $(UNIT_SOURCES:tests/unit/%.c=$(BUILD)/tests/%)

.PHONY: all clean
all: $(BUILD)/libnormgen.a $(BUILD)/libnormgen.so $(if $(CLI_SOURCES),$(BUILD)/normgen)

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
$(BUILD)/normgen: $(CLI_OBJECTS) $(BUILD)/libnormgen.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/%: tests/unit/%.c $(SUPPORT_OBJECTS) $(BUILD)/libnormgen.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(SUPPORT_OBJECTS) $(BUILD)/libnormgen.a -lcmocka $(LIBS)

.PHONY: unit
unit: all $(UNIT_TESTS)
	BUILD=$(BUILD) sh tests/run.sh $(UNIT_TESTS)

clean:
	rm -rf build

-include $(LIB_OBJECTS:.o=.d) $(CLI_OBJECTS:.o=.d) $(SUPPORT_OBJECTS:.o=.d) $(UNIT_TESTS:=.d)
