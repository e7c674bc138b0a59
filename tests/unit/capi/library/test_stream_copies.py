"""Python functions that programs of a real library call through copies, which a plugin makes.

The library computes in host memory and its calls have no stream: the test provides both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.capi import Library, create_client
from plugrt.capi.devices import capabilities
from plugrt.capi.extensions import ffi_staging
from plugrt.errors import FailedPrecondition, Internal, NotFound, Unavailable, Unimplemented
from plugrt.interface import Client, CompileOptions, Program
from support.made_up_copies import MadeUpCopies
from support.xla_cpu import program, run_python

STREAM = 77
_numbers = itertools.count()


@pytest.fixture
def copies() -> MadeUpCopies:
    return MadeUpCopies()


@pytest.fixture
def copying(
    library: Library, copies: MadeUpCopies, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    """A client of a plugin with copies, and of a library whose calls have a stream."""
    monkeypatch.setattr(ffi_staging, "_stream_of", lambda frame: STREAM)
    made = create_client(library, {"cpu_device_count": 1}, name="copying", copies=copies)
    yield made
    made.close()


def calling(client: Client, handler: Any, kind: str) -> Any:
    """Returns a loaded program with an argument and a result of a type, which calls a handler."""
    name = f"plugrt_staged_{next(_numbers)}"
    client.register_handler(name, handler)
    call = f"stablehlo.custom_call @{name}(%a) {{api_version = 4 : i32}}"
    body = f"%0 = {call} : (tensor<{kind}>) -> tensor<{kind}> return %0 : tensor<{kind}>"
    text = program(body, f"%a: tensor<{kind}>", f"tensor<{kind}>")
    return client.compile(text, CompileOptions())


def run(client: Client, loaded: Any, array: Any) -> Any:
    buffer = client.buffer_from_host(array, client.devices()[0])
    return loaded.execute([(buffer,)])[0][0].to_host()


def _same(arguments: Any, results: Any, attributes: Any) -> None:
    results[0][...] = arguments[0]


@pytest.mark.parametrize(
    ("kind", "dtype", "shape"),
    [
        ("2x3xf32", np.float32, (2, 3)), ("f32", np.float32, ()), ("0x2xf32", np.float32, (0, 2)),
        ("5xi1", np.bool_, (5,)), ("3x3xi4", ml_dtypes.int4, (3, 3)),
        ("4xui4", ml_dtypes.uint4, (4,)),
        ("7xbf16", ml_dtypes.bfloat16, (7,)), ("3xcomplex<f32>", np.complex64, (3,)),
        ("2xi64", np.int64, (2,)),
    ],
)  # fmt: skip
def test_elements_go_there_and_back(
    copying: Client, copies: MadeUpCopies, kind: str, dtype: Any, shape: tuple[int, ...]
) -> None:
    array = (np.arange(int(np.prod(shape))) % 2).astype(dtype).reshape(shape)
    result = run(copying, calling(copying, _same, kind), array)
    assert (result.shape, result.dtype) == (shape, np.dtype(dtype))
    np.testing.assert_array_equal(result.astype(np.complex64), array.astype(np.complex64))
    # XLA makes no call for empty results.
    expected = ["copy_to_host", "wait", "copy_to_device", "wait"] if array.size else []
    assert copies.names == expected


def test_failures_are_the_errors_of_launches(copying: Client, copies: MadeUpCopies) -> None:
    def refuse(arguments: Any, results: Any, attributes: Any) -> None:
        raise NotFound("no such table")

    with pytest.raises(NotFound, match="no such table"):
        run(copying, calling(copying, refuse, "2xf32"), np.zeros(2, np.float32))
    loaded = calling(copying, _same, "2xf32")
    for method in ("copy_to_host", "copy_to_device"):
        copies.failures = {method: Unavailable(f"{method}: the device is lost")}
        with pytest.raises(Unavailable, match=f"{method}: the device is lost"):
            run(copying, loaded, np.zeros(2, np.float32))
    copies.failures = {}
    assert run(copying, loaded, np.ones(2, np.float32)).tolist() == [1, 1]


def test_a_library_whose_calls_have_no_stream(library: Library) -> None:
    client = create_client(library, {}, name="streamless", copies=MadeUpCopies())
    with pytest.raises(Internal, match=r"gives no stream .*XLA_FFI_Stream_Get: "):
        run(client, calling(client, _same, "2xf32"), np.zeros(2, np.float32))
    client.close()


class TestDeviceMemory:
    """A library that does not declare that the host can address its arrays."""

    @pytest.fixture(autouse=True)
    def elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(capabilities, "_host_memory", lambda client: (False, False, False))

    def test_python_functions_are_refused(self, own_client: Client) -> None:
        assert own_client.capabilities.custom_calls
        assert not own_client.capabilities.host_callbacks
        with pytest.raises(Unimplemented, match=r"'own' .*'double': .*Fix: .*stream_copies"):
            own_client.register_handler("double", _same)
        callback = NumberedCallback(lambda x: [x], "f", has_effect=False)
        text = program("return %a : tensor<f32>", "%a: tensor<f32>", "tensor<f32>")
        calling_python = Program(text.code, callbacks={callback.number: callback})
        with pytest.raises(Unimplemented, match="a program that calls Python functions"):
            own_client.compile(calling_python, CompileOptions())

    def test_c_functions_are_not(self, own_client: Client) -> None:
        from plugrt.capi.extensions.ffi import address_of, make_c_handler

        handler = make_c_handler("in_c", _same)
        loaded = calling(own_client, address_of(handler), "2xf32")
        assert run(own_client, loaded, np.float32([3, 4])).tolist() == [3, 4]

    def test_with_copies_they_are_called(self, copying: Client, copies: MadeUpCopies) -> None:
        assert copying.capabilities.host_callbacks
        result = run(copying, calling(copying, _same, "2xf32"), np.ones(2, np.float32))
        assert result.tolist() == [1, 1]
        assert copies.calls[0] == ("copy_to_host", 8, STREAM)


CALLBACKS = """
import os, sys
sys.path.insert(0, os.environ["TESTS"])
import ml_dtypes, numpy as np, plugrt
from plugrt import array_api as xp, lax
from plugrt.capi.extensions import ffi_staging
from plugrt.plugins import LibraryPlugin, register
from support.made_up_copies import MadeUpCopies

