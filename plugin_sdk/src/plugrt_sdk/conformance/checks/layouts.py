"""Level 3: arrays and programs with another order of dimensions in memory than the default."""

from __future__ import annotations

from functools import partial

import numpy as np

from plugrt.errors import InvalidArgument
from plugrt.interface import Buffer, Executable, Layout, TensorType
from plugrt_sdk.conformance.check import Chapter, Demand, Level
from plugrt_sdk.conformance.expect import (
    Array,
    expect,
    expect_equal,
    expect_refusal,
    expect_same_bits,
)
from plugrt_sdk.conformance.subject import PluginSubject

CHAPTER = Chapter("layouts", Level.BEHAVES, "mhlo.layout_mode; the extension Layouts")

MATRIX: Array = np.arange(6, dtype=np.float32).reshape(2, 3)
TURNED = Layout((1, 0), ())
_WRONG_PLACES = "elements are read from the places of others"


def _program(parameter: str, result: str) -> str:
    """Returns a program that doubles a matrix, with layout modes for its parameter and result."""
    taken, given = (f' {{mhlo.layout_mode = "{mode}"}}' for mode in (parameter, result))
    return f"""func.func public @main(%x: tensor<2x3xf32>{taken}) -> (tensor<2x3xf32>{given}) {{
      %y = stablehlo.add %x, %x : tensor<2x3xf32>
      return %y : tensor<2x3xf32>
    }}"""


def _expect_order(found: object, wanted: Layout, what: str) -> None:
    given = found.major_to_minor if isinstance(found, Layout) else found
    expect_equal(given, wanted.major_to_minor, f"the order (major to minor) of {what}:")


def _only(executable: Executable, side: str) -> object:
    stated = list(getattr(executable, f"{side}_layouts")())
    expect(len(stated) == 1, f"one layout, of the {side}", stated)
    return stated[0]


def _turned(subject: PluginSubject) -> Buffer:
    """Doubles the matrix by a program whose result has the transposed layout."""
    [[y]] = subject.compile(_program("default", TURNED.text)).execute([(subject.put(MATRIX),)])
    return y


@CHAPTER.check(
    "default", capability="layouts", why=_WRONG_PLACES,
    covers=("Client.default_layout", "Buffer.layout"),
    rests_on="PJRT_Layouts_Client_GetDefaultLayout",
)  # fmt: skip
def default(subject: PluginSubject) -> None:
    """A put array has the client's default layout for its type."""
    for host in (MATRIX, MATRIX.reshape(3, 1, 2), MATRIX[0], np.array(1.5, np.float32)):
        said = subject.client.default_layout(TensorType(host.shape, host.dtype))
        expect(len(said.major_to_minor) == host.ndim, f"{host.ndim} dimensions", said)
        expect_equal(subject.put(host).layout, said, f"the layout of an array {host.shape}:")


@CHAPTER.check(
    "results", capability="layouts", why=_WRONG_PLACES,
    covers=("Executable.output_layouts",),
    rests_on="PJRT_Layouts_Executable_GetOutputLayouts",
)  # fmt: skip
def results(subject: PluginSubject) -> None:
    """A result has the layout that its program requests, states it, and has the right elements."""
    loaded = subject.compile(_program("default", TURNED.text))
    _expect_order(_only(loaded.executable, "output"), TURNED, "the stated result")
    [[y]] = loaded.execute([(subject.put(MATRIX),)])
    _expect_order(y.layout, TURNED, "the result")
    expect_same_bits(np.ascontiguousarray(y.to_host()), 2 * MATRIX, "the result")


@CHAPTER.check(
    "chosen", capability="layouts", why="hosts put arrays as no launch takes them",
    rests_on='mhlo.layout_mode = "auto"', demand=Demand.REFERENCE,
)  # fmt: skip
def chosen(subject: PluginSubject) -> None:
    """A layout that the compiler chooses is stated, and the result has it."""
    loaded = subject.compile(_program("default", "auto"))
    stated = _only(loaded.executable, "output")
    [[y]] = loaded.execute([(subject.put(MATRIX),)])
    expect_equal(y.layout, stated, "the layout of the result:")
    expect_same_bits(np.ascontiguousarray(y.to_host()), 2 * MATRIX, "the result")


@CHAPTER.check(
    "parameters", capability="layouts", why=_WRONG_PLACES,
    covers=("Executable.parameter_layouts",),
    rests_on="PJRT_Layouts_Executable_GetParameterLayouts",
)  # fmt: skip
def parameters(subject: PluginSubject) -> None:
    """A program accepts an argument of the layout that it requests."""
    loaded = subject.compile(_program(TURNED.text, "default"))
    _expect_order(_only(loaded.executable, "parameter"), TURNED, "the stated parameter")
    [[y]] = loaded.execute([(_turned(subject),)])
    expect_same_bits(np.ascontiguousarray(y.to_host()), 4 * MATRIX, "the result")


@CHAPTER.check(
    "parameters.refused", capability="layouts", why=_WRONG_PLACES, demand=Demand.REFERENCE
)
def wrong_arguments(subject: PluginSubject) -> None:
    """An argument of another layout than the program's parameter is refused."""
    turned = _turned(subject)
    for parameter, argument in ((TURNED.text, subject.put(MATRIX)), ("default", turned)):
        loaded = subject.compile(_program(parameter, "default"))
        lies = argument.layout.text
        expect_refusal(
            partial(loaded.execute, [(argument,)]),
            InvalidArgument,
            what=f"an argument that lies as {lies}, for a parameter {parameter}",
        )


@CHAPTER.check(
    "put", capability="layout_put", why=_WRONG_PLACES,
    rests_on="PJRT_Client_BufferFromHostBuffer: device_layout",
)  # fmt: skip
def put(subject: PluginSubject) -> None:
    """A host array, row-major or not, is put in the requested layout, and read unchanged."""
    device = subject.client.addressable_devices()[0]
    for host in (MATRIX, np.asfortranarray(MATRIX), MATRIX[:, ::-1]):
        x = subject.client.buffer_from_host(host, device, layout=TURNED)
        _expect_order(x.layout, TURNED, "the array")
        expect_same_bits(np.ascontiguousarray(x.to_host()), np.ascontiguousarray(host))
