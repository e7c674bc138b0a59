"""`Backend`: the abstract class that a backend's author implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from plugrt.interface import CompileOptions, DeviceDescription, Program
from plugrt_sdk.array_methods import ArrayMethods
from plugrt_sdk.compiled import Handle, Launch
from plugrt_sdk.program_methods import ProgramMethods

__all__ = ["Backend", "Handle", "Launch"]


class Backend(ArrayMethods, ProgramMethods, ABC):
    """One or more devices, in four methods.

    `BackendClient` adapts it to `plugrt.interface.Client` and adds events, ownership, errors and
    everything else that hosts rely on.

    Every other method is optional, and overriding it declares a capability: hosts read in
    `plugrt.interface.Capabilities` which are missing and work without them (docs/backend.md
    describes how).

    All methods may be called from several threads. Exceptions reach the user: raise the classes of
    `plugrt.errors` where one fits (`Unimplemented` for an unsupported operation). Results of
    methods are checked; an invalid one raises `Internal`, which names the method and the backend's
    distribution.
    """

    platform: str = ""
    """The platform name that the client reports."""
    version: str = ""
    """The version of the backend, for display; a serialised executable is for one version."""
    stablehlo_version: tuple[int, int, int] | None = None
    """The newest StableHLO that `compile` reads; None means what the installed plugrt writes."""
    tuple_arguments_above: int | None = None
    """Programs with more parameters are compiled with ``options.parameter_is_tupled``, for devices
    that accept few; None means no program. Launches pass the arguments one by one in either case.
    """

    @abstractmethod
    def devices(self) -> Sequence[str | DeviceDescription]:
        """Returns the devices in id order, also those of other processes.

        Each is its kind alone, such as ``["mychip v1"] * 2``, where the ids are 0, 1, …; or a
        `plugrt.interface.DeviceDescription` with an id, a process index and attributes (``coords``
        and ``core_on_chip`` are those that JAX arranges meshes by). Called once, when the client is
        made: a backend opens its devices here (`topologies` is called without that).
        """

    @abstractmethod
    def put(self, array: npt.NDArray[Any], device: int) -> Handle:
        """Copies a host array (C-contiguous, native byte order, read-only) to a device.

        ``device`` is the id. A handle is any object but None. The array must not be kept: its
        memory may change when the call has returned.
        """

    @abstractmethod
    def get(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns the contents of an array; its shape and dtype are as the program states.

        Any object that NumPy converts will do, such as a handle with ``__array_interface__``. It is
        called when the `event` of the handle is complete. The array is not copied: it stays valid
        when the handle is deleted.
        """

    @abstractmethod
    def compile(self, program: Program, options: CompileOptions) -> Launch:
        """Returns a function that launches a StableHLO program.

        It is called with ``arguments[parameter][device]`` and returns ``results[result][device]``,
        handles. A token (``!stablehlo.token``) is ordered by its handle alone: the value returned
        for it, which may be None, is passed where it is an argument; the first token of a chain is
        an empty array.

        The program is passed as bytes, a portable artifact, and not as a parsed module: a backend
        that forwards it to its own compiler then needs no parsing, and bytes, unlike an MLIR
        module, can be hashed, stored and sent to another thread. `read_module` parses it;
        `result_types` and `read_aliases` read other facts that its ``main`` states.

        ``options`` are decoded: ``num_replicas`` and ``num_partitions`` (1 and 1, unless `replicas`
        and `partitions` declare more), ``device_assignment`` (always given: ``device_ids[replica]
        [partition]``; the devices of a launch are those, replica-major), ``use_spmd_partitioning``
        and ``use_shardy_partitioner`` (the partitioner whose shardings the program has),
        ``env_overrides`` (the user's ``compiler_options`` by name: raise `InvalidArgument` for
        unknown ones).
        """
