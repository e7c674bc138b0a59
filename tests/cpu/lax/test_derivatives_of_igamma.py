"""`igamma_grad_a` and `random_gamma_grad`, compared with JAX's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from support.behaviour import behaviour
from support.effort import EFFORT
from support.jax_oracle import jax

NAMES = ["igamma_grad_a", "random_gamma_grad"]
EDGES = np.array([0.0, 0.5, 1.0, 3.0, 1e3, np.inf, -1.0, -np.inf, np.nan], np.float32)


def draw(seed: int, n: int, largest: float) -> tuple[Any, Any]:
    """Returns a from 0.001 up to ``largest``, and x within some standard deviations, as float32."""
    rng = np.random.default_rng(seed)
    a = 10 ** rng.uniform(-3, np.log10(largest), n)
    x = np.abs(a + rng.uniform(-4, 4, n) * np.sqrt(a)) + 1e-3 * a
    return a.astype(np.float32), x.astype(np.float32)


def of_jax(name: str, *operands: Any) -> Any:
    with jax.enable_x64(True):
        return np.asarray(getattr(jax.lax, name)(*(v.astype(np.float64) for v in operands)))


@behaviour(
    19, "`lax.igamma_grad_a` and `random_gamma_grad` are exact to some ulps",
    jax="a hundred times the error for large arguments",
)  # fmt: skip
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_exact(name: str) -> None:
    operands = draw(0, 1000 * EFFORT, 1e5)
    expected = of_jax(name, *operands)
    found = getattr(lax, name)(*operands)
    assert found.dtype == np.float32
    large = np.abs(expected) > 1e-30
    errors = np.abs(np.asarray(found, np.float64) / expected - 1)[large]
    assert errors.max() < 4e-5
    assert np.median(errors) < 5e-7
    np.testing.assert_array_equal(plugrt.jit(getattr(lax, name))(*operands), found)


@pytest.mark.parametrize("name", NAMES)
def test_float64_is_jaxs(name: str) -> None:
    operands = [v.astype(np.float64) for v in draw(1, 300, 1e4)]
    found = np.asarray(getattr(lax, name)(*operands))
    np.testing.assert_allclose(found, of_jax(name, *operands), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("sigmas", [-4, -1, 0, 2, 5])
def test_huge_arguments_go_on_where_the_expansion_begins(sigmas: float) -> None:
    a = 1e6 * np.array([1 - 1e-9, 1 + 1e-9])
    for name in NAMES:
        below, above = np.asarray(getattr(lax, name)(a, a + sigmas * 1e3))
        assert below == pytest.approx(above, rel=1e-8)


@pytest.mark.parametrize("quotient", [0.8, 0.9999, 1.0001, 1.2])
def test_huge_arguments_have_the_first_order_of_the_expansion(quotient: float) -> None:
    """For r = x / a, the derivative of a sample is r log(r) / (r - 1) + O(1 / a)."""
    a = np.array([2e6, 5e7])
    expected = quotient * np.log(quotient) / (quotient - 1)
    np.testing.assert_allclose(lax.random_gamma_grad(a, a * quotient), expected, 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_edges_are_jaxs(name: str) -> None:
    a, x = (v.ravel() for v in np.meshgrid(EDGES, EDGES, indexing="ij"))
    found = np.asarray(getattr(lax, name)(a, x))
    # JAX's derivative of a sample is 0.3 % off where x is small and a is 1000.
    rtol = 4e-3 if name == "random_gamma_grad" else 1e-5
    np.testing.assert_allclose(found, of_jax(name, a, x), rtol=rtol, atol=1e-6)


def test_small_samples_of_a_large_shape() -> None:
    """The expected value is from the series, with digamma(1001) ≈ log(1000) + 1 / 2000."""
    difference = np.log(3.0) - (np.log(1000.0) + 1 / 2000)
    expected = -3 / 1000 * ((1 + 3 / 1001 + 9 / (1001 * 1002)) * difference - 3 / 1001**2)
    assert lax.random_gamma_grad(np.float32(1000), 3.0).item() == pytest.approx(expected, 1e-5)
