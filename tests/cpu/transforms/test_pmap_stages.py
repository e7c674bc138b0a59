"""`pmap`: lowered and compiled ahead of the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrt import ShapeDtypeStruct, device_put, devices, pmap
from plugrt.errors import ArgumentMismatch
from plugrt.lax import psum
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec, PmapSharding
from support.ops import add

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_lowered_is_one_replica() -> None:
    lowered = pmap(lambda x: psum(x, "i"), "i").lower(X)
    text = lowered.as_text()
    assert "tensor<3xf32>" in text
    assert "mhlo.num_replicas = 4 : i32" in text  # as JAX's
    assert "all_reduce" in text
    assert "[0, 1, 2, 3]" in text.replace("dense<[[", "[").replace("]]>", "]")
    assert lowered.out_info.shape == (4, 3)
    assert lowered.out_info.sharding == NamedSharding(Mesh(devices()[:4], "i"), PartitionSpec("i"))


def placed() -> dict[str, Any]:
    """Returns an argument of four slices, committed in several ways."""
    have = devices()
    over = {n: Mesh(have[:n], "m") for n in (2, 4, 8)}
    return {
        "alike": device_put(X, NamedSharding(over[4], PartitionSpec("m"))),
        "of pmap": pmap(lambda x: add(x, 0))(X),
        "alike, elsewhere": device_put(X, NamedSharding(Mesh(have[4:8], "m"), PartitionSpec("m"))),
        "in reverse": device_put(X, NamedSharding(Mesh(have[3::-1], "m"), PartitionSpec("m"))),
        "on the first": device_put(X, have[0]),
        "on another": device_put(X, have[5]),
        "over two": device_put(X, NamedSharding(over[2], PartitionSpec("m"))),
        "whole on each": device_put(X, NamedSharding(over[4], PartitionSpec())),
        "whole on all": device_put(X, NamedSharding(over[8], PartitionSpec())),
    }


LOWERED = ("alike", "of pmap", "alike, elsewhere", "in reverse")


def test_stages_refuse_arrays_that_do_not_fit() -> None:
    function = pmap(lambda x: add(x, 1))
    compiled = function.lower(X).compile()
    np.testing.assert_array_equal(compiled(device_put(X)), X + 1)
    for name, x in placed().items():
        np.testing.assert_array_equal(function(x), X + 1, err_msg=name)
        assert function.eval_shape(x).shape == X.shape
        struct = ShapeDtypeStruct(x.shape, x.dtype, x.sharding)
        for stand_in in (x, struct):
            if name in LOWERED:
                assert function.lower(stand_in).compile().input_shardings == (
                    compiled.input_shardings
                )
                continue
            with pytest.raises(ArgumentMismatch, match=r"argument x of pmap of .* is sharded as"):
                function.lower(stand_in)
        if name in LOWERED[:2]:
            result = compiled(x)
            assert result.sharding == PmapSharding(devices()[:4])
            np.testing.assert_array_equal(result, X + 1)
            continue
        with pytest.raises(ArgumentMismatch, match=r"other shardings than .*\n  argument x: on"):
            compiled(x)


def test_stages_refuse_other_memories() -> None:
    function = pmap(lambda x: add(x, 1))
    where = NamedSharding(Mesh(devices()[:4], "m"), PartitionSpec("m"), memory_kind="pinned_host")
    x = device_put(X, where)
    np.testing.assert_array_equal(function(x), X + 1)
    with pytest.raises(ArgumentMismatch, match=r"pinned_host.*its replicas have it as"):
        function.lower(x)
    with pytest.raises(ArgumentMismatch, match=r"pinned_host.*; taken in"):
        function.lower(X).compile()(x)
