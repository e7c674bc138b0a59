"""Arrays and types of JAX as arguments: weak ones, and types without a sharding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plugrt

WEAK = {
    "float": lambda: jax.device_put(3.0),
    "int": lambda: jax.device_put(3),
    "complex": lambda: jax.device_put(3j),
    "bool": lambda: jax.device_put(True),
    "vector": lambda: jnp.broadcast_to(jax.device_put(3.0), (3,)),
    "empty": lambda: jnp.broadcast_to(jax.device_put(3), (0, 2)),
    "strong": lambda: jnp.ones(3),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a half": lambda a: a * np.float16(2),
    "a byte": lambda a: a + np.int8(1),
    "itself": lambda a: a,
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", WEAK)
def test_weak_types_as_in_jax(kind: str, function: str) -> None:
    x, f = WEAK[kind](), FUNCTIONS[function]
    expected = jax.jit(f)(x)
    compiled = plugrt.jit(f).lower(x).compile()
    for made in (plugrt.jit(f)(x), compiled(x), plugrt.jit(f).lower(jax.typeof(x)).compile()(x)):
        assert (made.dtype, made.weak_type) == (expected.dtype, expected.weak_type)
        assert np.array_equal(np.asarray(made), np.asarray(expected))


@pytest.mark.parametrize("kind", WEAK)
def test_puts_keep_it(kind: str) -> None:
    x = WEAK[kind]()
    for where in (
        None,
        plugrt.devices()[1],
        plugrt.sharding.SingleDeviceSharding(plugrt.devices()[1]),
    ):
        assert plugrt.device_put(x, where).weak_type == x.weak_type
        assert plugrt.device_put([x], where)[0].weak_type == x.weak_type


def test_a_type_of_jax_without_a_sharding_lowers() -> None:
    lowered = plugrt.jit(lambda a: a + 1).lower(jax.typeof(jnp.ones((3, 2))))
    assert lowered.in_avals == ((plugrt.ShapeDtypeStruct((3, 2), np.float32),), {})
