"""Argument structs have the size of the library's version; a strict library checks it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.capi import create_client, load_library
from plugrt.capi.abi import declarations
from plugrt.capi.abi.structs import StructSizes, new_struct, struct_type
from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import CompileOptions
from support import children
from support.apart import runs_apart
from support.clib import needs_cc
from support.strict_library import (
    NESTED,
    Controls,
    Pretended,
    compiled_sizes,
    read_api,
    seen_by,
    strict_library,
)
from support.stubbed_library import HEADER_114
from support.xla_cpu import add, library_path, needs_library

pytestmark = [needs_cc, needs_library]
TESTS = Path(__file__).parents[3]
FEWEST = 90
"""The smallest number of the library's 118 functions that the walks call together."""


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return strict_library(tmp_path_factory.mktemp("strict"))


def walk(library: Path | None, devices: int, core: str = "") -> dict[str, Any]:
    """Returns the report of a child process that uses the library."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_P", "PJRT_"))}
    env |= {"PYTHONPATH": str(TESTS), "TF_CPP_MIN_LOG_LEVEL": "3", "PLUGRT_CORE": core}
    command = [sys.executable, "-m", "support.strict_walk", str(library), str(devices)]
    done = children.run(command, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def differing(sizes: dict[str, int], known: StructSizes) -> dict[str, tuple[int, int]]:
    """Returns (plugrt's size, given size) for each struct whose sizes differ."""
    ours = {s: struct_type(f"struct {s}" if s.endswith("_Args") else s, known)[1] for s in sizes}
    return {s: (ours[s], size) for s, size in sizes.items() if ours[s] != size}


def test_the_sizes_are_those_of_the_library_s_header(tmp_path: Path) -> None:
    api = read_api()
    assert differing(compiled_sizes(tmp_path), StructSizes(api.version[1])) == {}
    assert len(api.functions) == 118


@pytest.mark.parametrize("minor", [114, 115])
def test_the_sizes_are_those_of_the_newest_header(minor: int) -> None:
    structs = {f"PJRT_{entry.name}_Args" for entry in declarations.functions()}
    structs |= {kind for _, kind, _ in NESTED.values()}
    sizes = HEADER_114["sizes"]
    assert sizes.keys() >= structs
    known = StructSizes(minor, sizes["PJRT_Api"])
    assert differing({s: sizes[s] for s in structs}, known) == {}


@pytest.mark.parametrize(
    ("struct", "sizes"),
    {
        "struct PJRT_Device_MemoryStats_Args": {81: 185, 112: 185, 113: 201, 200: 201},
        "struct PJRT_Executable_GetCompiledMemoryStats_Args": {
            40: 64, 43: 104, 71: 104, 72: 112, 89: 112, 90: 120, 104: 144,
        },
        "PJRT_ExecuteOptions": {29: 52, 46: 72, 64: 80, 76: 88, 78: 112, 97: 120, 108: 121},
        "struct PJRT_Plugin_Attributes_Args": {70: 24, 71: 32},
    }.items(),
)  # fmt: skip
def test_the_sizes_of_versions(struct: str, sizes: dict[int, int]) -> None:
    assert {m: struct_type(struct, StructSizes(m))[1] for m in sizes} == sizes
    with pytest.raises(ValueError, match="the library's sizes are needed"):
        struct_type(struct)


def test_a_struct_that_never_changed_needs_no_version() -> None:
    for entry in declarations.functions():
        name = f"struct PJRT_{entry.name}_Args"
        if not entry.ends:
            old, new = StructSizes(29), StructSizes(200)
            assert struct_type(name) == struct_type(name, old) == struct_type(name, new)


def test_programs_run_on_a_strict_library(strict: Path) -> None:
    client = create_client(strict, {"cpu_device_count": 2}, name="strict")
    x = client.buffer_from_host(np.ones(4, np.float32), client.devices()[0])
    loaded = client.compile(add(), CompileOptions())
    restored = client.deserialize_executable(loaded.executable.serialize(), CompileOptions())
    for program in (loaded, loaded, restored):
        (((result,),),) = (program.execute([(x,), (x,)]),)
        assert result.to_host().tolist() == [2.0] * 4
    assert loaded.executable.memory_analysis().argument_size_in_bytes == 32
    with pytest.raises(Unimplemented, match="GetAllocatorStats"):  # as without the shim
        client.devices()[0].memory_stats()
    client.close()
    seen = seen_by(strict)
    assert seen.refused == []
    assert "PJRT_Executable_DeserializeAndLoad" in seen.called


OF_61 = {
    "PJRT_Plugin_Attributes_Args": 24, "PJRT_Client_Create_Args": 88,
    "PJRT_Device_MemoryStats_Args": 185, "PJRT_Executable_DeserializeAndLoad_Args": 48,
    "PJRT_Client_CreateViewOfDeviceBuffer_Args": 104, "PJRT_ExecuteOptions": 80,
    "PJRT_Executable_GetCompiledMemoryStats_Args": 104,
}  # fmt: skip
"""Measured, as the others: openxla/xla's header of 0.62, before functions were added."""


def _header(minor: int, functions: int, **sizes: int) -> Pretended:
    """Returns a header with these sizes; other structs have the sizes of 0.62."""
    known = {
        name: s for name in OF_61 for key, s in sizes.items() if name.startswith(f"PJRT_{key}")
    }
    return Pretended(minor, functions, OF_61 | known)


HEADERS = {
    "61, first": _header(61, 104, ExecuteOptions=72),
    "61, second": _header(61, 104, Client_Create_=72),
    "61, third": _header(61, 104, Client_Create_=72, ExecuteOptions=72),
    "62, first": _header(62, 104),
    "62, second": _header(62, 110, ExecuteOptions=72),
    "63": _header(63, 110, ExecuteOptions=72),
    "64": _header(64, 110),
    "65, first": _header(65, 110, Client_CreateView=112),
    "65, second": _header(65, 110),
    "71, first": _header(71, 113, Client_CreateView=112),
    "71, second": _header(
        71, 113, Client_CreateView=112, Plugin_Attributes=32, Executable_DeserializeAndLoad=64
    ),
    "a table of 0.81 that states 0.114": Pretended(114, 118),
    "a table of 0.81 that states 0.60": Pretended(60, 118),
}
"""Headers of one version that differ, and versions and tables that no header has together."""


@pytest.mark.parametrize("which", HEADERS)
def test_both_sizes_are_tried_where_headers_of_a_version_differ(which: str, tmp_path: Path) -> None:
    path = strict_library(tmp_path, HEADERS[which])
    client = create_client(path, {"cpu_device_count": 2}, name="strict")
    device = client.devices()[0]
    x = client.buffer_from_host(np.ones(4, np.float32), device)
    assert "xla_version" in client.library.attributes()
    loaded = client.compile(add(), CompileOptions())
    restored = client.deserialize_executable(loaded.executable.serialize(), CompileOptions())
    for program in (loaded, loaded, restored, client.compile(add(), CompileOptions())):
        (((result,),),) = (program.execute([(x,), (x,)]),)
        assert result.to_host().tolist() == [2.0] * 4
    with pytest.raises(Unimplemented, match="GetAllocatorStats"):
        device.memory_stats()
    view = client.buffer_from_dlpack(x.to_dlpack(), device)
    assert view.to_host().tolist() == [1.0] * 4
    assert loaded.launcher([(x,), (view,)])[0][0].to_host().tolist() == [2.0] * 4
    client.close()
    refused = [line.split(":")[0] for line in seen_by(path).refused]
    assert len(refused) == len(set(refused)), "each size is tried once"


OF_TWO_SIZES = {
    "Client_Create": ("61, second", "PJRT_Client_Create_Args"),
    "LoadedExecutable_Execute": ("61, first", "PJRT_ExecuteOptions"),
    "Plugin_Attributes": ("71, first", "PJRT_Plugin_Attributes_Args"),
}
"""Function to a header with the smaller size of a struct of its arguments, and that struct."""


@pytest.mark.parametrize("lenient", [True, False])
@pytest.mark.parametrize("function", OF_TWO_SIZES)
def test_an_error_of_a_call_settles_no_size(function: str, lenient: bool, tmp_path: Path) -> None:
    """The caller gets the error; a library that accepts all sizes, as XLA does, is called once.

    The last three messages look like a refusal of the size: only after these it is called again.
    """
    which, struct = OF_TWO_SIZES[function]
    path = strict_library(tmp_path, HEADERS[which])
    library, controls = load_library(path), Controls(path)
    large, small = library.sizes.possible(struct)

    def use() -> None:
        client = create_client(library, {"cpu_device_count": 1}, name="strict")
        x = client.buffer_from_host(np.ones(4, np.float32), client.devices()[0])
        client.compile(add(), CompileOptions()).execute([(x,), (x,)])
        client.close()
        library.attributes()

    if lenient:
        controls.accept_all_sizes()
    refusals = (f"size {large}, not {small}", f"Unexpected {struct} size", "STRUCT_SIZE is wrong")
    for words, times in (("no", 1), ("the size of x is 9", 1), *((text, 2) for text in refusals)):
        controls.fail(f"PJRT_{function}", words)
        with pytest.raises(InvalidArgument, match=words):
            use()
        assert controls.times_failed() == (times if lenient else 1)
        assert library.sizes.possible(struct) == (large, small)
    controls.fail("", "")
    use()
    assert library.sizes.possible(struct) == ((large, small) if lenient else (small,))


def test_an_error_of_an_extension_is_read_by_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Extensions have no functions for errors. Earlier, a `KeyError` if two sizes were possible."""
    path = strict_library(tmp_path, HEADERS["a table of 0.81 that states 0.60"])
    library, controls = load_library(path), Controls(path)
    name = "DeviceDescription_MemoryDescriptions"
    table, asked = library.extension("MemoryDescriptions"), set()
    fails = new_struct("struct PJRT_Plugin_Attributes_Args", library.sizes)

    def answer(args: Any) -> Any:
        asked.add(int(args.struct_size))
        return library.slots["Plugin_Attributes"](fails)

    monkeypatch.setitem(table.slots, name, answer)
    sizes = library.sizes.possible(f"PJRT_{name}_Args")
    assert len(sizes) == 2
    for words, tried in (("no", sizes[:1]), (f"sizes {sizes[0]} and {sizes[1]}", sizes)):
        controls.fail("PJRT_Plugin_Attributes", words)
        asked.clear()
        with pytest.raises(InvalidArgument, match=words):
            table.call(name)
        assert asked == set(tried)
    assert library.sizes.possible(f"PJRT_{name}_Args") == sizes


@runs_apart("lifetimes")
def test_all_runs_on_a_strict_library_as_without_it(strict: Path) -> None:
    called: set[str] = set()
    for devices in (0, 1, 8):
        expected = walk(library_path(), devices)["results"]
        for core in ("", "python"):
            found = walk(strict, devices, core)
            assert found["results"] == expected
            assert found["refused"] == []
            called |= set(found["called"])
    assert len(called) >= FEWEST, sorted(set(read_api().functions) - called)
