"""`plugrt.ffi`: C and Python functions that programs call, registered by name."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import ffi
from plugrt.errors import (
    AlreadyExists,
    ArgumentError,
    ArgumentTypeError,
    DeletedBuffer,
    InvalidArgument,
    NotAnArray,
    PjrtError,
    Unimplemented,
)
from support.behaviour import behaviour

THREE = plugrt.ShapeDtypeStruct((3,), "float32")
SOURCE = r"""
#include "xla/ffi/api/c_api.h"
#include <string.h>

/* y = factor * x + label's length; an error for a factor below 0. */
XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame) {
  XLA_FFI_Extension_Base *extension = frame->extension_start;
  if (extension != NULL && extension->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)extension)->metadata;
    metadata->api_version = frame->api->api_version; /* it uses what all versions have */
#ifdef MINOR
    metadata->api_version.minor_version = MINOR;
#endif
    return NULL;
  }
  if (frame->struct_size != XLA_FFI_CallFrame_STRUCT_SIZE) { /* as the header for C++ asks */
    XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL,
                                      "a frame of another size", XLA_FFI_Error_Code_INTERNAL};
    return frame->api->XLA_FFI_Error_Create(&args);
  }
  float factor = 0, added = 0;
  for (int64_t i = 0; i < frame->attrs.size; i++) {
    XLA_FFI_ByteSpan *name = frame->attrs.names[i];
    if (name->len == 6 && memcmp(name->ptr, "factor", 6) == 0)
      factor = *(float *)((XLA_FFI_Scalar *)frame->attrs.attrs[i])->value;
    if (name->len == 5 && memcmp(name->ptr, "label", 5) == 0)
      added = (float)((XLA_FFI_ByteSpan *)frame->attrs.attrs[i])->len;
  }
  if (factor < 0) {
    XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL,
                                      "the factor is negative",
                                      XLA_FFI_Error_Code_INVALID_ARGUMENT};
    return frame->api->XLA_FFI_Error_Create(&args);
  }
  XLA_FFI_Buffer *x = frame->args.args[0], *y = frame->rets.rets[0];
  int64_t count = 1;
  for (int64_t i = 0; i < x->rank; i++)
    count *= x->dims[i];
  for (int64_t i = 0; i < count; i++)
    ((float *)y->data)[i] = factor * ((float *)x->data)[i] + added;
  return NULL;
}
"""
_names = (f"plugrt_test_{i}" for i in itertools.count())


@pytest.fixture(autouse=True)
def custom_calls() -> str:
    """Skips if the backend registers no handlers; returns its platform."""
    client = plugrt.get_backend()
    if not client.capabilities.custom_calls:
        pytest.skip(f"{client.platform} does not declare custom_calls")
    return client.platform


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compiles a C function of the type XLA_FFI_Handler."""
    return compile_scale(tmp_path_factory.mktemp("ffi"))


