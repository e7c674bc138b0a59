"""The cpu package's LAPACK for other backends: the hook ``plugrt_linear_algebra``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.interface import Capabilities
from plugrt.sharding import NamedSharding, PartitionSpec
from plugrt.tracing.platform_operations import NAMES
from plugrt_cpu.client import CpuClient
from plugrt_cpu.host_lapack import plugrt_linear_algebra
from support.distributions import install

SCRIPT = """
import pickle, sys
import numpy as np, plugrt
from plugrt import array_api as xp, serialize_executable as saving

x = np.random.default_rng(0).standard_normal((2, 64, 64))
definite = x @ x.swapaxes(-1, -2) + np.eye(64)

def factor(a):
    values, vectors = xp.linalg.eigh(a)
    q, r = xp.linalg.qr(a)
    u, s, v = xp.linalg.svd(a)
    factor = xp.linalg.cholesky(a)
    return values, vectors * values[..., None, :] @ vectors.mT, q @ r, u * s[..., None, :] @ v, \
        factor @ factor.mT, xp.linalg.solve(a, a), xp.linalg.cholesky(-a)

def check(results):
    values, *products, solved, none = map(np.asarray, results)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(definite), rtol=1e-9)
    for product in products:
        np.testing.assert_allclose(product, definite, atol=1e-9)
    np.testing.assert_allclose(solved, np.broadcast_to(np.eye(64), x.shape), atol=1e-9)
    assert np.isnan(none[:, 0, 0]).all()

plugrt.config.update('enable_x64', True)
if len(sys.argv) > 2:
    saved, program = pickle.loads(sys.stdin.buffer.read())
    if sys.argv[2] == "load":
        check(saving.deserialize_and_load(*saved)(definite))
    else:
        check(plugrt.compile(program)(definite))
else:
    stage = plugrt.jit(factor).lower(definite)
    assert ("lapack_d" in stage.as_text()) is (sys.argv[1] == "lapack"), stage.as_text()
    assert "lapack" not in plugrt.jit(factor).lower(definite[:, :40, :40]).as_text()
    compiled = stage.compile()
    check(compiled(definite))
    program = plugrt.compile(stage.as_text()).serialize()
    sys.stdout.buffer.write(pickle.dumps((saving.serialize(compiled), program)))
"""


def run(*arguments: str, given: bytes = b"", **environment: str) -> tuple[bytes, str]:
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        input=given, capture_output=True, timeout=300,
        env={**os.environ, "JAX_PLATFORMS": "numpy", **environment},
    )  # fmt: skip
    said = child.stderr.decode()
    assert child.returncode == 0, said
    return child.stdout, said


def test_large_matrices_are_factored_by_lapack() -> None:
    saved, said = run("lapack")
    assert "left out" not in said
    for form in ("load", "compile"):  # in a process that has lowered no such program
        run("lapack", form, given=saved)
    run("definitions", PLUGRT_PLUGINS_BLOCK="plugrt-cpu")


@pytest.mark.parametrize(
    "answer", ["3", "({}, {}, {})", "({'plugrt.linalg.qr': 3}, {})", "({}, {'lapack_': 3})"]
)
def test_a_package_that_answers_wrongly_is_left_out(tmp_path: Path, answer: str) -> None:
    module = f"""
        from plugrt.plugins import hookimpl

        @hookimpl
        def plugrt_linear_algebra(client):
            return {answer}
    """
    entry = {"plugrt.linear_algebra": {"sick": "sick_module"}}
    install(tmp_path, "sick-dist", entry, {"sick_module": module})
    _, said = run("lapack", PYTHONPATH=str(tmp_path))
    assert "of sick-dist 1.0 are left out: plugrt_linear_algebra returned" in said


def test_a_stack_that_is_divided_over_devices() -> None:
    client = plugrt.get_backend()
    if isinstance(client, CpuClient):
        assert plugrt_linear_algebra(client) is None  # the cpu plugin has its own lowerings
    x = np.random.default_rng(1).standard_normal((4, 64, 64)).astype(np.float32)
    rows = NamedSharding(plugrt.make_mesh((4,), ("i",)), PartitionSpec("i"))
    function = plugrt.jit(plugrt.array_api.linalg.svdvals, out_shardings=rows)
    assert "lapack_sgesdd" in function.lower(x).as_text()
    found = function(plugrt.device_put(x, rows))
    assert found.sharding == rows
    np.testing.assert_allclose(found, np.linalg.svd(x, compute_uv=False), rtol=1e-4)


class Limited:
    """A client without one of the capabilities that calls of LAPACK need."""

    def __init__(self, **capabilities: bool) -> None:
        known = {"custom_calls": True, "host_callbacks": True, "zero_copy_get": True}
        self.capabilities = Capabilities(**{**known, **capabilities})


@pytest.mark.parametrize("name", ["custom_calls", "host_callbacks", "zero_copy_get"])
def test_a_client_that_cannot_call_them_has_none(name: str) -> None:
    able: Any = Limited()
    unable: Any = Limited(**{name: False})
    assert plugrt_linear_algebra(unable) is None
    offered = plugrt_linear_algebra(able)
    assert offered is not None
    rules, handlers = offered
    assert sorted(rules) == sorted(NAMES)
    assert "lapack_sgeqrf_ffi" in handlers
