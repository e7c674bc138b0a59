"""Libraries with a stub for a function, or without it: programs run, or errors name it.

docs/data/stubbed_functions.json has the outcomes of JAX 0.10.2 with the same libraries, and with
the functions of lammps-jax-pjrt-cpu that are newer. ``.venv/bin/nox -s stubbed`` removes each
function, and runs JAX with a sample of them; each run of the tests removes a sample under plugrt.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi import Library, create_client, load_library
from plugrt.capi.abi.declarations import functions
from plugrt.capi.loading.negotiation import QUERIES, WAYS, Ways
from plugrt.errors import Unimplemented
from support import broken_steps
from support.apart import runs_apart
from support.broken_steps import transferred
from support.clib import needs_cc
from support.effort import EFFORT
from support.installed import download_wheel
from support.markdown import ROOT
from support.stubbed_library import ENDS, HEADER_114, StubbedLibraries, jax_fails, walk
from support.xla_cpu import library_path, needs_library

pytestmark = [needs_cc, needs_library]

FACTS = json.loads((ROOT / "docs/data/stubbed_functions.json").read_text(encoding="utf-8"))
ESSENTIAL = {*FACTS["plugrt"]["essential"]}
"""Functions without which some step fails, with an error that names the function."""
OTHERWISE = FACTS["plugrt"]["otherwise"]
"""Functions to the steps that fail without them, with the cure or the library's own message."""
HOWS = ("unimplemented", "null", "strict")
in_session = pytest.mark.skipif(
    os.environ.get("PLUGRT_TEST_TARGET") != "stubbed",
    reason="takes ten minutes, downloads a wheel: .venv/bin/nox -s stubbed",
)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> StubbedLibraries:
    real = library_path()
    assert real is not None
    return StubbedLibraries(tmp_path_factory.mktemp("stubbed"), real)


