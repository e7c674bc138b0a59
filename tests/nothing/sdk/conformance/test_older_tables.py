"""A function that is newer than a library's table is not required of the library."""

from __future__ import annotations

import pytest

from mutants.tables import TableFaults
from plugrt.capi.abi._abi import ffi
from support import kit
from support.absent_core import needs_sdk_core

NEWER = {
    "abi.errors.payloads": "Error_ForEachPayload",
    "events.set": "Event_Create",
    "table_places.logical_ids": "LoadedExecutable_AddressableDeviceLogicalIds",
}
"""Each check to the function that it tests."""


@needs_sdk_core
@pytest.mark.parametrize("name", NEWER)
def test_a_check_does_not_apply_to_a_table_without_its_function(name: str) -> None:
    def cut(table: object) -> None:
        table.struct_size = ffi.offsetof("PJRT_Api", NEWER[name])  # type: ignore[attr-defined]

    [found] = kit.judged(TableFaults(cut).plugin_of, name)
    assert (found.verdict, found.applies) == ("NOT-RUN", False), found
    assert f"without PJRT_{NEWER[name].partition('_')[0]}_" in found.got + found.was, found
