"""The tracer around a library: its records, findings and injected faults.

The library is the exported NumPy backend; the hosts are scripts over plugrt's own table of
functions, so that each can break the rules of the C API.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from plugrt_sdk.export import export_library
from plugrt_sdk.tracing import library_path
from plugrt_sdk.tracing.command import trace as command
from plugrt_sdk.tracing.environment import select_library
from plugrt_sdk.tracing.journal import Folder
from plugrt_sdk.tracing.processes import Process
from plugrt_sdk.tracing.text import Lines, show_duration, summary
from support.clib import needs_cc, tiny_library
from support.native_core import preloads_tracer

HOST = """
import sys
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import new_struct
from plugrt.capi import load_library
from plugrt.errors import PlugrtError

library = load_library(sys.argv[1])

def call(name, **fields):
    "Calls a function as a host in C would: no error is freed."
    args = new_struct(f"struct PJRT_{name}_Args", library.sizes)
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
    """Runs a host under ``plugrt trace``; returns its exit status, and its process's document."""
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


@preloads_tracer
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


@preloads_tracer
def test_each_planted_fault_of_a_host_is_named(library: Path, tmp_path: Path) -> None:
    """All in one process, which survives: each fault is a finding of its own."""
    steps = "\n".join(step for step, _, _ in PLANTED.values())
    steps += "\nargs.struct_size = 400; library.slots['Client_Devices'](args)"
    steps += "\nmade = put(); call('Event_Destroy', event=made.done_with_host_buffer)"
    steps += "; call('Buffer_Destroy', buffer=made.buffer)"
    ended, document = trace(library, CLIENT + steps + "\nclose()", tmp_path, "--check")
    assert (ended.returncode, document["exit_code"]) == (1, 0), ended.stderr
    [process] = document["processes"]
    note, unasked = process["notes"]
    assert unasked.startswith("1 events of Client_BufferFromHostBuffer were destroyed without")
    assert "larger than those that plugrt-sdk knows (Client_Devices: 400 bytes" in note
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


FAULTY = """
import time
assert library.version == (0, 90), library.version
assert "Layouts" not in library.extensions and "Shardings" in library.extensions
assert not library.has("Device_GetAttributes") and library.has("Event_Set")
for i, code in enumerate((0, 5, 0)):
    args, error = call("Client_LookupDevice", client=client, id=0)
    assert bool(error) == bool(code)
    if error:
        assert call("Error_GetCode", error=error)[0].code == code
        message = call("Error_Message", error=error)[0]
        assert b"--fail" in ffi.buffer(message.message, message.message_size)[:]
        call("Error_Destroy", error=error)
begin = time.monotonic()
made = put()
event = made.done_with_host_buffer
is_ready = call("Event_IsReady", event=event)[0].is_ready
assert not is_ready or time.monotonic() - begin >= 0.2  # on a busy machine
times = []
@ffi.callback("void(PJRT_Error*, void*)")
def note_time(error, user_arg):
    times.append(time.monotonic() - begin)
call("Event_OnReady", event=event, callback=note_time)
call("Event_Await", event=event)
assert time.monotonic() - begin >= 0.2
while not times:
    time.sleep(0.001)
assert times[0] >= 0.2 and call("Event_IsReady", event=event)[0].is_ready
destroy(made)
close()
"""


@preloads_tracer
def test_faults_reach_the_host_as_they_were_ordered(library: Path, tmp_path: Path) -> None:
    options = (
        "--check", "--fail", "PJRT_Client_LookupDevice:2=NOT_FOUND", "--hide-extension", "Layouts",
        "--report-minor", "90", "--delay-events", "200",
    )  # fmt: skip
    ended, document = trace(library, CLIENT + FAULTY, tmp_path, *options)
    assert ended.returncode == 0, ended.stderr
    [process] = document["processes"]
    [failed] = [call for call in process["calls"] if "error" in call]
    assert (failed["function"], failed["code"]) == ("Client_LookupDevice", 5)
    assert process["functions"]["Client_LookupDevice"]["errors"] == 1
    [found] = process["libraries"]
    assert (found["version"][1], found["reported_minor"]) == (114, 90)


