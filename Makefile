# Two commands set everything up: `make demo` and `make test`. The environment is .venv; nothing
# is fetched again once it is there and the lock file has not changed. What people run less often
# is a session of noxfile.py: `.venv/bin/nox -l` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.synced
CHECK := import sys; sys.version_info >= (3, 11) or sys.exit("plugrt needs Python 3.11 or newer; \
	%s is %d.%d. Name another: make PYTHON=/path/to/python3 (after \"make clean\" if .venv is of the \
	old one)" % ((sys.executable,) + sys.version_info[:2]))
# The lock's uv is the only one: another version would not find what this one has in its cache.
UV_VERSION := $(shell sed -n '/^name = "uv"$$/{n;s/version = "\(.*\)"/\1/p;}' uv.lock)
# An interpreter is the user's to install; uv would download the newest if .venv's did not fit.
export UV_PYTHON_DOWNLOADS = never
PROJECTS := pyproject.toml uv.lock $(wildcard runtime/pyproject.toml plugin_sdk/pyproject.toml plugins/*/pyproject.toml) \
	$(wildcard runtime/setup.py runtime/core_build.py runtime/core/*.[ch] runtime/core/*/*.[ch] runtime/core/*/*.cc plugin_sdk/setup.py plugin_sdk/core/*.[ch] plugin_sdk/core/*/*.[ch])
WORKERS ?= auto

.PHONY: help demo test lint types format docs bench conform release clean

## make help         list these; .venv/bin/nox -l lists the longer runs
help:
	@sed -n 's/^## //p' Makefile

$(STAMP): $(PROJECTS)
	@python=$$(test -x $(BIN)/python && echo $(BIN)/python || echo $(PYTHON)); $$python -c '$(CHECK)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@$(BIN)/uv --version 2>/dev/null | grep -q '^uv $(UV_VERSION) ' || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'
	$(BIN)/uv sync --locked --inexact --quiet
	@touch $@

## make demo         set up, then train a network on the cpu plugin
demo: $(STAMP)
	$(BIN)/plugrt demo

## make test         set up, then run the tests; TESTS=tests/nothing for a part of them
test: $(STAMP)
	$(if $(TESTS),,PLUGRT_TEST_TARGET=quick) $(BIN)/python -m pytest -n $(WORKERS) -q $(TESTS)

## make lint         ruff, and the ceilings of tools/prose.py
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/prose.py --check

## make types        mypy, strict; mypy and pyright over calls of the public API, which `make test` skips
types: nox-types

## make format       ruff, in place
format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## make docs         write the generated pages and stubs anew
docs: $(STAMP)
	@for script in docs/generate/*.py; do $(BIN)/python $$script; done

## make bench        all benchmarks, ratios to JAX in the same run
bench: $(STAMP)
	$(BIN)/python benchmarks/run_all.py

## make conform      numpy, cpu, xla_cpu, and the first two as libraries, through the conformance kit;
##                   reports in build/conform (5 minutes; NAMES=cpu for one)
conform: $(STAMP)
	$(BIN)/python -m tools.conform $(NAMES)

## make release      wheels and sdists into dist/, checked and installed once; TAG=v0.2.0 checks the tag
release: $(STAMP)
	$(BIN)/python tools/release.py $(TAG)

## make clean        remove what the commands above made
clean:
	rm -rf $(VENV) dist build runtime/build runtime/src/plugrt/*.so plugin_sdk/build plugin_sdk/src/plugrt_sdk/export/*.so .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A session of noxfile.py, after setting up: tools/fresh.sh runs them beside targets.
nox-%: $(STAMP)
	@env -u MAKEFLAGS $(BIN)/nox --session $*
