# Two commands set everything up: `make demo` and `make test`. The environment is .venv; nothing
# is fetched again once it is there and the lock file has not changed.

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
# Tests run on 8 virtual devices and keep vendor libraries quiet: tests/conftest.py sees to that.
PYTEST := $(BIN)/python -m pytest
WORKERS ?= auto

.PHONY: demo test test-fresh test-optimised test-jaxlib test-jax test-jax-versions test-old-jax test-array-api test-more test-threads test-vendors test-xla-cpu test-packages test-processes test-clusters test-lifetimes test-sdk test-long \
	test-core test-python-calls test-pythons test-core-sanitized test-sdk-long conform conformance kill-matrix \
	lint types format docs docs-site bench plot version \
	release wheels clean help

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
	$(PYTEST) -n $(WORKERS) -q $(TESTS)

## make test-fresh   the newcomer's test: demo and test in a clone, with empty HOME and caches
test-fresh:
	tools/fresh.sh demo test

## make test-xla-cpu a case of each test in the areas of tests/cpu again, on a real PJRT library, and docs/behaviour.md (a minute)
test-xla-cpu: $(STAMP)
	PLUGRT_TEST_TARGET=test-xla-cpu $(PYTEST) -n $(WORKERS) -q -m apart tests/pjrt/test_suite_on_xla_cpu.py tests/pjrt/test_behaviour.py

## make test-packages  wheels, the tutorial, what `plugrt new` writes: built, installed and run (2 minutes)
test-packages: $(STAMP)
	PLUGRT_TEST_TARGET=test-packages $(PYTEST) -n $(WORKERS) --dist loadfile -q -m apart tests/cpu/packaging

## make test-processes  programs of two and four processes on the loopback interface (a minute)
test-processes: $(STAMP)
	PLUGRT_TEST_TARGET=test-processes $(PYTEST) -n $(WORKERS) -q -m apart tests/cpu/distributed

## make test-lifetimes  handles, cycles, forks, exits and interrupts, in children that begin and end (a minute)
test-lifetimes: $(STAMP)
	PLUGRT_TEST_TARGET=test-lifetimes $(PYTEST) -n $(WORKERS) -q -m apart \
		tests/pjrt/capi/test_use_at_exit.py tests/pjrt/capi/test_cycles.py tests/pjrt/capi/test_lifetimes.py \
		tests/pjrt/execution/test_nested_callbacks.py \
		tests/pjrt/capi/test_broken_libraries.py tests/pjrt/capi/test_struct_sizes.py tests/pjrt/capi/test_stubbed_libraries.py tests/cpu/client/test_use_after_fork.py tests/cpu/client/test_process.py tests/cpu/client/test_cycles.py \
		tests/cpu/client/test_interrupts.py tests/cpu/plugins/test_interrupted_imports.py

## make test-long    the targets of which CI runs a sample, with all cases and the whole conformance kit (half an hour)
test-long: $(STAMP)
	PLUGRT_TEST_EFFORT=2 $(MAKE) test-xla-cpu test-sdk test-packages

## make test-clusters  several processes on a local Ray cluster and under mpirun, installed for it (a minute)
test-clusters: $(STAMP)
	$(BIN)/python tools/test_clusters.py

## make test-sdk     exported backends under JAX, the NumPy backend beside XLA, the kit's own tests (a minute)
test-sdk: $(STAMP)
	PLUGRT_TEST_TARGET=test-sdk $(PYTEST) -n $(WORKERS) -q -m apart tests/nothing/sdk tests/cpu/sdk

## make test-vendors tests against vendor libraries (downloads libtpu, CUDA and CPU wheels, 730 MB)
test-vendors: $(STAMP)
	$(BIN)/python tools/test_vendors.py

## make test-optimised  the suite on programs that XLA optimises (tests/conftest.py: twice the time)
test-optimised: $(STAMP)
	XLA_FLAGS= $(PYTEST) -n $(WORKERS) -q $(TESTS)

## make test-jaxlib  the suite on each jaxlib minor from 0.9 on
test-jaxlib: $(STAMP)
	$(BIN)/python tools/test_jaxlib.py

## make test-jax     JAX's own tests on the NumPy backend (an hour); TESTS=pmap_test for one of its files,
##                   JAX_SOURCE=PATH for a copy of JAX's repository that is there already
test-jax: $(STAMP)
	nice $(BIN)/python tools/test_jax.py $(TESTS)

## make test-array-api  the test suite of the array API standard; ARRAY_API_TESTS names a checkout (four minutes)
test-array-api: $(STAMP)
	nice $(BIN)/python tools/test_array_api.py $(TESTS)

## make test-jax-versions  exported plugins under the stock JAX of the oldest supported jaxlib, 0.9
test-jax-versions: $(STAMP)
	PLUGRT_TEST_TARGET=test-sdk $(BIN)/python tools/test_jaxlib.py 0.9 -- -k under_jax

## make test-old-jax  pmap within other functions beside JAX 0.4.20, in an environment of its own (a minute)
test-old-jax: $(STAMP)
	$(BIN)/python tools/test_old_jax.py

## make test-more    the suite with five times as many random cases and as long races (half an hour)
test-more: $(STAMP)
	PLUGRT_TEST_EFFORT=5 $(PYTEST) -n $(WORKERS) -q --timeout=0 $(TESTS)

## make test-threads   eight threads for a minute; JAX_PLATFORMS=numpy for another backend
test-threads: $(STAMP)
	PLUGRT_TEST_EFFORT=60 $(PYTEST) -q -s --timeout=0 -p no:randomly tests/cpu/execution/test_threads.py

