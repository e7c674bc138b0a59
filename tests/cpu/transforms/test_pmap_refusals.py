"""`pmap`: what it refuses, and what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import device_put, devices, pmap
from plugrt.errors import (
    ArgumentError,
    DeletedBuffer,
    InvalidArgument,
    LeakedTracer,
    NotAnArray,
    ShapeError,
    StructureError,
    UnboundAxis,
    UnhashableStaticArgument,
    UnknownPlatform,
)
from plugrt.lax import psum
from support.fake_client import FakeClient
from support.ops import add

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def same(x: Any) -> Any:
    return add(x, 1)


def test_sizes_that_differ_are_named() -> None:
    with pytest.raises(ShapeError) as caught:
        pmap(add, in_axes=(0, 1))(X, X)
    said = str(caught.value)
    assert "x: float32[4,3] has size 4 along axis 0" in said
    assert "y: float32[4,3] has size 3 along axis 1" in said


def test_a_path_names_the_part_of_an_argument() -> None:
    with pytest.raises(ShapeError, match=r"state\['b'\]: float32\[3\] has size 3 along axis 0"):
        pmap(lambda state: state)({"a": X, "b": np.ones(3, np.float32)})


def test_more_replicas_than_devices() -> None:
    count = len(devices())
    with pytest.raises(InvalidArgument, match=f"needs {count + 1} replicas.*only {count} devices"):
        pmap(same)(np.ones(count + 1, np.float32))


def test_devices_and_size_must_agree() -> None:
    with pytest.raises(InvalidArgument, match="needs 4 replicas, and devices= lists 3"):
        pmap(same, devices=devices()[:3])(X)


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there(axis: int) -> None:
    with pytest.raises(ShapeError, match=rf"argument x of 'same' over axis {axis}.*\(4, 3\)"):
        pmap(same, in_axes=axis)(X)


def test_a_scalar_has_no_axis_to_map() -> None:
    with pytest.raises(ShapeError, match=r"argument y of 'add'.*in_axes=None"):
        pmap(add)(X, 1.0)


def test_nothing_is_mapped() -> None:
    with pytest.raises(ShapeError, match=r"no argument with a mapped axis.*axis_size"):
        pmap(same, in_axes=None)(X)
    with pytest.raises(ShapeError, match="no argument with a mapped axis"):
        pmap(lambda: 1)()


def test_axis_size_that_differs() -> None:
    with pytest.raises(ShapeError, match=r"axis_size=3.*x has size 4"):
        pmap(same, axis_size=3)(X)
    for wrong in (0, -1, 2.0, True):
        with pytest.raises(ArgumentError, match="axis_size"):
            pmap(same, axis_size=wrong)  # type: ignore[arg-type]


def test_an_axis_of_size_zero() -> None:
    with pytest.raises(ShapeError, match="size 0"):
        pmap(same)(X[:0])


@pytest.mark.parametrize("axis", [2, -3])
def test_out_axes_beyond_the_result(axis: int) -> None:
    with pytest.raises(ShapeError, match=rf"at {axis} \(out_axes\).*float32\[3\].*-2 to 1"):
        pmap(same, out_axes=axis)(X)


def test_prefixes_that_do_not_fit() -> None:
    with pytest.raises(StructureError, match=r"in_axes=.*2 entries; 'same' was called with 1"):
        pmap(same, in_axes=(0, 0))(X)
    with pytest.raises(StructureError, match=r"in_axes=\(\{'a': 0\},\).*not a pytree prefix"):
        pmap(lambda d: d, in_axes=({"a": 0},))({"b": X})
    with pytest.raises(StructureError, match=r"out_axes=\(0, 0\).*results of"):
        pmap(same, out_axes=(0, 0))(X)


@pytest.mark.parametrize("axes", ["0", 1.0, True, ({"a": "i"},)])
def test_axes_of_other_types(axes: Any) -> None:
    for which in ("in_axes", "out_axes"):
        with pytest.raises(TypeError, match=f"pmap {which} must be an int, None"):
            pmap(same, **{which: axes})


def test_an_axis_without_a_name_has_no_collectives() -> None:
    with pytest.raises(UnboundAxis, match="'i'"):
        pmap(lambda x: psum(x, "i"))(X)


def test_arguments_that_are_no_arrays() -> None:
    with pytest.raises(NotAnArray, match="argument x of 'same'"):
        pmap(same)("text")
    with pytest.raises(NotAnArray, match=r"argument x\[1\] of 'same'"):
        pmap(same)([X, object()])


def test_results_that_are_no_arrays() -> None:
    with pytest.raises(NotAnArray, match=r"returned at \[1\] 'text'"):
        pmap(lambda x: (x, "text"))(X)


def test_deleted_arguments() -> None:
    for x in (device_put(X), pmap(same)(X)):
        f = pmap(same)
        f(x)
        x.delete()
        with pytest.raises(DeletedBuffer):
            f(x)


def test_leaked_tracers() -> None:
    kept = []
    pmap(lambda x: kept.append(x) or x)(X)  # type: ignore[func-returns-value]
    with pytest.raises(LeakedTracer):
        pmap(same)(kept[0])


def test_static_arguments_must_hash() -> None:
    with pytest.raises(UnhashableStaticArgument, match="'n'"):
        pmap(lambda x, n: x, static_broadcasted_argnums=1)(X, [1])


def test_static_and_donated() -> None:
    with pytest.raises(ArgumentError, match="cannot be static and donated"):
        pmap(add, static_broadcasted_argnums=1, donate_argnums=1)


def test_what_it_is_made_of() -> None:
    with pytest.raises(ArgumentError, match="takes a function; got 3"):
        pmap(3)  # type: ignore[arg-type]


def test_devices_and_a_backend_agree() -> None:
    name, *others = plugrt.backends()
    mapped = pmap(same, devices=devices()[1:3], backend=name)
    assert mapped(np.ones((2, 3))).devices() == {*devices()[1:3]}
    for other in others:
        with pytest.raises(ValueError, match="leave one of them out"):
            pmap(same, devices=devices()[:2], backend=other)
    with pytest.raises(UnknownPlatform):
        pmap(same, devices=devices()[:2], backend="nosuch")


def test_devices_that_make_no_sense() -> None:
    ours, other = devices(), FakeClient(count=2, processes=2).devices()
    for wrong, said in (
        ([], "none"),
        (["cpu:0"], "'cpu:0'"),
        ([ours[0], ours[0]], "twice"),
        ([ours[0], other[0]], "different backends"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            pmap(same, devices=wrong)  # type: ignore[arg-type]
    theirs = [device for device in other if not device.is_addressable]
    with pytest.raises(InvalidArgument, match="all of other processes"):
        pmap(same, devices=theirs)
    with pytest.raises(ShapeError, match=r"2 devices .* 1 are this .* size 2 here .* size 1"):
        pmap(same, devices=other)(np.ones(2))


def test_a_failing_function_leaves_nothing_behind() -> None:
    broken = True

    def f(x: Any) -> Any:
        if broken:
            raise KeyError("mine")
        return add(x, 1)

    g = pmap(f)
    with pytest.raises(KeyError, match="mine"):
        g(X)
    broken = False
    np.testing.assert_array_equal(g(X), X + 1)
