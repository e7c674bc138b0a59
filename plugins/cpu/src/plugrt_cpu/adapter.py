"""The one place that knows jaxlib's private Python API, and where its minors differ.

jaxlib promises nothing about the names below. Each is listed in `PRIVATE_NAMES`, and the test
``tests/cpu/client/test_private_names.py`` fails with the missing ones when a new jaxlib drops any.
Nothing here sets a state that is global to jaxlib: JAX may live in the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _hlo, _jax


class Aval:
    """What jaxlib reads of an array's type: ``shape``, ``dtype`` and ``weak_type``."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = False


class OneDevice(_jax.SingleDeviceSharding):  # type: ignore[misc]
    """A sharding for arrays on one device, with the Python side that jaxlib asks of JAX's."""

    def __init__(self, device: Any, memory_kind: str) -> None:
        super().__init__(device, memory_kind)

        self._devices_in_order = (device,)

    @property
    def memory_kind(self) -> str:  # a property: JAX adds one without a setter to the base class
        return str(self._memory_kind)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._devices_in_order

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _hlo.HloSharding.replicate()


class ManyDevices(_jax.GSPMDSharding):  # type: ignore[misc]
    """A sharding that says "one buffer on each of these devices" and nothing about their content.

    jaxlib's executables look at the devices of an argument only, never at how it is divided.
    """

    def __init__(self, devices: Sequence[Any], memory_kind: str) -> None:
        super().__init__(
            _jax.DeviceList(tuple(devices)), _hlo.HloSharding.replicate(), memory_kind=memory_kind
        )

        self._devices_in_order = tuple(devices)

    @property
    def memory_kind(self) -> str:  # a property: JAX adds one without a setter to the base class
        return str(self._memory_kind)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._devices_in_order

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        return _hlo.HloSharding.replicate()


def sharding(devices: Sequence[Any], memory_kind: str) -> Any:
    """Returns a sharding over jaxlib devices."""
    if len(devices) == 1:
        return OneDevice(devices[0], memory_kind)
    return ManyDevices(devices, memory_kind)


def result_handler(aval: Aval, sharding: Any) -> Any:
    """Returns what makes an array of one result of a launch; make it once per executable."""
    return _jax.array_result_handler(aval, sharding, True, True)


def assemble(aval: Aval, sharding: Any, arrays: list[Any]) -> Any:
    """Returns one array of several devices from one array on each."""
    return _jax.ArrayImpl(aval, sharding, arrays, True, True)


def program_shape(executable: Any) -> tuple[list[Any], list[Any]]:
    """Returns the XLA shapes of parameters and results on one device."""
    module = executable.hlo_modules()[0]
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    shape = computation.program_shape()
    result = shape.result_shape()
    return shape.parameter_shapes(), result.tuple_shapes() if result.is_tuple() else [result]
