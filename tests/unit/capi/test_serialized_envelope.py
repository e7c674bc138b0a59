"""Reading a damaged envelope of an executable raises a plugrt error or returns the saved bytes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugrt.capi import load_library
from plugrt.capi.library.serialized_envelope import (
    SEALED,
    Origin,
    check_platform,
    decode_envelope,
    encode_envelope,
)
from plugrt.errors import DataLoss, FailedPrecondition, InvalidArgument
from support.changed_headers import join
from support.clib import needs_cc, tiny_library

pytestmark = needs_cc

PAYLOAD = b"what a library wrote\nin two lines"


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    path = tiny_library(tmp_path_factory.mktemp("tiny"))
    return Origin(load_library(path), "tiny", "1.0")


def envelope(header: Any, payload: bytes = PAYLOAD) -> bytes:
    """Returns an envelope of any header, with a valid checksum."""
    return join(SEALED.magic, header, payload)


def test_an_envelope_is_decoded(origin: Origin) -> None:
    opened = decode_envelope(encode_envelope(PAYLOAD, origin, b"\x00abi"))
    assert (opened.payload, opened.abi) == (PAYLOAD, b"\x00abi")
    assert check_platform(opened, origin) == []


GOOD = {"platform": "tiny", "platform_version": "1.0", "pjrt_api": [0, 1], "attributes": {}}


@pytest.mark.parametrize(
    "header",
    [
        {}, [], [1, 2], "platform", 7, None, {"facts": GOOD}, {"abi": None}, GOOD,
        {"facts": GOOD, "abi": 5}, {"facts": GOOD, "abi": "%%%"}, {"facts": GOOD, "abi": ["AA=="]},
        {"facts": GOOD, "abi": None, "sha256": ""},
        *({"facts": {**GOOD, "platform": value}, "abi": None} for value in (3, None, ["tiny"])),
        {"facts": {**GOOD, "attributes": {"x": {}}}, "abi": None},
        {"facts": {**GOOD, "pjrt_api": [0, True]}, "abi": None},
    ],
)  # fmt: skip
def test_headers_that_plugrt_never_writes(origin: Origin, header: Any) -> None:
    with pytest.raises(DataLoss, match="damaged"):
        check_platform(decode_envelope(envelope(header)), origin)


@given(st.data())
def test_any_damage(origin: Origin, data: st.DataObject) -> None:
    whole = encode_envelope(PAYLOAD, origin, base64.b64decode("YWJp"))
    place = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 20))
    damaged = whole[:place] + data.draw(st.binary(max_size=20)) + whole[place + length :]
    try:
        opened = decode_envelope(damaged)
        differences = check_platform(opened, origin)
    except (DataLoss, FailedPrecondition, InvalidArgument):
        return
    # Without its first line it belongs to another host.
    assert opened.facts is None or (not differences and opened.payload == PAYLOAD)


def test_this_file_is_no_executable(origin: Origin) -> None:
    opened = decode_envelope(Path(__file__).read_bytes())
    assert opened.facts is None
