"""`pmap`: refused calls, and the error messages."""

from __future__ import annotations

from collections.abc import Callable
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


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: pmap(add, in_axes=(0, 1))(X, X), ShapeError,
        r"(?s)x: float32\[4,3\] has size 4 along axis 0.*y: float32\[4,3\] has size 3 along axis 1",
    ),
    (
        lambda: pmap(lambda state: state)({"a": X, "b": np.ones(3, np.float32)}), ShapeError,
        r"state\['b'\]: float32\[3\] has size 3 along axis 0",
    ),
    (
        lambda: pmap(same)(np.ones(len(devices()) + 1, np.float32)), InvalidArgument,
        f"needs {len(devices()) + 1} replicas.*only {len(devices())} devices",
    ),
    (
        lambda: pmap(same, devices=devices()[:3])(X), InvalidArgument,
        "needs 4 replicas, and devices= lists 3",
    ),
    *[
        (
            lambda axis=axis: pmap(same, in_axes=axis)(X), ShapeError,
            rf"argument x of 'same' over axis {axis}.*\(4, 3\)",
        )
        for axis in (2, -3)
    ],
    (lambda: pmap(add)(X, 1.0), ShapeError, r"argument y of 'add'.*in_axes=None"),
    (
        lambda: pmap(same, in_axes=None)(X), ShapeError,
        r"no argument with a mapped axis.*axis_size",
    ),
    (lambda: pmap(lambda: 1)(), ShapeError, "no argument with a mapped axis"),
    (lambda: pmap(same, axis_size=3)(X), ShapeError, r"axis_size=3.*x has size 4"),
    *[
        (lambda size=size: pmap(same, axis_size=size), ArgumentError, "axis_size")
        for size in (0, -1, 2.0, True)
    ],
    (lambda: pmap(same)(X[:0]), ShapeError, "size 0"),
    *[
        (
            lambda axis=axis: pmap(same, out_axes=axis)(X), ShapeError,
            rf"at {axis} \(out_axes\).*float32\[3\].*-2 to 1",
        )
        for axis in (2, -3)
    ],
    (
        lambda: pmap(same, in_axes=(0, 0))(X), StructureError,
        r"in_axes=.*2 entries; 'same' was called with 1",
    ),
    (
        lambda: pmap(lambda d: d, in_axes=({"a": 0},))({"b": X}), StructureError,
        r"in_axes=\(\{'a': 0\},\).*not a pytree prefix",
    ),
    (
        lambda: pmap(same, out_axes=(0, 0))(X), StructureError,
        r"out_axes=\(0, 0\).*results of",
    ),
    *[
        (
            lambda which=which, axes=axes: pmap(same, **{which: axes}), TypeError,
            f"pmap {which} must be an int, None",
        )
        for which in ("in_axes", "out_axes")
        for axes in ("0", 1.0, True, ({"a": "i"},))
    ],
    (lambda: pmap(lambda x: psum(x, "i"))(X), UnboundAxis, "'i'"),
    (lambda: pmap(same)("text"), NotAnArray, "argument x of 'same'"),
    (lambda: pmap(same)([X, object()]), NotAnArray, r"argument x\[1\] of 'same'"),
    (lambda: pmap(lambda x: (x, "text"))(X), NotAnArray, r"returned at \[1\] 'text'"),
    (
        lambda: pmap(lambda x, n: x, static_broadcasted_argnums=1)(X, [1]),
        UnhashableStaticArgument, "'n'",
    ),
    (
        lambda: pmap(add, static_broadcasted_argnums=1, donate_argnums=1), ArgumentError,
        "cannot be static and donated",
    ),
    (lambda: pmap(3), ArgumentError, "takes a function; got 3"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), REFUSED, ids=[row[2] for row in REFUSED])
def test_wrong_calls_name_the_mistake(
    call: Callable[[], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        call()


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
