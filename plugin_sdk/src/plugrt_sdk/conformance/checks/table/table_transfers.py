"""Level 1 of PJRT libraries: arrays whose contents arrive later, in parts or from a buffer."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import ELEMENT_TYPES
from plugrt.capi.buffers.buffer_spec import row_major
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.checks.table.table_buffers import expect_on
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.sweeps import in_another_thread, within_limits
from plugrt_sdk.conformance.table_arrays import Arrays, Placed
from plugrt_sdk.conformance.table_client import FLOAT32, UNIMPLEMENTED, TableClient
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "table_transfers", Level.BUFFERS, "pjrt_c_api.h: PJRT_AsyncHostToDeviceTransferManager_*",
    needs=Needs.LIBRARY_CLIENT,
)  # fmt: skip

_MANAGER = "AsyncHostToDeviceTransferManager"
_ARRAYS = (np.arange(12, dtype=np.float32).reshape(3, 4), np.full(5, 7, np.float32))
_DATA_LOSS, _UINT32 = 15, 8
_TIMES = 1001
_WORDS = b"the cable was cut"


class _Transfer:
    """A transfer manager for arrays like ``_ARRAYS``, in the memory of the first device."""

    def __init__(self, client: TableClient) -> None:
        self.client, self.device = client, client.devices()[0]
        specs = client.keep(ffi.new("PJRT_ShapeSpec[]", len(_ARRAYS)))
        for spec, array in zip(specs, _ARRAYS, strict=True):
            spec.struct_size = ffi.sizeof("PJRT_ShapeSpec")
            spec.dims = client.keep(ffi.new("int64_t[]", array.shape))
            spec.num_dims, spec.element_type = array.ndim, FLOAT32
        memory = client.call("Device_DefaultMemory", device=self.device).memory
        self._manager = client.call(
            "Client_CreateBuffersForAsyncHostToDevice", client=client.handle, shape_specs=specs,
            num_shape_specs=len(_ARRAYS), memory=memory,
        ).transfer_manager  # fmt: skip

    def call(self, name: str, **fields: Any) -> Any:
        """Calls a function of the manager, which must succeed."""
        return self.client.call(f"{_MANAGER}_{name}", transfer_manager=self._manager, **fields)

    def buffers(self) -> list[Any]:
        """Returns the arrays, whose contents may not have arrived."""
        return [self.call("RetrieveBuffer", buffer_index=i).buffer_out for i in range(len(_ARRAYS))]

    def send(self, index: int, begin: int, end: int, *, last: bool) -> None:
        """Sends the bytes of one array from ``begin`` to ``end``, and waits until they are sent."""
        content = self.client.keep(_ARRAYS[index].tobytes()[begin:end])
        event = self.call(
            "TransferData", buffer_index=index, data=self.client.keep(ffi.from_buffer(content)),
            offset=begin, transfer_size=end - begin, is_last_transfer=last,
        ).done_with_h2d_transfer  # fmt: skip
        self.client.expect_ready(event, "done_with_h2d_transfer")
        expect_equal(self.client.finish(event), None, "no error of a transfer:")


def _is_ready(client: TableClient, buffer: Any) -> bool:
    event = client.call("Buffer_ReadyEvent", buffer=buffer).event
    found = client.is_ready(event)
    client.call("Event_Destroy", event=event)
    return found


def _error_of(client: TableClient, buffer: Any) -> Any:
    """Waits for an array, and returns its error."""
    event = client.call("Buffer_ReadyEvent", buffer=buffer).event
    client.expect_ready(event, "an array")
    return client.finish(event)


def _expect_content(client: TableClient, buffer: Any, wanted: Array, what: str) -> None:
    expect_equal(_error_of(client, buffer), None, f"no error of {what}:")
    found = client.get(buffer, wanted.size).reshape(wanted.shape)
    expect_same_bits(found, wanted, what)


@CHAPTER.check("facts", refusable=True, why="hosts send arrays to another device, or cut them off")
def facts(subject: PluginSubject) -> None:
    """A transfer states the device, the number of arrays, and the bytes of each."""
    transfer = _Transfer(TableClient.of(subject))
    device = transfer.call("Device").device_out
    expect(device == transfer.device, "the device that was named", "another address")
    expect_equal(transfer.call("BufferCount").buffer_count, len(_ARRAYS), "buffer_count")
    sizes = [transfer.call("BufferSize", buffer_index=i).buffer_size for i in range(2)]
    expect_equal(sizes, [array.nbytes for array in _ARRAYS], "buffer_size of each")
    transfer.call("Destroy")


@CHAPTER.check(
    "parts", refusable=True,
    why="large arrays, which hosts send in parts, arrive with some in the wrong place",
)  # fmt: skip
def parts(subject: PluginSubject) -> None:
    """An array that is sent in parts, the last one first, is ready after the last call.

    Bytes are sent to each device a thousand times, and by another thread.
    """
    client = TableClient.of(subject)
    transfer = _Transfer(client)
    first, second = transfer.buffers()
    expect_equal(_is_ready(client, first), False, "before anything is sent, is_ready:")
    transfer.send(0, 24, 48, last=False)
    transfer.send(1, 0, 20, last=True)
    _expect_content(client, second, _ARRAYS[1], "the array that was sent at once")
    expect_equal(_is_ready(client, first), False, "before all is sent, is_ready:")
    transfer.send(0, 0, 24, last=True)
    transfer.call("Destroy")
    _expect_content(client, first, _ARRAYS[0], "the array that was sent in parts")
    expect_on(client, first, transfer.device, "the array")
    arrays = Arrays.of(subject)
    in_another_thread(partial(_send_often, arrays, 2))
    _send_often(arrays, _TIMES)


def _send_often(arrays: Arrays, times: int) -> None:
    """Sends bytes to each device in two parts, of varying sizes, and reads them."""
    client, random = arrays.client, np.random.default_rng(_TIMES)
    shape = ffi.new("PJRT_ShapeSpec*")
    dims = ffi.new("int64_t*")
    shape.struct_size, shape.dims, shape.num_dims = ffi.sizeof("PJRT_ShapeSpec"), dims, 1
    shape.element_type = ELEMENT_TYPES[np.dtype(np.uint8)]
    memories = [arrays.call("Device_DefaultMemory", device=d).memory for d in arrays.devices]
    for number, (place, memory) in within_limits(product(range(times), enumerate(memories))):
        sent = random.integers(0, 256, 2 + 7 * number % 257, np.uint8)
        dims[0] = sent.size
        made = arrays.call(
            "Client_CreateBuffersForAsyncHostToDevice", client=client.handle, shape_specs=shape,
            num_shape_specs=1, memory=memory,
        )  # fmt: skip
        manager = made.transfer_manager
        name = f"{_MANAGER}_RetrieveBuffer"
        buffer = arrays.call(name, transfer_manager=manager, buffer_index=0).buffer_out
        half = sent.size // 2
        for begin, end in ((half, sent.size), (0, half)):
            event = arrays.call(
                f"{_MANAGER}_TransferData", transfer_manager=manager, buffer_index=0,
                data=ffi.cast("void*", sent.ctypes.data + begin), offset=begin,
                transfer_size=end - begin, is_last_transfer=not begin,
            ).done_with_h2d_transfer  # fmt: skip
            arrays.finish(event, "a transfer")
        arrays.call(f"{_MANAGER}_Destroy", transfer_manager=manager)
        arrays.expect_read(buffer, sent, f"transfer {number}: {Placed(sent, place).what}")
        arrays.destroy(buffer)


@CHAPTER.check(
    "failed", refusable=True, rests_on=f"pjrt_c_api.h: PJRT_{_MANAGER}_SetBufferError",
    why="a host waits for ever for data that it could not read, or computes without them",
)  # fmt: skip
def failed(subject: PluginSubject) -> None:
    """An array whose transfer failed has that error, and the other array has none."""
    client = TableClient.of(subject)
    transfer = _Transfer(client)
    first, second = transfer.buffers()
    words = client.keep(ffi.new("char[]", _WORDS))
    transfer.call(
        "SetBufferError", buffer_index=0, error_code=_DATA_LOSS, error_message=words,
        error_message_size=len(_WORDS),
    )  # fmt: skip
    error = _error_of(client, first)
    expect(error and error[0] == _DATA_LOSS and _WORDS.decode() in error[1],
           f"of its ready event, code {_DATA_LOSS}: {_WORDS.decode()}", error)  # fmt: skip
    transfer.send(1, 0, 20, last=True)
    _expect_content(client, second, _ARRAYS[1], "the other array")
    transfer.call("Destroy")


def _promised(client: TableClient, **fields: Any) -> Any:
    """Returns the results of `PJRT_Client_CreateAliasBuffer` for an array like ``ONE``."""
    memory = client.call("Device_DefaultMemory", device=client.devices()[0]).memory
    args = client.args(
        "Client_CreateAliasBuffer", client=client.handle, memory=memory,
        shape_dims=client.keep(ffi.new("int64_t[]", ONE.shape)), shape_num_dims=1,
        shape_element_type=FLOAT32, **fields,
    )  # fmt: skip
    return args, client.try_args("Client_CreateAliasBuffer", args)


@CHAPTER.check(
    "alias.layout", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Client_CreateAliasBuffer, PJRT_Client_FulfillAliasBuffer",
    why="a host that was promised an array reads another, or waits for ever",
)  # fmt: skip
def alias(subject: PluginSubject) -> None:
    """A promised array is not ready before it gets another's contents, and has them then."""
    client = TableClient.of(subject)
    layout, order = row_major(1)
    client.keep(order)
    made, failed = _promised(client, shape_layout=client.keep(layout))
    if failed and failed[0] == UNIMPLEMENTED:
        subject.refuse(failed[1])
    expect(failed is None, "PJRT_Client_CreateAliasBuffer to succeed", failed)
    expect_equal(_is_ready(client, made.alias_buffer), False, "before it is given, is_ready:")
    client.call(
        "Client_FulfillAliasBuffer", client=client.handle, buffer=client.put(ONE), status_code=0,
        fulfill_alias_buffer_cb=made.fulfill_alias_buffer_cb,
    )  # fmt: skip
    _expect_content(client, made.alias_buffer, ONE, "the promised array")


