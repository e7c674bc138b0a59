"""Level 1 of PJRT libraries: when the host may change the source of a put."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.interface import HostBufferSemantics
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import Array, expect, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import TableClient

CHAPTER = Chapter(
    "table_puts", Level.BUFFERS, "pjrt_c_api.h: PJRT_HostBufferSemantics, done_with_host_buffer",
    needs=Needs.LIBRARY_CLIENT,
)  # fmt: skip

_COUNT, _ALIGNED = 4096, 4096


def _aligned() -> Array:
    """Returns numbers at the begin of a page, which a library need not copy to use."""
    memory = np.zeros(_COUNT * 4 + _ALIGNED, np.uint8)
    begin = -memory.ctypes.data % _ALIGNED
    found = memory[begin : begin + _COUNT * 4].view(np.float32)
    found[:] = np.arange(_COUNT)
    return found


def _put(client: TableClient, source: Array, semantics: HostBufferSemantics) -> Any:
    """Puts an array that is not copied before the call returns; returns the call's arguments."""
    args = client.put_args(source)
    args.data = client.keep(ffi.from_buffer(source))
    args.host_buffer_semantics = int(semantics)
    failed = client.try_args("Client_BufferFromHostBuffer", args)
    expect(failed is None, "PJRT_Client_BufferFromHostBuffer to succeed", failed)
    return args


def _keeps_its_contents(subject: PluginSubject, semantics: HostBufferSemantics) -> None:
    client, source = TableClient.of(subject), _aligned()
    wanted = source.copy()
    args = _put(client, source, semantics)
    event, lends = args.done_with_host_buffer, semantics.name.endswith("ZERO_COPY")
    if semantics is HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES:
        client.expect_ready(event, "done_with_host_buffer")
    if not lends or client.is_ready(event):
        source[:] = -1
    expect_same_bits(client.get(args.buffer, _COUNT), wanted, "the array")
    client.call("Buffer_Destroy", buffer=args.buffer)
    client.expect_ready(event, "done_with_host_buffer")
    client.finish(event)


for _member, _words in (
    (HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL, "after the call"),
    (HostBufferSemantics.IMMUTABLE_UNTIL_TRANSFER_COMPLETES, "once done_with_host_buffer is ready"),
    (HostBufferSemantics.IMMUTABLE_ZERO_COPY, "once done_with_host_buffer is ready"),
    (HostBufferSemantics.MUTABLE_ZERO_COPY, "once done_with_host_buffer is ready"),
):
    CHAPTER.add(
        _member.name.lower(),
        f"What is put under {_member.name} may change {_words}; that is so when the array is gone.",
        partial(_keeps_its_contents, semantics=_member),
        why="arrays change when the host reuses its memory, or the host never may",
    )
