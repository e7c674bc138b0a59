"""Counts the Python frames and the readings of the memory map of the first calls in a process."""

from __future__ import annotations

import pytest

from support.distributions import run_warm
from support.xla_cpu import library_path, needs_library

COUNT = """
import sys
import numpy as np
import plugrt

maps = frames = 0

def opened(event, arguments):
    global maps
    maps += event == "open" and arguments[0] == "/proc/self/maps"

def called(frame, event, _):
    global frames
    frames += event == "call" and "plugrt" in frame.f_code.co_filename

sys.addaudithook(opened)
plugrt.devices()
x = np.float32([1, 2])
plugrt.jit(lambda x: x * 3)(x)  # imports what traces
second = plugrt.jit(lambda x: x + 1)
sys.setprofile(called)
second(x)
sys.setprofile(None)
print(maps, frames)
"""


@needs_library
@pytest.mark.parametrize(
    ("platform", "most_maps", "most_frames"), [("cpu", 0, 1050), ("xla_cpu", 3, 1250)]
)
def test_the_first_call_of_a_function(platform: str, most_maps: int, most_frames: int) -> None:
    done = run_warm(
        COUNT, JAX_PLATFORMS=platform, PJRT_NAMES_AND_LIBRARY_PATHS=f"xla_cpu:{library_path()}"
    )
    assert done.returncode == 0, done.stderr
    maps, frames = map(int, done.stdout.split())
    assert maps <= most_maps
    assert 100 < frames <= most_frames
