"""plugrt's own operations, which a platform may lower; otherwise their definition runs.

The cpu plugin lowers those of `linalg` to calls of LAPACK; tests/cpu/array_api/test_linalg.py tests
their results, on every platform.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import config, jit, lax, pmap
from plugrt.errors import PluginBroken, ProgramError
from plugrt.plugins import LoweringContext
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec
from plugrt.tracing import platform_operations
from plugrt_cpu.client import CpuClient
from support.behaviour import behaviour
from support.fake_client import FakePlugin
from support.jax_oracle import same
from support.registries import as_own, registry

linalg = xp.linalg
HERE = plugrt.default_backend()
ON_LAPACK = isinstance(plugrt.get_backend(), CpuClient)
A = np.random.default_rng(3).standard_normal((8, 4, 4)).astype(np.float32)
DEFINITE = A @ A.swapaxes(-1, -2) + np.eye(4, dtype=np.float32)


def lowered(name: str, rule: Callable[..., Any]) -> Any:
    return config.override(lowerings={HERE: {f"plugrt.linalg.{name}": rule}})


def factors(x: Any) -> list[Any]:
    """Returns the results of all such operations, in each of their forms."""
    return [
        *linalg.eigh(x),
        linalg.eigvalsh(x),
        *linalg.svd(x),
        *linalg.svd(x[..., :3], full_matrices=False),
        linalg.svdvals(x),
        *linalg.qr(x[..., :3], mode="complete"),
        *linalg.qr(x[..., :3, :]),
        linalg.cholesky(x),
        linalg.cholesky(x, upper=True),
        linalg.solve(x, x[..., :2]),
        *linalg.slogdet(x),
    ]


@behaviour(
    23,
    "operations of `linalg` are lowered by the plugin: LAPACK's on `cpu`, StableHLO's elsewhere",
    jax="same, for `cpu` and GPUs",
)
def test_programs_contain_the_operations_of_their_platform() -> None:
    text = jit(factors).lower(DEFINITE).as_text()
    assert "@plugrt." not in text
    found = set(re.findall(r"@lapack_s(\w+)_ffi", text))
    assert found == ({"syevd", "gesdd", "geqrf", "orgqr", "potrf", "getrf", "trsm"} if ON_LAPACK
                     else set())  # fmt: skip
    for platforms, has in ((("tpu",), False), (("cpu",), True), (("tpu", HERE), False)):
        stage = jit(linalg.inv).trace(DEFINITE).lower(lowering_platforms=platforms)
        assert ("lapack" in stage.as_text()) is has, platforms
        if HERE in platforms and len(platforms) > 1:
            same(stage.compile()(DEFINITE), linalg.inv(DEFINITE))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_definitions_and_libraries_agree(dtype: str) -> None:
    """Compares algorithm-independent results: values, projections, and products."""
    x = DEFINITE[:2].astype(dtype)
    if dtype.startswith("complex"):
        x = x + 0.1j * (A - A.swapaxes(-1, -2))[:2].astype(dtype)

    def invariants(x: Any) -> list[Any]:
        u, s, vh = linalg.svd(x[..., :3], full_matrices=False)
        q, r = linalg.qr(x, mode="complete")
        return [linalg.eigvalsh(x), s, u * s[..., None, :] @ vh, q, r, linalg.cholesky(x),
                linalg.inv(x), linalg.det(x)]  # fmt: skip

    found = jit(invariants)(x)
    with config.override(lowerings={HERE: dict.fromkeys(platform_operations.NAMES, _nothing)}):
        text = jit(invariants).lower(x).as_text()
    # A rule of config.lowerings that returns None leaves the operation to its definition.
    assert "lapack" not in text
    assert all(part.dtype == expected.dtype for part, expected in zip(
        found, [x.real, x.real, *[x] * 6], strict=True))  # fmt: skip
    exact = x.astype(np.complex128 if dtype.startswith("complex") else np.float64)
    same(found[0], np.linalg.eigvalsh(exact).astype(x.real.dtype), rtol=2e-4)
    same(found[2], x[..., :3], rtol=1e-3, atol=1e-4)
    same(found[3] @ found[4], x, rtol=1e-3, atol=1e-4)
    same(found[5], np.linalg.cholesky(exact).astype(dtype), rtol=1e-3, atol=1e-4)
    same(found[6], np.linalg.inv(exact).astype(dtype), rtol=1e-3, atol=1e-3)
    same(found[7], np.linalg.det(exact).astype(dtype), rtol=1e-3)


def _nothing(context: LoweringContext, *operands: Any) -> None:
    return None


@behaviour(
    23,
    "`config.lowerings` replaces operations of `linalg`, and sees which form of them is wanted",
    jax="JAX lowers primitives",
)
def test_lowerings_of_ones_own() -> None:
    told: list[Any] = []

    def ones(context: LoweringContext, x: Any) -> Any:
        told.append((context.operation, dict(context.attributes), context.platform))
        return [xp.ones(t.shape, dtype=t.dtype) for t in context.result_types]

    inner = jit(linalg.svdvals)
    calls: list[Callable[[Any], Any]] = [
        linalg.svdvals,
        inner,
        jit(lambda x: lax.cond(True, inner, lambda x: x[..., 0], x)),
        jit(lambda x: lax.fori_loop(0, 1, lambda _, s: linalg.svdvals(x) + 0 * s, x[..., 0])),
        lambda x: pmap(linalg.svdvals)(x[:1]),
    ]
    for _ in range(2):
        for call in calls:
            expected = np.linalg.svdvals(DEFINITE)
            np.testing.assert_allclose(np.asarray(call(DEFINITE))[:1], expected[:1], rtol=1e-4)
            with lowered("svd", ones):
                same(np.asarray(call(DEFINITE))[:1], np.ones_like(expected)[:1])
    assert ("plugrt.linalg.svd", {"full_matrices": False, "vectors": False}, HERE) in told
    with lowered("svd", ones):
        assert "@plugrt." not in jit(factors).lower(DEFINITE).as_text()


def test_lowerings_that_come_back() -> None:
    """The operations of a lowering are lowered in turn; one that contains itself is refused."""
    with lowered("eigh", lambda context, x: linalg.eigh(x)):
        with pytest.raises(ProgramError, match=r"contains plugrt\.linalg\.eigh again") as error:
            jit(linalg.eigh)(DEFINITE)
        assert "config.lowerings" in str(error.value)
    with lowered("cholesky", lambda context, x: xp.tril(linalg.qr(x).Q)):
        same(linalg.cholesky(DEFINITE), np.tril(linalg.qr(DEFINITE).Q), rtol=1e-5)
    with config.override(lowerings={HERE: {"stablehlo.cosine": lambda _, x: linalg.inv(x)}}):
        same(jit(xp.cos)(DEFINITE), np.linalg.inv(DEFINITE), rtol=1e-2, atol=1e-3)


WRONG: dict[str, tuple[Any, str]] = {
    "a list": (["plugrt.linalg.qr"], "a dict of functions by name is needed"),
    "another name": ({"plugrt.linalg.qrr": print}, r"which are .*plugrt\.linalg\.qr, "),
    "StableHLO's": ({"stablehlo.cosine": print}, "names of plugrt's own operations"),
    "no function": ({"plugrt.linalg.qr": 3}, "'plugrt.linalg.qr': 3"),
}


def test_a_choice_of_platform_without_linalg() -> None:
    """A conditional by platform needs the plugins' lowerings, but does not import linalg."""
    script = (
        "import sys, plugrt\n"
        "choice = lambda x: plugrt.lax.platform_dependent(x, default=lambda x: x + 1)\n"
        "program = plugrt.jit(choice)\n"
        "print(float(program(1.0)), 'plugrt.array_api.linalg' in sys.modules)"
    )
    child = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert child.stdout.split() == ["2.0", "False"], child.stderr


