"""`plugrt.lax` and `plugrt.random` go by JAX's names, for functions and for parameters."""

from __future__ import annotations

import inspect
from types import ModuleType

import jax
import pytest

import plugrt

LEFT_OUT = {"accuracy", "out_sharding", "sharding", "to", "out_dtype", "_split_transpose"}
"""Parameters of JAX that plugrt's functions lack: each is a keyword with a default."""
LEFT_OUT_OF = {"key": {"dtype"}, "wrap_key_data": {"dtype"}, "dot": {"args"}}  # args: JAX 0.9's
NOT_JAXS = {"custom_call"}


@pytest.mark.parametrize(
    ("ours", "jaxs"), [(plugrt.lax, jax.lax), (plugrt.random, jax.random)], ids=["lax", "random"]
)
def test_functions_take_jaxs_parameters(ours: ModuleType, jaxs: ModuleType) -> None:
    different = {}
    for name in sorted(set(ours.__all__) - NOT_JAXS):
        function, theirs = getattr(ours, name), getattr(jaxs, name)
        if not inspect.isfunction(function) and isinstance(function, type):
            continue
        taken = list(inspect.signature(function).parameters)
        asked = list(inspect.signature(theirs).parameters)
        lacking = set(asked) - set(taken) - LEFT_OUT - LEFT_OUT_OF.get(name, set())
        if lacking or [n for n in taken if n in asked] != [n for n in asked if n in taken]:
            different[name] = (taken, asked)
    assert not different


def test_listing_a_namespace_gives_its_public_names() -> None:
    for module in (plugrt.lax, plugrt.random, plugrt.array_api):
        assert set(dir(module)) == set(module.__all__) | {n for n in dir(module) if n[:2] == "__"}
        assert "__doc__" in dir(module)