ffi_staging._stream_of = lambda frame: 7
copies = MadeUpCopies()

class Copying(LibraryPlugin):
    def stream_copies(self):
        return copies

register(Copying("copying", os.environ["PATH_OF_LIBRARY"], priority=900))
assert plugrt.default_backend() == "cpu", plugrt.default_backend()
assert plugrt.get_backend().name == "copying"

def of(shape, dtype="float32"):
    return plugrt.ShapeDtypeStruct(shape, dtype)

x = np.arange(6, dtype=np.float32).reshape(2, 3)
f = plugrt.jit(lambda x: plugrt.pure_callback(np.sin, of((2, 3)), x.T.T) * 2)
assert (np.asarray(f(x)) == np.sin(x) * 2).all()
assert copies.names == ["copy_to_host", "wait", "copy_to_device", "wait"], copies.names
both = plugrt.jit(lambda a, b, e: plugrt.pure_callback(
    lambda a, b, e: (a + 1, b * 2, e), (of(()), of((3,), "bfloat16"), of((0,))), a, b, e))
a, b, e = both(np.float32(2), np.ones(3, ml_dtypes.bfloat16), np.zeros(0, np.float32))
assert (float(a), np.asarray(b).tolist(), np.asarray(e).shape) == (3, [2, 2, 2], (0,))

lines = []
def step(i, total):
    plugrt.io_callback(lambda i: lines.append(int(i)), None, i, ordered=True)
    return total + i
count = plugrt.jit(lambda n: lax.fori_loop(0, 4, step, n))
assert int(count(np.int32(0))) == 6
plugrt.effects_barrier()
assert lines == [0, 1, 2, 3], lines
plugrt.jit(lambda x: plugrt.debug.print("x is {}", x))(np.int32(5))
plugrt.jit(lambda x: plugrt.debug.callback(lambda v: lines.append(v.tolist()), x))(x)
plugrt.effects_barrier()
assert lines[4] == x.tolist()

def refuse(x):
    raise ValueError("no more")
try:
    failing = plugrt.jit(lambda x: plugrt.pure_callback(refuse, of((3,)), x))
    np.asarray(failing(np.ones(3, np.float32)))
except plugrt.errors.Internal as error:
    assert "ValueError: no more" in str(error), error
else:
    raise AssertionError("no error")
print("done", set(copies.names) == {"copy_to_host", "wait", "copy_to_device"})
"""


def test_callbacks_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own: a library has one handler for all callbacks."""
    from support.markdown import ROOT

    monkeypatch.setenv("TESTS", str(ROOT / "tests"))
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    done = run_python(CALLBACKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["x is 5", "done True"]


def test_a_program_that_is_compiled_in_a_function_is_refused(copying: Client) -> None:
    """On a GPU the compiler would wait for ever for the program that calls the Python function."""
    body = "%0 = stablehlo.add %a, %a : tensor<3xf32> return %0 : tensor<3xf32>"
    doubles = program(body, "%a: tensor<3xf32>", "tensor<3xf32>")
    refused: list[str] = []

    def compiles(arguments: Any, results: Any, attributes: Any) -> None:
        with pytest.raises(FailedPrecondition) as caught:
            copying.compile(doubles, CompileOptions())
        refused.append(caught.value.message)
        results[0][...] = arguments[0]

    run(copying, calling(copying, compiles, "3xf32"), np.ones(3, np.float32))
    [message] = refused
    assert "Fix: call or compile it once before" in message
    twice = copying.compile(doubles, CompileOptions())
    assert run(copying, twice, np.ones(3, np.float32)).tolist() == [2, 2, 2]
