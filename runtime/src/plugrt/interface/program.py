"""`Program`, and the options to compile and to launch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.interface.checks import (
    INTEGER,
    check_auto_mesh,
    check_counts,
    check_execute_options,
    check_overrides,
    device_id_rows,
    require_types,
)

HOST_CALLBACK = "plugrt_host_callback"
"""The target of the custom calls that call Python; see `Program.callbacks`."""


HostCallback: TypeAlias = Callable[[Sequence[npt.NDArray[Any]]], Sequence[npt.NDArray[Any]]]
"""Receives the arguments, views that are valid during the call, and returns the results, row-major
arrays of the custom call's types. It raises only `PjrtError`, which becomes the launch's error."""


Handler: TypeAlias = Callable[
    [Sequence[npt.NDArray[Any]], Sequence[npt.NDArray[Any]], Mapping[str, Any]], None
]
"""Gets (arguments, results, attributes): read-only views of the arguments, views of the results
to be filled in, and the attributes of the program's ``backend_config``. Tokens are left out."""


@dataclass(frozen=True)
class HandlerStages:
    """A handler in C by stage of XLA's FFI: addresses of functions of type ``XLA_FFI_Handler``.

    ``instantiate`` is called once for each custom call of an executable, with only its attributes,
    and may make a state for the later stages; ``prepare``, ``initialize`` and ``execute`` are
    called in this order at each launch. XLA's CPU backends call neither of the two in between.
    """

    execute: int
    instantiate: int | None = None
    prepare: int | None = None
    initialize: int | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program in the form that a backend receives.

    ``format`` is PJRT's: ``"mlir"`` (StableHLO as text, MLIR bytecode or portable artifact),
    ``"hlo"`` or ``"hlo_with_config"`` (serialised XLA protos).

    ``callbacks`` are the Python functions that the program calls, by number. The call with number n
    is a ``stablehlo.custom_call @plugrt_host_callback`` with ``api_version = 4`` and
    ``backend_config = {index = n : ui64}``; an ordered call has a token as its first operand and
    its first result, which the function neither receives nor returns. The numbers are unique in the
    process. The caller of the compiler keeps the program for as long as launches may run.
    """

    code: bytes = field(repr=False)
    format: str = "mlir"
    name: str = "main"
    callbacks: Mapping[int, HostCallback] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        require_types(self, {"code": bytes, "format": str, "name": str, "callbacks": Mapping})

    @property
    def may_name_layouts(self) -> bool:
        """Whether arguments or results may have other layouts than the default.

        StableHLO states them with an attribute name, which occurs in each of its forms; HLO always
        states layouts.
        """
        return self.format != "mlir" or b"layout_mode" in self.code


@dataclass(frozen=True, slots=True)
class DeviceAssignment:
    """Which device runs which replica and partition: ``device_ids[replica][partition]``."""

    device_ids: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "device_ids", device_id_rows(self.device_ids))

    @property
    def num_replicas(self) -> int:
        """The number of replicas (rows)."""
        return len(self.device_ids)

    @property
    def num_partitions(self) -> int:
        """The number of partitions of each replica (columns)."""
        return len(self.device_ids[0])

    @property
    def flat(self) -> tuple[int, ...]:
        """All device ids, replica-major: the order of `LoadedExecutable.addressable_devices`."""
        return tuple(chain.from_iterable(self.device_ids))


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile a `Program` (the parts of XLA's ``CompileOptionsProto`` that hosts use).

    ``device_assignment`` None means the client's default for the replica and partition counts. The
    two ``allow_spmd_sharding_propagation`` fields state for each parameter and each result whether
    the partitioner may choose its sharding if the program states none; one value applies to all,
    and an empty sequence leaves it to the partitioner. With ``use_auto_spmd_partitioning`` the
    compiler chooses shardings over a mesh of that shape, whose devices are given by their partition
    numbers. ``env_overrides`` are XLA debug options by name. ``encoded`` is a whole serialised
    ``CompileOptionsProto`` for callers that need more; the other fields are then ignored.
    """

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: DeviceAssignment | None = None
    use_spmd_partitioning: bool = False
    use_shardy_partitioner: bool = False
    allow_spmd_sharding_propagation_to_parameters: tuple[bool, ...] = ()
    allow_spmd_sharding_propagation_to_output: tuple[bool, ...] = ()
    use_auto_spmd_partitioning: bool = False
    auto_spmd_partitioning_mesh_shape: tuple[int, ...] = ()
    auto_spmd_partitioning_mesh_ids: tuple[int, ...] = ()
    parameter_is_tupled: bool = False
    env_overrides: Mapping[str, str | bool | int | float] = field(default_factory=dict)
    encoded: bytes | None = None

    def __post_init__(self) -> None:
        require_types(self, _OPTION_TYPES)
        check_overrides(self.env_overrides)
        a = self.device_assignment
        assigned = (len(a.device_ids), len(a.device_ids[0])) if a else None
        check_counts(self.num_replicas, self.num_partitions, assigned)
        if self.use_auto_spmd_partitioning:
            check_auto_mesh(
                self.num_partitions,
                self.auto_spmd_partitioning_mesh_shape,
                self.auto_spmd_partitioning_mesh_ids,
            )


_OPTION_TYPES: Mapping[str, object] = {
    "num_replicas": int | np.integer,
    "num_partitions": int | np.integer,
    "device_assignment": DeviceAssignment | None,
    "allow_spmd_sharding_propagation_to_parameters": tuple,
    "allow_spmd_sharding_propagation_to_output": tuple,
    "auto_spmd_partitioning_mesh_shape": tuple,
    "auto_spmd_partitioning_mesh_ids": tuple,
    "env_overrides": Mapping,
    "encoded": bytes | None,
}


@dataclass(frozen=True, slots=True)
class ExecuteOptions:
    """How to launch a `LoadedExecutable`.

    ``launch_id`` ties together the launches of one multi-process step.
    ``non_donatable_input_indices`` are arguments that must survive although the program donates
    them.
    """

    launch_id: int = 0
    non_donatable_input_indices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_types(self, {"launch_id": INTEGER, "non_donatable_input_indices": tuple | list})
        check_execute_options(self.launch_id, self.non_donatable_input_indices)
