"""The NumPy backend's costs equal those of XLA's analysis, for every operation."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from support.apart import runs_apart
from support.distributions import run_python
from support.stablehlo_cases import CASES, write

pytestmark = runs_apart("sdk")

XLAS = """
import json, os, sys
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
from jax._src.lib import xla_client
client, found = jax.devices()[0].client, {}
for name, text in json.load(open(sys.argv[1])).items():
    made = xla_client._xla.mlir.mlir_module_to_xla_computation(text, False, False)
    found[name] = xla_client._xla.hlo_module_cost_analysis(client, made.get_hlo_module())
print(json.dumps(found))
"""
WORK = ("flops", "transcendentals")
REWRITTEN = {"select", "clamp", "convert", "moves", "reduce", "control_flow", "cholesky"}
"""Programs that XLA's importer changes.

Scalars and constants become broadcasts, which move bytes; operations without an effect are dropped.
"""


@pytest.fixture(scope="module")
def xlas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Returns XLA's figures for each program."""
    folder = tmp_path_factory.mktemp("costs")
    texts = folder / "programs.json"
    texts.write_text(json.dumps({name: write(name).text() for name in CASES}))
    done = run_python(XLAS, arguments=(str(texts),))
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def stated(text: str, **options: Any) -> dict[str, Any]:
    client = BackendClient(NumpyBackend(2))
    executable = client.compile(Program(text.encode()), CompileOptions(**options)).executable
    return dict(executable.cost_analysis())


@pytest.mark.parametrize("name", CASES)
def test_as_xla(name: str, xlas: dict[str, dict[str, float]]) -> None:
    text = write(name).text()
    found, wanted = stated(text), xlas[name]
    identities = 0.01 if name == "convert" else 0  # conversions to the same type, which XLA drops
    for key in WORK:
        assert found.get(key, 0) == pytest.approx(wanted.get(key, 0), rel=identities, abs=0)
    [results] = re.findall(r"@main\(.*\) -> (.*) \{", text)
    count = results.count("tensor<")
    of_tuple = 8 * count if count > 1 else 0  # XLA counts the addresses in a tuple of results
    bytes_accessed = wanted.get("bytes accessed", 0) - of_tuple
    if name in REWRITTEN:
        assert found["bytes accessed"] == pytest.approx(bytes_accessed, rel=0.75)
    else:
        assert found["bytes accessed"] == bytes_accessed
