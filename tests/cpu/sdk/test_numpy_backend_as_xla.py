"""The NumPy backend computes XLA's results for every operation, by `stablehlo_cases`.

``nox -s long`` runs every case, `nox -s sdk` some.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import devices
from plugrt.interface import Client, CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from support.apart import runs_apart
from support.effort import seeds, some_of
from support.stablehlo_cases import CASES, ULPS, write
from support.stablehlo_text import assert_close

pytestmark = runs_apart("sdk")


def run(client: Client, text: str, arguments: list[Any]) -> list[np.ndarray[Any, Any]]:
    executable = client.compile(Program(text.encode()), CompileOptions())
    device = client.devices()[0]
    puts = [(client.buffer_from_host(a, device),) for a in arguments]
    return [result[0].to_host() for result in executable.execute(puts)]


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("name", some_of([*CASES], 24))
def test_as_xla(name: str, seed: int) -> None:
    program = write(name, seed)
    text = program.text()
    wanted = run(devices("cpu")[0].client, text, program.arguments)
    ours = BackendClient(NumpyBackend(check_types=True))
    found = run(ours, text, program.arguments)
    assert len(found) == len(wanted)
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert_close(a, b, f"{name}, seed {seed}, result {i}", ULPS.get(name, 8))
