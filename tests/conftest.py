"""What all tests share: the path of the helpers, quiet libraries, and fresh settings."""

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
# The example plugin is also a backend that tests use; it is not installed, so that none finds it.
sys.path.insert(1, str(Path(__file__).parents[1] / "examples/plugin-reference/src"))

# Some thousand children and each worker would compile every module that they import, pytest's
# rewritten tests too, where the user wants no __pycache__ beside the sources (as images of Python
# do): importing JAX so takes 2.2 s of CPU instead of 0.7. So it is kept where pytest keeps files.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    # That of modules in temporary folders goes with them.
    temporary = sys.pycache_prefix + tempfile.gettempdir()
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)

# pytest-xdist tells its workers that their terminal is 80 wide; commands and children would wrap.
os.environ.pop("COLUMNS", None)

# Before any library is loaded. Several devices, so that placement is tested everywhere.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
for name, value in {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",  # else there are log files all the same
    "TPU_STDERR_LOG_LEVEL": "3",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}.items():
    os.environ.setdefault(name, value)

# Most of the suite's time is XLA's, compiling thousands of programs that run once: 27 ms each, 12
# without its optimisations. What plugrt does is the same, and JAX in this process and in children
# has the same flags. Flags that are set stay, empty ones too: `nox -s optimised`.
flags = "--xla_backend_optimization_level=0"
if version("jaxlib").startswith(("0.9.", "0.10.")):
    # XLA ends the process for a flag that it does not know: jaxlib 0.12 no longer knows this one.
    flags += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", flags)

# Else OpenBLAS starts a thread for each core as NumPy is imported, in each of a thousand children:
# a third of the processor's time that the import takes. No test multiplies matrices that need them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What plugrt remembers between runs is not the user's in tests, and goes with them.
if "PLUGRT_CACHE_DIR" not in os.environ:
    os.environ["PLUGRT_CACHE_DIR"] = tempfile.mkdtemp(prefix="plugrt-tests-")
    atexit.register(shutil.rmtree, os.environ["PLUGRT_CACHE_DIR"], ignore_errors=True)

from hypothesis import settings  # noqa: E402  # pytest rewrites it, and keeps that where said above

# The same examples in each run, and no folder of examples left behind.
settings.register_profile("plugrt", database=None, deadline=None, derandomize=True)
settings.load_profile("plugrt")

from support.absent_core import skip_without_core  # noqa: E402  # needs the path above

skip_without_core()

BETWEEN_HIDING = 5.0
hidden_at = 0.0
"""What is alive is taken out of the collector's sight after so many seconds of the processor."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Says which worker runs which test, unless ``--dist`` says it."""
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

    Skips those that a session of nox runs, and says which.
    Refuses names with an address in them: each worker would have its own, and xdist would stop.
    """
    addresses = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]{4,}", item.nodeid)]
    if addresses:
        raise pytest.UsageError(f"tests are named after addresses, give them ids: {addresses[:5]}")
    from support.apart import skip_those_of_other_sessions

    skip_those_of_other_sessions(items)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def hide_what_lives_on() -> None:
    """Takes what is alive, modules and tests first of all, out of the collector's sight.

    Else each `gc.collect` of a test walks through all of it, which takes 0.15 s after collection
    and twice that when JAX has traced some thousand functions. What nothing refers to any more is
    freed all the same, unless it is in a cycle that was alive here.
    """
    global hidden_at
    gc.collect()
    gc.freeze()
    hidden_at = time.process_time()


def pytest_collection_finish() -> None:
    """Hides the modules and the tests."""
    hide_what_lives_on()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Hides what the tests since have left in caches: JAX's, plugrt's, pytest's own reports."""
    if nextitem is not None and time.process_time() > hidden_at + BETWEEN_HIDING:
        hide_what_lives_on()


@pytest.fixture
def unraisable() -> Iterator[list[Any]]:
    """Collects what Python reports as unraisable during a test, instead of pytest's warnings."""
    before, found = sys.unraisablehook, list[Any]()
    sys.unraisablehook = found.append
    yield found
    sys.unraisablehook = before
