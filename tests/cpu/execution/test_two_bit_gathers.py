"""All-gathers of int2 and uint2, which XLA's CPU runtime computes wrongly; what to do instead."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.sharding import NamedSharding, PartitionSpec
from support.behaviour import behaviour

WHOLE = (np.arange(32).reshape(8, 4) % 4 - 2).astype(ml_dtypes.int2)


@behaviour(
    108,
    "gathers of int2 and uint2, which XLA does wrongly on CPUs, are refused there with the way out",
    jax="returns other values, or the process ends",
)
def test_a_gather_of_two_bit_integers_is_right_or_refused() -> None:
    """Differs from JAX: int2 gathered on CPUs | wrong values, or a crash | refused, with a cure."""
    if plugrt.local_device_count() < 4:
        pytest.skip("no 4 devices here")
    mesh = plugrt.make_mesh((4,), ("x",))
    rows, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x",), ()))
    x = plugrt.device_put(WHOLE, rows)
    gather = plugrt.shard_map(
        lambda v: lax.all_gather(v, "x", tiled=True),
        mesh=mesh, in_specs=rows.spec, out_specs=whole.spec, check_vma=False,
    )  # fmt: skip

    for name, call in {
        "by the compiler": plugrt.jit(lambda v: v, out_shardings=whole),
        "by shard_map": plugrt.jit(gather),
    }.items():
        if plugrt.get_backend().platform == "cpu":
            with pytest.raises(NotImplementedError, match=r"gathers int2 .*Give it int8"):
                call(x)
        else:
            np.testing.assert_array_equal(np.asarray(call(x)), WHOLE, err_msg=name)
    wide = plugrt.jit(lambda v: gather(v).astype(ml_dtypes.int2))(x.astype(np.int8))
    np.testing.assert_array_equal(np.asarray(wide), WHOLE)
    np.testing.assert_array_equal(np.asarray(plugrt.device_put(x, whole)), WHOLE)