## make test-core    `make test`, which has calls in C, with calls in Python (TESTS: a part of it); forks and exits; calls
##                   in both beside each other; a million calls of each kind in C, 100,000 in Python; the suite with
##                   both cores in C built for the sanitizers, TESTS there too (two hours, more on a busy machine)
test-core: $(STAMP)
	PLUGRT_CORE=python $(PYTEST) -n $(WORKERS) -q $(TESTS)
	PLUGRT_CORE=python $(MAKE) test-lifetimes
	PLUGRT_TEST_EFFORT=5 $(PYTEST) -q --timeout=0 tests/pjrt/execution/test_core_equality.py
	PLUGRT_CORE=c PLUGRT_TEST_EFFORT=5000 $(PYTEST) -q --timeout=0 tests/pjrt/execution/test_lasting_calls.py
	PLUGRT_CORE=python PLUGRT_TEST_EFFORT=500 $(PYTEST) -q --timeout=0 tests/pjrt/execution/test_lasting_calls.py
	$(MAKE) test-core-sanitized NAMES=suite
	$(MAKE) test-core-sanitized NAMES=sdk TESTS=tests/nothing/sdk/test_export_under_jax.py

## make test-python-calls  a sample of the suite with calls in Python, as where the core cannot be built (40 s)
test-python-calls: $(STAMP)
	PLUGRT_CORE=python $(PYTEST) -n $(WORKERS) -q tests/cpu/transforms/test_jit_calls.py \
		tests/cpu/transforms/test_jit_donation.py tests/cpu/transforms/test_warm_calls.py \
		tests/cpu/transforms/test_weak_types.py tests/cpu/execution/test_transfer.py \
		tests/pjrt/capi/test_buffer.py tests/pjrt/execution/test_lasting_calls.py

## make test-pythons  the core of one set of wheels on each Python from 3.11 on that is here (some minutes)
test-pythons: $(STAMP)
	$(BIN)/python tools/test_pythons.py

## make test-core-sanitized  both extensions in C built for GCC's sanitizers, and their tests; NAMES=runtime or sdk (20 minutes),
##                   NAMES=suite for all tests (over an hour), TESTS for a part of them; the summary says what is left out, and why
test-core-sanitized: $(STAMP)
	WORKERS=$(WORKERS) $(BIN)/python tools/test_core_sanitized.py $(NAMES) $(TESTS)

## make test-sdk-long  the tests of exports with more rounds, exits and seconds (12 minutes)
test-sdk-long: $(STAMP)
	PLUGRT_TEST_TARGET=test-sdk PLUGRT_TEST_EFFORT=10 $(PYTEST) -q --timeout=0 \
		tests/nothing/sdk/test_export_stress.py tests/nothing/sdk/test_export_under_jax.py \
		tests/nothing/sdk/conformance/test_through_the_c_api.py \
		tests/cpu/sdk/test_export.py

## make conform      numpy, cpu, xla_cpu, and the first two as libraries, through the conformance kit;
##                   reports in build/conform (5 minutes; NAMES=cpu for one)
conform: $(STAMP)
	$(BIN)/python -m tools.conform $(NAMES)

## make conformance  every plugin of ours through the kit, cuda and tpu with their vendors' libraries,
##                   and their CONFORMANCE.md anew (4 minutes; NAMES="cpu tpu" for some of them)
conformance: $(STAMP)
	$(BIN)/python -m tools.conform --pages $(NAMES)

## make kill-matrix  each mutant of the conformance kit against its group's checks (an hour); WORDS=buffers. RECORD=docs/data/kill_matrix.json: new ones
kill-matrix: $(STAMP)
	$(BIN)/python tools/kill_matrix.py $(WORDS)

## make lint         ruff, and the ceilings of tools/prose.py
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/prose.py --check

## make types        mypy, strict; mypy and pyright over calls of the public API, which `make test` skips (a minute)
types: $(STAMP)
	$(BIN)/mypy
	PLUGRT_TEST_TARGET=types $(PYTEST) -q -m apart tests/nothing/typing

## make format       ruff, in place
format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## make docs         write the generated pages and stubs anew
docs: $(STAMP)
	@for script in docs/generate/*.py; do $(BIN)/python $$script; done

## make docs-site    build the documentation's site, strictly, into build/site, and run each snippet of README and docs
docs-site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	PLUGRT_TEST_TARGET=docs-site $(PYTEST) -n $(WORKERS) -q -m apart tests/cpu/docs/test_snippets.py

## make bench        all benchmarks, ratios to JAX in the same run
bench: $(STAMP)
	$(BIN)/python benchmarks/run_all.py

## make plot         measure again (9 minutes, on a quiet machine), and make the docs' plot and page of it anew
plot: $(STAMP)
	@mkdir -p build
	$(BIN)/python benchmarks/run_all.py --json build/benchmarks dispatch startup callbacks transfer pmap tracing cores devices library jaxlib_floor
	$(BIN)/python docs/generate/benchmarks.py build/benchmarks

## make version      write the version (of pyproject.toml, or VERSION=0.2.0) wherever it is stated
version: $(STAMP)
	$(BIN)/python tools/version.py $(VERSION)
	env -u UV_INDEX -u UV_DEFAULT_INDEX -u UV_FIND_LINKS $(BIN)/uv lock --quiet
	$(BIN)/uv sync --locked --inexact --quiet
	@touch $(STAMP)

## make wheels       wheels of every distribution into dist/
wheels: $(STAMP)
	$(BIN)/uv build --all-packages --wheel --out-dir dist

## make release      wheels and sdists into dist/, checked and installed once; TAG=v0.2.0 checks the tag
release: $(STAMP)
	$(BIN)/python tools/release.py $(TAG)

## make clean        remove what the commands above made
clean:
	rm -rf $(VENV) dist build runtime/build runtime/src/plugrt/*.so plugin_sdk/build plugin_sdk/src/plugrt_sdk/export/*.so .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
