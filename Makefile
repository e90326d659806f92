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
# Test processes: auto is four for two cores (tests wait much), 0 is none (for a debugger).
JOBS ?= auto

PYTHON_DIRS := $(wildcard src tests examples bench scripts)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help dev test unit interleavings fast-path properties campaign pgbouncer partitioned campaigns rolling million two-servers drain standby outages downs clock sizes pages
.PHONY: lint format gen gen-check lock bench clean

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

fast-path: $(VENV)/.installed-dev ## The fast paths of both stores against load, decide, save: 10,000 random states and batches on every set-up (minutes)
	KAGZI_TEST_PAIRS=10000 $(BIN)/python -m pytest --numprocesses $(JOBS) -rP tests/store/fast_path $(ARGS)

properties: $(VENV)/.installed-dev ## Random programs with a crash, a cancellation or a change of code at any moment: 2,000, and 100 on each store (an hour)
	KAGZI_TEST_PROGRAMS=2000 KAGZI_TEST_ENGINE_PROGRAMS=100 $(BIN)/python -m pytest --numprocesses $(JOBS) tests/sdk/run/test_every_boundary.py tests/sdk/run/test_changing_programs.py tests/sdk/run/test_parking_property.py tests/acceptance/test_every_boundary.py $(ARGS)

campaign: $(VENV)/.installed-dev ## The promises with real processes on every set-up, one server on PostgreSQL included (minutes)
	KAGZI_TEST_CAMPAIGN=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup tests/acceptance $(ARGS)

# --- campaigns: minutes to an hour each, on a quiet machine; figures go to build/campaigns and are not measured twice --------

CAMPAIGN := KAGZI_TEST_CAMPAIGNS=1 $(BIN)/python -m pytest --numprocesses 0 --capture no

campaigns: rolling two-servers drain standby million pgbouncer partitioned outages downs clock sizes pages ## All of the following

rolling: $(VENV)/.installed-dev ## Restart 2 servers and 4 workers in turn under 50 runs/s for 60 s
	$(CAMPAIGN) tests/campaigns/test_rolling.py $(ARGS)

outages: $(VENV)/.installed-dev ## A locked table, a read-only database, internal errors: 60 s each under load with two servers
	$(CAMPAIGN) tests/campaigns/test_outages.py $(ARGS)

downs: $(VENV)/.installed-dev ## What people see while the server, or its database, is down for 60 s; and that all goes on afterwards
	$(CAMPAIGN) tests/campaigns/test_downs.py $(ARGS)

two-servers: $(VENV)/.installed-dev ## Throughput and pickup with the load balanced over two servers
	$(CAMPAIGN) tests/campaigns/test_two_servers.py $(ARGS)

drain: $(VENV)/.installed-dev ## SIGTERM of a worker with 20 running runs, 100 times
	$(CAMPAIGN) tests/campaigns/test_drain.py $(ARGS)

standby: $(VENV)/.installed-dev ## Kill PostgreSQL while commits wait for its synchronous standby, 20 times; then promote the standby
	$(CAMPAIGN) tests/campaigns/test_standby.py $(ARGS)

clock: $(VENV)/.installed-dev ## Set the servers' clocks an hour forward and back under load, with libfaketime
	@test -e /usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1 || apt-get install --yes --no-install-recommends libfaketime \
	    || { echo "!!! libfaketime IS ABSENT and could not be installed: wrong clocks are NOT proven harmless by this run" >&2; exit 1; }
	$(CAMPAIGN) tests/campaigns/test_clock.py $(ARGS)

sizes: $(VENV)/.installed-dev ## 200 children and 100 signals of 1.9 MB beside a neighbour, and a worker that does not read, within 256 MB
	$(CAMPAIGN) tests/campaigns/test_sizes.py $(ARGS)

pages: $(VENV)/.installed-dev ## The largest pages for 20 callers at once, and ends that nobody reads: the server stays below 256 MB
	$(CAMPAIGN) tests/campaigns/test_pages.py $(ARGS)

