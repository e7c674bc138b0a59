"""`pmap`: lowered and compiled ahead of the call."""

from __future__ import annotations

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


def test_source_lines_are_the_users() -> None:
    lowered = pmap(lambda x: psum(x, "i"), "i").lower(X)
    assert __file__ in lowered.as_text(debug_info=True)
    assert "optree" not in lowered.as_text(debug_info=True)


def test_stand_ins_for_arrays() -> None:
    f = pmap(add, in_axes=(1, None), out_axes=1)
    lowered = f.lower(ShapeDtypeStruct((3, 4), np.float32), ShapeDtypeStruct((3,), np.float32))
    assert (lowered.out_info.shape, lowered.out_info.dtype) == ((3, 4), np.float32)
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(X.T.copy(), X[0]), X.T + X[0][:, None])
    assert f.eval_shape(X.T, X[0]).shape == (3, 4)


def test_compiled_takes_arrays_from_anywhere() -> None:
    compiled = pmap(lambda x: add(x, 1)).lower(X).compile()
    for x in (X, device_put(X), device_put(X, devices()[5]), pmap(lambda x: add(x, 0))(X)):
        result = compiled(x)
        assert result.sharding == PmapSharding(devices()[:4])
        np.testing.assert_array_equal(result, X + 1)


def test_compiled_says_which_argument_differs() -> None:
    compiled = pmap(add, in_axes=(0, None)).lower(X, X[0]).compile()
    with pytest.raises(ArgumentMismatch, match=r"y: takes float32\[3\], called with int32"):
        compiled(X, X[0].astype(np.int32))
    with pytest.raises(ArgumentMismatch, match=r"x: takes float32\[4,3\].*float32\[3,3\]"):
        compiled(X[:3], X[0])
    with pytest.raises(ArgumentMismatch, match="structure"):
        compiled(X)


def test_analyses() -> None:
    compiled = pmap(lambda x: psum(x, "i"), "i").lower(X).compile()
    assert compiled.runtime_executable().executable.num_replicas == 4
    text = compiled.as_text()
    assert "all-reduce" in text or "all_reduce" in text  # as HLO, or as StableHLO spells it
    assert compiled.cost_analysis()


def test_static_arguments_are_left_out() -> None:
    compiled = pmap(add, static_broadcasted_argnums=1).lower(X, 2).compile()
    np.testing.assert_array_equal(compiled(X), X + 2)


def test_outputs_that_are_arguments() -> None:
    compiled = pmap(lambda x: (x, add(x, 1)), out_axes=(1, 0)).lower(X).compile()
    same, more = compiled(X)
    np.testing.assert_array_equal(same, X.T)
    np.testing.assert_array_equal(more, X + 1)
