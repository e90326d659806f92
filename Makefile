# Everything a checkout can do. A machine needs python3 (3.11 or newer, with venv) and make; nothing else.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Exact versions, so that two checkouts of one commit test the same code. Absent file: newest that resolves.
CONSTRAINTS := $(wildcard constraints.txt)
CONSTRAIN   := $(addprefix --constraint ,$(CONSTRAINTS))

# Arguments for the underlying tool: make test ARGS="tests/core -k retry"; make dev ARGS="--http 127.0.0.1:0"
ARGS ?=
# Test processes: auto is one per core, 0 is none (for a debugger).
JOBS ?= auto

PYTHON_DIRS := $(wildcard src tests examples bench scripts)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help dev test unit interleavings campaign lint format gen gen-check lock bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- virtual environment ----------------------------------------------------------------------------------------------
# Stamps: a second call is instant, a change of pyproject.toml or constraints.txt installs again.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Kagzi needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) $(CONSTRAIN) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) $(CONSTRAIN) --editable '.[dev]'
	@touch $(VENV)/.installed $@

# --- daily work -------------------------------------------------------------------------------------------------------

dev: $(VENV)/.installed ## Run server, worker and dashboard with the sample workflow
	$(BIN)/kagzi dev examples/e00_min.py $(ARGS)

test: lint gen-check unit ## Everything that must pass: lint, drift of generated code, the whole test suite

unit: $(VENV)/.installed-dev ## Only the test suite (ARGS="tests/core -k retry", JOBS=0 for a debugger)
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup $(ARGS)

interleavings: $(VENV)/.installed-dev ## Park against signal, child end and timer 10,000 times on every store (minutes)
	KAGZI_TEST_INTERLEAVINGS=10000 $(BIN)/python -m pytest --numprocesses $(JOBS) tests/store/conformance/test_interleavings.py $(ARGS)

campaign: $(VENV)/.installed-dev ## The promises with real processes on every set-up, one server on PostgreSQL included (minutes)
	KAGZI_TEST_CAMPAIGN=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup tests/acceptance $(ARGS)

lint: $(VENV)/.installed-dev ## Style, types, import contracts, dead code, duplicates
	$(BIN)/ruff check $(PYTHON_DIRS)
	$(BIN)/ruff format --check $(PYTHON_DIRS)
	$(BIN)/lint-imports
	$(BIN)/basedpyright
	$(BIN)/mypy
	$(BIN)/python scripts/dead_code.py
	$(BIN)/pylint --disable=all --enable=duplicate-code src/kagzi

format: $(VENV)/.installed-dev ## Put the code in house style
	$(BIN)/ruff check --fix $(PYTHON_DIRS)
	$(BIN)/ruff format $(PYTHON_DIRS)

gen: $(VENV)/.installed-dev ## Generate src/kagzi/v1 from proto/
	$(BIN)/python scripts/gen.py

gen-check: $(VENV)/.installed-dev ## Fail if src/kagzi/v1 is not what proto/ generates
	$(BIN)/python scripts/gen.py --check

lock: $(VENV)/.installed-dev ## Write constraints.txt from what is installed
	$(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable > constraints.txt
	@touch $(VENV)/.installed $(VENV)/.installed-dev

bench: $(VENV)/.installed-dev ## Run the benchmarks (minutes; a quiet machine)
	$(BIN)/python -m bench $(ARGS)

clean: ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist .hypothesis .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find src tests examples bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
