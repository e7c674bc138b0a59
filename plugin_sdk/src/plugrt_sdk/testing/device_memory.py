"""How the memory that a device states to be in use grows with an array."""

from __future__ import annotations

import gc

import numpy as np

from plugrt.interface import Client, Device


def measure_growth(client: Client, device: Device) -> int:
    """Returns by how many bytes ``bytes_in_use`` of a device grows with an array of 2**18 bytes.

    That is the greatest of several measurements. An array of somebody else's that is released
    during one, by the garbage collector or by a thread that ends a launch, makes that one smaller.
    """
    host, found = np.zeros(1 << 16, np.float32), []
    for _ in range(5):
        gc.collect()
        before = device.memory_stats()["bytes_in_use"]
        array = client.buffer_from_host(host, device)
        array.block_until_ready()
        found.append(device.memory_stats()["bytes_in_use"] - before)
        array.delete()
        if found[-1] >= host.nbytes:
            break
    return max(found)
