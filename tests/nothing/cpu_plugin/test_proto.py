"""Reading protobuf's wire format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugrt_cpu import proto


def test_fields() -> None:
    data = bytes([0x08, 0x96, 0x01, 0x12, 2, 65, 66, 0x1D, 1, 0, 0, 0, 0x21, *[0] * 8])
    found = [(n, v if isinstance(v, int) else bytes(v)) for n, v in proto.fields(data)]
    assert found == [(1, 150), (2, b"AB"), (3, b"\1\0\0\0"), (4, b"\0" * 8)]
    assert list(proto.fields(b"")) == []


def test_integers_packed_and_not() -> None:
    assert proto.integers(bytes([0x08, 5, 0x0A, 3, 1, 0x96, 1, 0x10, 9]), 1) == [5, 1, 150]


def test_messages() -> None:
    assert [bytes(m) for m in proto.messages(bytes([0x0A, 1, 7, 0x08, 1, 0x0A, 0]), 1)] == [
        b"\7",
        b"",
    ]


@pytest.mark.parametrize(
    "data", [b"\x08", b"\x0a\x05ab", b"\x00\x01", b"\x0b", b"\x0f", b"\xff" * 12, b"\x1d\x00"]
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ValueError):
        list(proto.fields(data))


@given(st.binary(max_size=64))
def test_never_anything_but_a_value_error(data: bytes) -> None:
    try:
        found = list(proto.fields(data))
    except ValueError:
        return
    assert all(number > 0 and isinstance(value, int | memoryview) for number, value in found)
