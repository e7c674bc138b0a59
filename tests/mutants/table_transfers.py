"""Mutants of arrays whose contents arrive later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import before, then
from mutants.tables import TableFaults, keep, replace_function
from plugrt.capi.abi._abi import ffi

_MANAGER, _UNKNOWN = "AsyncHostToDeviceTransferManager", 2


def _count_elements(args: Any) -> None:
    args.buffer_size //= 4


def _send_to_begin(args: Any) -> None:
    args.offset = 0


def _lose_code(args: Any) -> None:
    args.error_code = _UNKNOWN


def _fail_promise(args: Any) -> None:
    args.status_code = 1


def _say_ready(args: Any) -> None:
    args.is_ready = True


def _keep_shape(args: Any) -> None:
    args.dims, args.num_dims = keep(ffi.new("int64_t[]", [3])), 1


MUTANTS: Mapping[str, TableFaults] = {
    "table_transfers.facts": replace_function(f"{_MANAGER}_BufferSize", then(_count_elements)),
    "table_transfers.parts": replace_function(f"{_MANAGER}_TransferData", before(_send_to_begin)),
    "table_transfers.failed": replace_function(f"{_MANAGER}_SetBufferError", before(_lose_code)),
    "table_transfers.alias.layout": replace_function(
        "Client_FulfillAliasBuffer", before(_fail_promise)
    ),
    "table_transfers.alias.no_layout": replace_function("Event_IsReady", then(_say_ready)),
    "table_transfers.bitcast": replace_function("Buffer_Bitcast", before(_keep_shape)),
}