@CHAPTER.check(
    "alias.no_layout", refusable=True, rests_on="pjrt_c_api.h: PJRT_Client_CreateAliasBuffer",
    why="a host that names no layout for a promised array ends in the library",
)  # fmt: skip
def alias_without_layout(subject: PluginSubject) -> None:
    """A promise of an array without a layout, which the header leaves open, is kept or refused."""
    client = TableClient.of(subject)
    made, failed = _promised(client)
    if failed:
        subject.refuse(failed[1])
    expect_equal(_is_ready(client, made.alias_buffer), False, "before it is given, is_ready:")


@CHAPTER.check(
    "bitcast", refusable=True, rests_on="pjrt_c_api.h: PJRT_Buffer_Bitcast",
    why="hosts that look at an array's bits see other ones",
)  # fmt: skip
def bitcast(subject: PluginSubject) -> None:
    """An array that is viewed as another dtype and shape has both, and the same bytes."""
    client = TableClient.of(subject)
    made = client.call(
        "Buffer_Bitcast", buffer=client.put(ONE), element_type=_UINT32,
        dims=client.keep(ffi.new("int64_t[]", [3, 1])), num_dims=2,
    ).out_buffer  # fmt: skip
    kind = int(client.call("Buffer_ElementType", buffer=made).type)
    expect_equal(kind, _UINT32, "the element type")
    found = client.call("Buffer_Dimensions", buffer=made)
    expect_equal(ffi.unpack(found.dims, found.num_dims), [3, 1], "the dimensions")
    _expect_content(client, made, ONE, "the bytes, as float32,")
