"""Values in messages: plain ones are restored, and no others are sent or read."""

from __future__ import annotations

from typing import Any

import pytest

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt_remote.values import ProtocolError, pack, unpack

VALUES = [
    None, True, False, 0, -(2**63), 2**63 - 1, 1.5, "", "é\ud800", b"\0\xff", [], {},
    [1, [2.0, "x"], {"a": None}], {"k": [True, b"b"]},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_and_each_beginning_of_it_is_refused(value: Any) -> None:
    packed = pack(value)
    assert unpack(packed) == value
    assert type(unpack(packed)) is type(value)
    for end in range(len(packed)):
        with pytest.raises(ProtocolError):
            unpack(packed[:end])


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"N" * 2, b"l\xff\xff\xff\xff", b"s\x01\0\0\0\xff", b"l\1\0\0\0" * 20 + b"N",
     b"m\1\0\0\0" + b"l\0\0\0\0" + b"N"],
    ids=["empty", "no type", "two", "too many", "no text", "deep", "list as a key"],
)  # fmt: skip
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpack(data)


def test_other_objects_are_not_sent() -> None:
    with pytest.raises(ArgumentTypeError, match="object"):
        pack([object()])
    with pytest.raises(InvalidArgument, match="64 bits"):
        pack(2**63)
