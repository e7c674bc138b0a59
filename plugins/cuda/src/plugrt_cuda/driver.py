"""`compute_capabilities`: the GPUs' compute capabilities, read from the CUDA driver."""

from __future__ import annotations

import ctypes

_MAJOR, _MINOR = 75, 76
"""``CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`` and ``_MINOR``."""


def compute_capabilities(library: str = "libcuda.so.1") -> list[int]:
    """Returns the compute capability of each visible GPU times ten (90 for 9.0).

    Empty without a driver, or where it does not start: starting the PJRT library then fails with a
    better message.
    """
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return []
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    return [_capability(driver, index) for index in range(count.value)]


def _capability(driver: ctypes.CDLL, index: int) -> int:
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
    return 10 * major.value + minor.value
