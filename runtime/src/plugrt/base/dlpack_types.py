"""DLPack's device types: the memory that each means on a platform, and its streams."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex

from plugrt.errors import ArgumentError, ArgumentTypeError

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13
"""``kDLCPU`` and the others of ``DLDeviceType`` that plugrt knows."""

ON_HOST = frozenset({CPU, CUDA_HOST, ROCM_HOST})
"""Types of memory that the host reads in place; contents are complete when it is exported."""

OF_DEVICES: Mapping[str, int] = {"cuda": CUDA, "rocm": ROCM}
"""Platform name to the type of the memory of its devices."""

OF_PINNED_HOST: Mapping[str, int] = {"cuda": CUDA_HOST, "rocm": ROCM_HOST}
"""Platform name to the type of its memory kind ``pinned_host``."""

PLATFORMS: Mapping[int, str] = {CUDA: "cuda", CUDA_MANAGED: "cuda", ROCM: "rocm"}
"""Type of memory to the platform whose devices read it in place."""

NO_WAIT = -1
"""The ``stream`` that requests no synchronisation."""

_DISALLOWED = {CUDA: (0,), CUDA_MANAGED: (0,), ROCM: (1, 2)}


def require_stream(stream: object, device_type: int) -> int | None:
    """Returns the ``stream`` of a call of ``__dlpack__``, as an integer or None.

    The values are those of the array API standard: None and -1 (do not wait) for all memory; for
    CUDA 1 and 2 (the default streams) and handles above, for ROCm 0 and handles above 2. Raises
    `ArgumentTypeError` for an object that is no integer and `ArgumentError` for another value.
    """
    if stream is None:
        return None
    if isinstance(stream, bool) or not isinstance(stream, SupportsIndex):
        raise ArgumentTypeError(
            f"__dlpack__ got stream={stream!r:.60} of type {type(stream).__name__}; a stream is "
            "None or an integer"
        )
    number = operator.index(stream)
    if number == NO_WAIT:
        return number
    if device_type in ON_HOST:
        raise ArgumentError(
            f"__dlpack__ got stream={number} for an array in the host's memory (DLPack device type "
            f"{device_type}), which has no streams; pass None"
        )
    disallowed = _DISALLOWED.get(device_type, ())
    if number < NO_WAIT or number in disallowed:
        raise ArgumentError(
            f"__dlpack__ got stream={number} for an array of DLPack device type {device_type}; the "
            f"array API standard has None, -1 or a stream's handle there, and not "
            f"{', '.join(map(str, disallowed)) if number in disallowed else 'a negative one'}"
        )
    return number


def require_pair(pair: Any, name: str, what: str) -> tuple[int, int]:
    """Returns two integers of a call of ``__dlpack__``; `ArgumentTypeError` for other objects.

    Enumerations of integers, as PyTorch has for device types, are integers.
    """
    try:
        first, second = pair
        return operator.index(first), operator.index(second)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"__dlpack__ got {name}={pair!r:.60}; a pair of integers is expected, {what}"
        ) from None
