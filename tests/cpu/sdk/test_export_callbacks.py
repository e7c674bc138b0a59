"""Functions that exported plugins call: `Program.callbacks`, and handlers that jaxlib refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt.capi import library_in
from plugrt.capi.extensions.ffi import register_handler
from plugrt.errors import AlreadyExists, PjrtError
from plugrt.interface import Client, CompileOptions, Program
from plugrt.plugins import LibraryPlugin
from plugrt_cpu.create_client import start
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from plugrt_sdk.export import export_capsule

OWN = "xla_ffi_python_cpu_callback"
"""A target in jaxlib's own registry."""
BACKENDS: dict[str, Callable[..., Client]] = {
    "cpu": lambda **options: start(options),
    "numpy": lambda **options: BackendClient(NumpyBackend(**options)),
}
TEXT = """func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @plugrt_host_callback(%a)
    {api_version = 4 : i32, backend_config = {index = NUMBER : ui64}}
    : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


def exported(make: Callable[..., Client]) -> Client:
    return LibraryPlugin("exported", c_api=export_capsule(make)).create_client({"num_devices": 2})


def run(client: Client, number: int, factor: int) -> list[float]:
    """Runs a program whose callback is an ordinary function, not one of plugrt's classes."""
    program = Program(
        TEXT.replace("NUMBER", str(number)).encode(),
        callbacks={number: lambda arrays: [factor * arrays[0]]},
    )
    loaded = client.compile(program, CompileOptions())
    x = client.buffer_from_host(np.ones(3, np.float32), client.devices()[0])
    [[found]] = loaded.execute([(x,)])
    return [float(each) for each in found.to_host()]


@pytest.mark.parametrize("through", ["object", "library"])
@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_calls_the_functions_of_the_program(name: str, through: str) -> None:
    """Two clients, one after the other and at once: each calls its own programs' functions."""
    make = BACKENDS[name]
    clients = [make(num_devices=1) if through == "object" else exported(make) for _ in range(2)]
    for i, client in enumerate(clients):
        assert run(client, 10**9 + i, i + 2) == [i + 2.0] * 3
    assert run(clients[0], 10**9 + 7, 9) == [9.0] * 3


def nothing(arguments: Any, results: Any, attributes: Any) -> None:
    pass


def test_a_name_that_the_client_has_itself_is_refused_by_name() -> None:
    capsule = export_capsule(BACKENDS["cpu"])
    client = LibraryPlugin("exported", c_api=capsule).create_client({"num_devices": 1})
    with pytest.raises(AlreadyExists, match=f"custom call target '{OWN}'.*under another name"):
        register_handler(library_in(capsule, "cpu"), OWN, nothing, "cpu")
    assert run(client, 10**9 + 20, 3) == [3.0] * 3
    assert (
        run(LibraryPlugin("exported", c_api=capsule).create_client({}), 10**9 + 21, 4) == [4.0] * 3
    )


def test_a_refused_handler_leaves_the_plugin_usable(caplog: pytest.LogCaptureFixture) -> None:
    """Registered before there is a client, which then refuses it: each client still computes."""
    capsule = export_capsule(BACKENDS["cpu"])
    library = library_in(capsule, "cpu")
    register_handler(library, OWN, nothing, "cpu")
    with caplog.at_level(logging.WARNING):
        clients = [
            LibraryPlugin("exported", c_api=capsule).create_client({"num_devices": 2})
            for _ in range(2)
        ]
    assert sum(OWN in record.getMessage() for record in caplog.records) == 1
    for i, client in enumerate(clients):
        assert run(client, 10**9 + 30 + i, 5) == [5.0] * 3
    with pytest.raises(PjrtError, match=OWN):
        register_handler(library, OWN, nothing, "cpu")
