"""Level 3: dtypes, programs, host memory and custom calls that a client declares to accept."""

from __future__ import annotations

import ctypes
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.errors import NotFound, PjrtError, PlugrtError, describe
from plugrt.interface import HOST_CALLBACK, CompileOptions, HostBufferSemantics, Program
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import (
    Array,
    expect,
    expect_equal,
    expect_refusal,
    expect_same_bits,
)
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("accepts", Level.BEHAVES, "plugrt.interface.Capabilities", demand=Demand.PLUGRT)


@CHAPTER.check(
    "dtypes", level=Level.BUFFERS, rests_on="Capabilities.dtypes",
    why="hosts ask for a dtype that nobody knows",
)  # fmt: skip
def dtypes(subject: PluginSubject) -> None:
    """Each declared dtype is one that hosts know, and an array of it can be put."""
    known = supported_dtypes(API_MINOR)
    for name in sorted(subject.declared.dtypes):
        expect(name in known, f"dtypes among {sorted(known)}", name)
        try:
            found = subject.put(np.zeros(3, name)).dtype
        except PlugrtError as error:
            if not subject.states("dtypes"):
                continue
            expect(False, f"an array of {name}, which is declared", describe(error))
        expect_equal(found, np.dtype(name), "the dtype")


@CHAPTER.check(
    "program_formats", level=Level.COMPUTES, refusable=True,
    rests_on="PJRT_Program.format; Capabilities.program_formats", demand=Demand.SPEC,
    why="programs that other tools saved as HLO crash the compiler",
)  # fmt: skip
def program_formats(subject: PluginSubject) -> None:
    """A program in each declared format computes, or its format is refused."""
    declared = subject.declared.program_formats
    codes = {"mlir": programs.ADD.encode(), "hlo": programs.ADD_AS_HLO}
    x = subject.put(ONE)
    for name in codes.keys() & set(declared):
        try:
            loaded = subject.client.compile(Program(codes[name], name), CompileOptions())
        except PlugrtError:
            if name == "mlir" or subject.states("program_formats"):
                raise
            continue
        [[total]] = loaded.execute([(x,), (x,)])
        expect_same_bits(total.to_host(), 2 * ONE, f"the sum of a program in the format {name!r}:")


_ALIGNMENT = 4096


def _aligned(count: int) -> Array:
    """Returns so many floats at an address that every backend can use without a copy."""
    room = np.zeros(4 * count + _ALIGNMENT, np.uint8)
    skip = -room.ctypes.data % _ALIGNMENT
    return room[skip : skip + 4 * count].view(np.float32)


@CHAPTER.check(
    "zero_copy_put", rests_on="Capabilities.zero_copy_put; PJRT_HostBufferSemantics",
    demand=Demand.SPEC,
    why="a declaration of zero copies hides one, and doubles the memory",
)  # fmt: skip
def zero_copy_put(subject: PluginSubject) -> None:
    """If putting without a copy is declared, the buffer uses an aligned array's memory."""
    source = _aligned(4096)
    source[:] = np.arange(4096)
    zero_copy = HostBufferSemantics.IMMUTABLE_ZERO_COPY
    device = subject.client.addressable_devices()[0]
    x = subject.client.buffer_from_host(source, device, None, zero_copy)
    declared = subject.declared
    if declared.zero_copy_put and declared.unsafe_pointer:
        expect_equal(x.unsafe_pointer(), source.ctypes.data, "the address")
    elif declared.zero_copy_put and declared.zero_copy_get:
        shared = np.shares_memory(x.to_host(), source)
        expect_equal(shared, True, "np.shares_memory(what is read, the source):")
    expect_same_bits(x.to_host(), source, "the array")


