"""The capabilities that the cpu plugin declares."""

from __future__ import annotations

from functools import cache
from typing import Any

from plugrt.interface import Capabilities
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt_cpu.types import collect_dtypes


@cache
def stablehlo_versions() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Returns the (newest, oldest) version of StableHLO artifacts that this jaxlib reads."""
    stablehlo: Any = import_native("jaxlib.mlir.dialects.stablehlo")[0]
    return _version(stablehlo.get_current_version()), _version(stablehlo.get_minimum_version())


def _version(text: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, text.split("."))
    return major, minor, patch


_BLOCKING_LAUNCHES = 8
"""The bound on launches with collectives.

XLA's queues have 32 places a device, and one launch at a time fills them all with collectives just
as fast: measured on 2, 4 and 8 devices, a bound of 2 costs as little as one of 24, and 1 up to
twice as much. The other places are for launches on one device.
"""
_BLOCKING_LAUNCHES_ACROSS_PROCESSES = 4


@cache
def capabilities(
    asynchronous: bool, processes: int = 1, copies_between_processes: bool = False
) -> Capabilities:
    """Returns the declaration for a client that dispatches asynchronously, or not."""
    newest, oldest = stablehlo_versions()
    return Capabilities(
        asynchronous_dispatch=asynchronous,
        donation=True,
        zero_copy_put=True,
        zero_copy_get=True,
        executable_serialization=True,
        cost_analysis=True,
        memory_analysis=True,
        optimized_program=True,
        fingerprint=True,
        multiple_devices=True,
        partitions=True,
        collectives=True,
        memory_kinds=True,
        layouts=True,
        device_to_device_copy=True,
        copies_between_processes=copies_between_processes,
        memory_stats=False,
        dlpack=True,
        unsafe_pointer=True,
        strided_put=True,
        topology=False,
        custom_calls=True,
        host_callbacks=True,
        max_blocking_launches=(
            _BLOCKING_LAUNCHES if processes == 1 else _BLOCKING_LAUNCHES_ACROSS_PROCESSES
        ),
        program_formats=("mlir", "hlo"),
        stablehlo_current_version=newest,
        stablehlo_minimum_version=oldest,
        dtypes=frozenset(dtype.name for dtype in collect_dtypes()[0]),
    )
