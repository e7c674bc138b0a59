"""safetensors: files in the published layout, and other files, which are refused."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt.errors import DataLoss, DtypeError
from plugrt.wire.safetensors import read_arrays, write_arrays


def make(header: Any, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [*shape], "data_offsets": [*offsets]}


def test_the_published_layout_is_read_and_written() -> None:
    data = np.float32([1, 2]).tobytes() + np.int8([3]).tobytes()
    header = {"__metadata__": {"format": "pt"}, "b": entry("I8", (1, 1), (8, 9)), "a": entry()}
    found = read_arrays(make(header, data))
    assert [*found] == ["b", "a"]
    assert found["a"].tolist() == [1, 2]
    assert found["b"].tolist() == [[3]]
    arrays = {
        dtype: np.ones((2, 0, 3) if dtype == "bool" else (2, 1), getattr(ml_dtypes, dtype, dtype))
        for dtype in ("bool", "bfloat16", "float8_e4m3fn", "complex64", "uint64", "float16")
    }
    read = read_arrays(write_arrays(arrays))
    assert {name: (x.dtype, x.shape) for name, x in read.items()} == {
        name: (x.dtype, x.shape) for name, x in arrays.items()
    }
    assert read_arrays(write_arrays({})) == {}
    with pytest.raises(DtypeError, match="complex128"):
        write_arrays({"x": np.zeros(2, np.complex128)})


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\0" * 7, b"\xff" * 16, make([], b""), make({"a": 3}, b""),
        make({"a": entry("F33")}, bytes(8)), make({"a": entry()}, bytes(7)),
        make({"a": entry()}, bytes(9)), make({"a": entry(shape=(3,))}, bytes(8)),
        make({"a": entry(), "b": entry()}, bytes(8)), make({"a": entry(shape=(-2, -1))}, bytes(8)),
        make({"a": entry(offsets=(8, 0))}, bytes(8)),
        make({"a": entry(shape=(2**62, 4))}, bytes(8)),
    ],
    ids=range(13),
)  # fmt: skip
def test_other_bytes_are_data_loss(content: bytes) -> None:
    with pytest.raises(DataLoss):
        read_arrays(content)