@CHAPTER.check(
    "strided_put", rests_on="Capabilities.strided_put",
    why="a put of a view takes twice its memory on the host",
)  # fmt: skip
def strided_put(subject: PluginSubject) -> None:
    """If putting views is declared, a put allocates no NumPy array of their size."""
    view = np.zeros((1024, 1024), np.float32).T
    subject.put(view).delete()
    tracemalloc.start()
    try:
        x = subject.put(view)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if subject.declared.strided_put and subject.states("strided_put"):
        expect(most < view.nbytes // 2, f"less than {view.nbytes // 2} bytes made", most)
    expect_same_bits(x.to_host(), np.zeros((1024, 1024), np.float32), "the array")


@CHAPTER.check(
    "custom_calls", capability="custom_calls", rests_on="PJRT_FFI_Register_Handler",
    demand=Demand.SPEC,
    why="functions of the host cannot be called from programs, and nothing says so",
    covers=("Client.register_handler",),
)  # fmt: skip
def custom_calls(subject: PluginSubject) -> None:
    """A handler of custom calls is registered; a program calls it if it can see the arrays."""

    def double(arguments: Any, results: Any, attributes: Any) -> None:
        results[0][...] = 2 * arguments[0]

    subject.client.register_handler(_TARGET, double)
    if subject.declared.host_callbacks:  # a Python function can see the arrays of such a backend
        [found] = subject.run(_CALLS_HANDLER, ONE)
        expect_same_bits(found, 2 * ONE, "what the handler wrote")


@CHAPTER.check(
    "custom_calls.unregister", capability="custom_calls", refusable=True,
    rests_on="plugrt.interface.Client.unregister_handler",
    why="a program calls a function whose owner is gone",
    covers=("Client.unregister_handler",),
)  # fmt: skip
def unregister(subject: PluginSubject) -> None:
    """An unregistered handler is not called, and cannot be unregistered again."""

    def write_nothing(arguments: Any, results: Any, attributes: Any) -> None:
        pass

    client, target = subject.client, f"plugrt_conformance_{next(_numbers)}"
    calls = _CALLS_HANDLER.replace(_TARGET, target)
    client.register_handler(target, write_nothing)
    client.unregister_handler(target)
    again = partial(client.unregister_handler, target)
    expect_refusal(again, NotFound, what="a second unregistration")
    expect_refusal(lambda: subject.run(calls, ONE), PjrtError, what="a call of the handler")
    client.register_handler(target, write_nothing)
    client.unregister_handler(target)


@CHAPTER.check(
    "custom_calls.types", capability="custom_calls", rests_on="PJRT_FFI_Type_Register",
    demand=Demand.SPEC,
    why="handlers find the states of others, or none",
    covers=("Client.register_handler_type",),
)  # fmt: skip
def types_of_states(subject: PluginSubject) -> None:
    """Each type of handler states gets a unique id, and keeps it."""
    names = [f"plugrt_conformance_type_{next(_numbers)}" for _ in range(2)]
    ids = [ctypes.c_int64(0), ctypes.c_int64(0)]
    _kept.extend(ids)  # a library may keep the addresses
    register = subject.client.register_handler_type
    for name, place in zip(names, ids, strict=True):
        register(name, ctypes.addressof(place))
    first, second = (place.value for place in ids)
    expect(0 not in (first, second), "ids", (first, second))
    expect(first != second, "two ids", (first, second))
    register(names[0], ctypes.addressof(ids[0]))
    expect_equal(ids[0].value, first, "when it is registered again, the id")
    wrong = ctypes.c_int64(second)
    _kept.append(wrong)
    expect_refusal(
        lambda: register(names[0], ctypes.addressof(wrong)),
        PjrtError,
        what="registering a type with the id of another",
    )


# Process-wide: a plugin may call a handler until the process of the check ends.
_kept: list[Any] = []
# Process-wide: targets of custom calls stay registered in the process.
_numbers = count()
_TARGET = "plugrt_conformance_double"
_CALLS_HANDLER = f"""func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.custom_call @{_TARGET}(%a) {{api_version = 4 : i32, backend_config = {{}}}}
    : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}}"""


@CHAPTER.check(
    "host_callbacks", capability="host_callbacks", rests_on="plugrt.interface.Program.callbacks",
    why="a Python function in a program gets other arguments, or its results go elsewhere",
)  # fmt: skip
def host_callbacks(subject: PluginSubject) -> None:
    """A program calls a Python function, and computes with its results."""

    def subtract(a: Any, b: Any) -> list[Any]:
        return [a - b, a * b]

    x, y = 7 * ONE, np.array([1, 2, 3], np.float32)
    difference, product = _run_python(subject, _CALLS_PYTHON, subtract, x, y)
    expect_same_bits(difference, 2 * (x - y), "twice the first result")
    expect_same_bits(product, x * y, "the second result")


@CHAPTER.check(
    "host_callbacks.order", capability="host_callbacks",
    rests_on="plugrt.interface.Program.callbacks",
    why="a line is printed twice, or after the next one",
)  # fmt: skip
def host_callbacks_order(subject: PluginSubject) -> None:
    """Calls connected by a token are each made once, in the token's order."""
    seen: list[float] = []

    def see(value: Any) -> list[Any]:
        seen.append(float(value[0]))
        return []

    _run_python(subject, _CALLS_IN_ORDER, see, ONE)
    expect_equal(seen, [float(ONE[0]), float(2 * ONE[0])], "what the function was called with")


def _run_python(
    subject: PluginSubject, text: str, function: Callable[..., Any], *arrays: Any
) -> list[Any]:
    callback = NumberedCallback(function, "the check's function", has_effect=False)
    program = Program(
        text.replace("NUMBER", str(callback.number)).encode(),
        callbacks={callback.number: callback},
    )
    loaded = subject.client.compile(program, CompileOptions())
    results, wait = loaded.execute_with_wait([(subject.put(array),) for array in arrays])
    wait()
    return [shards[0].to_host() for shards in results]


_PYTHON = f"""stablehlo.custom_call @{HOST_CALLBACK}"""
_NUMBERED = """{api_version = 4 : i32, backend_config = {index = NUMBER : ui64},
    has_side_effect = true}"""
_CALLS_PYTHON = f"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>)
    -> (tensor<3xf32>, tensor<3xf32>) {{
  %0:2 = {_PYTHON}(%a, %b) {_NUMBERED}
    : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  %1 = stablehlo.add %0#0, %0#0 : tensor<3xf32>
  return %1, %0#1 : tensor<3xf32>, tensor<3xf32>
}}"""
_CALLS_IN_ORDER = f"""func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = {_PYTHON}(%0, %a) {_NUMBERED} : (!stablehlo.token, tensor<3xf32>) -> !stablehlo.token
  %2 = stablehlo.add %a, %a : tensor<3xf32>
  %3 = {_PYTHON}(%1, %2) {_NUMBERED} : (!stablehlo.token, tensor<3xf32>) -> !stablehlo.token
  return %2 : tensor<3xf32>
}}"""