def outcomes(made: StubbedLibraries, names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Returns (library, step, outcome) of all steps with libraries of these names, in a child."""
    found = walk(made, names)
    assert found.returncode == 0, found.stderr
    return found.outcomes


def why_wrong(function: str, step: str, outcome: str) -> str:
    """Returns the fault in the outcome of a step; empty if there is none."""
    if outcome == "ok":
        return ""
    steps = OTHERWISE.get(function, {})
    words = steps.get(step) or steps.get("")
    if words is None and function in ESSENTIAL:
        words = f"PJRT_{function} "
    return "" if words and words in outcome else outcome


def test_functions_of_the_negotiation_are_declared() -> None:
    known = {entry.name for entry in functions()}
    assert known >= QUERIES
    assert QUERIES.isdisjoint(ESSENTIAL - {"Memory_Kind"})
    named = {way.partition(",")[0].partition(" ")[0] for ways in WAYS.values() for way in ways}
    assert known >= {name for name in named if "_" in name}
    page = (ROOT / "docs/plugins.md").read_text()
    for operation, ways in WAYS.items():
        assert f"| {operation} | {'; '.join(ways)} |" in page


@pytest.mark.parametrize("how", ["unimplemented", "null"])
def test_functions_with_another_way_are_not_missed(libraries: StubbedLibraries, how: str) -> None:
    """Earlier, each of the first four stopped steps that JAX does without it."""
    names = [
        "Buffer_OnDeviceSizeInBytes", "Executable_OutputElementTypes",
        "Executable_OutputDimensions", "Buffer_CopyToDevice", "Buffer_CopyToMemory",
        "Buffer_Delete", "Buffer_IsDeleted", "Buffer_UnsafePointer",
    ]  # fmt: skip
    found = outcomes(libraries, [f"{name}-{how}" for name in names])
    assert {(n, s): o for n, s, o in found if o != "ok"} == {}


def test_a_function_may_be_missing_for_later_arguments(libraries: StubbedLibraries) -> None:
    """Like a library that copies one dtype, not another: earlier, the C core had copied by then."""
    found = outcomes(libraries, ["Buffer_CopyToDevice-later"])
    assert {s: o for _, s, o in found if o != "ok"} == {}


@pytest.mark.parametrize("how", ["unimplemented", "null"])
def test_memory_that_is_not_transferred_is_read_raw(libraries: StubbedLibraries, how: str) -> None:
    path = libraries.library("Buffer_ToHostBuffer", how)
    client = create_client(path, {"cpu_device_count": 1}, name="raw")
    device = client.devices()[0]
    for dtype in (np.bool_, np.int8, np.float16, np.int32, np.complex128):
        for x in (np.arange(6).reshape(2, 3).astype(dtype), np.zeros((0, 2), dtype)):
            found = transferred(client.buffer_from_host(x, device))
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, x)
    narrow = client.buffer_from_host(np.arange(6).astype(ml_dtypes.int4), device)
    for _ in range(2):
        with pytest.raises(Unimplemented, match="PJRT_Buffer_ToHostBuffer"):
            transferred(narrow)
    client.close()


def names_in(text: str) -> set[str]:
    """Returns the functions in an alternative."""
    return {*re.findall(r"[A-Z][A-Za-z]+_[A-Z][A-Za-z]+", text)} - {"Buffer_Destroy"}


OPTIONAL = {
    name: {operation for operation, ways in WAYS.items() if name in names_in(" ".join(ways))}
    for name in names_in(str(WAYS))
}
"""Functions with an alternative, to their operations. Nothing replaces `Buffer_Destroy`."""
OF_EXTENSIONS = {"Layouts": "layouts", "Shardings": "shardings"}
"""Extensions whose functions of executables have an alternative, to the operation."""
FOR_THEMSELVES = {"unsafe_pointer", "copy_raw_to_host"}
"""Methods that a caller uses for one function."""
ALONE = {"look_at_a_buffer", "dlpack"}
"""Steps with such methods."""
LAST = {"Buffer_CopyRawToHost"}
"""Functions without which no alternative is left."""


class Watch:
    """Records the calls of optional functions, however they are called.

    ``outside`` are the calls, with the current operation, outside of the function's own
    alternatives. ``left_out`` are functions that answer UNIMPLEMENTED.
    """

    def __init__(self, library: Library, left_out: set[str], patch: pytest.MonkeyPatch) -> None:
        self.seen: set[str] = set()
        self.outside: set[tuple[str, str]] = set()
        self._left_out = left_out
        self._here = threading.local()
        patch.setattr(library, "ways", Ways())
        for name in OPTIONAL:
            patch.setitem(library.slots, name, self._noting(name, library.slots[name]))
        for extension in OF_EXTENSIONS.keys() & library.extensions.keys():
            slots = library.extension(extension).slots
            for name in [name for name in slots if "_Executable_" in name]:
                patch.setitem(slots, name, self._noting(name, slots[name]))
        patch.setattr(Ways, "take", self._taking(Ways.take))

    def _taking(self, take: Callable[..., Any]) -> Callable[..., Any]:
        def taking(ways: Ways, operation: str, *rest: Any) -> Any:
            before = self._operation()
            self._here.operation = operation
            try:
                return take(ways, operation, *rest)
            finally:
                self._here.operation = before

        return taking

    def _operation(self) -> str:
        return str(getattr(self._here, "operation", ""))

    def _noting(self, name: str, function: Any) -> Callable[[Any], Any]:
        own = OPTIONAL.get(name) or {OF_EXTENSIONS[name.partition("_")[0]]}

        def noting(args: Any) -> Any:
            callers = {sys._getframe(at).f_code.co_name for at in range(1, 5)}
            if not callers & FOR_THEMSELVES:
                self.seen.add(name)
                if self._operation() not in own:
                    self.outside.add((name, self._operation()))
            if name in self._left_out:
                raise Unimplemented(name)
            return function(args)

        return noting


def ask_executables(world: broken_steps.World) -> list[Any]:
    """Queries layouts and shardings, which the steps do not."""
    for e in (world.add.executable, world.replicas.executable):
        broken_steps.optional(
            e.output_layouts, e.parameter_layouts, e.output_shardings, e.parameter_shardings
        )
    return []


@pytest.mark.parametrize(
    ("left_out", "unseen", "failing"),
    [
        (set(), LAST, set()),
        ({"Buffer_CopyToDevice", "Buffer_UnsafePointer"}, LAST, ALONE),
        (
            OPTIONAL.keys() - LAST,
            # Called after another function of the same alternative.
            {"Buffer_UnsafePointer", "Executable_NumPartitions", "Executable_OutputDimensions"},
            # The compile options of a loaded program are not known.
            {*ALONE, "facts_of_an_executable", "load_what_was_saved"},
        ),
    ],
    ids=["none", "first ways", "all but the last ways"],
)
def test_nothing_calls_an_optional_function_but_through_the_table(
    left_out: set[str], unseen: set[str], failing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its slot, a hot slot or `Table.call`; and every step is right without them."""
    path = library_path()
    watch = Watch(load_library(str(path)), left_out, monkeypatch)
    world = broken_steps.World(str(path))
    failed = set()
    for name, step in {**broken_steps.STEPS, "ask": ask_executables}.items():
        try:
            for array in step(world):
                np.testing.assert_array_equal(array, broken_steps.SOURCE * 2, name)
        except Unimplemented:
            failed.add(name)
    assert watch.outside == set()
    assert OPTIONAL.keys() - watch.seen == unseen
    assert failed == failing


def test_the_core_calls_those_for_which_it_leaves_the_rest_to_python() -> None:
    """The core leaves the call to Python after an error; the tests above remove each function."""
    files = (ROOT / "runtime/core").glob("*/*.c")
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert {name for name in OPTIONAL if name in text} == {
        "Buffer_CopyToDevice", "Buffer_IsDeleted", "Buffer_OnDeviceSizeInBytes",
        "Buffer_UnsafePointer",
    }  # fmt: skip


def test_a_dtype_alone_may_be_missing(libraries: StubbedLibraries) -> None:
    found = outcomes(libraries, ["Client_BufferFromHostBuffer-int4"])
    assert {s: o for _, s, o in found if o != "ok" and s != "int4"} == {}


@runs_apart("lifetimes")
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_function(libraries: StubbedLibraries) -> None:
    """A stub and an empty slot of each of the library's functions; a crash ends the child.

    Runs a sample of them; all with more effort.
    """
    some = libraries.functions[:: 1 if EFFORT > 1 else 7]
    names = [f"{f.name}-{how}" for f in some for how in ("unimplemented", "null")]
    found = outcomes(libraries, names)
    assert {n for n, _, _ in found} == set(names)
    wrong = {(n, s): why for n, s, o in found if (why := why_wrong(n.split("-")[0], s, o))}
    assert wrong == {}
    failing = {name.split("-")[0] for name, _, outcome in found if outcome != "ok"}
    essential = ESSENTIAL | {*OTHERWISE}
    assert failing == essential & {name.split("-")[0] for name in names}


def check_all(made: StubbedLibraries, names: Sequence[str], jax: dict[str, Any]) -> None:
    """Checks all steps without each function, in children that a few libraries share.

    Every step that succeeds in JAX must succeed in plugrt.
    """
    stubs = [f"{name}-{how}" for name in names for how in HOWS]
    found = [o for at in range(0, len(stubs), 30) for o in outcomes(made, stubs[at : at + 30])]
    assert {n for n, _, _ in found} == {*stubs}
    wrong: dict[tuple[str, str], str] = {}
    worse: set[tuple[str, str]] = set()
    for stub, step, outcome in found:
        name, how = stub.split("-")
        why = (outcome != "ok" and outcome) if how == "strict" else why_wrong(name, step, outcome)
        wrong |= {(stub, step): why} if why else {}
        if outcome != "ok" and how != "strict":
            worse |= (
                {(stub, step)} if jax[name][how] != ENDS and step not in jax[name][how] else set()
            )
    print(f"{len(names)} functions, {len(found)} steps, {len(wrong)} wrong, {len(worse)} worse")
    assert wrong == {}
    assert worse == set()


@in_session
def test_all_functions_of_the_library(libraries: StubbedLibraries) -> None:
    """The table and its four extensions have 134 slots; of PhaseCompile two are empty."""
    names = [f.name for f in libraries.functions]
    assert (len(names), len(libraries.of_extensions), libraries.slots) == (118, 14, 134)
    assert {*FACTS["outcomes"]} == {*names, *libraries.of_extensions}
    assert said_otherwise(libraries) == {"Executable_GetCompiledMemoryStats": (56, 112)}
    check_all(libraries, [*names, *libraries.of_extensions], FACTS["outcomes"])


def said_otherwise(made: StubbedLibraries) -> dict[str, tuple[int, int]]:
    """Returns function to (size by the library's answer, size by the header), if they differ."""
    sizes = {n: (said, made.sizes[n]) for n, said in made.stated.items() if n in made.sizes}
    assert len(sizes) == len(made.functions) - len(NOT_SAID)
    return {name: pair for name, pair in sizes.items() if pair[0] != pair[1]}


NOT_SAID = {
    "Error_Destroy", "Error_Message", "Client_CreateViewOfDeviceBuffer",
    "LoadedExecutable_Fingerprint", "TopologyDescription_Create",
}  # fmt: skip
"""Functions of XLA's CPU libraries that check no size, or not at first.

In 0.81 Executable_GetCompiledMemoryStats checks another struct's size.
"""


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> StubbedLibraries:
    package, version = FACTS["newer"]["library"].split()[:2]
    folder = tmp_path_factory.mktemp("newer")
    with zipfile.ZipFile(download_wheel(package, version, folder)) as wheel:
        [library] = [name for name in wheel.namelist() if name.endswith(".so")]
        return StubbedLibraries(folder, Path(wheel.extract(library, folder)), HEADER_114["sizes"])


@in_session
def test_newer_functions_of_a_newer_library(
    newer: StubbedLibraries, libraries: StubbedLibraries
) -> None:
    """It accepts three structs in the size of an older header."""
    names = [f.name for f in newer.functions if f.since > 81]
    names += sorted({*newer.of_extensions} - {*libraries.of_extensions})
    assert {*names} == {*FACTS["newer"]["outcomes"]}
    assert said_otherwise(newer) == {
        "Device_MemoryStats": (185, 201),
        "Executable_DeserializeAndLoad": (64, 72),
        "Executable_GetCompiledMemoryStats": (112, 144),
    }
    check_all(newer, names, FACTS["newer"]["outcomes"])
    grown = [n for n, size in libraries.sizes.items() if newer.sizes[n] != size]
    assert "Device_MemoryStats" in grown
    assert {o for _, _, o in outcomes(newer, [f"{name}-strict" for name in grown])} == {"ok"}


@in_session
def test_jax_does_what_the_table_says(libraries: StubbedLibraries, newer: StubbedLibraries) -> None:
    """A sample of the functions, each in a process of its own; all with more effort."""
    for made, jax in ((libraries, FACTS["outcomes"]), (newer, FACTS["newer"]["outcomes"])):
        for name in sorted(jax)[:: 1 if EFFORT > 1 else 9]:
            for how, outcome in jax[name].items():
                assert (name, how, jax_fails(made, f"{name}-{how}")) == (name, how, outcome)
