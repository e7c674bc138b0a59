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
        """Returns the devices in the order of their ids, including those of other processes.

        A device is a string, its kind, as in ``["mychip v1"] * 2``, and its id is then its index;
        or a `plugrt.interface.DeviceDescription` with an id, a process index and attributes (JAX
        arranges meshes by the attributes ``coords`` and ``core_on_chip``). Called once, when the
        client is created: open your devices here (`topologies` is called without a call of this
        method).
        """

    @abstractmethod
    def put(self, array: npt.NDArray[Any], device: int) -> Handle:
        """Copies a host array to a device and returns a handle.

        The array is C-contiguous and read-only, in native byte order. ``device`` is the id. A
        handle is any object but None. Do not keep the array: its memory may change after the call
        has returned.
        """

    @abstractmethod
    def get(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns the contents of an array, with the shape and dtype that the program states.

        Any object that NumPy can convert is allowed, such as a handle with ``__array_interface__``.
        Called after the `event` of the handle is complete. The SDK does not copy the result: it
        must stay valid after the handle is deleted.
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
