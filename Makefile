# Each target makes .venv and installs what it needs; a second call finds everything in place.
# Needs Python 3.11+ with pip and venv, and make. No target installs system packages. Packages are installed by uv,
# which comes into .venv first, with pip's settings; by pip where uv cannot.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python tools/install.py
# A worker that is done takes tests from the others, so that none is left alone with many.
PARALLEL := -n auto --maxprocesses 4 --dist worksteal
INPUTS := pyproject.toml constraints.txt tools/install.py

# Tests of kernels whose inputs are small enough to run without the compiler.
INTERPRETED := tests/values $(addprefix tests/scheduling/test_, set_prior.py explain.py leases.py learner.py \
  resuming.py scheduler_kernels.py seen.py set_trust.py signal_kinds.py) $(addprefix tests/web/test_, detect.py diff.py \
  align.py digests.py page_text.py soft_404.py words.py) tests/planning/test_planning_kernels.py \
  $(addprefix tests/learning/test_, complete_rates.py histories.py interest_and_rhythm_inputs.py population.py \
  signal_history.py trust_growing.py) tests/service/test_metrics_estimates.py

.PHONY: help setup dev run test test-quick lint warm bench soak reproduce docs clean

help:
	@echo "make run    run the main job (ARGS=\"--seconds 20 --json\" for one JSON line)"
	@echo "make dev    create .venv with recrawl and the test tools"
	@echo "make test-quick  the tests that your change touches (ARGS=\"-x\" for pytest)"
	@echo "make test   lint, types, room layers, unit, property and doc tests"
	@echo "make warm   compile every kernel"
	@echo "make lint   ruff, mypy and import-linter alone"
	@echo "make bench  measure against yardsticks (ARGS=\"planning --json\")"
	@echo "make soak   crash the tracker for an hour: every crash point 20 times, random kills, steady speed (ARGS=\"-k kills\")"
	@echo "make reproduce  run the papers' experiments again: an hour on two cores (ARGS=\"--quick\" for 5 minutes)"
	@echo "make docs   build the documentation into site/, to be read without internet"
	@echo "make setup  create .venv and install recrawl"
	@echo "make clean  remove .venv and caches"

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "recrawl needs Python 3.11 or newer: call make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/set-up: $(VENV)/made $(INPUTS)
	$(INSTALL) .
	@touch $@

$(VENV)/set-up-test: $(VENV)/set-up
	$(INSTALL) '.[test]'
	@touch $@

$(VENV)/set-up-docs: $(VENV)/set-up
	$(INSTALL) '.[docs]'
	@touch $@

$(VENV)/set-up-bench: $(VENV)/set-up
	$(INSTALL) '.[bench]'
	@touch $@

$(VENV)/set-up-lab: $(VENV)/set-up
	$(INSTALL) '.[lab]'
	@touch $@

setup: $(VENV)/set-up

dev: $(VENV)/set-up-test
	@echo "ready: make test-quick runs the tests of what you change, make test all of them"

run: $(VENV)/set-up
	@$(BIN)/recrawl demo $(ARGS)

lint: $(VENV)/set-up-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

warm: $(VENV)/set-up
	@$(BIN)/python -m recrawl.warming

# Kernels are compiled beside the linters; the tests begin when both are done, and not if one fails.
test: $(VENV)/set-up-test
	@$(MAKE) --no-print-directory warm & warming=$$!; \
	  $(MAKE) --no-print-directory lint; clean=$$?; wait $$warming && exit $$clean
	$(BIN)/pytest $(PARALLEL) $(ARGS)
	@echo "the tests of kernels once more, interpreted"
	RECRAWL_KERNELS=interpreted $(BIN)/pytest $(PARALLEL) -m "not compiled" $(INTERPRETED)

test-quick: $(VENV)/set-up-test
	@touched=$$($(BIN)/python tools/changed_tests.py) && \
	  if [ -z "$$touched" ]; then echo "no test is touched by what differs from the main branch"; \
	  else $(BIN)/pytest $(PARALLEL) $(ARGS) $$touched; fi

bench: $(VENV)/set-up-bench
	@$(BIN)/recrawl bench $(ARGS)

soak: $(VENV)/set-up-test
	RECRAWL_SOAK=20 $(BIN)/pytest -s tests/soak/soak_kills.py tests/soak/soak_throughput.py tests/tracker/test_crashes.py \
	  tests/tracker/test_tracker_machine.py $(ARGS)

reproduce: $(VENV)/set-up-lab
	@$(BIN)/recrawl reproduce all $(ARGS)

docs: $(VENV)/set-up-docs
	@$(BIN)/python tools/build_docs.py site

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis recrawl-out site
	find src tests -name __pycache__ -prune -exec rm -rf {} +
