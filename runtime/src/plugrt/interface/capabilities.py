"""`Capabilities`: the abilities that a backend declares."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from plugrt.interface.checks import require_number


def _capability(sentence: str, default: bool | None = False) -> Any:
    return field(default=default, metadata={"says": sentence})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The features that a backend declares; it must refuse the others with a clear error.

    The metadata of each boolean and of two numbers has the sentence that reports print for it (key
    ``says``). ``max_blocking_launches`` limits the number of running launches whose devices
    exchange data or that call Python functions, counting also launches queued after one of them;
    None means no limit. At the limit, plugrt waits for the oldest before it launches one more,
    unless such a function makes the launch. ``tuple_arguments_above``: programs with more
    parameters are compiled with ``CompileOptions.parameter_is_tupled``; None means no program.
    Launches pass the arguments one by one in either case.
    """

    asynchronous_dispatch: bool = _capability("execute returns before the computation has finished")
    donation: bool = _capability("a donated argument's memory is reused for results")
    zero_copy_put: bool = _capability("aligned host memory can become a buffer without a copy")
    zero_copy_get: bool = _capability("a buffer can be read on the host without a copy")
    executable_serialization: bool = _capability("an executable can be saved and loaded again")
    cost_analysis: bool = _capability("an executable states its flops and bytes accessed")
    memory_analysis: bool = _capability("an executable states the memory that it needs")
    optimized_program: bool = _capability("the optimised program can be read back")
    fingerprint: bool = _capability("equal programs have equal fingerprints")
    multiple_devices: bool = _capability("one launch can run on several devices")
    partitions: bool = _capability("one program can be partitioned over devices (SPMD)")
    auto_partitioning: bool = _capability(
        "the compiler can choose how arguments are divided (AUTO)"
    )
    collectives: bool = _capability("devices of one launch can exchange data")
    memory_kinds: bool = _capability("a device has memories besides its default one")
    layouts: bool = _capability("arrays can have a layout that the caller chooses")
    layout_put: bool = _capability("a host array can be put in such an order at once")
    device_to_device_copy: bool = _capability("a buffer can be copied to another device directly")
    copies_between_processes: bool = _capability(
        "a buffer can be copied directly to another process's device (where that is set up)"
    )
    memory_stats: bool = _capability("a device states how much of its memory is in use")
    dlpack: bool = _capability("buffers can be exchanged through DLPack")
    unsafe_pointer: bool = _capability("the address of a buffer's memory can be read")
    strided_put: bool = _capability("strided host arrays can be put without a host-side copy")
    topology: bool = _capability("programs can be compiled for devices that are not there")
    custom_calls: bool = _capability("handlers for custom calls can be registered")
    host_callbacks: bool = _capability("a program can call Python functions while it runs")
    late_errors: bool = _capability(
        "errors of puts and launches may surface when a result is read or awaited"
    )
    max_blocking_launches: int | None = _capability(
        "launches at once that exchange data or call Python (plugrt waits for the oldest)", None
    )
    tuple_arguments_above: int | None = _capability(
        "parameters above which a program takes them as one tuple", None
    )
    program_formats: tuple[str, ...] = ("mlir",)
    stablehlo_current_version: tuple[int, int, int] | None = None
    stablehlo_minimum_version: tuple[int, int, int] | None = None
    dtypes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, least in (("max_blocking_launches", 1), ("tuple_arguments_above", 0)):
            require_number(name, getattr(self, name), least)

    def sentences(self) -> dict[str, tuple[bool | int | None, str]]:
        """Returns field name to (what is declared, sentence), for the fields that have one."""
        return {
            f.name: (getattr(self, f.name), f.metadata["says"])
            for f in fields(self)
            if "says" in f.metadata
        }
