"""A C++ library that throws: its exceptions become errors of Python, and the process continues."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from pjrt.capi.throwing_library import STATIC, THROWN, needs_cxx, throwing_library
from plugrt.capi.loading import exception_guard
from support import children, warm_children
from support.effort import WHOLE
from support.markdown import ROOT
from support.native_core import unsanitized
from support.requirements import needs
from support.xla_cpu import library_path, needs_library

pytestmark = [
    needs(exception_guard.CATCHES, "a core with its part in C++"),
    needs_cxx,
    unsanitized("the sanitizer's runtime replaces what throws"),
]

_PREPARE = """
import ctypes, json, os, sys
what, path = int(sys.argv[1]), sys.argv[2]
control = ctypes.CDLL(path)
import plugrt
from plugrt.capi import load_library
places = list(load_library(path).slots)
def arm(name):
    control.arm(ctypes.c_size_t(places.index(name) if name else len(places)), what)
def attempt(name, action):
    arm(name)
    try:
        action()
        found = None
    except plugrt.errors.PlugrtError as error:
        found = [type(error).__name__, str(error)]
    times = control.times_thrown()
    arm(None)
    return [times, found]
"""

_EACH_FUNCTION = (
    _PREPARE
    + """
from plugrt.capi.loading.function_table import new_struct
library, outcomes = load_library(path), {}
for name in places:
    def call():
        error = library.slots[name](new_struct(f"struct PJRT_{name}_Args", library.sizes))
        if error:
            raise library.take_error(error)
    outcomes[name] = attempt(name, call)
    for _ in range(3 if name == "Client_Create" else 0):
        for _ in range(50):  # more than there are at a time: each is freed
            assert attempt(name, call) == outcomes[name]
print(json.dumps(outcomes))
"""
)

_OTHER_FUNCTIONS = (
    _PREPARE
    + """
from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions import ffi_registration, ffi_staging
from plugrt.capi.extensions.profiler import Profiler
from plugrt.capi.loading.function_table import new_struct
library, outcomes = load_library(path), {}
outcomes["PLUGIN_Profiler_Create"] = attempt(None, lambda: Profiler(library))
control.thrower.restype = ctypes.c_void_p
frame, api = ffi.new("XLA_FFI_CallFrame*"), ffi.new("XLA_FFI_Api*")
frame.api, api.struct_size = api, ffi.sizeof("XLA_FFI_Api")
for name in ("stream_get", "handler_register", "type_register"):
    thrower = ffi.cast("void*", control.thrower())
    setattr(api, name, ffi.cast(ffi.typeof(getattr(api, name)), thrower))
outcomes["XLA_FFI_Stream_Get"] = attempt(None, lambda: ffi_staging._stream_of(frame))
class Found:
    api, version = api, (0, 3)
ffi_registration._ask = lambda *_: Found
for name in ("handler_register", "type_register"):
    call = lambda: ffi_registration._call(library, name, "it", ffi.NULL, "Host")
    outcomes[f"XLA_FFI_{name.title()}"] = attempt(None, call)
print(json.dumps(outcomes))
"""
)

_PROGRAMS = (
    _PREPARE
    + """
import ml_dtypes
import numpy as np
from plugrt.capi import create_client, create_topology
host = np.arange(4, dtype=np.float32)
outcomes = {}
def note(name, action):
    outcomes[name] = attempt(name, action)
note("Client_Create", lambda: create_client(path, {}, name="throwing"))
device, other = plugrt.devices()[:2]
note("Client_BufferFromHostBuffer", lambda: plugrt.device_put(host, device))
array = plugrt.device_put(host, device)
note("Buffer_CopyToDevice", lambda: plugrt.device_put(array, other).block_until_ready())
note("Client_Compile", lambda: plugrt.jit(lambda x: x * 3)(array))
double = plugrt.jit(lambda x: x + x)
for _ in range(3):
    double(array).block_until_ready()
note("LoadedExecutable_Execute", lambda: double(array))
note("Buffer_ReadyEvent", lambda: double(array).block_until_ready())
note("Buffer_UnsafePointer", lambda: np.asarray(double(array)))
small = plugrt.device_put(np.ones(4, ml_dtypes.int4), device)  # not viewed: its numbers are packed
note("Buffer_ToHostBuffer", lambda: np.asarray(small))
note("Buffer_Destroy", lambda: double(array).delete())
low = create_client(path, {}, name="throwing")
note("Client_TopologyDescription", low.topology)
note("Client_DefaultDeviceAssignment", lambda: low.default_device_assignment(1, 1))
note("Event_Destroy", lambda: np.asarray(double(array)))
note("TopologyDescription_Create", lambda: create_topology(load_library(path), "", {}))
note("Error_Message", lambda: create_topology(load_library(path), "no such", {"no": "such"}))
np.testing.assert_array_equal(np.asarray(double(array)), host + host)
print(json.dumps(outcomes))
"""
)


SOME = [*THROWN] if WHOLE else [1, 4]
"""An exception of C++ and one of another runtime: functions are tested with each kind."""


@pytest.fixture(scope="module", params=["shared", "static"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, with the process's C++ runtime or with one of its own."""
    flags = STATIC if request.param == "static" else ()
    return throwing_library(tmp_path_factory.mktemp(request.param), *flags)


def _run(code: str, library: Path, what: int, **environ: str) -> dict[str, tuple[int, list[str]]]:
    env = {**os.environ, **environ}
    arguments = (str(what), str(library))
    done = warm_children.run(code, arguments, env, 120)
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, tuple[int, list[str]]] = json.loads(done.stdout)
    return outcomes


