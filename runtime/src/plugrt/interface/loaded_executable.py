"""`LoadedExecutable`: an executable that can be launched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.interface.backend_object import BackendObject
from plugrt.interface.buffer import Shards
from plugrt.interface.device import Device

if TYPE_CHECKING:
    from plugrt.interface.client import Client
    from plugrt.interface.executable import Executable
    from plugrt.interface.program import ExecuteOptions
    from plugrt.interface.steps import LaunchSteps


class LoadedExecutable(BackendObject, ABC):
    """An executable that is loaded on devices and can be launched."""

    __slots__ = ()

    @property
    @abstractmethod
    def client(self) -> Client:
        """The client that it is loaded on."""

    @property
    @abstractmethod
    def executable(self) -> Executable:
        """What was compiled: types, analyses, serialisation."""

    @property
    @abstractmethod
    def addressable_devices(self) -> Sequence[Device]:
        """The devices of this process that it runs on, in device-assignment order."""

    @abstractmethod
    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        """Launches the program and returns its results at once, argument- and result-major.

        ``arguments[i]`` holds parameter i: one buffer for each of `addressable_devices`. The
        result has the same form. Donated arguments are deleted when the call returns. Errors in
        the arguments raise here; errors of the computation surface when a result is read.

        This method is on the hot path: it parses no keywords, makes no backend call for each
        result, and creates no event that is not asked for.
        """

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        """As `execute`, and a function that waits until the launch has ended on every device.

        The function keeps neither arguments nor results alive, works also if they were deleted or
        donated meanwhile, and raises nothing: errors are raised when a result is read. Required of
        a backend that states ``max_blocking_launches`` or ``host_callbacks``, optional
        otherwise.
        """
        self._unimplemented("execute_with_wait")

    @property
    def launcher(self) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        """`execute` without options and argument checks: the caller guarantees valid arguments.

        Their number and types are the program's, their form is that of `Client.shards` and of
        launches, and they are on the devices that the program runs on. The backend checks only
        whether they were deleted.

        Instead of `Shards` in one memory a backend may return an object of its own that is no
        sequence. Arrays hold that object, launchers take it as they take `Shards`, and
        `Client.held_form` says how `Shards` are made of it. `Shards` that have such an object give
        it as their attribute ``held``.
        """
        return self.execute

    @property
    def launch_steps(self) -> LaunchSteps | None:
        """What the compiled core calls in place of `launcher`; None: it calls that. Optional.

        For backends whose ``launcher`` is a short function in Python around others in C.
        """
        return None

    def host_launcher(
        self, parts: Mapping[int, Sequence[tuple[slice | int, ...]]]
    ) -> Callable[[list[Any]], tuple[Sequence[Shards], Callable[[], None]]] | None:
        """`execute_with_wait` that takes the arguments in ``parts`` as whole NumPy arrays, or None.

        They have the parameters' dtypes; ``parts[i]`` is, for each of `addressable_devices`, the
        index of its part in argument i, and such a part has the parameter's shape. The caller
        guarantees valid arguments, as of `launcher`. For backends that can pass such memory to
        launches on several devices more cheaply than by puts. The arrays are copied before it
        returns, whatever launches are under way and in whichever threads; the list of arguments may
        be overwritten. Where it is None, `Client.buffers_from_host` is used. Optional.
        """
        return None

    @abstractmethod
    def delete(self) -> None:
        """Unloads it; running launches finish. A second call does nothing."""

    @abstractmethod
    def is_deleted(self) -> bool:
        """Whether `delete` was called."""
