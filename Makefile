# Two commands set everything up: `make demo` and `make test`. The environment is .venv; nothing
# is fetched again once it is there and the lock file has not changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.synced
PROJECTS := pyproject.toml uv.lock $(wildcard runtime/pyproject.toml plugin_sdk/pyproject.toml plugins/*/pyproject.toml)
# Tests run on 8 virtual devices and keep vendor libraries quiet: tests/conftest.py sees to that.
PYTEST := $(BIN)/python -m pytest
WORKERS ?= auto

.PHONY: demo test test-all test-jaxlib test-vendors lint types format docs bench wheels clean help

help:
	@sed -n 's/^## //p' Makefile

$(STAMP): $(PROJECTS)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.9"
	$(BIN)/uv sync --locked --inexact --quiet
	@touch $@

## make demo         set up, then train a network on the cpu plugin
demo: $(STAMP)
	$(BIN)/plugrt demo

## make test         set up, then run the tests
test: $(STAMP)
	$(PYTEST) -n $(WORKERS) -q

## make test-vendors tests against vendor libraries (downloads libtpu and CUDA wheels, 600 MB)
test-vendors: $(STAMP)
	$(BIN)/python tools/test_vendors.py

## make test-jaxlib  the suite on each jaxlib minor from 0.9 on
test-jaxlib: $(STAMP)
	$(BIN)/python tools/test_jaxlib.py

## make lint         ruff
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

## make types        mypy, strict
types: $(STAMP)
	$(BIN)/mypy

## make format       ruff, in place
format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## make docs         write the generated pages anew
docs: $(STAMP)
	@for script in docs/generate/*.py; do $(BIN)/python $$script; done

## make bench        all benchmarks, ratios to JAX in the same run
bench: $(STAMP)
	$(BIN)/python benchmarks/run_all.py

## make wheels       wheels of every distribution into dist/
wheels: $(STAMP)
	$(BIN)/uv build --all-packages --wheel --out-dir dist

## make clean        remove what the commands above made
clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
