"""`Backend`: the abstract class that a backend's author implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.interface import CompileOptions, Program, TensorType

Handle = Any
"""The backend's own object for an array on a device; opaque to plugrt."""

Launch = Callable[[Sequence[Sequence[Handle]]], Sequence[Sequence[Handle]]]
"""Takes ``arguments[parameter][device]`` and returns ``results[result][device]``."""


class Backend(ABC):
    """A device, or several, in four methods. `BackendClient` makes a `plugrt.interface.Client` of
    it, with events, ownership, errors and everything else that hosts rely on.

    All methods may be called from several threads. Exceptions reach the user: raise the classes
    of `plugrt.errors` where one fits (`Unimplemented` for what the backend cannot do).
    """

    platform: str = ""
    """The platform name that the client reports."""
    version: str = ""
    """The version of the backend, for display."""
    stablehlo_version: tuple[int, int, int] | None = None
    """The newest StableHLO that `compile` reads; None means what the installed plugrt writes."""

    @abstractmethod
    def devices(self) -> Sequence[str]:
        """Returns the kind of each device, in id order, such as ``["mychip v1"] * 2``.

        Called once, when the client is made.
        """

    @abstractmethod
    def put(self, array: npt.NDArray[Any], device: int) -> Handle:
        """Copies a host array (C-contiguous, native byte order, read-only) to a device.

        The array must not be kept: its memory may change when the call has returned.
        """

    @abstractmethod
    def get(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns the contents of an array; its shape and dtype are those of the program."""

    @abstractmethod
    def compile(self, program: Program, options: CompileOptions) -> Launch:
        """Returns a function that launches a StableHLO program (a portable artifact).

        The devices of a launch are those of ``options.device_assignment``, replica-major.
        """

    def device_types(
        self, program: Program, options: CompileOptions
    ) -> tuple[Sequence[TensorType], Sequence[TensorType]] | None:
        """Returns the types of a program's parameters and results on one device, or None.

        Asked for programs of several partitions, whose ``main`` has the types of whole arrays while
        each device holds a part. Optional: None, the default, means the types of ``main``.
        """
        return None

    def delete(self, handle: Handle) -> None:  # noqa: B027  # optional: dropping may be enough
        """Frees an array's memory. Called once for each handle of `put` or a launch, when it is no
        longer used. Optional: by default the handle is just dropped."""

    def copy(self, handle: Handle, device: int) -> Handle:
        """Returns a copy on another device. Optional: by default it goes through the host."""
        return self.put(np.ascontiguousarray(self.get(handle)), device)

    def close(self) -> None:  # noqa: B027  # optional: there may be nothing to free
        """Frees what the backend holds, once every array is gone. Optional."""
