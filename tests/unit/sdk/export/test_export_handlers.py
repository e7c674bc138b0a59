"""The extension FFI of exported plugins: handlers in C and in Python, and their arguments."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.capi import library_in
from plugrt.capi.abi._abi import ffi
from plugrt.capi.extensions.ffi import register_c_handler
from plugrt.errors import (
    AlreadyExists,
    Internal,
    InvalidArgument,
    NotFound,
    PjrtError,
    ResourceExhausted,
    Unimplemented,
)
from plugrt.interface import HOST_CALLBACK, CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import Backend, BackendClient
from support.clib import needs_cc
from support.exported import ONE, Exported, put
from support.late_client import Adder

SOURCE = r"""
#include "xla/ffi/api/c_api.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifndef MINOR
#define MINOR XLA_FFI_API_MINOR
#endif

static XLA_FFI_Error *fail(XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *text) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, text, code};
  return frame->api->XLA_FFI_Error_Create(&args);
}

/* Answers the question for the version as XLA's header for C++ does. */
static int is_question(XLA_FFI_CallFrame *frame) {
  XLA_FFI_Metadata_Extension *asked = (XLA_FFI_Metadata_Extension *)frame->extension_start;
  if (asked == NULL || asked->extension_base.type != XLA_FFI_Extension_Metadata)
    return 0;
  XLA_FFI_Api_Version version = {XLA_FFI_Api_Version_STRUCT_SIZE, NULL, XLA_FFI_API_MAJOR, MINOR};
  asked->metadata->api_version = version;
  return 1;
}

/* y = factor * x + the sum of `added`; it finds its attributes where their order has them. */
XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame) {
  if (frame->struct_size != XLA_FFI_CallFrame_STRUCT_SIZE) /* as the header for C++ does */
    return fail(frame, XLA_FFI_Error_Code_INTERNAL, "a frame of another size");
  if (is_question(frame))
    return NULL;
  XLA_FFI_Array *added = frame->attrs.attrs[0];
  float factor = *(float *)((XLA_FFI_Scalar *)frame->attrs.attrs[1])->value, sum = 0;
  for (size_t i = 0; i < added->size; i++)
    sum += (float)((int64_t *)added->data)[i];
  if (factor < 0)
    return fail(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "the factor is negative");
  XLA_FFI_Buffer *x = frame->args.args[0], *y = frame->rets.rets[0];
  for (int64_t i = 0; i < x->dims[0]; i++)
    ((float *)y->data)[i] = factor * ((float *)x->data)[i] + sum;
  return NULL;
}

/* Writes what the host gave the launch for the type of the attribute `id`, an int. */
XLA_FFI_Error *given(XLA_FFI_CallFrame *frame) {
  if (is_question(frame))
    return NULL;
  XLA_FFI_TypeId id = {*(int64_t *)((XLA_FFI_Scalar *)frame->attrs.attrs[0])->value};
  XLA_FFI_ExecutionContext_Get_Args args = {
      XLA_FFI_ExecutionContext_Get_Args_STRUCT_SIZE, NULL, frame->ctx, &id, NULL};
  XLA_FFI_Error *error = frame->api->XLA_FFI_ExecutionContext_Get(&args);
  if (error == NULL)
    ((float *)((XLA_FFI_Buffer *)frame->rets.rets[0])->data)[0] = (float)*(int *)args.data;
  return error;
}

/* Calls the function that stands at the place `index` of the table, and tells what it says. */
XLA_FFI_Error *call(XLA_FFI_CallFrame *frame) {
  if (is_question(frame))
    return NULL;
  int64_t index = *(int64_t *)((XLA_FFI_Scalar *)frame->attrs.attrs[0])->value;
  XLA_FFI_RunId_Get **functions = (XLA_FFI_RunId_Get **)&frame->api->XLA_FFI_Error_Create;
  XLA_FFI_RunId_Get_Args args = {XLA_FFI_RunId_Get_Args_STRUCT_SIZE, NULL, frame->ctx, 0};
  XLA_FFI_Error *error = functions[index](&args);
  XLA_FFI_Error_GetMessage_Args message = {XLA_FFI_Error_GetMessage_Args_STRUCT_SIZE, NULL, error,
                                           NULL};
  frame->api->XLA_FFI_Error_GetMessage(&message);
  char text[200];
  snprintf(text, sizeof text, "told: %s", message.message);
  XLA_FFI_Error_Destroy_Args destroy = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, NULL, error};
  frame->api->XLA_FFI_Error_Destroy(&destroy);
  return fail(frame, XLA_FFI_Error_Code_ABORTED, text);
}

