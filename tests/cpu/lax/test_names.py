"""`plugrt.lax` and `plugrt.random` have the names of one JAX, for functions and parameters."""

from __future__ import annotations

import inspect

import jax
import numpy as np
import pytest

import plugrt
from cpu.lax.jax_names import RECORD, VERSION, installed_names

LEFT_OUT = {"out_sharding", "sharding", "to", "_split_transpose"}
"""Parameters of JAX that plugrt's functions lack: each is a keyword with a default."""
LEFT_OUT_OF = {"key": {"dtype"}, "wrap_key_data": {"dtype"}, "random_gamma_grad": {"args"}}
NOT_JAXS = {"custom_call"}


@pytest.mark.parametrize("module", ["lax", "random"])
def test_functions_take_jaxs_parameters(module: str) -> None:
    """Same as JAX: `lax` and `random`: functions, parameters and their order."""
    ours, different = getattr(plugrt, module), {}
    for name in sorted(set(ours.__all__) - NOT_JAXS):
        asked = RECORD[module][name]
        if asked is None:
            continue
        taken = list(inspect.signature(getattr(ours, name)).parameters)
        lacking = set(asked) - set(taken) - LEFT_OUT - LEFT_OUT_OF.get(name, set())
        if lacking or [n for n in taken if n in asked] != [n for n in asked if n in taken]:
            different[name] = (taken, asked)
    assert not different


@pytest.mark.skipif(jax.__version__ != VERSION, reason=f"the record is of JAX {VERSION}")
def test_the_record_is_what_that_jax_says() -> None:
    assert installed_names() == RECORD


def test_listing_a_namespace_gives_its_public_names() -> None:
    for module in (plugrt.lax, plugrt.random, plugrt.array_api):
        assert set(dir(module)) == set(module.__all__) | {n for n in dir(module) if n[:2] == "__"}
        assert "__doc__" in dir(module)


def test_every_name_of_jax_lax_is_there_or_says_what_is_instead() -> None:
    """Same as JAX: every public name of `jax.lax`, but for types of annotations and `linalg`."""
    for name in set(RECORD["lax"]) | {"linalg"}:
        if name not in plugrt.lax.__all__:
            with pytest.raises(AttributeError, match=f"has no attribute '{name}': ."):
                getattr(plugrt.lax, name)
    with pytest.raises(AttributeError, match=r"'plugrt\.lax' has no attribute 'sine'$"):
        plugrt.lax.sine  # noqa: B018


def test_rounding_by_the_names_of_the_methods() -> None:
    halves = np.float32([-1.5, -0.5, 0.5, 1.5, 2.5])
    for method in plugrt.lax.RoundingMethod:
        expected = jax.lax.round(halves, jax.lax.RoundingMethod(method))
        np.testing.assert_array_equal(plugrt.lax.round(halves, method), np.asarray(expected))
