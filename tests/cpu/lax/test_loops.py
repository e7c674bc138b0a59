from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import numpy as np
import pytest

from plugrt import device_put, jit, lax, monitoring
from plugrt.errors import ArgumentError, DtypeError, NotAnArray, ShapeError, StructureError
from support.compiles import counting
from support.jax_oracle import same


def float32(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("unroll", [None, 1, 2, 3, True, False])
def test_fori_loop_of_known_length(unroll: Any) -> None:
    def body(i: Any, x: Any) -> Any:
        return lax.add(lax.mul(x, 3), i)

    expected = jax.lax.fori_loop(2, 9, lambda i, x: x * 3 + i, 1)
    same(lax.fori_loop(2, 9, body, 1, unroll=unroll), expected)


@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (3, 3), (5, 2), (-2, 2)])
def test_fori_loop_of_unknown_length(lower: int, upper: int) -> None:
    def body(i: Any, x: Any) -> Any:
        return lax.add(x, i)

    expected = sum(range(lower, upper))
    assert int(lax.fori_loop(np.asarray(lower, np.int32), upper, body, 0)) == expected
    assert int(lax.fori_loop(lower, upper, body, 0)) == expected
    assert int(jit(lambda n: lax.fori_loop(lower, n, body, 0))(upper)) == expected


def test_fori_loop_index_has_the_dtype_of_the_bounds() -> None:
    end = lax.fori_loop(np.int8(0), np.int8(3), lambda i, x: lax.add(x, i), np.int8(0))
    same(end, np.int8(3))
    end = lax.fori_loop(device_put(np.int16(0)), 3, lambda i, x: lax.add(x, i), np.int16(0))
    same(end, np.int16(3))


def test_fori_loop_refuses_invalid_bounds_and_unroll() -> None:
    with pytest.raises(ArgumentError, match="unroll only if its bounds are Python integers"):
        lax.fori_loop(device_put(np.int32(0)), 3, lambda i, x: x, 0, unroll=2)
    with pytest.raises(DtypeError, match="upper of fori_loop must be an integer"):
        lax.fori_loop(0, 2.5, lambda i, x: x, 0)
    with pytest.raises(ShapeError, match="lower of fori_loop must be a scalar"):
        lax.fori_loop(np.zeros(2, np.int32), 2, lambda i, x: x, 0)
    with pytest.raises(DtypeError, match="one dtype; found lower int8 and upper int32"):
        lax.fori_loop(device_put(np.int8(0)), np.int32(2), lambda i, x: x, 0)


def test_a_python_scalar_takes_the_dtype_that_the_body_gives_it() -> None:
    half = np.float16(0.5)
    end = lax.while_loop(lambda x: lax.lt(x, 2), lambda x: lax.add(x, half), 0)
    same(end, np.float16(2))
    end = lax.fori_loop(0, 3, lambda _, s: (lax.add(s[0], half), s[1]), (0, 1))
    same(end, (np.float16(1.5), np.int32(1)))


def test_a_python_scalar_from_the_body_takes_the_dtype_carried() -> None:
    same(lax.while_loop(lambda x: lax.lt(x, 1), lambda _: 3, np.float16(0)), np.float16(3))


def test_a_carry_that_changes_is_refused_with_its_path_and_both_types() -> None:
    init = {"w": float32(3), "n": np.int32(0)}
    with pytest.raises(
        ShapeError, match=r"carry\['w'\]: it is passed in as float32\[3\] and returned "
    ):
        lax.while_loop(lambda _: True, lambda s: {**s, "w": float32(4)}, init)
    with pytest.raises(
        DtypeError, match=r"carry\['n'\]: it is passed in as int32\[\] and returned as f"
    ):
        lax.while_loop(lambda _: True, lambda s: {**s, "n": np.float32(1)}, init)
    with pytest.raises(StructureError, match=r"expected .*, found"):
        lax.while_loop(lambda _: True, lambda s: (s["w"], s["n"]), init)
    with pytest.raises(NotAnArray, match=r"carry\['n'\] that the body of while_loop returned"):
        lax.while_loop(lambda _: True, lambda s: {**s, "n": "three"}, init)


def test_a_predicate_that_is_no_boolean_scalar_is_refused() -> None:
    with pytest.raises(DtypeError, match="result of cond_fun of while_loop must be a boolean"):
        lax.while_loop(lambda x: x, lambda x: x, 1)
    with pytest.raises(ShapeError, match="must be a scalar"):
        lax.while_loop(lambda x: lax.lt(x, 3), lambda x: x, float32(2))
    with pytest.raises(StructureError, match="must be one boolean"):
        lax.while_loop(lambda x: (True, False), lambda x: x, 1)


def test_a_named_body_is_compiled_once() -> None:
    def body(i: Any, x: Any) -> Any:
        return lax.add(x, i)

    with counting() as counter:
        for _ in range(3):
            lax.fori_loop(0, 4, body, np.float32(0) if _ > 3 else np.int32(_))
    assert counter[monitoring.COMPILE] == 1


def test_programs_go_with_their_functions() -> None:
    def run() -> weakref.ref[Any]:
        def body(x: Any) -> Any:
            return lax.add(x, 1)

        lax.while_loop(lambda x: lax.lt(x, 3), body, np.int32(0))
        return weakref.ref(body)

    held = run()
    gc.collect()
    assert held() is None


def test_callables_that_cannot_be_held_weakly_work() -> None:
    class Step:
        __slots__ = ()

        def __call__(self, x: Any) -> Any:
            return lax.add(x, 2)

    same(lax.while_loop(lambda x: lax.lt(x, 3), Step(), np.int32(0)), np.int32(4))
