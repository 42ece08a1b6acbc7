# Each target does its own set-up: a virtual environment in .venv, what pip installs (pinned in constraints.txt), the built dashboard.
# Stamps in .setup make repeated calls quick. Nothing has to be installed by hand but Python >= 3.11. Packages, dashboard and browser are
# set up side by side.

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --jobs=3

VENV := .venv
BIN := $(VENV)/bin
STAMPS := .setup
NODE := .ci/tools/with-node.sh
FRONTEND_SOURCES := $(shell find frontend/src frontend/public frontend/index.html frontend/vite.config.ts frontend/scripts frontend/tsconfig.json \
	frontend/postcss.config.cjs -type f 2>/dev/null)
BENCHMARKS := $(filter-out _% training tracking learning reached chaos,$(basename $(notdir $(wildcard benchmarks/*.py))))
# Marks of the tests of `make test` and `make test-all`.
WHOLE := not slow and not gpu
SHORT := $(WHOLE) and not extended
COVERAGE := .coverage-data

export PIP_DISABLE_PIP_VERSION_CHECK ?= 1

.PHONY: help demo up install test test-all test-durations test-slow coverage mutations acceptance check bench bench-peers chaos learning reference format clean

help:
	@echo "make demo        three seeds of DQN on CartPole through the whole of Palestra; stops by itself"
	@echo "make up          serves on http://127.0.0.1:8080 until Ctrl-C; data lies in .palestra"
	@echo "make install     what 'make up' needs, without starting it"
	@echo "make test        backend, frontend, browser (TEST='-k word' for some of them)"
	@echo "make test-all    these, and what they leave out: PostgreSQL where nothing depends on it, documents, long faults"
	@echo "make test-durations  make test, and fails where a test takes too long; the durations stay in test-results"
	@echo "make test-slow   trainings of hours and soaks"
	@echo "make coverage    lines that tests reach in pytest's own processes, per package (COMPARED='report.json' of an earlier tree)"
	@echo "make mutations   60 drawn mutations of the code, each against the tests that cover its line; goes on where it stopped"
	@echo "make acceptance  the 197 rows of the five seed documents, a tick per row"
	@echo "make reference   writes docs/definition.md anew, from the schema"
	@echo "make check       formatters, linters, types, import rules"
	@echo "make bench       benchmarks; prints figures and ratios"
	@echo "make bench-peers trainings beside other libraries and curves beside other servers, which are installed for it (TRAINING='--tasks ppo', TRACKING='--rounds 1')"
	@echo "make chaos       100 faults injected into trainings, each compared with an undisturbed one (CHAOS='--strikes 20')"
	@echo "make learning    trains the presets of examples/learning over 5 seeds; prints what each reaches (LEARNING='--only NAME')"

demo: $(STAMPS)/run $(STAMPS)/frontend
	@$(BIN)/palestra demo $(DEMO)

up: $(STAMPS)/run $(STAMPS)/frontend
	@$(BIN)/palestra up $(UP)

install: $(STAMPS)/run $(STAMPS)/frontend

test: $(STAMPS)/tests $(STAMPS)/frontend $(STAMPS)/chromium $(STAMPS)/nginx
	@.ci/tools/test.sh "$(BIN)" "$(SHORT)" $(TEST)

test-all: $(STAMPS)/tests $(STAMPS)/frontend $(STAMPS)/chromium $(STAMPS)/nginx $(STAMPS)/openapi-client/made
	@.ci/tools/test.sh "$(BIN)" "$(WHOLE)" --hypothesis-profile=whole $(TEST)

test-durations: $(STAMPS)/tests $(STAMPS)/frontend $(STAMPS)/chromium $(STAMPS)/nginx
	@REPORTS=test-results .ci/tools/test.sh "$(BIN)" "$(SHORT)" $(TEST)
	@$(BIN)/python .ci/tools/durations.py test-results

test-slow: $(STAMPS)/tests $(STAMPS)/frontend $(STAMPS)/chromium $(STAMPS)/nginx
	@$(BIN)/pytest -m slow --timeout 7200 $(TEST)

coverage: $(STAMPS)/dev
	@rm -rf $(COVERAGE) && mkdir $(COVERAGE)
	@COVERAGE_FILE=$(COVERAGE)/tests $(BIN)/pytest -n 2 -m "$(WHOLE) and not processes and not browser" --timeout 900 \
		--cov --cov-context=test --cov-report=json:$(COVERAGE)/report.json
	@$(BIN)/python .ci/tools/coverage_table.py $(COMPARED) $(COVERAGE)/report.json

$(COVERAGE)/tests: | $(STAMPS)/dev
	@$(MAKE) coverage

mutations: $(STAMPS)/dev $(COVERAGE)/tests
	@$(BIN)/python .ci/tools/mutations.py run $(COVERAGE)/tests $(COVERAGE)/mutations.json

acceptance: $(STAMPS)/dev
	@$(BIN)/pytest -q -n 2 --rows tests/acceptance $(TEST)

check: $(STAMPS)/dev $(STAMPS)/npm
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NODE) npm --prefix frontend run check

bench: $(STAMPS)/dev $(STAMPS)/frontend $(STAMPS)/chromium $(STAMPS)/rq/made
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m benchmarks.$$name || failed=1; done; exit $${failed:-0}

bench-peers: $(STAMPS)/peers
	@failed=0; $(BIN)/python -m benchmarks.training $(TRAINING) || failed=1; $(BIN)/python -m benchmarks.tracking $(TRACKING) || failed=1; exit $$failed

chaos: $(STAMPS)/dev
	@$(BIN)/python -m benchmarks.chaos $(CHAOS)

learning: $(STAMPS)/dev
	@$(BIN)/python -m benchmarks.learning $(LEARNING)

reference: $(STAMPS)/dev
	@$(BIN)/python .ci/tools/definition_reference.py > docs/definition.md

format: $(STAMPS)/dev $(STAMPS)/npm
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(NODE) npm --prefix frontend run fix

clean:
	rm -rf $(STAMPS) $(VENV) frontend/node_modules frontend/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis $(COVERAGE)

$(BIN)/python:
	@.ci/tools/make-venv.sh $(VENV)

# Before all that runs side by side: two pips in one virtual environment would meet.
$(STAMPS)/node: | $(BIN)/python
	@.ci/tools/ensure-node.sh $(BIN)
	@mkdir -p $(STAMPS) && touch $@

# What runs: server, worker, embedded broker. The tools of the tests come on top.
$(STAMPS)/run: pyproject.toml constraints.txt | $(STAMPS)/node
	@.ci/tools/install.sh $(BIN) "server,worker,embedded"
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/dev: pyproject.toml constraints.txt | $(STAMPS)/node
	@.ci/tools/install.sh $(BIN) "server,worker,embedded,dev"
	@mkdir -p $(STAMPS) && touch $(STAMPS)/run $@

# Imports all tests once, which compiles them and what they need: each process would compile everything anew.
# What cannot be imported is told by the tests themselves.
$(STAMPS)/tests: | $(STAMPS)/dev
	@echo "Compiling the tests ..."
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --quiet --collect-only > /dev/null || true
	@touch $@

# What trainings and curves are measured beside, and is not there for the tests already. Each wants other versions of packages that Palestra has too, so it lies apart and sees ours.
$(STAMPS)/peers: $(STAMPS)/dev
	@.ci/tools/install-over.sh $(BIN) $(STAMPS)/tianshou tianshou
	@for peer in trackio mlflow aim; do .ci/tools/install-over.sh $(BIN) $(STAMPS)/$$peer $$peer || exit 1; done
	@touch $@

# What the queue is measured beside. It lies apart: Palestra does not use it.
$(STAMPS)/rq/made: $(STAMPS)/dev
	@.ci/tools/install-over.sh $(BIN) $(STAMPS)/rq rq
	@touch $@

# Generates a client from the OpenAPI document, for a test. It wants an older typer than Palestra, so it lies apart.
$(STAMPS)/openapi-client/made: | $(STAMPS)/dev
	@.ci/tools/install-over.sh $(BIN) $(STAMPS)/openapi-client openapi-python-client==0.29.1
	@touch $@

$(STAMPS)/npm: frontend/package-lock.json | $(STAMPS)/node
	@echo "Installing the dashboard's packages ..."
	@$(NODE) npm --prefix frontend ci --no-audit --no-fund --loglevel=error
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/frontend: $(STAMPS)/npm $(FRONTEND_SOURCES)
	@echo "Building the dashboard ..."
	@$(NODE) npm --prefix frontend run --silent build
	@touch $@

$(STAMPS)/chromium:
	@.ci/tools/ensure-chromium.sh
	@mkdir -p $(STAMPS) && touch $@

# After Chromium: two apts would meet.
$(STAMPS)/nginx: | $(STAMPS)/chromium
	@.ci/tools/ensure-nginx.sh
	@mkdir -p $(STAMPS) && touch $@
