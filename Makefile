# Each target makes .venv and installs what it needs; a second call finds everything in place.
# Needs Python 3.11+ with pip and venv, and make. No target installs system packages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt

.PHONY: help setup run test lint bench soak reproduce docs clean

help:
	@echo "make run    run the main job (ARGS=\"--seconds 20 --json\" for one JSON line)"
	@echo "make test   lint, types, room layers, unit, property and doc tests"
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
	$(INSTALL) --editable .
	@touch $@

$(VENV)/set-up-test: $(VENV)/set-up
	$(INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/set-up-docs: $(VENV)/set-up
	$(INSTALL) --editable '.[docs]'
	@touch $@

$(VENV)/set-up-bench: $(VENV)/set-up
	$(INSTALL) --editable '.[bench]'
	@touch $@

$(VENV)/set-up-lab: $(VENV)/set-up
	$(INSTALL) --editable '.[lab]'
	@touch $@

setup: $(VENV)/set-up

run: $(VENV)/set-up
	@$(BIN)/recrawl demo $(ARGS)

lint: $(VENV)/set-up-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Kernels that many tests need are compiled beside the linters.
test: $(VENV)/set-up-test
	@$(BIN)/python -m recrawl.scheduling.warming & $(MAKE) --no-print-directory lint; clean=$$?; wait; exit $$clean
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

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
