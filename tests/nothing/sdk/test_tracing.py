"""The tracer around a library: what it records, what it finds, what it injects.

The library is the exported NumPy backend; the hosts are scripts over plugrt's own table of
functions, so that each can break the rules of the C API.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugrt_sdk.export.library import export_library

HOST = """
import sys
from plugrt.capi.abi._abi import ffi
from plugrt.capi.loading.library import load_library
from plugrt.capi.loading.function_table import new_struct
from plugrt.errors import PlugrtError

library = load_library(sys.argv[1])

def call(name, **fields):
    "Calls a function as a host in C would: no error is freed."
    args = new_struct(f"struct PJRT_{name}_Args")
    for field, value in fields.items():
        setattr(args, field, value)
    return args, library.slots[name](args)

call("Plugin_Initialize")
"""
CLIENT = """
client = call("Client_Create")[0].client
device = call("Client_Devices", client=client)[0].devices[0]
data = ffi.new("float[4]", [1, 2, 3, 4])
dims = ffi.new("int64_t[1]", [4])

def put():
    args, error = call("Client_BufferFromHostBuffer", client=client, device=device, data=data,
                       type=11, dims=dims, num_dims=1)
    assert not error
    return args

def destroy(args):
    call("Event_Await", event=args.done_with_host_buffer)
    call("Event_Destroy", event=args.done_with_host_buffer)
    call("Buffer_Destroy", buffer=args.buffer)

def close():
    call("Client_Destroy", client=client)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_library("numpy", tmp_path_factory.mktemp("library") / "libpjrt_numpy.so")


def trace(
    library: Path, script: str, folder: Path, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs a host under ``plugrt trace``; returns how it ended, and the document of its process."""
    target = folder / "trace.json"
    command = [sys.executable, "-m", "plugrt", "trace", "--format", "json", "-o", str(target)]
    program = [sys.executable, "-c", HOST + script, str(library)]
    ended = subprocess.run(
        [*command, *options, "--", *program], capture_output=True, text=True, timeout=120
    )
    return ended, json.loads(target.read_text())


def kinds(document: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    [process] = document["processes"]
    return [(f["whose"], f["kind"], f.get("function")) for f in process["findings"]]


def test_a_clean_host_has_no_finding_and_every_call_is_recorded(
    library: Path, tmp_path: Path
) -> None:
    script = CLIENT + "destroy(put()); close(); sys.exit(3)"
    ended, document = trace(library, script, tmp_path, "--check")
    [process] = document["processes"]
    assert ended.returncode == document["exit_code"] == 3, ended.stderr
    assert kinds(document) == []
    assert process["unfinished"] == []
    names = [call["function"] for call in process["calls"]]
    assert names == [
        "Plugin_Initialize", "Client_Create", "Client_Devices", "Client_BufferFromHostBuffer",
        "Event_Await", "Event_Destroy", "Buffer_Destroy", "Client_Destroy",
    ]  # fmt: skip
    put = process["calls"][3]
    assert put["in"]["dims"] == [4]
    assert put["in"]["type"] == "F32"
    assert put["out"]["buffer"].startswith("Buffer#1@0x")
    assert put["ns"] > 0
    assert put["thread"] > 0
    assert process["handles"]["Buffer"] == {"created": 1, "destroyed": 1, "alive": 0}
    assert process["functions"]["Event_Await"]["calls"] == 1
    assert "0 findings." in ended.stderr
    assert "Client_BufferFromHostBuffer" in ended.stderr


PLANTED = {
    "a leaked buffer": (
        "put()",
        ("host", "leak", None),
        "2 Buffers of Client_BufferFromHostBuffer",
    ),
    "a leaked event": ("put()", ("host", "leak", None), "2 never awaited"),
    "an unfreed error": (
        'call("Client_LookupDevice", client=client, id=99)',
        ("host", "unfreed error", None),
        "1 Error of Client_LookupDevice never destroyed",
    ),
    "a double destroy": (
        'made = put(); destroy(made); call("Buffer_Destroy", buffer=made.buffer)',
        ("host", "double destroy", "Buffer_Destroy"),
        "which Buffer_Destroy destroyed in call",
    ),
    "a use after destroy": (
        'made = put(); destroy(made); call("Buffer_Dimensions", buffer=made.buffer)',
        ("host", "use after destroy", "Buffer_Dimensions"),
        "which Buffer_Destroy destroyed in call 15",
    ),
    "a handle of the wrong type": (
        'call("Device_GetDescription", device=ffi.cast("PJRT_Device*", client))',
        ("host", "wrong type", "Device_GetDescription"),
        "device is a Client: Client#1",
    ),
    "a handle out of nowhere": (
        'nothing = ffi.new("char[4096]"); '
        'call("Device_GetDescription", device=ffi.cast("PJRT_Device*", nothing))',
        ("host", "unknown handle", "Device_GetDescription"),
        "which no call returned as a Device",
    ),
    "no struct_size": (
        'args = new_struct("struct PJRT_Client_Devices_Args"); args.client = client; '
        'args.struct_size = 0; library.slots["Client_Devices"](args)',
        ("host", "struct size", "Client_Devices"),
        "struct_size is 0; 40 bytes are declared",
    ),
    "a struct_size within a field": (
        'args = new_struct("struct PJRT_Client_Devices_Args"); args.client = client; '
        'args.struct_size = 37; library.slots["Client_Devices"](args)',
        ("host", "struct size", "Client_Devices"),
        "struct_size is 37: no field ends there",
    ),
}


def test_each_planted_fault_of_a_host_is_named(library: Path, tmp_path: Path) -> None:
    """One process: each fault is a finding of its own, and the process lives through all."""
    steps = "\n".join(step for step, _, _ in PLANTED.values())
    ended, document = trace(library, CLIENT + steps + "\nclose()", tmp_path, "--check")
    assert (ended.returncode, document["exit_code"]) == (1, 0), ended.stderr
    [process] = document["processes"]
    for name, (_, expected, text) in PLANTED.items():
        matching = [
            found for found in process["findings"]
            if (found["whose"], found["kind"], found.get("function")) == expected
            and text in found["text"]
        ]  # fmt: skip
        assert matching, f"{name}: {process['findings']}"
        assert matching[0]["text"] in " ".join(ended.stderr.split()).replace("- host", "host")


def test_the_descriptors_are_those_of_the_declarations() -> None:
    folder = Path(__file__).parents[3] / "plugin_sdk/core/trace"
    made: dict[str, Any] = runpy.run_path(str(folder / "generate.py"))
    assert (folder / "descriptors.h").read_text() == made["descriptors_h"]()
