"""`expect_as_noted`: the library's answers on an array are compared with plugrt's notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt.capi.abi._abi import ffi
from plugrt.interface import Client, Device
from plugrt_sdk.conformance.asking import expect_as_noted
from plugrt_sdk.conformance.expect import Mismatch
from support.library_client import client as client
from support.library_client import device as device
from support.library_client import library as library

DIMENSIONS = ffi.new("int64_t[2]", [3, 2])


def answer(**values: Any) -> Callable[[Any], Any]:
    """Returns a function of the table that returns these values and no error."""

    def function(args: Any) -> Any:
        for name, value in values.items():
            setattr(args, name, value)
        return ffi.NULL

    return function


ANSWERS: dict[str, dict[str, Any]] = {
    "Device": {"device": ffi.cast("PJRT_Device*", 64)},
    "Memory": {"memory": ffi.cast("PJRT_Memory*", 64)},
    "ElementType": {"type": 4},
    "Dimensions": {"dims": DIMENSIONS, "num_dims": 2},
    "IsDeleted": {"is_deleted": True},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_another_answer_than_plugrts_note_is_a_mismatch(
    client: Client, device: Device, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    buffer: Any = client.buffer_from_host(np.zeros((2, 3), np.float32), device)
    expect_as_noted(buffer)
    monkeypatch.setitem(client.library.slots, f"Buffer_{name}", answer(**ANSWERS[name]))  # type: ignore[attr-defined]
    with pytest.raises(Mismatch) as caught:
        expect_as_noted(buffer)
    assert f"PJRT_Buffer_{name}" in str(caught.value)


def test_other_objects_are_not_compared() -> None:
    expect_as_noted(object())