XLA_FFI_Error *makes_its_own_error(XLA_FFI_CallFrame *frame) {
  return is_question(frame) ? NULL : (XLA_FFI_Error *)frame;
}

int functions(void) {
  size_t size = sizeof(XLA_FFI_Api) - offsetof(XLA_FFI_Api, XLA_FFI_Error_Create);
  return (int)(size / sizeof(void *));
}
"""
_REFUSED = [
    "Handler_Register", "Stream_Get", "Type_Register", "ExecutionContext_Get", "State_Set",
    "State_Get", "DeviceMemory_Allocate", "DeviceMemory_Free", "ThreadPool_Schedule",
    "ThreadPool_NumThreads", "Future_Create", "Future_SetAvailable", "Future_SetError",
    "RunId_Get", "DeviceOrdinal_Get",
]  # fmt: skip
"""The functions of ``XLA_FFI_Api`` after the three for errors, in the header's order."""


SERVED = 3
"""The minor version of XLA's FFI of an exported plugin's frames (docs/export.md)."""


def _compile(folder: Path, *flags: str) -> Any:
    header = Path(plugrt.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    minor = int(header.partition("#define XLA_FFI_API_MINOR ")[2].split()[0])
    if minor > SERVED:  # jaxlib 0.12 has 0.5, with other names of functions
        pytest.skip(f"exports serve handlers of XLA's FFI 0.{SERVED}; jaxlib's header is 0.{minor}")
    (folder / "handlers.c").write_text(SOURCE)
    include = f"-I{plugrt.ffi.include_dir()}"
    command = ["cc", "-shared", "-fPIC", *flags, include, "handlers.c", "-o", "handlers.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "handlers.so"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Handlers in C, compiled against XLA's own header."""
    return _compile(tmp_path_factory.mktemp("handlers"))


@pytest.fixture
def exported() -> Exported:
    return Exported(lambda: BackendClient(NumpyBackend(num_devices=2)))


@pytest.fixture
def client(exported: Exported) -> Iterator[Any]:
    made = exported.client()
    yield made
    made.close()


def address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def program(target: str, attributes: str = "", version: int = 4) -> Program:
    """Returns a program of three floats that calls a target."""
    config = f"{{{attributes}}}" if version == 4 else '"text"'
    return Program(
        f"""func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
          %0 = stablehlo.custom_call @{target}(%a)
            {{api_version = {version} : i32, backend_config = {config}}}
            : (tensor<3xf32>) -> tensor<3xf32>
          return %0 : tensor<3xf32> }}""".encode()
    )


def run(client: Any, target: str, attributes: str = "") -> Any:
    loaded = client.compile(program(target, attributes), CompileOptions())
    [[result]] = loaded.execute([(put(client),)])
    return result.to_host()


def double(arguments: Any, results: Any, attributes: Any) -> None:
    results[0][...] = 2 * arguments[0]


@needs_cc
def test_a_c_handler_gets_arrays_and_attributes(client: Any, library: Any) -> None:
    client.register_handler("scale", address(library.scale))
    found = run(client, "scale", "factor = 2.0 : f32, added = array<i64: 4, 5>")
    np.testing.assert_array_equal(found, 2 * ONE + 9)


@needs_cc
def test_an_error_of_a_c_handler_is_the_launch_s(client: Any, library: Any) -> None:
    client.register_handler("scale", address(library.scale))
    client.register_handler("wild", address(library.makes_its_own_error))
    with pytest.raises(ResourceExhausted) as caught:
        run(client, "scale", "factor = -2.0 : f32, added = array<i64>")
    assert caught.value.message == "the factor is negative"  # without internal frames
    with pytest.raises(Internal, match="an error that XLA_FFI_Error_Create did not make"):
        run(client, "wild")
    found = run(client, "scale", "factor = 3.0 : f32, added = array<i64>")
    np.testing.assert_array_equal(found, 3 * ONE)


@needs_cc
def test_every_function_of_xla_s_table_is_there(client: Any, library: Any) -> None:
    """Handlers may call any function: one without a meaning here returns an error with its name."""
    client.register_handler("call", address(library.call))
    assert library.functions() == 3 + len(_REFUSED)
    for index, name in enumerate(_REFUSED, 3):
        if name in ("ExecutionContext_Get", "RunId_Get"):  # these have results
            continue
        words = f"XLA_FFI_{name} is not implemented for"
        if name in ("Type_Register", "State_Set", "State_Get"):
            words = r"XLA_FFI_\w+ of 32 bytes; \d+ are needed"
        with pytest.raises(PjrtError, match=f"told: {words}"):
            run(client, "call", f"index = {index} : i64")


@needs_cc
def test_a_handler_of_another_version_is_refused(tmp_path: Path) -> None:
    newer = address(_compile(tmp_path, "-DMINOR=99").scale)
    inside = BackendClient(NumpyBackend())
    through: Any = Exported(lambda: BackendClient(NumpyBackend())).client()
    for each in (inside, through):
        with pytest.raises(Unimplemented, match=r"'scale' is compiled for version 0\.99 of XLA's"):
            each.register_handler("scale", newer)
        with pytest.raises(Unimplemented, match="no custom call 'scale'"):
            each.compile(program("scale"), CompileOptions())
        each.close()


def test_a_python_function_and_its_exception(client: Any) -> None:
    def divide(arguments: Any, results: Any, attributes: Any) -> None:
        raise ZeroDivisionError(f"by {attributes['by']}")

    client.register_handler("double", double)
    client.register_handler("divide", divide)
    np.testing.assert_array_equal(run(client, "double"), 2 * ONE)
    with pytest.raises(Internal, match="the handler of 'divide' raised ZeroDivisionError: by 0"):
        run(client, "divide", "by = 0 : i32")


def test_programs_call_python_by_number(client: Any) -> None:
    assert client.capabilities.host_callbacks
    callback = NumberedCallback(lambda a: [a + 1], "the test's function", has_effect=False)
    text = program(HOST_CALLBACK, f"index = {callback.number} : ui64").code
    numbered = Program(text, callbacks={callback.number: callback})
    [[result]] = client.compile(numbered, CompileOptions()).execute([(put(client),)])
    np.testing.assert_array_equal(result.to_host(), ONE + 1)


@pytest.mark.parametrize(
    "written",
    [
        "api_version = 4 : i32, backend_config = {by = 3 : i32}",
        "mhlo.backend_config = {by = 3 : i32}",
    ],
    ids=["as specified", "by JAX"],
)
def test_tokens_order_calls_and_are_not_handed_over(client: Any, written: str) -> None:
    """Handlers get no tokens, also in JAX's form of calls; a first token is an empty array."""
    seen: list[float] = []

    def multiply(arguments: Any, results: Any, attributes: Any) -> None:
        [x], [y] = arguments, results
        seen.append(float(x[0]))
        y[...] = x * attributes["by"]

    client.register_handler("multiply", multiply)
    types = "(!stablehlo.token, tensor<3xf32>)"
    call = f"{{{written}}} : {types} -> {types}"
    text = f"""func.func public @main(%t: !stablehlo.token, %x: tensor<3xf32>) -> {types} {{
      %a:2 = stablehlo.custom_call @multiply(%t, %x) {call}
      %b:2 = stablehlo.custom_call @multiply(%a#0, %a#1) {call}
      return %b#0, %b#1 : !stablehlo.token, tensor<3xf32> }}"""
    loaded = client.compile(Program(text.encode()), CompileOptions())
    [_, [result]] = loaded.execute([(put(client, np.zeros(0, np.bool_)),), (put(client),)])
    np.testing.assert_array_equal(result.to_host(), 9 * ONE)
    assert seen == [1, 3]


def test_attributes_of_every_kind_are_read_or_refused(client: Any) -> None:
    seen: list[Any] = []
    client.register_handler("see", lambda x, y, named: seen.append(named))
    run(
        client,
        "see",
        """b = dense<[true, false]> : tensor<2xi1>, s = dense<2.5> : tensor<3xf32>,
      u = dense<[[200, 1]]> : tensor<1x2xui8>, e = array<i64>, t = "text", n = {x = 1.5 : f64},
      a = array<i1: true, false>, z = dense<> : tensor<0xi64>""",
    )
    [found] = seen
    assert {name: np.asarray(value).tolist() for name, value in found.items()} == {
        "b": [True, False], "s": [2.5] * 3, "u": [200, 1], "e": [], "t": "text", "n": {"x": 1.5},
        "a": [True, False], "z": [],
    }  # fmt: skip
    assert found["u"].dtype == np.uint8
    for kind in ("dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>", "dense<1> : tensor<2xi4>",
                 "dense<1.0> : tensor<2xbf16>", "[1, 2]", "unit"):  # fmt: skip
        with pytest.raises(Unimplemented, match="the attribute 'odd' "):
            run(client, "see", f"odd = {kind}")


def test_unknown_targets_and_older_calls_are_named(client: Any) -> None:
    client.register_handler("double", double)
    with pytest.raises(Unimplemented, match=r"no custom call 'nobody'; it has .*double"):
        client.compile(program("nobody"), CompileOptions())
    with pytest.raises(Unimplemented, match="have api_version 4; the call has 1"):
        client.compile(program("double", version=1), CompileOptions())


def test_a_handler_is_for_all_clients_now_and_later(exported: Exported) -> None:
    first, second = exported.client(), exported.client()
    first.close()
    second.register_handler("double", double)
    third = exported.client()
    for each in (second, third):
        np.testing.assert_array_equal(run(each, "double"), 2 * ONE)
        each.close()


def _register(exported: Exported, target: str, handler: int, platform: str) -> None:
    """Registers like a host that has made no client."""
    register_c_handler(library_in(exported.capsule, "exported"), target, handler, platform)


@needs_cc
def test_a_handler_is_registered_before_there_is_a_client(exported: Exported, library: Any) -> None:
    scale = address(library.scale)
    _register(exported, "scale", scale, "Numpy")
    _register(exported, "scale", scale, "NUMPY")  # the same again
    _register(exported, "elsewhere", scale, "cuda")
    client = exported.client()
    found = run(client, "scale", "factor = 1.0 : f32, added = array<i64: 1>")
    np.testing.assert_array_equal(found, ONE + 1)
    with pytest.raises(Unimplemented, match="no custom call 'elsewhere'"):
        client.compile(program("elsewhere"), CompileOptions())
    with pytest.raises(AlreadyExists, match="'scale' has another handler on 'NUMPY'"):
        _register(exported, "scale", address(library.given), "NUMPY")
    with pytest.raises(NotFound, match=r"for the platform 'Host'; .* this plugin are of \['numpy'"):
        _register(exported, "scale", scale, "Host")
    client.close()


@needs_cc
def test_the_name_of_xla_s_cpu_is_host(library: Any) -> None:
    cpu = Exported(lambda: BackendClient(NumpyBackend()), platform="cpu")
    _register(cpu, "scale", address(library.scale), "Host")
    client = cpu.client()
    run(client, "scale", "factor = 1.0 : f32, added = array<i64>")
    client.close()


@needs_cc
def test_a_backend_that_takes_no_handlers_says_so(library: Any) -> None:
    adder = Exported(lambda: BackendClient(Adder()))
    _register(adder, "early", address(library.scale), "adder")  # no client exists yet
    client: Any = adder.client()
    assert not client.capabilities.host_callbacks
    with pytest.raises(Unimplemented, match="takes no handlers for custom calls"):
        _register(adder, "double", 1, "adder")
    with pytest.raises(Unimplemented):
        client.register_handler("double", double)
    client.close()


class Far(Adder):
    """A backend whose arrays hosts cannot address; its handlers still get NumPy arrays."""

    def register_handler(self, target: str, handler: Any) -> None:
        self.handlers = {target: handler}


def test_handlers_get_memory_of_the_host_also_where_arrays_are_not_read_in_place() -> None:
    far = Exported(lambda: BackendClient(Far()))
    client: Any = far.client()
    assert not client.capabilities.dlpack
    assert client.capabilities.host_callbacks
    client.register_handler("double", double)
    result = np.zeros(3, np.float32)
    far.backend.handlers["double"]([ONE], [result], {})
    assert result.tolist() == [2, 4, 6]
    client.close()


class Deaf(NumpyBackend):
    """A backend whose arrays hosts can address, and that accepts no handlers."""

    register_handler = Backend.register_handler


def test_programs_do_not_call_python_where_no_handler_is_taken() -> None:
    client: Any = Exported(lambda: BackendClient(Deaf())).client()
    assert client.capabilities.dlpack  # for other libraries plugrt's criterion
    assert not client.capabilities.custom_calls
    assert not client.capabilities.host_callbacks
    client.close()


@needs_cc
def test_a_client_that_does_not_take_an_earlier_handler_says_so(
    exported: Exported, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _register(exported, "scale", address(_compile(tmp_path, "-DMINOR=99").scale), "numpy")
    exported.client().close()
    assert "'scale' is compiled for version 0.99 of XLA's FFI" in caplog.text


def _register_type(client: Any, name: bytes, type_id: int = 0) -> int:
    data = ffi.new("char[]", name)
    args = client.library.extension("FFI").call(
        "FFI_Type_Register", type_name=data, type_name_size=len(name), type_id=type_id
    )
    return int(args.type_id)


def test_types_have_one_id_each(client: Any) -> None:
    first, second = _register_type(client, b"first"), _register_type(client, b"second")
    assert 0 not in (first, second)
    assert first != second
    assert _register_type(client, b"first") == _register_type(client, b"first", first) == first
    assert _register_type(client, b"third", 1 << 40) == 1 << 40
    for name, number in ((b"first", second), (b"fourth", 1 << 40)):
        with pytest.raises(AlreadyExists, match=f"'{name.decode()}' cannot have the id {number}"):
            _register_type(client, name, number)
    with pytest.raises(InvalidArgument, match="the FFI type has no name"):
        _register_type(client, b"")


@needs_cc
def test_a_handler_finds_the_host_s_data_of_the_launch(client: Any, library: Any) -> None:
    type_id, other = _register_type(client, b"mine"), _register_type(client, b"other")
    context = client.library.call("ExecuteContext_Create").context
    number = ffi.new("int*", 42)
    table = client.library.extension("FFI")

    def add(type_id: int, context: Any = context) -> None:
        data = {"type_id": type_id, "data": number}
        table.call("FFI_UserData_Add", context=context, user_data=data)

    add(type_id)
    with pytest.raises(AlreadyExists, match=f"has data of the type {type_id} already"):
        add(type_id)
    with pytest.raises(InvalidArgument, match="the context of the launch is NULL"):
        add(other, ffi.NULL)
    client.register_handler("given", address(library.given))
    compiled = {
        each: client.compile(program("given", f"id = {each} : i64"), CompileOptions())
        for each in (type_id, other)
    }

    def launch(which: int, context: Any) -> Any:
        loaded = compiled[which]
        function = client.library.slots["LoadedExecutable_Execute"]

        def with_context(args: Any) -> Any:
            args.options.context = context
            return function(args)

        loaded._launch = with_context
        [[result]] = loaded.execute([(put(client),)])
        return result.to_host()

    assert launch(type_id, context)[0] == 42
    with pytest.raises(NotFound, match=f"the launch has no data of the type {other}"):
        launch(other, context)
    with pytest.raises(NotFound, match=f"the launch has no data of the type {type_id}"):
        launch(type_id, ffi.NULL)
    client.library.call("ExecuteContext_Destroy", context=context)


def test_arguments_that_end_too_early_or_are_null(client: Any) -> None:
    table = client.library.extension("FFI")
    for name in [f for f, _ in ffi.typeof("PJRT_FFI_Extension").fields[1:]]:
        with pytest.raises(InvalidArgument, match=f"PJRT_{name}_Args of the host has 8 bytes"):
            table.call(name, struct_size=8)
    with pytest.raises(InvalidArgument, match="the platform or the handler is NULL"):
        table.call("FFI_Register_Handler")
