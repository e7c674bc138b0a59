"""Invalid tables and devices of libraries.

`tests/pjrt/capi/test_broken_libraries.py` has functions with wrong answers.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.capi import create_client, library_at, load_library
from plugrt.capi.abi import declarations
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi._handles import HANDLES
from plugrt.capi.abi.generate import HANDLES_TARGET, handles_module
from plugrt.capi.abi.process_map import AddressMap, is_memory, read_memory
from plugrt.errors import InvalidReply, PjrtError, PluginBroken, PlugrtError, Unimplemented
from plugrt.interface import CompileOptions, Program
from support.clib import needs_cc, tiny_library

pytestmark = needs_cc

SLOTS = [entry.name for entry in declarations.functions()]
NEEDED = {
    "Plugin_Initialize", "Client_Create", "Client_PlatformName", "Client_Devices",
    "Device_GetDescription", "Device_IsAddressable", "DeviceDescription_Id",
    "DeviceDescription_ProcessIndex",
}  # fmt: skip
"""The functions without which there is no client."""


def function(name: str, body: str) -> str:
    """Returns the C text of a function that replaces PJRT_<name>."""
    return f"static PJRT_Error* f(struct PJRT_{name}_Args* a) {{ {body} return 0; }}"


def broken(folder: Path, name: str, body: str, *flags: str) -> Path:
    """Returns a tiny library whose function of that name has the C text ``body``."""
    return tiny_library(folder, f"api.{name}=f;", function(name, body), *flags)


def test_the_table_of_handles_is_made_from_the_declarations() -> None:
    assert HANDLES_TARGET.read_text() == handles_module()
    assert HANDLES["PJRT_Client_Create_Args"] == ("client",)
    assert set(HANDLES["PJRT_Client_BufferFromHostBuffer_Args"]) == {
        "buffer", "done_with_host_buffer",
    }  # fmt: skip


class TestSlots:
    """Each slot of the function table in turn: NULL, or the address of data."""

    @pytest.fixture(scope="class")
    @staticmethod
    def table(tmp_path_factory: pytest.TempPathFactory) -> bytes:
        library = load_library(tiny_library(tmp_path_factory.mktemp("tiny")))
        return bytes(ffi.buffer(library.api, library.api.struct_size))

    def _with(self, table: bytes, slot: str, address: int) -> object:
        api = ffi.new("PJRT_Api*")
        ffi.memmove(api, table, len(table))
        setattr(api, slot, ffi.cast(ffi.typeof(getattr(api, slot)), address))
        return api

    @pytest.mark.parametrize("slot", SLOTS)
    def test_data_for_code(self, table: bytes, slot: str) -> None:
        data = np.zeros(64, np.uint8)
        api = self._with(table, slot, data.ctypes.data)
        with pytest.raises(PluginBroken, match=f"lib: .*PJRT_{slot} is at 0x.*no code to run"):
            library_at(int(ffi.cast("uintptr_t", api)), "lib: ")

    @pytest.mark.parametrize("slot", SLOTS)
    def test_null(self, table: bytes, slot: str) -> None:
        api = self._with(table, slot, 0)
        library = library_at(int(ffi.cast("uintptr_t", api)), "lib")
        wanted = slot in NEEDED
        refused = pytest.raises(Unimplemented, match=f"PJRT_{slot} is not implemented by lib")
        with refused if wanted else contextlib.nullcontext():
            create_client(library, {}, name="tiny").close()


class TestDevices:
    """Lists of devices that make it impossible to create a client, or to use it."""

    @pytest.mark.parametrize(
        ("name", "body", "error", "message"),
        [
            ("DeviceDescription_Id", "a->id = 0;", PluginBroken,
             "two devices with the id 0: 'tiny' and"),
            # Earlier, a client was created whose devices accept no arrays.
            ("Device_IsAddressable", "a->is_addressable = 0;", PluginBroken,
             r"process 0.*none of its \d+ devices \[0"),
            ("Client_Devices", "pointers[1] = pointers[0]; a->devices = pointers;",
             PlugrtError, "one device twice"),
            *(
                ("Client_Devices", body, InvalidReply, f"PJRT_Client_Devices reported .*{message}")
                for body, message in [
                    ("a->num_devices = 4; a->devices = 0;", "gave no devices"),
                    ("pointers[1] = 0; a->devices = pointers;", r"devices\[1\] of 2"),
                    ("a->devices = pointers; a->num_devices = ~0ul;", "not memory of this process"),
                    ("a->devices = pointers; a->num_devices = 1ul << 40;", "not memory of this"),
                    ("a->devices = (void*)0x10; a->num_devices = 1;", "at 0x10 are not memory"),
                ]
            ),
        ],
    )  # fmt: skip
    def test_no_client_is_made(
        self, tmp_path: Path, name: str, body: str, error: type[Exception], message: str
    ) -> None:
        two = "a->num_devices = 2; " if name == "Client_Devices" else ""
        path = broken(tmp_path, name, two + body, "-DDEVICES=2")
        with pytest.raises(error, match=f"{path}.*{message}"):
            create_client(path, {}, name="tiny")

    def test_a_device_of_nobody(self, tmp_path: Path) -> None:
        path = broken(
            tmp_path, "Client_LookupAddressableDevice", "a->addressable_device = (void*)&api;"
        )
        client = create_client(path, {}, name="tiny")
        with pytest.raises(InvalidReply, match=f"{path}.*none of the client's devices"):
            client.lookup_local_device(0)
        with pytest.raises(PjrtError, match="takes no 1099511627776 as local_hardware_id"):
            client.lookup_local_device(1 << 40)

    def test_a_bool_that_is_neither(self, tmp_path: Path) -> None:
        path = broken(tmp_path, "Device_IsAddressable", "a->is_addressable = 255;")
        assert create_client(path, {}, name="tiny").devices()[0].is_addressable


def _run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Runs code whose backend is the library at ``path``."""
    env = {
        **os.environ,
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"tiny:{path}",
        "JAX_PLATFORMS": "tiny",
        "PATH_OF_LIBRARY": str(path),
    }
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, env=env, timeout=60, check=False,
    )  # fmt: skip


