# Sets up .venv by itself; every target works from nothing on a machine with python3 (3.11, with venv), make and g++.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build/cmake
JOBS ?= $(shell nproc)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One build folder for the wheel, the native tests and the tools, so that nothing is compiled twice.
INSTALL := PATH="$(CURDIR)/$(BIN):$$PATH" CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PIP) install --no-build-isolation \
	--config-settings=build-dir=$(BUILD)
SOURCES := $(shell git ls-files -co --exclude-standard -- CMakeLists.txt native src pyproject.toml packaging 2>/dev/null || \
	find CMakeLists.txt native src pyproject.toml packaging -type f -not -name '*.pyc')
PYTHON_SOURCES := src tests codegen examples packaging benchmarks
CPP_SOURCES = $(shell git ls-files -co --exclude-standard -- 'native/*.cpp' 'native/*.h' ':!native/gen' 2>/dev/null)
STAMPS := $(VENV)/stamps

.PHONY: help
help:
	@echo "make run        set up, then train on half of a software GPU"
	@echo "make test       set up, then lint, native tests and Python tests"
	@echo "make bench      set up, then the measurements (about 5 minutes)"
	@echo "make test-gpu   the conformance suite against NVIDIA's driver on this machine"
	@echo "make lint       ruff, mypy, import-linter, clang-format, generated code"
	@echo "make format     lay out Python and C++ sources"
	@echo "make docs       write the generated reference pages"
	@echo "make clean      remove .venv and build"

# ---------------------------------------------------------------------------------------------------------------- set-up
$(STAMPS)/venv: requirements/build.txt
	@command -v $(PYTHON) >/dev/null || { echo "weft: python3 is missing: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "weft: $(PYTHON) is older than 3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "weft: the venv module is missing: apt-get install python3-venv" >&2; exit 1; }
	@for c in $${CXX:-} c++ g++; do command -v $$c >/dev/null && exit 0; done; \
		echo "weft: no C++ compiler found; install one first: apt-get install g++" >&2; exit 1
	@echo "setting up $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@$(PIP) install -r requirements/build.txt
	@touch $@

$(STAMPS)/examples: $(STAMPS)/venv requirements/examples.txt
	@$(PIP) install -r requirements/examples.txt
	@touch $@

$(STAMPS)/test-tools: $(STAMPS)/venv requirements/test.txt requirements/examples.txt
	@$(PIP) install -r requirements/test.txt
	@touch $@

# The package without tests and tools: what a user installs.
$(STAMPS)/weft: $(STAMPS)/venv $(SOURCES)
	@echo "building and installing Weft"
	@$(INSTALL) .
	@touch $@

# The same, with tests and tools left in $(BUILD).
$(STAMPS)/weft-dev: $(STAMPS)/venv $(STAMPS)/gtest $(SOURCES)
	@echo "building and installing Weft with its native tests and tools"
	@$(INSTALL) --config-settings=cmake.define.WEFT_BUILD_TESTS=ON --config-settings=cmake.define.WEFT_BUILD_TOOLS=ON .
	@touch $@ $(STAMPS)/weft

$(STAMPS)/gtest: | $(STAMPS)/venv
	@have() { echo '#include <gtest/gtest.h>' | $${CXX:-c++} -E -x c++ - >/dev/null 2>&1; }; have || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing GoogleTest (libgtest-dev)"; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y libgtest-dev >/dev/null; \
		fi; }; have || { echo "weft: GoogleTest is missing: apt-get install libgtest-dev" >&2; exit 1; }
	@touch $@

# ------------------------------------------------------------------------------------------------------------------ jobs
.PHONY: setup run
setup: $(STAMPS)/weft $(STAMPS)/examples
run: setup
	$(BIN)/weft run -n 1 -p 0.5 --stats -- $(BIN)/python examples/train_digits.py

.PHONY: test native-test python-test
test: $(STAMPS)/weft-dev $(STAMPS)/test-tools lint
	$(MAKE) --no-print-directory native-test
	$(MAKE) --no-print-directory python-test

native-test: $(STAMPS)/weft-dev
	cd $(BUILD) && "$(CURDIR)/$(BIN)/ctest" --output-on-failure --no-tests=error -j $(JOBS)

python-test: $(STAMPS)/weft-dev $(STAMPS)/test-tools
	WEFT_NATIVE_DIR="$(CURDIR)/$(BUILD)/_native" $(BIN)/python -m pytest tests

.PHONY: test-gpu
test-gpu: $(STAMPS)/weft-dev $(STAMPS)/test-tools
	WEFT_NATIVE_DIR="$(CURDIR)/$(BUILD)/_native" $(BIN)/python -m pytest tests -m gpu --run-gpu

.PHONY: bench
bench: $(STAMPS)/weft-dev $(STAMPS)/examples
	$(BIN)/python benchmarks/run.py --tools $(BUILD)/_native
	$(BIN)/python benchmarks/cycles.py --tools $(BUILD)/_native --cycles 2000 --seconds 90 | tee benchmarks/results/cycles.jsonl

.PHONY: lint
lint: $(STAMPS)/venv $(STAMPS)/test-tools $(STAMPS)/weft
	$(BIN)/ruff check $(PYTHON_SOURCES)
	$(BIN)/ruff format --check --quiet $(PYTHON_SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run --Werror $(CPP_SOURCES)
	$(BIN)/python -m codegen --check
	$(BIN)/python -m weft.cli.reference --check docs/reference

.PHONY: format docs clean
format: $(STAMPS)/test-tools
	$(BIN)/ruff check --fix --quiet $(PYTHON_SOURCES)
	$(BIN)/ruff format --quiet $(PYTHON_SOURCES)
	$(BIN)/clang-format -i $(CPP_SOURCES)

docs: $(STAMPS)/weft
	$(BIN)/python -m codegen
	$(BIN)/python -m weft.cli.reference docs/reference

clean:
	rm -rf $(VENV) build
