"""Fields of DLPack's struct that the cpu client refuses."""

from __future__ import annotations

import numpy as np
import pytest

from plugrt import devices
from plugrt.errors import InvalidArgument, PlugrtError
from plugrt_cpu import dlpack


def test_memory_of_another_device() -> None:
    [device, *_] = devices("cpu")
    capsule = np.zeros(2).__dlpack__()
    tensor = dlpack._DLTensor.from_address(dlpack._get_pointer(capsule, b"dltensor"))
    tensor.device_type = 2  # CUDA
    with pytest.raises(InvalidArgument, match="device type 2"):
        device.client.buffer_from_dlpack(capsule, device)
    tensor.device_type, tensor.lanes = 1, 4
    with pytest.raises(PlugrtError, match="4 lanes"):
        device.client.buffer_from_dlpack(capsule, device)
