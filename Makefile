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

PYTHON_DIRS := $(wildcard src tests examples bench scripts hatch_build.py)

# What the dashboard is made of, and a stamp that is as new as the last try to build it.
WEB_SOURCES := $(shell find web -name node_modules -prune -o -path web/build -prune -o -path web/test -prune -o -type f -print)
WEB_BUNDLE  := build/web/.tried

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help dev web web-watch web-check web-fresh screenshots test unit transports interleavings fast-path properties campaign pgbouncer partitioned campaigns rolling processes million two-servers drain standby outages downs clock sizes pages refusals http-fuzz web-campaign live-web metrics promtool effects
.PHONY: lint format gen gen-check lock bench bench-peers bench-full soak clean

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

dev: $(VENV)/.installed $(WEB_BUNDLE) ## Run server, worker and dashboard with the sample workflow
	$(BIN)/kagzi dev examples/e00_min.py $(ARGS)

test: $(VENV)/.installed-dev ## Everything that must pass: lint, drift of generated code, types and tests of web/, the whole test suite
	@$(MAKE) --no-print-directory --jobs 2 $(LINTERS) gen-check web-check
	@$(MAKE) --no-print-directory unit

# The dashboard. `make dev` builds it if it can, and goes on with the plain pages if not; `make web` says why not.
$(WEB_BUNDLE): $(WEB_SOURCES) | $(VENV)/.installed
	@$(BIN)/python scripts/web.py build --get-node --try
	@mkdir -p $(@D) && touch $@

web: $(VENV)/.installed ## Build the dashboard (Node 20 or newer from PATH, else from PyPI)
	$(BIN)/python scripts/web.py build --get-node

web-watch: $(VENV)/.installed ## Build the dashboard again whenever a file of web/ changes; reload the page to see it
	$(BIN)/python scripts/web.py watch --get-node

web-check: $(VENV)/.installed-dev ## Types and unit tests of the dashboard
	$(BIN)/python scripts/web.py check

unit: $(VENV)/.installed-dev ## Only the test suite (ARGS="tests/core -k retry", JOBS=0 for a debugger)
	$(BIN)/python $(if $(ARGS),-m pytest,scripts/suite.py) --numprocesses $(JOBS) --dist loadgroup $(ARGS)

transports: $(VENV)/.installed-dev ## The suites that start servers with the transports crossed: gRPC on SQLite, WebSocket on PostgreSQL
	KAGZI_TEST_CROSSED=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup tests/server tests/sdk/net tests/acceptance $(ARGS)

interleavings: $(VENV)/.installed-dev ## Park against signal, child end and timer 10,000 times on every store, and any two verbs 20 times (minutes)
	KAGZI_TEST_INTERLEAVINGS=10000 KAGZI_TEST_ROUNDS=20 $(BIN)/python -m pytest --numprocesses $(JOBS) tests/store/conformance/test_interleavings.py tests/store/conformance/test_contention.py $(ARGS)

fast-path: $(VENV)/.installed-dev ## The fast paths of both stores against load, decide, save: 10,000 random states and batches on every set-up; the stores against each other: 500 scripts (minutes)
	KAGZI_TEST_PAIRS=10000 KAGZI_TEST_SCRIPTS=500 $(BIN)/python -m pytest --numprocesses $(JOBS) -rP tests/store/fast_path tests/store/conformance/test_alike.py $(ARGS)

properties: $(VENV)/.installed-dev ## Random programs with a crash, a cancellation or a change of code at any moment: 2,000, and 100 on each store (an hour)
	KAGZI_TEST_PROGRAMS=2000 KAGZI_TEST_ENGINE_PROGRAMS=100 $(BIN)/python -m pytest --numprocesses $(JOBS) tests/sdk/run/test_every_boundary.py tests/sdk/run/test_changing_programs.py tests/sdk/run/test_parking_property.py tests/sdk/run/test_abandoned_waits.py tests/acceptance/test_every_boundary.py tests/acceptance/test_abandoned_waits.py $(ARGS)

