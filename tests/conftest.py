"""Sets up all tests: the path of the helpers, quiet libraries, and default settings."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# The example plugin is also a backend that tests use; it is not installed, so that discovery does
# not find it.
sys.path.insert(1, str(Path(__file__).parents[1] / "examples/plugin-reference/src"))

# Some thousand children and each worker would compile every imported module, and pytest's rewritten
# tests, if the user disables __pycache__ beside the sources (as Python's container images do):
# importing JAX then needs 2.2 s of CPU instead of 0.7. So bytecode is kept in pytest's cache
# folder.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    # Bytecode of modules in temporary folders is deleted with them.
    temporary = sys.pycache_prefix + tempfile.gettempdir()
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)

# pytest-xdist sets its workers' terminal width to 80; commands and children would wrap lines.
os.environ.pop("COLUMNS", None)

# Before any library is loaded. Several devices, so that placement is tested everywhere.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
for name, value in {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",  # otherwise there are log files
    "TPU_STDERR_LOG_LEVEL": "3",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}.items():
    os.environ.setdefault(name, value)

# Most of the suite's time is XLA's compilation of thousands of programs that run once: 27 ms each,
# 12 without its optimisations. plugrt does the same in both, and JAX in this process and in
# children has the same flags. Flags that are set stay, empty ones too: `nox -s optimised`.
flags = "--xla_backend_optimization_level=0"
if version("jaxlib").startswith(("0.9.", "0.10.")):
    # XLA ends the process for an unknown flag: jaxlib 0.12 no longer has this one.
    flags += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", flags)

# Otherwise OpenBLAS starts a thread for each core when NumPy is imported, in each of a thousand
# children: a third of the import's CPU time. No test multiplies matrices that need them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# plugrt's caches between runs are separate from the user's, and deleted afterwards.
if "PLUGRT_CACHE_DIR" not in os.environ:
    os.environ["PLUGRT_CACHE_DIR"] = tempfile.mkdtemp(prefix="plugrt-tests-")
    atexit.register(shutil.rmtree, os.environ["PLUGRT_CACHE_DIR"], ignore_errors=True)

from hypothesis import settings  # noqa: E402  # pytest rewrites it, and keeps that where said above
from hypothesis.internal.conjecture import providers  # noqa: E402

# Otherwise Hypothesis parses all our imported modules to find constants for its examples: this adds
# seconds to collection and to tests, and the imported modules change the examples.
providers._get_local_constants = lambda: providers._local_constants

# The same examples in each run, and no folder of examples left behind.
settings.register_profile("plugrt", database=None, deadline=None, derandomize=True)
settings.load_profile("plugrt")

from support.absent_core import skip_without_core  # noqa: E402  # needs the path above

skip_without_core()

BETWEEN_HIDING = 5.0
hidden_at = 0.0
"""The CPU time at which live objects were last hidden from the garbage collector."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Chooses the schedule of tests on workers, unless ``--dist`` sets one."""
    if config.getoption("dist") != "load":
        return None
    from support.scheduling import FixtureScheduling

    return FixtureScheduling(config, log)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks a slow test, before pytest selects tests by their marks."""
    from support.apart import mark_if_slow

    mark_if_slow(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest tests first, so that no worker waits for one at the end.

    Skips tests that belong to a session of nox, and reports that. Refuses names with an address in
    them: each worker would have its own, and xdist would stop.
    """
    addresses = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]{4,}", item.nodeid)]
    if addresses:
        raise pytest.UsageError(f"tests are named after addresses, give them ids: {addresses[:5]}")
    from support.apart import skip_those_of_other_sessions

    skip_those_of_other_sessions(items)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def hide_live_objects() -> None:
    """Hides live objects, mainly modules and tests, from the garbage collector.

    Otherwise each `gc.collect` of a test visits all of them, which costs 0.15 s after collection
    and twice that when JAX has traced some thousand functions. Objects without references are still
    freed, unless they are in a cycle that was alive here.
    """
    global hidden_at
    gc.collect()
    gc.freeze()
    hidden_at = time.process_time()


def pytest_collection_finish() -> None:
    """Hides the modules and the tests."""
    hide_live_objects()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Hides cached objects of the tests since: JAX's, plugrt's, and pytest's own reports."""
    if nextitem is not None and time.process_time() > hidden_at + BETWEEN_HIDING:
        hide_live_objects()


@pytest.fixture
def unraisable() -> Iterator[list[Any]]:
    """Collects the exceptions that Python reports as unraisable, in place of pytest's warnings."""
    before, found = sys.unraisablehook, list[Any]()
    sys.unraisablehook = found.append
    yield found
    sys.unraisablehook = before
