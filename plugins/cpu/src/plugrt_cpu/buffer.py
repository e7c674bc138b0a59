"""`CpuBuffer`, an array on one device, and `CpuShards`, one on each of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from plugrt.interface import Buffer, Device, Event, Memory, ReadyEvent, TensorType

from plugrt_cpu.device import Place
from plugrt_cpu.errors import translate, translated


class CpuBuffer(Buffer):
    """A jaxlib array on one device; ``raw`` is jaxlib's object."""

    __slots__ = ("place", "raw", "type")

    def __init__(self, raw: Any, type: TensorType, place: Place) -> None:
        self.raw = raw
        self.type = type
        self.place = place

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def device(self) -> Device:
        return self.place.devices[0]

    @property
    def memory(self) -> Memory:
        return self.place.memory

    def to_host(self) -> npt.NDArray[Any]:
        try:
            array: npt.NDArray[Any] = self.raw._single_device_array_to_np_array_did_copy()[0]
        except (RuntimeError, ValueError) as error:
            raise translate(error) from error
        return array

    def delete(self) -> None:
        self.raw.delete()

    def is_deleted(self) -> bool:
        return bool(self.raw.is_deleted())

    def ready_event(self) -> Event:
        with translated():
            self.raw.block_until_ready()
        return ReadyEvent()
