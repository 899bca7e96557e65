# Snug: `make demo` and `make test` go from a fresh Debian 12 to a result; `make` alone builds everything, `make demo` the
# command alone. Everything lands in build/, which git ignores; what the one has built the other takes.
BUILD ?= build
CMAKE_FLAGS ?=

configure = cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS) > $(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }; rm -f $(BUILD).log

.PHONY: all demo test test-full soak test-cuda bench install clean packages

all: packages
	@$(configure)
	@cmake --build $(BUILD)

packages:
	@tools/packages.sh

demo:
	@tools/packages.sh --command
	@$(configure)
	@cmake --build $(BUILD) --target snug_command
	@tools/demo.sh $(BUILD)

# ONNX' operator tests are skipped where their data cannot be had, the layout of C where its program cannot, texts in
# another language where there is none.
test: all
	@tools/packages.sh libonnx-testdata || true
	@tools/packages.sh locales || true
	@tools/packages.sh clang-format-14 || true
	@tools/test.sh $(BUILD)

test-full: all
	@tools/packages.sh libonnx-testdata || true
	@tools/packages.sh locales || true
	@tools/packages.sh clang-format-14 || true
	@tools/packages.sh clang-14 libclang-rt-14-dev libomp-14-dev || true
	@tools/test.sh $(BUILD) full

# Fuzz targets for half of HOURS, then long runs; ends with a line for the ledger in docs/reliability.md.
HOURS ?= 1
soak: all
	@tools/packages.sh clang-14 libclang-rt-14-dev libomp-14-dev || true
	@python3 -B tools/soak.py $(BUILD) $(HOURS)

# On a machine with a GPU; ends with make's code for 77 where there is none.
test-cuda: all
	@cmake --build $(BUILD) --target gpu_closing
	@tools/test-cuda.sh $(BUILD)

bench: all
	@python3 -B bench/all.py $(BUILD)

install: all
	@cmake --install $(BUILD)

clean:
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz
