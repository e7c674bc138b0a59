"""A garbage collection while cffi makes a struct type does not end the process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.children import run
from support.clib import needs_cc, tiny_library

pytestmark = needs_cc

CHILD = """
import gc, sys
from plugrt.capi.abi._abi import ffi
from plugrt.capi import load_library

library, more_objects = sys.argv[1], int(sys.argv[2])
if library:
    load_library(library)

class Asks:
    "Garbage that only the collector finds, whose finaliser asks for the type that is being made."
    def __init__(self, name):
        self.me, self.name = self, name
    def __del__(self):
        ffi.typeof(self.name + " *")
        asked.append(self.name)

asked = []
names = [f"struct {name}" for name in ffi.list_types()[1]]
gc.collect()
gc.freeze()
for name in names:
    gc.disable()
    Asks(name)
    gc.set_threshold(gc.get_count()[0] + more_objects)  # collects after so many more objects
    gc.enable()
    ffi.typeof(name + " *")
gc.collect()
assert asked == names, (len(asked), len(names))
"""


def ask(library: str, more_objects: int) -> tuple[int, str]:
    """Runs the child; returns its exit status and its output on stderr."""
    ended = run([sys.executable, "-c", CHILD, library, more_objects], timeout=120)
    return ended.returncode, ended.stderr


def test_a_finaliser_may_ask_for_the_type_that_is_being_made(tmp_path: Path) -> None:
    library = str(tiny_library(tmp_path, ""))
    for more_objects in (1, 2, 3, 4):
        assert ask(library, more_objects) == (0, ""), more_objects


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="collections run between bytecodes since Python 3.12"
)
def test_without_a_library_cffi_ends_the_process() -> None:
    """Shows that the test above can fail. If this fails, cffi does not need `complete_types`."""
    ended = [ask("", more_objects) for more_objects in (1, 2, 3, 4)]
    assert any(status < 0 and "realize_c_type.c" in errors for status, errors in ended), ended