@pytest.mark.parametrize("case", WRONG)
def test_lowerings_of_plugins_are_checked(case: str) -> None:
    given, words = WRONG[case]
    made = registry(FakePlugin("mine", lowerings=lambda: given))
    with (
        as_own(made),
        plugrt.default_device(plugrt.devices("mine")[0]),
        pytest.raises(PluginBroken, match=words),
    ):
        jit(linalg.inv)(DEFINITE)


def test_a_matrix_of_a_stack_that_fails_is_nan_alone(capfd: pytest.CaptureFixture[str]) -> None:
    definite = DEFINITE.copy()
    definite[3] *= -1
    bad = DEFINITE.copy()
    bad[3, 2, 1] = np.nan
    bad[5, 3, 3] = np.inf
    for found, failed in (
        (linalg.cholesky(definite), [3]),
        *[(part, [3, 5]) for part in (*linalg.eigh(bad), *linalg.svd(bad), linalg.svdvals(bad))],
        (linalg.eigvalsh(bad), [3, 5]),
    ):
        host = np.asarray(found).reshape(8, -1)
        assert np.isnan(host[failed]).any(axis=1).all()
        assert np.isfinite(np.delete(host, failed, axis=0)).all()
    larger = np.ones((30, 30), np.float32)
    larger[15, 0] = np.inf
    assert all(np.isnan(np.asarray(part)).all() for part in linalg.svd(larger))
    said = capfd.readouterr()
    assert "illegal value" not in said.err + said.out, "LAPACK was given infinities"


def test_the_upper_triangle_is_not_read() -> None:
    bad = DEFINITE.copy()
    bad[..., 0, 3] = np.nan
    same(linalg.eigh(bad).eigenvalues, np.linalg.eigvalsh(DEFINITE), rtol=1e-4)


@behaviour(
    23,
    "a stack of matrices that is divided over devices is factored where its parts are",
    jax="same",
)
def test_divided_stacks() -> None:
    mesh = Mesh(np.array(plugrt.devices()[:4]).reshape(2, 2), ("a", "b"))
    for spec in (PartitionSpec("a"), PartitionSpec(("a", "b")), PartitionSpec(None, "b")):
        divided = plugrt.device_put(DEFINITE, NamedSharding(mesh, spec))
        values = jit(linalg.eigvalsh)(divided)
        same(values, np.linalg.eigvalsh(DEFINITE), rtol=1e-4)
        inverse = jit(linalg.inv)(divided)
        np.testing.assert_allclose(inverse, np.linalg.inv(DEFINITE), rtol=1e-2, atol=1e-3)
        if ON_LAPACK and spec[0] is not None:
            assert values.sharding.spec == inverse.sharding.spec == spec
            compiled = jit(linalg.eigvalsh).lower(divided).compile()
            assert "all-gather" not in compiled.as_text()