@preloads_tracer
@pytest.mark.parametrize(
    ("nth", "code"), [("1", 0), ("*", 0), ("2", 2)], ids=["first", "each", "second"]
)
@pytest.mark.parametrize("form", [(), ("--summary",)], ids=["calls", "summary"])
def test_a_fault_that_no_call_meets_proves_nothing(
    nth: str, code: int, form: tuple[str, ...], library: Path, tmp_path: Path
) -> None:
    script = (
        CLIENT
        + """
_, error = call("Client_LookupDevice", client=client, id=0)
if error:
    call("Error_Destroy", error=error)
close()
"""
    )
    fault = f"Client_LookupDevice:{nth}"
    ended, _ = trace(library, script, tmp_path, "--fail", fault, *form)
    assert ended.returncode == code, ended.stderr
    assert (f"--fail {fault} was not reached" in ended.stderr) is bool(code)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--fail", "Client_Compil"], "no function Client_Compil; did you mean Client_Compile?"),
        (["--fail", "Client_Compile=NOSUCH"], "the PJRT C API has no error code NOSUCH"),
        (["--fail", "Client_Compile:0"], "calls are counted from 1"),
        (["--fail", "Error_Destroy"], "PJRT_Error_Destroy returns nothing, so it cannot fail"),
        (["--fail", "a b"], "FUNCTION[:N][=CODE] was expected"),
        (["--hide-extension", "Layout"], "no extension Layout; did you mean Layouts?"),
        (["--delay-events", "nan"], "'nan' is not a duration"),
        (["--delay-events", "inf"], "inf is not in the range"),
        (["--delay-events", "1e300"], "1e+300 is not in the range"),
        (["--delay-events", "-1"], "-1.0 is not in the range"),
        (["--format", "chrome"], "--format chrome needs -o FILE"),
        (["--plugin", "numpy", "--library", "x.so"], "exclude each other"),
    ],
)
def test_wrong_usage_is_refused_before_anything_runs(options: list[str], text: str) -> None:
    found = CliRunner().invoke(command, [*options, "--", "nosuchprogram"])
    assert found.exit_code == 2
    assert text in found.output


def test_commands_that_cannot_run_are_usage_errors(tmp_path: Path) -> None:
    for arguments, text in (
        (["--", "nosuchprogram"], "cannot run nosuchprogram: No such file"),
        (["--library", "nosuch.so", "--", "true"], "--library nosuch.so: there is no such file"),
        (["--plugin", "nosuch", "--", "true"], "--plugin nosuch: there is no such plugin; found:"),
        (["-o", str(tmp_path / "no/file"), "--", "true"], "cannot be written: No such file"),
    ):
        with pytest.raises(click.UsageError) as caught:
            command.main(arguments, standalone_mode=False)
        assert text in str(caught.value)


