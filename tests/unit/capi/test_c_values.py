"""Values across the C boundary, options, layouts and envelopes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.capi.abi import c_values, element_types
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers import buffer_spec
from plugrt.capi.client.create import check_options
from plugrt.errors import InvalidArgument, UnsupportedDtype

OPTIONS: dict[str, Any] = {
    "text": "héllo", "empty": "", "number": -(1 << 62), "numpy": np.int32(4), "flag": True,
    "real": 0.25, "list": [1, -2, 3], "none": [],
}  # fmt: skip


def test_named_values_there_and_back() -> None:
    array, count, _keep = c_values.named_values(OPTIONS)
    assert c_values.read_named_values(array, count) == OPTIONS


@pytest.mark.parametrize(
    "value", [None, object(), b"bytes", ["a"], [True], {"a": 1}, 1 << 63, [1 << 70], 1j]
)
def test_value_that_no_option_can_have(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="the option 'odd'"):
        c_values.named_values({"odd": value})


@pytest.mark.parametrize("value", ["two", True, 1.0, [1], None])
def test_option_whose_type_would_end_the_process(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="'cpu_device_count' of 'x' must be of type int"):
        check_options({"cpu_device_count": value}, None, "x")


def test_option_types_of_a_plugin() -> None:
    check_options({"a": 1.5, "b": (1, 2), "c": "x", "d": False, "e": 5}, {
        "a": float, "b": list, "c": str, "d": bool, "e": int, "absent": str,
    }, "x")  # fmt: skip
    with pytest.raises(InvalidArgument, match="'a' of 'x' must be of type float"):
        check_options({"a": True}, {"a": float}, "x")


def test_text_without_an_end_and_without_a_place() -> None:
    assert c_values.text(ffi.new("char[]", b"abcdef"), 3) == "abc"
    assert c_values.text(ffi.NULL, 100) == ""
    assert c_values.unpack(ffi.NULL, 5) == []


def test_every_dtype_has_one_type_and_back() -> None:
    assert len(element_types.ELEMENT_TYPES) == len(set(element_types.ELEMENT_TYPES.values()))
    for dtype, value in element_types.ELEMENT_TYPES.items():
        assert element_types.element_type_to_dtype(value) == dtype
    assert element_types.dtype_to_element_type(np.dtype(np.float32), 29) == 11
    assert element_types.dtype_to_element_type(np.dtype(ml_dtypes.bfloat16), 29) == 13


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", ">f4", "S2", [("a", "i4")]])
def test_dtype_that_pjrt_lacks(dtype: Any) -> None:
    with pytest.raises(UnsupportedDtype, match="no PJRT element type"):
        element_types.dtype_to_element_type(np.dtype(dtype), 114)


def test_dtype_that_a_library_is_too_old_for() -> None:
    fp4 = np.dtype(ml_dtypes.float4_e2m1fn)
    assert element_types.dtype_to_element_type(fp4, 63) == 29
    with pytest.raises(UnsupportedDtype, match=r"came with version 0.63 .* has 0.62"):
        element_types.dtype_to_element_type(fp4, 62)
    assert "float4_e2m1fn" not in element_types.supported_dtypes(62)


def test_unknown_element_type() -> None:
    with pytest.raises(UnsupportedDtype, match="element type 999"):
        element_types.element_type_to_dtype(999)


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((2, 3), None, [1, 0]),
        ((2, 3), (3, 1), [1, 0]),
        ((2, 3), (1, 2), [0, 1]),
        ((2, 3, 4), (4, 8, 1), [2, 0, 1]),
        ((), None, []),
    ],
)
def test_layout_of_strides(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, order: list[int]
) -> None:
    layout, _keep = buffer_spec.make_layout(shape, strides)
    tiled = layout.tiled
    assert c_values.unpack(tiled.minor_to_major, tiled.minor_to_major_size) == order


@pytest.mark.parametrize("strides", [(4, 1), (0, 1), (3, 2), (-3, 1)])
def test_strides_with_gaps_or_overlap(strides: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgument, match="gaps in its memory or overlaps"):
        buffer_spec.make_layout((2, 3), strides)