million: $(VENV)/.installed-dev ## 1,000,000 finished and 100,000 sleeping runs in each store against a small one, and retention
	$(CAMPAIGN) tests/campaigns/test_million.py tests/campaigns/test_million_served.py tests/campaigns/test_retention.py $(ARGS)

pgbouncer: $(VENV)/.installed-dev ## The promises with real processes through PgBouncer in transaction mode
	@command -v pgbouncer >/dev/null || test -x /usr/sbin/pgbouncer || apt-get install --yes --no-install-recommends pgbouncer \
	    || { echo "!!! pgbouncer IS ABSENT and could not be installed: Kagzi through a pooler is NOT proven by this run" >&2; exit 1; }
	KAGZI_TEST_CAMPAIGNS=1 $(BIN)/python -m pytest --numprocesses 0 tests/campaigns/test_pgbouncer.py
	KAGZI_TEST_PGBOUNCER=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup tests/acceptance tests/store/conformance $(ARGS)

partitioned: $(VENV)/.installed-dev ## Every verb of the store on PostgreSQL with hash-partitioned tables
	KAGZI_TEST_PARTITIONS=4 $(BIN)/python -m pytest --numprocesses $(JOBS) tests/store/conformance -k postgres $(ARGS)

# --- checks -----------------------------------------------------------------------------------------------------------

lint: $(VENV)/.installed-dev ## Style, types, import contracts, cycles, dead code, duplicates, dependencies, words, rules
	@$(MAKE) --no-print-directory --jobs 2 $(LINTERS)

LINTERS := lint-basedpyright lint-mypy lint-duplicates lint-style lint-layers lint-cycles lint-dead-code
LINTERS += lint-dependencies lint-words lint-rules
.PHONY: $(LINTERS)

lint-basedpyright: $(VENV)/.installed-dev
	$(BIN)/basedpyright

lint-mypy: $(VENV)/.installed-dev
	$(BIN)/mypy

lint-duplicates: $(VENV)/.installed-dev
	$(BIN)/pylint --disable=all --enable=duplicate-code src/kagzi

lint-style: $(VENV)/.installed-dev
	$(BIN)/ruff check $(PYTHON_DIRS)
	$(BIN)/ruff format --check $(PYTHON_DIRS)

lint-layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports

lint-cycles: $(VENV)/.installed-dev
	$(BIN)/python scripts/import_cycles.py

lint-dead-code: $(VENV)/.installed-dev
	$(BIN)/python scripts/dead_code.py

lint-dependencies: $(VENV)/.installed-dev
	$(BIN)/deptry src

lint-words: $(VENV)/.installed-dev
	$(BIN)/python scripts/words.py

lint-rules: $(VENV)/.installed-dev # seconds: where files lie, what a conformance test may say, names in SQL
	$(BIN)/python -m pytest --numprocesses 0 --quiet tests/repository/rules $(wildcard tests/store/test_sql_files.py)

format: $(VENV)/.installed-dev ## Put the code in house style
	$(BIN)/ruff check --fix $(PYTHON_DIRS)
	$(BIN)/ruff format $(PYTHON_DIRS)

gen: $(VENV)/.installed-dev ## Generate src/kagzi/v1 from proto/, and docs/reference/python from docstrings
	$(BIN)/python scripts/gen.py
	$(BIN)/python scripts/api_reference.py

gen-check: $(VENV)/.installed-dev ## Fail if what is generated differs from what is committed
	$(BIN)/python scripts/gen.py --check
	$(BIN)/python scripts/api_reference.py --check

lock: $(VENV)/.installed-dev ## Write constraints.txt from what is installed
	$(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable > constraints.txt
	@touch $(VENV)/.installed $(VENV)/.installed-dev

bench: $(VENV)/.installed-dev ## Run the benchmarks (minutes; a quiet machine)
	$(BIN)/python -m bench $(ARGS)

clean: ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist .hypothesis .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find src tests examples bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
