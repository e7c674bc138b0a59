from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from plugrt import lax
from plugrt.errors import ArgumentError, DtypeError, ShapeError, StructureError
from support.jax_oracle import same


def float32(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 5, 8, True])
def test_scan_matches_jax_however_it_is_unrolled(unroll: Any, reverse: bool) -> None:
    def ours(carry: Any, x: Any) -> Any:
        new = {"sum": lax.add(carry["sum"], x[0])}
        return new, (new["sum"], lax.mul(x[1], 2))

    def theirs(carry: Any, x: Any) -> Any:
        new = {"sum": carry["sum"] + x[0]}
        return new, (new["sum"], x[1] * 2)

    xs = (float32(5, 2), np.arange(5, dtype=np.int32))
    init = {"sum": np.zeros(2, np.float32)}
    end, ys = lax.scan(ours, init, xs, reverse=reverse, unroll=unroll)
    expected_end, expected_ys = jax.lax.scan(theirs, init, xs, reverse=reverse)
    same(end["sum"], expected_end["sum"])
    same(ys, expected_ys)


@pytest.mark.parametrize("unroll", [1, True])
def test_scan_over_zero_elements_gives_empty_outputs_of_the_right_types(unroll: Any) -> None:
    end, ys = lax.scan(
        lambda c, x: (lax.add(c, 1), (x, np.int8(1))), 0, float32(0, 3), unroll=unroll
    )
    same(end, np.int32(0))
    same(ys, (np.zeros((0, 3), np.float32), np.zeros(0, np.int8)))


@pytest.mark.parametrize("unroll", [0, 1, 2, True])
def test_scan_settles_python_scalars_in_the_carry(unroll: Any) -> None:
    xs = np.ones(4, np.float16)
    end, ys = lax.scan(lambda c, x: (lax.add(c, x), c), 0, xs, unroll=unroll)
    same(end, np.float16(4))
    same(ys, np.arange(4).astype(np.float16))


def test_scan_names_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"xs\['a'\] \(3,\), xs\['b'\] \(4,\)"):
        lax.scan(lambda c, x: (c, x), 0, {"a": float32(3), "b": float32(4)})
    with pytest.raises(ShapeError, match=r"length=4"):
        lax.scan(lambda c, x: (c, x), 0, float32(3), length=4)
    with pytest.raises(ShapeError, match="xs is a scalar"):
        lax.scan(lambda c, x: (c, x), 0, np.float32(3))
    with pytest.raises(ArgumentError, match="told its length"):
        lax.scan(lambda c, x: (c, x), 0)
    with pytest.raises(ArgumentError, match="unroll"):
        lax.scan(lambda c, x: (c, x), 0, float32(3), unroll=-1)
    with pytest.raises(StructureError, match=r"must return a pair"):
        lax.scan(lambda c, x: c, 0, float32(3))
    with pytest.raises(DtypeError, match=r"the body of scan changes the type of carry\[1\]"):
        lax.scan(lambda c, x: ((c[0], x), None), (0, np.int32(0)), float32(3))


def test_map_matches_jax() -> None:
    xs = {"a": float32(5, 2), "b": np.arange(5, dtype=np.int32)}
    found = lax.map(lambda x: (lax.mul(x["a"], 2), lax.neg(x["b"])), xs)
    same(found, jax.lax.map(lambda x: (x["a"] * 2, -x["b"]), xs))
    same(lax.map(lambda x: lax.mul(x["a"], 2), xs, batch_size=2), xs["a"] * 2)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 13])
def test_associative_scan_matches_jax(length: int, reverse: bool) -> None:
    x = float32(2, length) - 3
    found = lax.associative_scan(lax.add, x, reverse=reverse, axis=1)
    expected = np.flip(np.cumsum(np.flip(x, 1), 1), 1) if reverse else np.cumsum(x, 1)
    same(found, expected)


def test_associative_scan_of_a_tree_keeps_the_order() -> None:
    # Affine maps x -> a x + b compose associatively and do not commute.
    a, b = float32(6) + 1, float32(6) - 2

    def compose(f: Any, g: Any) -> Any:
        return {"a": lax.mul(f["a"], g["a"]), "b": lax.add(lax.mul(f["b"], g["a"]), g["b"])}

    found = lax.associative_scan(compose, {"a": a, "b": b})
    expected = [b[0]]
    for i in range(1, 6):
        expected.append(expected[-1] * a[i] + b[i])
    same(found["b"], np.array(expected, np.float32))
    same(found["a"], np.cumprod(a))
