"""The names of GPU topologies, and their options for a PJRT library for CUDA."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from plugrt.errors import InvalidArgument
from plugrt.interface import OptionValue
from plugrt_cuda.gpu_targets import TARGETS

GRAMMAR = (
    "a name is GPU, GPU:DEVICES or GPU:PARTITIONSxHOSTSxDEVICES, such as h100, h100:8 or "
    f"h100:1x2x8; known GPUs: {', '.join(TARGETS)}. Any other is described with the option "
    "target_config=, the text of an XLA GpuTargetConfigProto"
)
_NAME = re.compile(r"(?P<gpu>[a-z0-9-]*)(:(?P<shape>\d+(x\d+x\d+)?))?")
NEEDED = (
    "threads_per_block_limit", "threads_per_warp", "shared_memory_per_block",
    "shared_memory_per_core", "threads_per_core_limit", "core_count", "fpus_per_core",
    "block_dim_limit_x", "block_dim_limit_y", "block_dim_limit_z", "memory_bandwidth",
    "l2_cache_size", "clock_rate_ghz", "device_memory_size", "shared_memory_per_block_optin",
    "registers_per_core_limit", "registers_per_block_limit",
)  # fmt: skip
"""Fields of ``gpu_device_info`` without which a real library ends the process (SIGFPE)."""


def library_options(name: str, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Returns the options ``target_config`` and ``topology`` for a name, and the given ones.

    Raises `InvalidArgument` with the grammar for an invalid name, and for a description without
    fields that the compiler needs.
    """
    found = _NAME.fullmatch(name.strip().lower())
    if found is None:
        raise InvalidArgument(f"{name!r} names no GPU topology; {GRAMMAR}")
    ready = dict(options)
    config = ready.setdefault("target_config", _description(found["gpu"], name, options))
    if not isinstance(config, str):
        raise InvalidArgument(f"the option target_config is a text; it is {config!r:.60}")
    missing = [field for field in NEEDED if not re.search(rf"\b{field}\s*:", config)]
    if missing:
        raise InvalidArgument(
            f"the option target_config lacks {', '.join(missing)}, without which the compiler "
            "ends the process"
        )
    shape = ready.setdefault("topology", found["shape"] or "1")
    text = f"1x1x{shape}" if str(shape).isdecimal() else str(shape)
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*x[1-9]\d*", text):
        raise InvalidArgument(
            f"the topology {shape!r} is not partitions x hosts x devices, such as 1x1x8"
        )
    ready["topology"] = text
    return ready


def _description(gpu: str, name: str, options: Mapping[str, OptionValue]) -> str:
    if "target_config" in options:
        return ""  # setdefault will not use it
    if gpu in TARGETS:
        return TARGETS[gpu].text()
    close = get_close_matches(gpu, TARGETS, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidArgument(f"{name!r} names no GPU that is known here; {hint}{GRAMMAR}")