def compile_scale(folder: Path, *flags: str) -> Any:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (folder / "scale.c").write_text(SOURCE)
    command = [
        compiler,
        "-shared",
        "-fPIC",
        *flags,
        f"-I{ffi.include_dir()}",
        "scale.c",
        "-o",
        "scale.so",
    ]
    subprocess.run([*command, "-o", "scale.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "scale.so")).scale


def register(handler: Any) -> str:
    """Registers a handler on the platform under test, under a new name."""
    name = next(_names)
    ffi.register_ffi_target(name, handler, platform=plugrt.get_backend().platform)
    return name


@behaviour(22, "a C handler, compiled against `include_dir()`, gets arrays and attributes")
def test_a_c_handler(scale: Any) -> None:
    name = register(ffi.pycapsule(scale))
    f = plugrt.jit(lambda x: ffi.ffi_call(name, THREE)(x, factor=np.float32(2), label="four") + 1)
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(f(x), 2 * x + 5)
    np.testing.assert_array_equal(ffi.ffi_call(name, THREE)(x, factor=np.float32(3)), 3 * x)
    with pytest.raises(InvalidArgument, match="the factor is negative"):
        np.asarray(ffi.ffi_call(name, THREE)(x, factor=np.float32(-1)))
    np.testing.assert_array_equal(f(x), 2 * x + 5)


@behaviour(22, "a Python function is a handler too", jax="capsules of C functions alone")
def test_a_python_handler() -> None:
    seen: list[Any] = []

    def divide(arguments: Any, results: Any, attributes: Any) -> None:
        seen.append((attributes, arguments[0].flags.writeable))
        results[0][...], results[1][...] = np.divmod(*arguments)

    name = register(divide)
    kinds = (plugrt.ShapeDtypeStruct((2,), "int32"),) * 2
    call = ffi.ffi_call(name, kinds)
    attributes = {"text": "ä", "flag": True, "long": np.int64(-3), "inner": {"x": np.float32(0.5)}}
    x, y = np.array([7, -7], np.int32), np.array([2, 2], np.int32)
    found = plugrt.jit(lambda x, y: call(x, y, **attributes))(x, y)
    assert type(found) is tuple
    np.testing.assert_array_equal(found, np.divmod(x, y))
    assert seen == [(attributes, False)]
    assert type(seen[0][0]["long"]) is np.int64


@behaviour(22, "attributes may be NumPy arrays", jax="capsules of C functions alone")
def test_arrays_are_attributes() -> None:
    def look_up(arguments: Any, results: Any, attributes: Any) -> None:
        results[0][...] = attributes["table"][arguments[0]] + attributes["inner"]["more"]

    name = register(look_up)
    call = ffi.ffi_call(name, plugrt.ShapeDtypeStruct((2,), "float32"))
    table, more = np.float32([5, 7, 11]), np.arange(2, dtype=np.int64)
    i = np.array([2, 0], np.int32)
    np.testing.assert_array_equal(call(i, table=table, inner={"more": more}), table[i] + more)
    with pytest.raises(ArgumentError, match=r"'table' of a custom call is a list; .* NumPy arrays"):
        call(i, table=[1, 2], inner={})


def test_an_exception_of_a_python_handler_is_the_launch_s() -> None:
    def fail(arguments: Any, results: Any, attributes: Any) -> None:
        raise ValueError("not today")

    name = register(fail)
    with pytest.raises((PjrtError, ValueError), match="not today"):
        np.asarray(ffi.ffi_call(name, THREE)(np.ones(3, np.float32)))


def test_layouts_and_aliases_are_stated() -> None:
    def transpose(arguments: Any, results: Any, attributes: Any) -> None:
        results[0][...] = arguments[0] * 10

    name = register(transpose)
    kind = plugrt.ShapeDtypeStruct((2, 3), "float32")
    call = ffi.ffi_call(name, kind, input_output_aliases={0: 0}, has_side_effect=True)
    text = plugrt.jit(call).lower(np.ones((2, 3), np.float32)).as_text()
    assert "output_operand_alias" in text
    assert "dense<[1, 0]>" in text
    np.testing.assert_array_equal(plugrt.jit(call)(np.ones((2, 3), np.float32)), 10)
    columns = ffi.ffi_call(name, kind, input_layouts=[(1, 0)])
    assert "dense<[0, 1]>" in plugrt.jit(columns).lower(np.ones((2, 3), np.float32)).as_text()


def test_a_handler_of_another_version_is_refused_by_a_library(tmp_path: Path) -> None:
    """XLA reports nothing at the registration, and later that no handler has the name."""
    if plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("the backend is no PJRT library")
    name = register(ffi.pycapsule(compile_scale(tmp_path, "-DMINOR=99")))
    with pytest.raises(Unimplemented, match=r"compiled for version 0\.99 of XLA's FFI, and .* has"):
        ffi.ffi_call(name, THREE)(np.ones(3, np.float32))
    longer = name + "_longer"  # a program with another target still runs
    fill = lambda arguments, results, attributes: results[0].fill(4)  # noqa: E731
    ffi.register_target(longer, fill, platform=plugrt.get_backend().platform)
    np.testing.assert_array_equal(ffi.ffi_call(longer, THREE)(np.ones(3, np.float32)), 4)


@behaviour(22, "wrong registrations and calls are refused by name")
def test_wrong_use(scale: Any) -> None:
    platform = plugrt.get_backend().platform
    name = register(ffi.pycapsule(scale))
    ffi.register_ffi_target(name, ffi.pycapsule(scale), platform=platform)  # the same again
    with pytest.raises(AlreadyExists, match=f"{name!r} has another handler"):
        ffi.register_target(name, print, platform=platform)
    with pytest.raises(ArgumentTypeError, match="is a PyCapsule of a C function"):
        ffi.register_ffi_target("x", scale)
    with pytest.raises(Unimplemented, match="api_version 0"):
        ffi.register_ffi_target("x", ffi.pycapsule(scale), api_version=0)
    with pytest.raises(ArgumentTypeError, match="pycapsule takes a function"):
        ffi.pycapsule("text")
    with pytest.raises(ArgumentError, match="a null pointer"):
        ffi.pycapsule(ctypes.c_void_p())
    with pytest.raises(ArgumentError, match="2 layouts for 1 arrays"):
        ffi.ffi_call(name, THREE, input_layouts=[None, None])(np.ones(3, np.float32))
    with pytest.raises(ArgumentError, match="input_output_aliases"):
        ffi.ffi_call(name, THREE, input_output_aliases={1: 0})(np.ones(3, np.float32))
    for wrong, path in ((3, ""), ([THREE, "text"], r"\[1\]"), ((THREE, float), r"\[1\]")):
        with pytest.raises(ArgumentTypeError, match=f"dtypes{path} of ffi_call must have a shape"):
            ffi.ffi_call(name, wrong)
    with pytest.raises(PjrtError, match="plugrt_nobody"):
        np.asarray(ffi.ffi_call("plugrt_nobody", THREE)(np.ones(3, np.float32)))
    with pytest.raises(NotAnArray, match=rf"operand 0 of '{name}' is \[1\] of type list"):
        ffi.ffi_call(name, THREE)([1])
    with pytest.raises(ArgumentTypeError, match=r"attribute 'k' of .* is an array of plugrt"):
        ffi.ffi_call(name, THREE)(np.ones(3, np.float32), k=xp.ones(3))


def call_python(handler: Any) -> Any:
    """Calls a handler in Python with an array of three ones, and returns the result."""
    name = next(_names)
    ffi.register_target(name, handler, platform=plugrt.get_backend().platform)
    return np.asarray(ffi.ffi_call(name, THREE)(np.ones(3, np.float32)))


@behaviour(
    22,
    "a Python handler that returns a result in the place of filling it in is refused",
    jax="has no handlers in Python",
)
def test_a_handler_that_returns() -> None:
    """Earlier, the result was the previous contents of device memory, without an error."""
    with pytest.raises(InvalidArgument, match=r"returned array\(.*fills the results in"):
        call_python(lambda arguments, results, attributes: arguments[0] * 2)


def test_a_handler_that_fails_in_a_call_that_donates() -> None:
    """Earlier, its INVALID_ARGUMENT was reported as a refusal of the donated argument."""

    def fail(arguments: Any, results: Any, attributes: Any) -> None:
        raise InvalidArgument("mine")

    name = next(_names)
    ffi.register_target(name, fail, platform=plugrt.get_backend().platform)
    f = plugrt.jit(lambda x: ffi.ffi_call(name, THREE)(x), donate_argnums=0)
    x = plugrt.device_put(np.ones(3, np.float32))
    with pytest.raises(InvalidArgument, match="mine"):
        np.asarray(f(x))
    x.delete()
    with pytest.raises(DeletedBuffer, match="argument x of '<lambda>'"):
        f(x)


@behaviour(
    22,
    "a Python handler that ends the process does: `SystemExit` reaches the caller",
    jax="has no handlers in Python",
)
def test_a_handler_that_exits() -> None:
    def leave(arguments: Any, results: Any, attributes: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit, match="3"):
        call_python(leave)

    def fill(arguments: Any, results: Any, attributes: Any) -> None:
        results[0][...] = 4

    np.testing.assert_array_equal(call_python(fill), [4, 4, 4])  # the next launch works


def test_a_handler_of_another_platform_is_not_asked_for() -> None:
    ffi.register_ffi_target("plugrt_elsewhere", print, platform="nowhere")
    with pytest.raises(PjrtError, match="plugrt_elsewhere"):
        np.asarray(ffi.ffi_call("plugrt_elsewhere", THREE)(np.ones(3, np.float32)))


def test_the_headers_are_there() -> None:
    assert (Path(ffi.include_dir()) / "xla/ffi/api/c_api.h").is_file()
    jax_ffi = pytest.importorskip("jax.ffi")
    assert ffi.include_dir() == jax_ffi.include_dir()
