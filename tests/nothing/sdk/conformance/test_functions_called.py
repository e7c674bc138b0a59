"""A check calls each function of the PJRT API, or a list has the reason why none does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mutants.tables import TableFaults, keep
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance import Needs
from plugrt_sdk.conformance.function_table import SLOTS
from support import kit
from support.apart import runs_apart

pytestmark = [runs_apart("sdk"), pytest.mark.long]

OF_ONE_BODY = (
    "operations.",
    "composites.",
    "random.",
    "collectives.",
    "buffers.views.",
    "effects.",
)
"""Chapters of many checks that call the same functions as others."""
NOT_CALLED = {
    "CopyToDeviceStream_": "streams that only a recv operation of a program hands over",
    "Client_Dma": "pins memory of the host: there is nothing to see",
    "Client_UpdateGlobalProcessInfo": "takes what a coordination service knows",
    "Buffer_CopyRawToHostFuture": "as Buffer_CopyRawToHost, with a destination that comes later",
    "Buffer_DonateWithControlDependency": "no host is known that calls it",
    "Device_PoisonExecution": "needs a launch that has not begun",
    "Device_CreateAsyncTrackingEvent": "events of a profiler's",
    "AsyncTrackingEvent_Destroy": "events of a profiler's",
    "Device_ClearMemoryStats": "no host is known that calls it",
    "AsyncHostToDeviceTransferManager_AddMetadata": "what is said of a transfer has no effect",
    "AsyncHostToDeviceTransferManager_TransferLiteral": "as TransferData, of a whole literal",
    "LoadedExecutable_Fingerprint": "deprecated for Executable_Fingerprint",
    "Memory_Kind_Id": "a number that nothing else refers to",
    "TopologyDescription_MakeCanonicalShapeForMemorySpace": "a shape of XLA's own",
    "TopologyDescription_GetMemorySpaceKindIds": "numbers that nothing else refers to",
    "TopologyDescription_Deserialize": "plugins make topologies, and not clients",
    "TopologyDescription_Destroy": "a client's topology is the client's",
}
"""Functions, or prefixes of several, to the reason why no check calls them."""


def counting(counts: Counter[str]) -> TableFaults:
    """Returns the sound library, with counted calls."""

    def change(table: Any) -> None:
        for name in SLOTS:
            function = getattr(table, name)
            count = counted(function, name)
            setattr(table, name, keep(ffi.callback(ffi.typeof(function), count)))

    def counted(function: Any, name: str) -> Any:
        def call(args: Any) -> Any:
            counts[name] += 1
            return function(args)

        return call

    return TableFaults(change, devices=2)


@pytest.mark.timeout(0)
def test_each_function_is_called() -> None:
    counts: Counter[str] = Counter()
    ids = [
        name
        for name, check in kit.checks().items()
        if check.needs is not Needs.PROCESS and not name.startswith(OF_ONE_BODY)
    ]
    found = dict(zip(ids, kit.judged(counting(counts).plugin_of, *ids), strict=True))
    assert not [name for name, result in found.items() if result.verdict.is_bad]
    uncalled = {name for name in SLOTS if not counts[name]}
    excused = {name for name in SLOTS if name.startswith(tuple(NOT_CALLED))}
    assert uncalled == excused
