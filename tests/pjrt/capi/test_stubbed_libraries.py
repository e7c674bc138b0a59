"""Libraries with a stub for a function, or without it: programs run, or errors name it.

docs/data/stubbed_functions.json has the outcomes of JAX 0.10.2 with the same libraries, and with
the functions of lammps-jax-pjrt-cpu that are newer; plugrt runs all steps without any of these.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from plugrt.capi.abi.declarations import functions
from plugrt.capi.loading.negotiation import QUERIES, WAYS
from support import children
from support.apart import runs_apart
from support.clib import needs_cc
from support.effort import EFFORT
from support.stubbed_library import StubbedLibraries
from support.xla_cpu import library_path, needs_library

pytestmark = [needs_cc, needs_library]

ESSENTIAL = {
    "Plugin_Initialize", "Client_Create", "Client_PlatformName",
    "Client_Devices", "Client_Compile", "Client_BufferFromHostBuffer", "DeviceDescription_Id",
    "DeviceDescription_ProcessIndex", "Device_GetDescription", "Device_IsAddressable",
    "Memory_Kind", "LoadedExecutable_GetExecutable", "LoadedExecutable_AddressableDevices",
    "LoadedExecutable_Execute", "Event_Destroy", "Buffer_ReadyEvent",
}  # fmt: skip
"""Functions without which some step fails, with an error that names the function."""
OTHERWISE = {
    ("Executable_OptimizedProgram", "sharded"): "Fix: give out_shardings",
    ("Buffer_ToHostBuffer", "int4"): "PJRT_Buffer_ToHostBuffer",
    ("Error_GetCode", ""): "is not supported",  # an error of a code that is not known
}
"""Steps that fail without a function, with the cure or the library's own words."""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> StubbedLibraries:
    real = library_path()
    assert real is not None
    return StubbedLibraries(tmp_path_factory.mktemp("stubbed"), real)


def outcomes(made: StubbedLibraries, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yields (library, step, outcome) of all steps with libraries of these names, in one child."""
    for name in names:
        made.library(*name.split("-"))
    env = {**os.environ, "PLUGRT_PROBE_LIBRARIES": "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    env.pop("JAX_PLATFORMS", None)
    env["PYTHONPATH"] = children.path_with(Path(__file__).parents[2])
    command = [sys.executable, "-m", "support.stubbed_steps", str(made.folder), *names]
    done = children.run(command, env=env, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    last = [line["begin"] for line in lines if "begin" in line][-1:]
    assert done.returncode == 0, (last, done.stderr[-2000:])
    for line in lines:
        if "end" in line:
            yield *line["end"], line["outcome"]


def why_wrong(function: str, step: str, outcome: str) -> str:
    """Returns what is wrong with the outcome of a step; empty where nothing is."""
    if outcome == "ok":
        return ""
    words = OTHERWISE.get((function, step)) or OTHERWISE.get((function, ""))
    if words is None and function in ESSENTIAL:
        words = f"PJRT_{function} "
    return "" if words and words in outcome else outcome


def test_what_negotiation_names_is_declared() -> None:
    known = {entry.name for entry in functions()}
    assert known >= QUERIES
    assert QUERIES.isdisjoint(ESSENTIAL - {"Memory_Kind"})
    named = {way.partition(",")[0].partition(" ")[0] for ways in WAYS.values() for way in ways}
    assert known >= {name for name in named if "_" in name}
    page = (Path(__file__).parents[3] / "docs/plugins.md").read_text()
    for operation, ways in WAYS.items():
        assert f"| {operation} | {'; '.join(ways)} |" in page


@pytest.mark.parametrize("how", ["unimplemented", "null"])
def test_functions_with_another_way_are_not_missed(libraries: StubbedLibraries, how: str) -> None:
    """Each of the first four stopped what JAX does without it."""
    names = [
        "Buffer_OnDeviceSizeInBytes", "Executable_OutputElementTypes",
        "Executable_OutputDimensions", "Buffer_CopyToDevice", "Buffer_CopyToMemory",
        "Buffer_Delete", "Buffer_IsDeleted", "Buffer_UnsafePointer",
    ]  # fmt: skip
    found = outcomes(libraries, [f"{name}-{how}" for name in names])
    assert {(n, s): o for n, s, o in found if o != "ok"} == {}


def test_a_dtype_alone_may_be_missing(libraries: StubbedLibraries) -> None:
    found = outcomes(libraries, ["Client_BufferFromHostBuffer-int4"])
    assert {s: o for _, s, o in found if o != "ok" and s != "int4"} == {}


@runs_apart("lifetimes")
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_function(libraries: StubbedLibraries) -> None:
    """A stub and an empty slot of each of the library's functions; a crash ends the child.

    A sample of them; all with more effort.
    """
    some = libraries.functions[:: 1 if EFFORT > 1 else 7]
    names = [f"{f.name}-{how}" for f in some for how in ("unimplemented", "null")]
    found = list(outcomes(libraries, names))
    assert {n for n, _, _ in found} == set(names)
    wrong = {(n, s): why for n, s, o in found if (why := why_wrong(n.split("-")[0], s, o))}
    assert wrong == {}
    failing = {name.split("-")[0] for name, _, outcome in found if outcome != "ok"}
    essential = ESSENTIAL | {function for function, _ in OTHERWISE}
    assert failing == essential & {name.split("-")[0] for name in names}
