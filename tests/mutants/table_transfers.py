"""Mutants of arrays whose contents arrive later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import before, every, then
from mutants.tables import TableFaults, keep, replace_function
from plugrt.capi.abi._abi import ffi

_MANAGER, _UNKNOWN = "AsyncHostToDeviceTransferManager", 2


def _count_elements(args: Any) -> None:
    args.buffer_size //= 4


def _lose_code(args: Any) -> None:
    args.error_code = _UNKNOWN


def _fail_promise(args: Any) -> None:
    args.status_code = 1


def _say_ready(args: Any) -> None:
    args.is_ready = True


def _keep_shape(args: Any) -> None:
    args.dims, args.num_dims = keep(ffi.new("int64_t[]", [3])), 1


def _swap_ends(args: Any) -> None:
    """Exchanges the first and the last byte of a part."""
    sent = ffi.buffer(args.data, args.transfer_size)
    if args.transfer_size:
        args.data = keep(ffi.new("char[]", sent[-1:] + sent[1:-1] + sent[:1]))


MUTANTS: Mapping[str, TableFaults] = {
    "table_transfers.facts": replace_function(f"{_MANAGER}_BufferSize", then(_count_elements)),
    "table_transfers.parts": replace_function(
        f"{_MANAGER}_TransferData", before(every(50, _swap_ends))
    ),
    "table_transfers.failed": replace_function(f"{_MANAGER}_SetBufferError", before(_lose_code)),
    "table_transfers.alias.layout": replace_function(
        "Client_FulfillAliasBuffer", before(_fail_promise)
    ),
    "table_transfers.alias.no_layout": replace_function("Event_IsReady", then(_say_ready)),
    "table_transfers.bitcast": replace_function("Buffer_Bitcast", before(_keep_shape)),
}
