"""Counts frames, changes of module and readings of the memory map of first calls; and imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.distributions import run_python, run_warm
from support.xla_cpu import library_path, needs_library

COUNT = """
import os
import sys
import numpy as np
import plugrt

maps = 0
files = []

def opened(event, arguments):
    global maps
    maps += event == "open" and arguments[0] == "/proc/self/maps"

def called(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(folders):
        files.append(frame.f_code.co_filename)

sys.addaudithook(opened)
plugrt.devices()
x = np.float32([1, 2])
plugrt.jit(lambda x: x * 3)(x)  # imports what traces
second = plugrt.jit(lambda x: x + 1)
packages = [name for name in sys.modules if name.startswith("plugrt") and "." not in name]
folders = tuple([os.path.dirname(sys.modules[name].__file__) + os.sep for name in packages])
sys.setprofile(called)
second(x)
sys.setprofile(None)
print(maps, len(files), sum(a != b for a, b in zip(files, files[1:])))
"""


@needs_library
@pytest.mark.parametrize(
    ("platform", "most_maps", "most_frames", "most_changes"),
    [("cpu", 0, 550, 250), ("xla_cpu", 3, 900, 480)],
)
def test_the_first_call_of_a_function(
    platform: str, most_maps: int, most_frames: int, most_changes: int
) -> None:
    done = run_warm(
        COUNT, JAX_PLATFORMS=platform, PJRT_NAMES_AND_LIBRARY_PATHS=f"xla_cpu:{library_path()}"
    )
    assert done.returncode == 0, done.stderr
    maps, frames, changes = map(int, done.stdout.split())
    assert maps <= most_maps
    assert 100 < frames <= most_frames
    assert 50 < changes <= most_changes


@needs_library
def test_a_start_on_a_library_imports_no_module_that_it_does_not_use(tmp_path: Path) -> None:
    for _ in range(2):  # the first one tries the library in a child
        done = run_python(
            "import numpy, sys; before = {*sys.modules}\n"
            "import plugrt; plugrt.devices(); print(*{*sys.modules} - before)",
            JAX_PLATFORMS="xla_cpu", PJRT_NAMES_AND_LIBRARY_PATHS=f"xla_cpu:{library_path()}",
            PLUGRT_CACHE_DIR=str(tmp_path),
        )  # fmt: skip
    modules = set(done.stdout.split())
    late = {"copy", "dataclasses", "fnmatch", "importlib.util", "json", "pkgutil", "signal",
            "traceback", "plugrt.interface.memory_layout", "plugrt.missing_names"}  # fmt: skip
    assert modules & late == set()
    assert 50 < len(modules) <= 116, sorted(modules)  # counted, not timed
