"""`Launch`: the devices, shardings, layouts and compiler options of a launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from plugrt.errors import ArgumentTypeError
from plugrt.execution.shardings.pmap_sharding import divide_axis
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.interface import Client, CompileOptions, Device, DeviceAssignment, Layout
from plugrt.interface.checks import check_overrides
from plugrt.interface.memory_layout import AutoLayout
from plugrt.settings.declarations import config

AnyLayout = Layout | AutoLayout | None
"""A layout, the compiler's choice, or the device's default."""

CompilerOptions = tuple[tuple[str, str | bool | int | float], ...]
"""Options of the compiler, by name, in order."""


def read_compiler_options(what: str, options: object) -> CompilerOptions:
    """Returns a user's options as a part of cache keys.

    Raises `ArgumentTypeError` for an object that is no mapping of names to plain values.
    """
    if options is None:
        return ()
    if not isinstance(options, Mapping):
        raise ArgumentTypeError(
            f"compiler_options of {what} is a dict of options by name; got {options!r:.60}"
        )
    check_overrides(options, f"compiler_options of {what}")
    return tuple(sorted(options.items()))


@dataclass(frozen=True)
class Launch:
    """The devices of a program, and the shardings of its arguments and results.

    A program is ``replicas`` x ``partitions`` computations, one on each of ``devices``, in
    replica-major order. A program over an `AbstractMesh` is lowered for no devices, and `load`
    places it on the first ones of the default backend. ``in_shardings`` and ``out_shardings`` name
    a sharding for each flat argument and each flat result; results are ``committed`` or not. With
    ``of_parts`` the program's types describe one replica's part, else whole arrays. ``in_layouts``
    and ``out_layouts`` name a layout for each, or are empty if all are the default.
    """

    replicas: int
    partitions: int
    devices: tuple[Device, ...]
    in_shardings: tuple[Sharding, ...]
    out_shardings: tuple[Sharding, ...]
    committed: bool
    of_parts: bool = False
    compiler_options: CompilerOptions = ()
    """The user's compiler options for this program."""
    in_layouts: tuple[AnyLayout, ...] = ()
    out_layouts: tuple[AnyLayout, ...] = ()
    whole: Sharding | None = None
    """For a divided program, the sharding of replicated arrays."""
    closed_over: tuple[Sharding, ...] = ()
    """The sharding of each array in the function's closure; empty if all are replicated."""
    auto_mesh: tuple[int, ...] = ()
    """The shape of the mesh of arguments whose shardings the compiler chooses (`AUTO`)."""

    @cached_property
    def names_layouts(self) -> bool:
        """Whether an argument or a result may have another layout than the default."""
        return bool(self.in_layouts or self.out_layouts)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is on one device, with all arrays in the default memory and layout."""
        for sharding in {*self.in_shardings, *self.out_shardings}:
            if sharding.plain_device is None:
                return False
        return not (self.in_layouts or self.out_layouts)

    def in_layout(self, i: int) -> AnyLayout:
        """The layout of an argument."""
        return self.in_layouts[i] if self.in_layouts else None

    def out_layout(self, i: int) -> AnyLayout:
        """The layout of a result."""
        return self.out_layouts[i] if self.out_layouts else None

    def constant_sharding(self, i: int) -> Sharding:
        """The sharding of an array in the function's closure."""
        return self.closed_over[i] if self.closed_over else self.everywhere

    @property
    def client(self) -> Client:
        """The backend that runs it."""
        return self.devices[0].client

    @property
    def everywhere(self) -> Sharding:
        """The sharding of a replicated value."""
        if self.whole is not None:
            return self.whole
        if len(self.devices) > 1:
            return divide_axis(self.devices, None)
        return SingleDeviceSharding(self.devices[0])

    def compile_options(self, *, parameter_is_tupled: bool = False) -> CompileOptions:
        """Returns the compile options of a program for this launch."""
        rows = [
            tuple(d.id for d in self.devices[i : i + self.partitions])
            for i in range(0, len(self.devices), self.partitions)
        ]
        return CompileOptions(
            num_replicas=self.replicas,
            num_partitions=self.partitions,
            device_assignment=DeviceAssignment(tuple(rows)) if rows else None,
            use_spmd_partitioning=self.partitions > 1,
            use_shardy_partitioner=self.partitions > 1 and config.use_shardy_partitioner,
            use_auto_spmd_partitioning=bool(self.auto_mesh),
            auto_spmd_partitioning_mesh_shape=self.auto_mesh,
            auto_spmd_partitioning_mesh_ids=tuple(range(self.partitions)) if self.auto_mesh else (),
            parameter_is_tupled=parameter_is_tupled,
            env_overrides=dict(self.compiler_options),
        )


def replica_launch(
    devices: tuple[Device, ...], taken: Sequence[Sharding], left: Sequence[Sharding]
) -> Launch:
    """Returns the launch of one replica on each device, with these shardings."""
    return Launch(len(devices), 1, devices, tuple(taken), tuple(left), True, of_parts=True)


def single_device_launch(
    device: Device, arguments: int, results: Sequence[str | None], committed: bool
) -> Launch:
    """Returns the launch of a program on one device, with the kind of memory of each result."""
    here = SingleDeviceSharding(device)
    left = tuple([SingleDeviceSharding(device, memory_kind=k) if k else here for k in results])
    return Launch(1, 1, (device,), (here,) * arguments, left, committed)
