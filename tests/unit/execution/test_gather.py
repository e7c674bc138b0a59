"""An array with a part in another process cannot be gathered in this one."""

from __future__ import annotations

import numpy as np
import pytest

from plugrt.errors import NotAnArray
from plugrt.execution.arrays.array_making import array_of_shards
from plugrt.execution.transfers.sharded_transfer import gather
from plugrt.execution.transfers.whole_arrays import move
from plugrt.sharding import PmapSharding
from support.fake_client import FakeClient


def test_parts_in_other_processes_are_not_made_up() -> None:
    client = FakeClient(count=2, processes=2)
    here, there = client.devices()
    assert here.is_addressable
    assert not there.is_addressable
    part = client.buffer_from_host(np.ones(3, np.float32), here)
    x = array_of_shards((2, 3), np.dtype(np.float32), PmapSharding([here, there]), [part])
    with pytest.raises(NotAnArray, match="other processes"):
        gather(x)
    with pytest.raises(NotAnArray, match="other processes"):
        move(x, here, True)