campaign: $(VENV)/.installed-dev ## The promises with real processes on every set-up, one server on PostgreSQL included (minutes)
	KAGZI_TEST_CAMPAIGN=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadgroup tests/acceptance $(ARGS)

# --- campaigns: minutes to an hour each, on a quiet machine; figures go to build/campaigns and are not measured twice --------

CAMPAIGN := KAGZI_TEST_CAMPAIGNS=1 $(BIN)/python -m pytest --numprocesses 0 --capture no

campaigns: rolling processes two-servers drain standby million pgbouncer partitioned outages downs clock sizes pages refusals http-fuzz web-campaign live-web metrics promtool effects ## All of the following

rolling: $(VENV)/.installed-dev ## Restart 2 servers and 4 workers in turn under 50 runs/s for 60 s
	$(CAMPAIGN) tests/campaigns/test_rolling.py $(ARGS)

processes: $(VENV)/.installed-dev ## Kill a process of `--processes 2`, of server and worker, every second under 30 runs/s for 60 s
	$(CAMPAIGN) tests/campaigns/test_processes.py $(ARGS)

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

slow-lines: $(VENV)/.installed-dev ## Results and inputs of 1.9 MB over 100 KB/s, by each transport: all arrive, no lease is lost
	$(CAMPAIGN) tests/campaigns/test_slow_lines.py $(ARGS)

pages: $(VENV)/.installed-dev ## The largest pages for 20 callers at once, and ends that nobody reads: the server stays below 256 MB
	$(CAMPAIGN) tests/campaigns/test_pages.py $(ARGS)

refusals: $(VENV)/.installed-dev ## 10,000 refused calls of 3 MB of each kind, each way: the server's memory stays what it was
	KAGZI_TEST_REFUSALS=10000 $(CAMPAIGN) --timeout 7200 tests/server/test_refused_calls.py $(ARGS)

http-fuzz: $(VENV)/.installed-dev ## Hostile values at each place of the HTTP API, and what a fuzzer makes of its description, on each store
	$(CAMPAIGN) tests/campaigns/test_http_hostile.py tests/campaigns/test_http_fuzz.py $(ARGS)

web-fresh: $(VENV)/.installed-dev ## The dashboard of a fresh clone and of its wheel, on a machine with python3 and make only (network)
	$(CAMPAIGN) tests/campaigns/test_web_fresh.py $(ARGS)

screenshots: $(VENV)/.installed-dev ## Every page of the dashboard, both themes, narrow and wide, empty and full: build/screenshots
	$(BIN)/python -m pytest --numprocesses 0 --quiet tests/web/screenshots.py $(ARGS)

million: $(VENV)/.installed-dev ## 1,000,000 finished and 100,000 sleeping runs in each store against a small one, and retention
	$(CAMPAIGN) tests/campaigns/test_million.py tests/campaigns/test_million_served.py tests/campaigns/test_million_web.py tests/campaigns/test_retention.py $(ARGS)

web-campaign: $(VENV)/.installed-dev ## The dashboard's first visit, lists, inbox and bulk changes in a browser: 15 visits, 200 clicks under 50 starts/s, 1,000 of 10,000 runs
	$(CAMPAIGN) tests/web/test_first_visit.py tests/web/test_runs.py tests/web/test_inbox.py tests/web/test_operations.py $(ARGS)

live-web: $(VENV)/.installed-dev ## Pages of the dashboard under 50 events a second for ten minutes: heap, main thread, and what a viewer costs the server
	$(CAMPAIGN) tests/campaigns/test_live_web.py $(ARGS)

metrics: $(VENV)/.installed-dev ## Pages of a server with 10,000 workflow types and 1,000 namespaces, on each store
	$(CAMPAIGN) tests/campaigns/test_metrics.py $(ARGS)

