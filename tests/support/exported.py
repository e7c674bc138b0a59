"""Clients of exported plugins, directly and through the C API."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.capi import library_in
from plugrt.capi.abi._abi import ffi
from plugrt.interface import Client, CompileOptions, Program
from plugrt.plugins import LibraryPlugin
from plugrt_sdk import BackendClient
from plugrt_sdk.export import _core, export_capsule

ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
ONE = np.float32([1, 2, 3])


def find_handles_left(before: dict[str, int]) -> dict[str, int]:
    """Returns the growth of the number of the hosts' handles, by kind; waits for no growth.

    A client's thread may hold an array until it has reported it as ready. Numbers fall if handles
    of an earlier test are released meanwhile.
    """
    gc.collect()
    until = time.monotonic() + 60
    while True:
        now = _core.count_handles()
        left = {kind: n - before.get(kind, 0) for kind, n in now.items() if n > before.get(kind, 0)}
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.01)


class Exported:
    """An exported plugin; ``inner`` makes its clients, which ``made`` lists."""

    def __init__(self, inner: Callable[[], BackendClient], **settings: Any) -> None:
        self.made: list[BackendClient] = []

        def make(**options: Any) -> Client:
            self.options = options
            self.made.append(inner())
            return self.made[-1]

        self.capsule = export_capsule(make, **settings)

    def client(self, **options: Any) -> Any:
        """Starts a client with plugrt as the host."""
        return LibraryPlugin("exported", c_api=self.capsule).create_client(options)

    @property
    def backend(self) -> Any:
        """The `Backend` of the last client."""
        return self.made[-1].backend


def change(made: Any, **methods: Any) -> None:
    """Gives an object a class of its own, with these methods."""
    of = type(made)
    made.__class__ = type(of.__name__, (of,), {"__slots__": (), **methods})


def find_api(capsule: object) -> Any:
    """Returns the ``PJRT_Api*`` of a capsule."""
    return library_in(capsule, "exported").api


def put(client: Client, array: Any = ONE, device: int = 0) -> Any:
    """Puts an array on a device of a client."""
    return client.buffer_from_host(np.asarray(array), client.devices()[device])


def compile_add(client: Client) -> Any:
    """Compiles the addition of two arrays of three floats."""
    return client.compile(Program(ADD), CompileOptions())


def shape_fields(shape: tuple[int, ...], element_type: int) -> dict[str, Any]:
    """Returns the fields of a shape in functions of the C API."""
    return {
        "shape_dims": ffi.new("int64_t[]", list(shape)),
        "shape_num_dims": len(shape),
        "shape_element_type": element_type,
        "shape_layout": ffi.NULL,
    }