@pytest.mark.parametrize("what", THROWN)
def test_each_function_of_a_table_may_throw(library: Path, what: int) -> None:
    outcomes = _run(_EACH_FUNCTION, library, what)
    assert len(outcomes) > 130
    for name, (times, found) in outcomes.items():
        assert times == 1, name
        if name in ("Error_Destroy", "Error_Message"):
            assert found is None, name  # these return no error: it is logged
        else:
            assert found[0] == "Internal", name
            assert f"PJRT_{name} of {library}" in found[1]
            assert THROWN[what] in found[1]


@pytest.mark.parametrize("what", THROWN)
def test_functions_beside_the_table_may_throw(library: Path, what: int) -> None:
    """The profiler's functions, which have their own functions for errors, and XLA's FFI."""
    outcomes = _run(_OTHER_FUNCTIONS, library, what)
    assert len(outcomes) == 4
    for name, (_, found) in outcomes.items():
        assert f"{name} of " in found[1]
        assert THROWN[what] in found[1]


@needs_library
@pytest.mark.parametrize("what", SOME)
def test_programs_go_on_after_an_exception(library: Path, what: int) -> None:
    outcomes = _run(
        _PROGRAMS,
        library,
        what,
        JAX_PLATFORMS="throwing",
        PJRT_NAMES_AND_LIBRARY_PATHS=f"throwing:{library}",
        PATH_OF_LIBRARY=str(library_path()),
        PLUGRT_CLIENT_CREATE_OPTIONS="throwing:cpu_device_count:2",
        TF_CPP_MIN_LOG_LEVEL="3",
    )
    assert len(outcomes) >= 12
    for name, (times, found) in outcomes.items():
        assert times >= 1, name
        if name in ("Buffer_Destroy", "Event_Destroy"):
            assert found is None, name  # no caller waits for these: they are logged
        elif name == "Error_Message":
            assert found[0] == "Unimplemented", name  # the library's own error
        else:
            assert found[0] == "Internal", name
            assert f"PJRT_{name} of {library}" in found[1]
            assert THROWN[what] in found[1]


@pytest.mark.parametrize("what", THROWN)
def test_a_library_may_throw_where_its_table_is_asked_for(library: Path, what: int) -> None:
    code = """
import json, sys
from plugrt.capi import load_library
from plugrt.errors import PluginBroken
try:
    load_library(sys.argv[2])
except PluginBroken as error:
    print(json.dumps({"": [1, [str(error)]]}))
"""
    [(_, [message])] = _run(code, library, what, THROW_AT_ENTRY=str(what)).values()
    assert f"GetPjrtApi of {library}" in message
    assert THROWN[what] in message


_WRONG_TYPE = """
import os
import numpy as np
import plugrt
from plugrt.capi import create_client, load_library
from plugrt.capi.client import create
create.OPTION_TYPES.clear()  # the check before the call
library = load_library(os.environ["PATH_OF_LIBRARY"])
for _ in range(2):
    try:
        create_client(library, {"cpu_device_count": "two"}, name="xla_cpu")
    except plugrt.errors.Internal as error:
        print(error)
device = create_client(library, {"cpu_device_count": 1}, name="xla_cpu").devices()[0]
print(device.client.buffer_from_host(np.float32([1, 2]), device).to_host())
"""


@needs_library
def test_a_create_option_of_the_wrong_type_raises_an_exception() -> None:
    """Earlier, the process ended here, unlike jaxlib; only this option's type was checked."""
    environ = {**os.environ, "PATH_OF_LIBRARY": str(library_path()), "PLUGRT_CORE": "c"}
    done = children.run([sys.executable, "-c", _WRONG_TYPE], env=environ, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second, values = done.stdout.splitlines()
    assert first == second
    assert "PJRT_Client_Create of" in first
    assert "std::bad_variant_access" in first
    assert values == "[1. 2.]"


_DEVICES = """
import plugrt
try:
    plugrt.devices()
except plugrt.errors.PluginBroken as error:
    print(error)
"""


@pytest.mark.parametrize("what", SOME)
def test_the_trial_finds_what_is_thrown_while_the_library_is_loaded(
    library: Path, what: int, tmp_path: Path
) -> None:
    """Otherwise the exception ends the process, also under a host in C++: see SECURITY.md."""
    environ = {
        "THROW_WHILE_LOADED": str(what),
        "JAX_PLATFORMS": "throwing",
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"throwing:{library}",
        "PLUGRT_CACHE_DIR": str(tmp_path),
    }
    done = warm_children.run(_DEVICES, (), {**os.environ, **environ}, 120)
    assert done.returncode == 0, done.stderr
    assert "was killed by SIGABRT while it was loaded" in done.stdout
    assert "terminate called" in done.stdout
    untried = {**os.environ, **environ, "PLUGRT_PROBE_LIBRARIES": "0"}
    assert warm_children.run(_DEVICES, (), untried, 120).returncode == -signal.SIGABRT


def test_the_type_of_an_exception_of_another_runtime_is_the_memory_before_it() -> None:
    """In libstdc++; a test that fails here shows that a workaround is not needed."""
    command = [sys.executable, ROOT / "docs/findings/foreign_exception.py"]
    done = children.run(command, timeout=60)
    assert done.stdout == "type 0x4141414141414141, foreign\n", done.stderr
