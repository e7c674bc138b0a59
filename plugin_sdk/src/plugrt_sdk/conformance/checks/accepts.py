"""Level 3: the dtypes, programs, host memory and custom calls that a client declares to take."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import supported_dtypes
from plugrt.capi.extensions.ffi import register_handler
from plugrt.errors import PlugrtError, describe
from plugrt.interface import CompileOptions, HostBufferSemantics, Program
from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("accepts", Level.BEHAVES, "plugrt.interface.Capabilities")


@CHAPTER.check(
    "dtypes", level=Level.BUFFERS, rests_on="Capabilities.dtypes",
    why="hosts ask for a dtype that nobody knows",
)  # fmt: skip
def dtypes(subject: PluginSubject) -> None:
    """Each dtype that is declared is one that hosts know, and an array of it is put."""
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
    rests_on="PJRT_Program.format; Capabilities.program_formats",
    why="programs that other tools saved as HLO crash the compiler",
)  # fmt: skip
def program_formats(subject: PluginSubject) -> None:
    """A program in each format that is declared computes, or its format is refused."""
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
    """Returns so many floats at an address that any backend can take as it is."""
    room = np.zeros(4 * count + _ALIGNMENT, np.uint8)
    skip = -room.ctypes.data % _ALIGNMENT
    return room[skip : skip + 4 * count].view(np.float32)


@CHAPTER.check(
    "zero_copy_put", rests_on="Capabilities.zero_copy_put; PJRT_HostBufferSemantics",
    why="a declaration of zero copies hides one, and doubles the memory",
)  # fmt: skip
def zero_copy_put(subject: PluginSubject) -> None:
    """Where putting without a copy is declared, an aligned array's memory becomes the buffer."""
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
    """Where putting views as they are is declared, a put makes no NumPy array of their size."""
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
    why="functions of the host cannot be called from programs, and nothing says so",
)  # fmt: skip
def custom_calls(subject: PluginSubject) -> None:
    """A handler for custom calls is registered; a program calls it where it can see the arrays."""
    library = getattr(subject.client, "library", None)
    if library is None or "FFI" not in library.extensions:
        subject.refuse("the client is of no PJRT library with the extension FFI")

    def double(arguments: Any, results: Any, attributes: Any) -> None:
        results[0][...] = 2 * arguments[0]

    on_host = subject.declared.dlpack
    register_handler(library, _TARGET, double, "Host" if on_host else _device_platform(subject))
    if on_host:
        [found] = subject.run(_CALLS_HANDLER, ONE)
        expect_same_bits(found, 2 * ONE, "what the handler wrote")


def _device_platform(subject: PluginSubject) -> str:
    return subject.client.platform.upper()


_TARGET = "plugrt_conformance_double"
_CALLS_HANDLER = f"""func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.custom_call @{_TARGET}(%a) {{api_version = 4 : i32, backend_config = {{}}}}
    : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}}"""
