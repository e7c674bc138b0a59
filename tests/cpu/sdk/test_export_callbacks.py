"""Functions that exported plugins call: `Program.callbacks`, and handlers that jaxlib refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plugrt.capi import library_in
from plugrt.capi.extensions.ffi import register_handler
from plugrt.errors import AlreadyExists, NotFound, PjrtError, Unimplemented
from plugrt.interface import Client, CompileOptions, Program, calling_launch
from plugrt.plugins import LibraryPlugin
from plugrt_cpu import plugin as cpu_backend
from plugrt_numpy.backend import NumpyBackend
from plugrt_remote.client import RemoteClient
from plugrt_sdk import BackendClient
from plugrt_sdk.export import export_capsule
from support.device_server import serving

OWN = "xla_ffi_python_cpu_callback"
"""A target that jaxlib itself registers."""
BACKENDS: dict[str, Callable[..., Client]] = {
    "cpu": lambda **options: cpu_backend.create_client(options),
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
    """Each of two clients calls the functions of its own programs, in turn and alternately."""
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
    """Clients that are created later refuse the handler, and still compute."""
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


@pytest.mark.parametrize("through", ["object", "library", "remote"])
@pytest.mark.parametrize("name", BACKENDS)
def test_a_handler_can_ask_which_launch_calls_it(name: str, through: str, tmp_path: Path) -> None:
    make, target = BACKENDS[name], f"asks_{name}_{through}"
    text = TEXT.replace("plugrt_host_callback", target).replace("NUMBER", "1")
    call = text[text.index("%0 =") : text.index("return")]
    again = call.replace("%0 =", "%1 =").replace("(%a)", "(%0)")
    text = text.replace("return %0", f"{again}return %1")
    seen: list[int | None] = []

    def ask(arguments: Any, results: Any, attributes: Any) -> None:
        results[0][...] = 1
        seen.append(calling_launch())

    with ExitStack() as stack:
        if through == "remote":
            address = stack.enter_context(serving(make(num_devices=1), tmp_path))
            client: Client = stack.enter_context(closing(RemoteClient(address)))
        else:
            client = make(num_devices=1) if through == "object" else exported(make)
        client.register_handler(target, ask)
        loaded = client.compile(Program(text.encode()), CompileOptions())
        x = client.buffer_from_host(np.ones(3, np.float32), client.devices()[0])
        for _ in range(2):
            loaded.execute([(x,)])[0][0].block_until_ready()
    first, also, second, last = seen
    if (name, through) == ("cpu", "remote"):  # jaxlib's callbacks have no launch number
        assert seen == [None] * 4
    else:
        assert first == also != second == last
        assert None not in seen
    assert calling_launch() is None


def test_the_numpy_backend_forgets_a_handler() -> None:
    client = BACKENDS["numpy"]()
    client.register_handler("forgotten", nothing)
    client.unregister_handler("forgotten")
    with pytest.raises(NotFound, match="no handler of 'forgotten'"):
        client.unregister_handler("forgotten")
    with pytest.raises(Unimplemented, match="unregister_handler"):
        BACKENDS["cpu"](num_devices=1).unregister_handler("forgotten")