class TestStrings:
    """Names at invalid addresses and with invalid sizes."""

    @pytest.mark.parametrize(
        ("body", "found"),
        [
            ("a->platform_name = 0; a->platform_name_size = 9;", "no platform_name .NULL."),
            ("a->platform_name = \"tiny\"; a->platform_name_size = 0;", "name is ''"),
            ("a->platform_name = \"a\\n\"; a->platform_name_size = 2;", r"name is 'a\\n'"),
        ],
    )  # fmt: skip
    def test_no_names(self, tmp_path: Path, body: str, found: str) -> None:
        path = broken(tmp_path, "Client_PlatformName", body)
        with pytest.raises(InvalidReply, match=found):
            create_client(path, {}, name="tiny")

    @pytest.mark.parametrize("byte", ["ff", "1b", "00"])
    def test_unprintable_bytes_are_escaped(self, tmp_path: Path, byte: str) -> None:
        body = f'a->platform_name = "a\\x{byte}"; a->platform_name_size = 2;'
        path = broken(tmp_path, "Client_PlatformName", body)
        assert create_client(path, {}, name="tiny").platform == rf"a\x{byte}"

    def test_wild_ones(self, tmp_path: Path) -> None:
        body = "a->platform_name = pointer; a->platform_name_size = size;"
        functions = "char* pointer; size_t size;" + function("Client_PlatformName", body)
        path = tiny_library(tmp_path, "api.Client_PlatformName=f;", functions)
        pointer, size = (
            ctypes.c_size_t.in_dll(ctypes.CDLL(str(path)), n) for n in ("pointer", "size")
        )
        text = ctypes.create_string_buffer(b"tiny")
        for address, length in itertools.product(
            (ctypes.addressof(text), 1, 2**64 - 1), (2**64 - 1, 1 << 62, 1 << 40, 2**64 - 8)
        ):
            pointer.value, size.value = address, length
            with pytest.raises(InvalidReply, match=f"{path}.*platform_name cannot be read"):
                create_client(path, {}, name="tiny")

    def test_memory(self) -> None:
        room = np.arange(100, dtype=np.uint8)
        assert read_memory(room.ctypes.data, 100) == room.tobytes()
        assert is_memory(room.ctypes.data, 100)
        assert not is_memory(room.ctypes.data, 1 << 46)
        assert not is_memory(0, 1)
        assert not is_memory(room.ctypes.data, 0)
        with pytest.raises(InvalidReply, match="not memory of this process"):
            read_memory(0x1000, 1)

    def test_memory_of_a_forked_child_is_its_own(self) -> None:
        code = """
import os, numpy as np
from plugrt.capi.abi.process_map import read_memory
room = np.zeros(8, np.uint8)
if not (child := os.fork()):
    room[:] = 7
    os._exit(read_memory(room.ctypes.data, 8)[0])
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), read_memory(room.ctypes.data, 8)[0])
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "7 0\n", done.stderr


QUIET = """
import gc, os
from plugrt.capi import create_client
from plugrt.capi.library.events import Event
path = os.environ["PATH_OF_LIBRARY"]
client = create_client(path, {}, name="tiny")
event = client.library.call("Event_Create").event
held = Event(client.handle(), event)
told = []
held.on_ready(told.append)
print(told)
held = client = None
gc.collect()
client = create_client(path, {}, name="tiny")
"""

EVENTS = """
static PJRT_Error* make(struct PJRT_Event_Create_Args* a) { a->event = (void*)&client; return 0; }
static PJRT_Error* twice(struct PJRT_Event_OnReady_Args* a) {
  a->callback(0, (void*)0x1234);
  a->callback(0, a->user_arg);
  a->callback(0, a->user_arg);
  return 0;
}
static PJRT_Error* refuse(void* a) { return fail(13, "broken on purpose"); }
"""
START = "api.Event_Create=make; api.Event_OnReady=twice;"


@pytest.mark.parametrize(
    "destructors",
    [
        "api.Event_Destroy=(void*)refuse;",
        "api.Event_Destroy=(void*)refuse; api.Client_Destroy=(void*)refuse;",
        "api.Event_Destroy=0; api.Client_Destroy=0;",
        "api.Event_Destroy=0; api.Client_Destroy=(void*)refuse; api.Error_Destroy=0;",
        "api.Client_Destroy=(void*)refuse; api.Error_GetCode=(void*)refuse;",
        "api.Client_Destroy=(void*)refuse; api.Error_Message=0; api.Error_GetCode=0;",
    ],
)
def test_errors_of_finalisers_are_not_printed(tmp_path: Path, destructors: str) -> None:
    done = _run(QUIET, tiny_library(tmp_path, START + destructors, EVENTS))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[None]\n", "")


def test_errors_of_finalisers_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tiny_library(tmp_path, "api.Client_Destroy=(void*)refuse;", EVENTS)
    with caplog.at_level("DEBUG", "plugrt.capi"):
        client = create_client(path, {}, name="tiny")
        client.close()
        del client
        __import__("gc").collect()
    assert f"{path}" in caplog.text
    assert "PJRT_Client_Destroy failed: INTERNAL: broken on purpose" in caplog.text


@pytest.mark.parametrize("address", ["1", "0x10", "-1"])
def test_an_error_that_is_no_memory(tmp_path: Path, address: str) -> None:
    returns = f"static void* f(void* a) {{ return (void*){address}; }}"
    path = tiny_library(tmp_path, "api.Client_Create=(void*)f;", returns)
    with pytest.raises(PjrtError, match=f"{path}.*reported an error at 0x"):
        create_client(path, {}, name="tiny")


def test_an_error_about_an_error_that_is_no_memory(tmp_path: Path) -> None:
    functions = """
    static PJRT_Error* create(void* a) { return fail(14, "no card"); }
    static PJRT_Error* code(void* a) { return (void*)0x10; }"""
    setup = "api.Client_Create=(void*)create; api.Error_GetCode=(void*)code;"
    with pytest.raises(PjrtError, match="UNKNOWN: no card"):
        create_client(tiny_library(tmp_path, setup, functions), {}, name="tiny")


@pytest.mark.skipif(not AddressMap().is_known, reason="no /proc here")
def test_memory_is_read_where_other_code_closed_or_replaced_the_file_of_it() -> None:
    def own() -> int:
        """Returns the C API's descriptor of this process's memory."""
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{name}") == f"/proc/{os.getpid()}/mem":
                    return int(name)
        raise AssertionError("it is not open")

    room = np.arange(100, dtype=np.uint8)
    os.close(own())
    assert read_memory(room.ctypes.data, 100) == room.tobytes()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, taken := own())
    assert read_memory(room.ctypes.data, 100) == room.tobytes()
    assert os.fstat(taken).st_ino == os.fstat(nothing).st_ino, "another file was closed"
    os.close(nothing)
    os.close(taken)


def test_the_start_of_a_text_of_100_mb_is_kept(tmp_path: Path) -> None:
    """Texts of errors are copied several times: with one of this size, compiling needed minutes."""
    functions = """
    static char said[100000000];
    static PJRT_Error* create(void* a) {
      memset(said, 'x', sizeof said - 1);
      return fail(13, said);
    }"""
    with pytest.raises(PjrtError, match=r"x{1000}… 99934463 bytes more") as caught:
        create_client(
            tiny_library(tmp_path, "api.Client_Create=(void*)create;", functions), {}, name="t"
        )
    assert len(str(caught.value)) < 70_000


LEAVES = """
int PyGILState_Ensure(void); void PyGILState_Release(int);
void PyErr_SetString(void*, const char*); extern void *PyExc_KeyError, *PyExc_KeyboardInterrupt;
"""


@pytest.mark.parametrize(
    ("left", "raised", "says"),
    [
        ("KeyError", InvalidReply, r"left a Python exception set: KeyError: 'left'"),
        ("KeyboardInterrupt", KeyboardInterrupt, "left"),
    ],
)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("Client_Create", lambda client: None),
        ("Client_PlatformName", lambda client: client.platform),
        ("Device_MemoryStats", lambda client: client.devices()[0].memory_stats()),
        ("Client_Compile", lambda client: client.compile(Program(b"module {}"), CompileOptions())),
    ],
)
def test_a_python_exception_that_a_library_leaves_is_told(
    name: str, use: Any, left: str, raised: type[BaseException], says: str, tmp_path: Path
) -> None:
    """Earlier, callers got cffi's SystemError, without the names of function and library."""
    body = (
        f'int s = PyGILState_Ensure(); PyErr_SetString(PyExc_{left}, "left"); '
        "PyGILState_Release(s);"
    )
    path = tiny_library(tmp_path, f"api.{name}=f;", LEAVES + function(name, body))
    with pytest.raises(raised, match=says):
        use(create_client(path, {}, name="tiny"))