@preloads_tracer
@pytest.mark.parametrize(
    ("options", "program", "code", "text"),
    [
        (["--check"], "pass", 2, "loaded no PJRT library"),
        (["--check"], "raise SystemExit(7)", 7, "loaded no PJRT library"),
        ([], "pass", 0, "loaded no PJRT library"),
        (["--check"], "LOAD", 2, "no call of the library that the program loaded was seen"),
    ],
)
def test_a_check_that_checked_nothing_fails(
    library: Path, options: list[str], program: str, code: int, text: str
) -> None:
    load = f"import ctypes; ctypes.CDLL({str(library)!r}).GetPjrtApi()"
    ran = subprocess.run(
        [sys.executable, "-m", "plugrt", "trace", *options, "--", sys.executable, "-c",
         load if program == "LOAD" else program],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == code, ran.stderr
    assert text in ran.stderr
    assert ("--check has checked nothing" in ran.stderr) is ("--check" in options)


def test_a_library_keeps_the_name_that_the_environment_gives_it(tmp_path: Path) -> None:
    file = tmp_path / "libpjrt_mine.so"
    file.touch()
    named = {"PJRT_NAMES_AND_LIBRARY_PATHS": f"other:/x.so,chip:{file}"}
    assert select_library(named, file)["JAX_PLATFORMS"] == "chip"
    unnamed = select_library({"PJRT_NAMES_AND_LIBRARY_PATHS": "other:/x.so"}, file)
    assert unnamed["JAX_PLATFORMS"] == "mine"
    assert unnamed["PJRT_NAMES_AND_LIBRARY_PATHS"] == f"mine:{file},other:/x.so"
    assert unnamed["PJRT_LIBRARY_PATH"] == str(file)


FORKING = """
import os, signal
kept = put()
child = os.fork()
if child == 0:
    call("Buffer_Dimensions", buffer=kept.buffer)
    os._exit(0)
os.waitpid(child, 0)
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@preloads_tracer
def test_records_survive_a_kill_and_a_fork_has_its_own(library: Path, tmp_path: Path) -> None:
    ended, document = trace(library, CLIENT + FORKING, tmp_path, "--check")
    assert ended.returncode == document["exit_code"] == 128 + 9
    calls = {
        process["pid"]: [call["function"] for call in process["calls"]]
        for process in document["processes"]
    }
    parent, child = sorted(calls.values(), key=len, reverse=True)
    assert parent[-1] == "Client_BufferFromHostBuffer"
    assert child == ["Buffer_Dimensions"]
    assert "ended without exit handlers" in ended.stderr


def test_a_call_that_did_not_return_is_named() -> None:
    process = Process()
    process.add({"begin": 1, "function": "Event_Await", "thread": 2, "time": 0})
    process.add({"begin": 2, "function": "Client_Compile", "thread": 3, "time": 0})
    process.add({"call": 1, "function": "Event_Await", "thread": 2, "time": 0, "ns": 5, "in": {}})
    assert list(process.unfinished) == [2]
    assert "Not returned: Client_Compile." in " ".join(summary(process, 80, checked=False))
    assert process.functions["Event_Await"].total == 5


FAULTS_OF_THE_LIBRARY = """
static PJRT_Error* lookup(struct PJRT_Client_LookupDevice_Args* a) { a->device = 0; return 0; }
static PJRT_Error* memories(struct PJRT_Client_AddressableMemories_Args* a) {
  a->addressable_memories = 0; a->num_addressable_memories = 2; return 0;
}
static PJRT_Error* process(struct PJRT_Client_ProcessIndex_Args* a) { return fail(99, "strange"); }
static PJRT_Error* platform(struct PJRT_Client_PlatformVersion_Args* a) {
  a->struct_size = 7; a->platform_version = 0; a->platform_version_size = 3; return 0;
}
static int event;
static PJRT_Error* create(struct PJRT_Event_Create_Args* a) {
  a->event = (PJRT_Event*)&event; return 0;
}
static PJRT_Error* on_ready(struct PJRT_Event_OnReady_Args* a) {
  a->callback(0, a->user_arg); a->callback(0, a->user_arg); return 0;
}
"""
CALLS = """
client = call("Client_Create")[0].client
for name in ("Client_LookupDevice", "Client_AddressableMemories", "Client_ProcessIndex",
             "Client_PlatformVersion"):
    error = call(name, client=client)[1]
    if error:
        call("Error_Destroy", error=error)
times = []
@ffi.callback("void(PJRT_Error*, void*)")
def is_ready(error, user_arg):
    times.append(1)
call("Event_OnReady", event=call("Event_Create")[0].event, callback=is_ready)
assert times == [1], "the host has no second call"
"""


@needs_cc
@preloads_tracer
def test_the_faults_of_a_library_are_the_librarys(tmp_path: Path) -> None:
    slots = {
        "Client_LookupDevice": "lookup", "Client_AddressableMemories": "memories",
        "Client_ProcessIndex": "process", "Client_PlatformVersion": "platform",
        "Event_Create": "create", "Event_OnReady": "on_ready",
    }  # fmt: skip
    customize = " ".join(f"api.{slot} = {name};" for slot, name in slots.items())
    path = tiny_library(tmp_path, customize, FAULTS_OF_THE_LIBRARY)
    ended, document = trace(path, CALLS, tmp_path, "--check")
    assert ended.returncode == 1, ended.stderr
    found = [kind for kind in kinds(document) if kind[0] == "library"]
    assert found == [
        ("library", "NULL result", "Client_LookupDevice"),
        ("library", "NULL result", "Client_AddressableMemories"),
        ("library", "error code", "Client_ProcessIndex"),
        ("library", "NULL result", "Client_PlatformVersion"),
        ("library", "struct size", "Client_PlatformVersion"),
        ("library", "callback", "Event_OnReady"),
    ]


NEWER = r"""
#undef GetPjrtApi
typedef struct { PJRT_Extension_Base base; PJRT_Error* (*ask)(void*); } Unknown;
static PJRT_Error* ask(void* args) { return fail(5, "an extension that nobody declared"); }
static Unknown unknown = {{sizeof unknown, 4242, 0}, ask};
static int made;
struct make_args { size_t struct_size; void* next; PJRT_Buffer* buffer; };
static PJRT_Error* make(struct make_args* a) { a->buffer = (PJRT_Buffer*)&made; return 0; }
static PJRT_Error* drop(struct PJRT_Buffer_Destroy_Args* a) { made = 7; return 0; }
static PJRT_Error* is_dropped(void* args) { return made == 7 ? fail(6, "dropped") : 0; }
static struct { PJRT_Api api; void* newer[2]; } longer;
const PJRT_Api* GetPjrtApi(void) {
  longer.api = *short_table();
  longer.api.struct_size = sizeof longer;
  longer.api.pjrt_api_version.minor_version = 999;
  longer.api.extension_start = &unknown.base;
  longer.api.Buffer_Destroy = drop;
  longer.newer[0] = make; longer.newer[1] = is_dropped;
  return &longer.api;
}
"""
CALLS_OF_NEWER = """
call("Client_Create")
table = ffi.cast("char*", library.api)
def newer(number, *words):
    "Calls a function that the declarations do not have; returns its arguments, and the error."
    args = ffi.new("size_t[]", [8 * (2 + len(words)), 0, *words])
    slot = ffi.cast("void**", table + ffi.sizeof("PJRT_Api"))[number]
    return args, ffi.cast("PJRT_Error* (*)(void*)", slot)(args)

args, error = newer(0, 0)
assert not error
assert not call("Buffer_Destroy", buffer=ffi.cast("PJRT_Buffer*", args[2]))[1]
error = newer(1)[1]
assert call("Error_GetCode", error=error)[0].code == 6
call("Error_Destroy", error=error)
extension = library.api.extension_start
assert (extension.type, extension.struct_size) == (4242, 32)
ask = ffi.cast("PJRT_Error* (**)(void*)", ffi.cast("char*", extension) + 24)[0]
error = ask(ffi.new("size_t[]", [16, 0]))
assert call("Error_GetCode", error=error)[0].code == 5
call("Error_Destroy", error=error)
"""


@needs_cc
@preloads_tracer
def test_newer_functions_and_extensions_pass_through(tmp_path: Path) -> None:
    """Two slots behind the last one, an extension of an unknown type, and their results."""
    path = tiny_library(tmp_path, "", NEWER, "-DGetPjrtApi=short_table")
    ended, document = trace(path, CALLS_OF_NEWER, tmp_path, "--check")
    [process] = document["processes"]
    assert [f for f in process["findings"] if f["kind"] != "leak"] == []  # the client is left
    [library] = process["libraries"]
    assert (library["version"], library["extensions"]) == ([0, 999], ["4242"])
    [note] = process["notes"]
    assert "2 functions of" in note
    assert "newer than what plugrt-sdk knows" in note
    assert process["functions"]["Error_GetCode"]["calls"] == 2
    assert ended.returncode == 1, ended.stderr


HOST_IN_C = r"""
#include <dlfcn.h>
#include <stdio.h>
#include "pjrt.h"
int main(int count, char** words) {
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  const PJRT_Api* api = ((const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi"))();
  struct PJRT_Client_Create_Args create = {sizeof create};
  PJRT_Error* error = api->Client_Create(&create);
  struct PJRT_Error_Message_Args message = {sizeof message, NULL, error};
  struct PJRT_Error_Destroy_Args release = {sizeof release, NULL, error};
  struct PJRT_Client_Destroy_Args destroy = {sizeof destroy, NULL, create.client};
  if (error == NULL) {
    for (int i = 2; i < count; i++) api->Client_Destroy(&destroy);
  } else {
    api->Error_Message(&message);
    printf("%.*s\n", (int)message.message_size, message.message);
    if (count > 2) api->Error_Destroy(&release);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def host_in_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    host = folder / "host"
    (folder / "host.c").write_text(HOST_IN_C)
    include = Path(__file__).parents[3] / "plugin_sdk/core"
    compiler = ["cc", f"-I{include}", "-o", str(host), str(folder / "host.c"), "-ldl"]
    subprocess.run(compiler, check=True)
    return host


def trace_c(host: Path, folder: Path, *words: str) -> tuple[int, str, dict[str, Any]]:
    """Runs a host in C under ``plugrt trace``; returns its exit code, output and process."""
    target = folder / "trace.json"
    command = [sys.executable, "-m", "plugrt", "trace", "--check", "--format", "json"]
    ended = subprocess.run(
        [*command, "-o", str(target), "--", str(host), *words],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    [process] = json.loads(target.read_text())["processes"]
    return ended.returncode, ended.stdout, process


@preloads_tracer
@needs_cc
@pytest.mark.parametrize(
    ("times", "found"), [(0, [("host", "leak")]), (1, []), (2, [("host", "double destroy")])]
)
def test_a_host_in_c_needs_no_python(
    host_in_c: Path, times: int, found: list[tuple[str, str]], tmp_path: Path
) -> None:
    path = tiny_library(tmp_path, "")
    code, _, process = trace_c(host_in_c, tmp_path, str(path), *["destroy"] * times)
    assert [(f["whose"], f["kind"]) for f in process["findings"]] == found
    assert code == bool(found)
    assert process["functions"]["Client_Create"]["calls"] == 1


@preloads_tracer
@needs_cc
@pytest.mark.parametrize("frees", [True, False])
def test_a_host_in_c_on_a_plugin_in_python(
    host_in_c: Path, library: Path, frees: bool, tmp_path: Path
) -> None:
    """The process has no interpreter, so the plugin returns an error, which the host must free."""
    code, printed, process = trace_c(host_in_c, tmp_path, str(library), *["free"] * frees)
    assert "Python" in printed
    assert [f["kind"] for f in process["findings"]] == ([] if frees else ["unfreed error"])
    assert code == (not frees)


BY_ENVIRONMENT = """
import plugrt_sdk.tracing as tracing
from plugrt.capi import library_in
from plugrt_sdk.export import export_capsule
def make(**options):
    raise ValueError("no client")
exported = library_in(export_capsule(make), "exported")
assert not exported.slots["Plugin_Initialize"](new_struct("struct PJRT_Plugin_Initialize_Args"))
call("Client_Create")
capsule = tracing.wrap_capsule(export_capsule(make), "again")
assert tracing.wrap_capsule(capsule, "again") is not capsule
"""


def test_the_environment_alone_suffices(library: Path, tmp_path: Path) -> None:
    """The tracer as the plugin's library, and around a capsule: nothing is preloaded."""
    environ = {
        **os.environ, "PLUGRT_TRACE_FOLDER": str(tmp_path), "PLUGRT_TRACE_LIBRARY": str(library),
        "PLUGRT_TRACE_CHECK": "1",
    }  # fmt: skip
    script = HOST + BY_ENVIRONMENT
    ended = subprocess.run(
        [sys.executable, "-c", script, str(library_path())],
        env=environ, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    process = Process()
    for _, record in Folder(tmp_path).new_records():
        process.add(record)
    names = [Path(found["library"]).name for found in process.libraries]
    assert names == ["numpy (export_capsule)", *["a plugin (export_capsule)"] * 2]
    assert process.functions["Plugin_Initialize"].calls == 2
    assert process.functions["Client_Create"].calls == 1


def test_lines_fit_80_columns_and_show_handles_without_addresses() -> None:
    lines = Lines(0, 80)
    record = {
        "call": 1, "function": "Layouts_Executable_GetParameterLayouts", "thread": 7,
        "time": 12_345_678, "ns": 1234, "in": {"executable": "Executable#12@0x7f"},
        "out": {"layouts": [f"Layouts_MemoryLayout#{i}@0x7f" for i in range(9)], "ok": True},
    }  # fmt: skip
    shown = list(lines.lines(record))
    assert max(map(len, shown)) <= 80
    assert shown[0].startswith("   12.346 1.23 µs T1  Layouts_Executable_GetParameterLayouts(")
    assert "@0x" not in "".join(shown)
    assert "".join(line.strip() for line in shown).endswith("ok=true")
    failed = {**record, "error": "Error#1@0x1", "code": 5, "message": "not\nhere"}
    assert list(lines.lines(failed))[-1].endswith("NOT_FOUND: not here")


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1000, "1 µs"), (99_940, "99.9 µs"), (123_456_000, "123 ms"),
     (2_500_000_000, "2.5 s")],
)  # fmt: skip
def test_durations(nanoseconds: int, text: str) -> None:
    assert show_duration(nanoseconds) == text


GET_TABLE = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).GetPjrtApi()"


@pytest.mark.parametrize(
    ("setting", "values", "expected"),
    [("DELAY_EVENTS", ("nan", "inf", "-1", "1e300", "5 ms", "x"),
      "a number of milliseconds, at most an hour"),
     ("REPORT_MINOR", ("-1", "9x", "99999999999"), "a minor version"),
     ("FAIL", ("Client_Compile", "Client_Compile:1", "Client_Compile:1=0", "Client_Compile:1=17",
               "Client_Compil:1=5", "Client_Compile:x=5", "Client_Compile:1=5x",
               "Error_Destroy:1=5"),
      "FUNCTION:N=CODE, with a function that returns an error")],
)  # fmt: skip
def test_settings_of_the_environment_that_mean_nothing_are_told(
    tmp_path: Path, setting: str, values: tuple[str, ...], expected: str
) -> None:
    for value in (*values, {"DELAY_EVENTS": "3600000", "REPORT_MINOR": "90"}.get(setting, "")):
        given = {"PLUGRT_TRACE_FOLDER": str(tmp_path), f"PLUGRT_TRACE_{setting}": value}
        ended = subprocess.run(
            [sys.executable, "-S", "-c", GET_TABLE, str(library_path())],
            env={**os.environ, **given, "PLUGRT_TRACE_LIBRARY": "/nosuch.so"},
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        told = f"plugrt trace: PLUGRT_TRACE_{setting}: {value} is not {expected}"
        assert ended.stderr.startswith(told) == (value in values), ended.stderr
