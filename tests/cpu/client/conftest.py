"""One client of four devices for the tests of the cpu plugin, and help to use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program
from plugrt_cpu import plugin


@pytest.fixture(scope="session")
def client() -> Client:
    return plugin.create_client({"num_devices": 4})


@pytest.fixture
def launch(client: Client) -> Callable[..., list[np.ndarray[Any, Any]]]:
    """Compiles a program (or takes an executable) and runs it on host arrays on device 0."""

    def run(what: Program | LoadedExecutable, *arrays: Any) -> list[np.ndarray[Any, Any]]:
        loaded = client.compile(what, CompileOptions()) if isinstance(what, Program) else what
        device = loaded.addressable_devices[0]
        buffers = [[client.buffer_from_host(np.asarray(a), device)] for a in arrays]
        return [shards[0].to_host() for shards in loaded.execute(buffers)]

    return run