promtool: $(VENV)/.installed-dev ## Check and test the alert rules, and a page of metrics, with Prometheus' own tool
	@command -v promtool >/dev/null || apt-get install --yes --no-install-recommends prometheus \
	    || { echo "!!! promtool IS ABSENT and could not be installed: rules and metrics are NOT checked by Prometheus itself" >&2; exit 1; }
	$(CAMPAIGN) tests/campaigns/test_promtool.py $(ARGS)

effects: $(VENV)/.installed-dev ## kill -9 of workers between the user's commit and Kagzi's, 200 times, and of servers that drain an outbox
	$(CAMPAIGN) tests/campaigns/test_effects.py $(ARGS)

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

gen: $(VENV)/.installed-dev ## Generate src/kagzi/v1 from proto/, web/src/api/types.ts from the table of routes, docs/reference/python from docstrings, docs/reference/http-api.md from the table of routes, metrics.md from their catalogue, SQLite's schema.sql from its migrations
	$(BIN)/python scripts/gen.py
	$(BIN)/python scripts/api_reference.py
	$(BIN)/python scripts/sync_client.py
	$(BIN)/python scripts/http_reference.py
	$(BIN)/python scripts/metrics_reference.py
	$(BIN)/python scripts/sqlite_schema.py
	$(BIN)/python scripts/llms.py

gen-check: $(VENV)/.installed-dev ## Fail if what is generated differs from what is committed
	$(BIN)/python scripts/gen.py --check
	$(BIN)/python scripts/api_reference.py --check
	$(BIN)/python scripts/sync_client.py --check
	$(BIN)/python scripts/http_reference.py --check
	$(BIN)/python scripts/metrics_reference.py --check
	$(BIN)/python scripts/sqlite_schema.py --check
	$(BIN)/python scripts/llms.py --check

lock: $(VENV)/.installed-dev ## Write constraints.txt from what is installed
	$(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable > constraints.txt
	@touch $(VENV)/.installed $(VENV)/.installed-dev

bench: $(VENV)/.installed-dev ## Measure Kagzi's set-ups (ARGS="--only W1 --engine kagzi-sqlite"; leave the machine alone)
	$(BIN)/python -m bench compare --kagzi --everything $(ARGS)

bench-peers: $(VENV)/.installed-dev ## Install the peers below build/peers and compare Kagzi with them (half an hour; npm, network)
	$(BIN)/python -m bench install
	$(BIN)/python -m bench compare --brief --rounds 3 $(ARGS)

bench-full: $(VENV)/.installed-dev ## The same with every workload, longer and with more rounds (hours)
	$(BIN)/python -m bench install
	$(BIN)/python -m bench compare --everything --servers --rounds 5 $(ARGS)

soak: $(VENV)/.installed-dev ## Kagzi at half of its peak for ten minutes on each store: throughput, memory, bloat, WAL
	$(BIN)/python -m bench soak --store postgresql $(ARGS)
	$(BIN)/python -m bench soak --store sqlite $(ARGS)

clean: ## Remove the virtual environment, caches and build output
	rm -rf $(VENV) build dist web/node_modules web/build src/kagzi/server/http/static .hypothesis .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find src tests examples bench scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: replays
replays: $(VENV)/.installed-dev ## Random programs recorded by a real server and replayed offline, as they are and changed: 1,000 (minutes)
	KAGZI_TEST_REPLAYS=1000 $(BIN)/python -m pytest --numprocesses 0 --capture=no --show-capture=no tests/testing/replay/test_programs.py $(ARGS)

deploy-check: $(VENV)/.installed-dev ## kagzi check on a server with 1,000 open runs of an old version, on both stores: exactly those that diverge, under 30 s
	$(CAMPAIGN) tests/campaigns/test_deploy_check.py $(ARGS)

.PHONY: deploy-check

.PHONY: test-kit
test-kit: $(VENV)/.installed-dev ## What testing costs: 1,000 workflow tests, three days of waiting, the plugin at pytest's start
	$(CAMPAIGN) tests/campaigns/test_test_kit.py $(ARGS)