EXECUTABLE = """
static PJRT_Error* compile(struct PJRT_Client_Compile_Args* a) {
  a->executable = (PJRT_LoadedExecutable*)&client; return 0;
}
static PJRT_Error* unload(struct PJRT_LoadedExecutable_Destroy_Args* a) { return 0; }
static PJRT_Error* destroy(struct PJRT_Executable_Destroy_Args* a) { return 0; }
static PJRT_Error* find(struct PJRT_LoadedExecutable_GetExecutable_Args* a) {
  a->executable = (PJRT_Executable*)&client; return 0;
}
static PJRT_Error* twice(struct PJRT_LoadedExecutable_AddressableDevices_Args* a) {
  static PJRT_Device* both[2]; both[0] = both[1] = pointers[0];
  a->addressable_devices = both; a->num_addressable_devices = 2; return 0;
}
"""
COMPILES = """api.Client_Compile=compile; api.LoadedExecutable_Destroy=unload;
api.Executable_Destroy=destroy; api.LoadedExecutable_GetExecutable=find;
api.LoadedExecutable_AddressableDevices=twice;"""


def test_an_executable_that_names_a_device_twice_is_refused(tmp_path: Path) -> None:
    """Earlier, it compiled, and each launch named two devices instead of one."""
    client = create_client(tiny_library(tmp_path, COMPILES, EXECUTABLE), {}, name="tiny")
    with pytest.raises(InvalidReply, match=r"AddressableDevices reported success, but .* twice"):
        client.compile(Program(b"module {}"), CompileOptions())
