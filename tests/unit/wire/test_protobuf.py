"""Protocol buffers written and read, malformed ones refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugrt.wire import protobuf


def test_fields() -> None:
    data = bytes([0x08, 0x96, 0x01, 0x12, 2, 65, 66, 0x1D, 1, 0, 0, 0, 0x21, *[0] * 8])
    found = [(n, v if isinstance(v, int) else bytes(v)) for n, v in protobuf.fields(data)]
    assert found == [(1, 150), (2, b"AB"), (3, b"\1\0\0\0"), (4, b"\0" * 8)]
    assert list(protobuf.fields(b"")) == []


def test_integers_packed_and_not() -> None:
    assert protobuf.integers(bytes([0x08, 5, 0x0A, 3, 1, 0x96, 1, 0x10, 9]), 1) == [5, 1, 150]


def test_messages() -> None:
    assert [bytes(m) for m in protobuf.messages(bytes([0x0A, 1, 7, 0x10, 1, 0x0A, 0]), 1)] == [
        b"\7",
        b"",
    ]


@pytest.mark.parametrize("read", [protobuf.messages, protobuf.integers])
def test_a_wrong_wire_type_is_named(read: Callable[[protobuf.Content, int], object]) -> None:
    """Earlier, an integer for a message was skipped, and 8 bytes were read as packed integers."""
    right = {protobuf.messages: {2}, protobuf.integers: {0, 2}}[read]
    for wire_type, value in ((0, b"\5"), (1, b"12345678"), (2, b"\2ab"), (5, b"1234")):
        data = bytes([7 << 3 | wire_type]) + value
        read(data, 6)
        if wire_type in right:
            read(data, 7)
            continue
        with pytest.raises(ValueError, match=f"field 7 .* has the wire type {wire_type}, and"):
            read(data, 7)


@pytest.mark.parametrize(
    "data", [b"\x08", b"\x0a\x05ab", b"\x00\x01", b"\x0b", b"\x0f", b"\xff" * 12, b"\x1d\x00"]
)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ValueError):
        list(protobuf.fields(data))


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"", 0),
        (b"\x08\x00", 2),  # a value of 0 does not end the message
        (b"\x08\x05\x00", 2),
        (b"\x0a\x02\x00\x00\x00\x00", 4),
        (b"\x00", 0),
        (b"\x08\x05\x00\x08\x05", 5),  # fields after the zero: malformed
        (b"\x08\x05\x0b", 3),  # malformed: left to the reader
        (b"\x08\x05\x0a\x09ab", 6),
    ],
)
def test_the_end_of_a_message_that_nuls_follow(data: bytes, end: int) -> None:
    assert protobuf.find_end(data) == end


@given(st.binary(max_size=64))
def test_never_anything_but_a_value_error(data: bytes) -> None:
    try:
        found = list(protobuf.fields(data))
    except ValueError:
        return
    assert all(number > 0 and isinstance(value, int | memoryview) for number, value in found)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (-1, b"\xff" * 9 + b"\x01"),
    ],
)
def test_varint(value: int, encoded: bytes) -> None:
    assert protobuf.varint(value) == encoded


@given(st.lists(st.tuples(st.integers(1, 1000), st.one_of(st.integers(0, 2**64 - 1), st.binary()))))
def test_fields_are_read_back(items: list[tuple[int, int | bytes]]) -> None:
    encoded = b"".join(
        protobuf.integer(n, v) if isinstance(v, int) else protobuf.message(n, v) for n, v in items
    )
    assert list(protobuf.fields(encoded)) == items


def test_fields_are_left_out_also_of_messages_within() -> None:
    inner = protobuf.integer(1, 7) + protobuf.integer(2, 300)
    data = (
        protobuf.integer(1, 5)
        + protobuf.message(2, inner)
        + protobuf.fixed64(3, b"12345678")
        + protobuf.message(2, inner + protobuf.message(4, b"abc"))
        + protobuf.integer(5, 1)
    )
    assert protobuf.without(data, {}) == data
    left = protobuf.without(data, {1: None, 2: {1: None}, 3: None})
    within = protobuf.integer(2, 300)
    assert left == (
        protobuf.message(2, within)
        + protobuf.message(2, within + protobuf.message(4, b"abc"))
        + protobuf.integer(5, 1)
    )
    with pytest.raises(ValueError, match="ends inside a field"):
        protobuf.without(data[:-3], {5: None})
