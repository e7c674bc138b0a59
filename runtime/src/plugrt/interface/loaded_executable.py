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
        """The compiled program: types, analyses, serialisation."""

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

    def cancel(self) -> int:
        """Cancels the launches that have not begun, and returns their number. Optional.

        Their results raise `Cancelled` when they are read or awaited, and arguments that they were
        to take are deleted. Launches that run go on, and later ones run.
        """
        self._unimplemented("cancel")

    @property
    def launcher(self) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        """`execute` without options and argument checks: the caller guarantees valid arguments.

        Their number and types are the program's, they have the form that `Client.shards` and
        launches return, and they are on the program's devices. The backend checks only whether they
        were deleted.

        Instead of `Shards` in one memory a backend may return its own object, which is no sequence.
        Arrays hold that object, launchers accept it in place of `Shards`, and `Client.held_form`
        converts it to `Shards`. `Shards` with such an object have it as the attribute ``held``.
        """
        return self.execute

    @property
    def launch_steps(self) -> LaunchSteps | None:
        """Functions that the core calls instead of `launcher`; None: it calls `launcher`. Optional.

        For backends whose ``launcher`` is a short Python function around C functions.
        """
        return None

    def host_launcher(
        self, parts: Mapping[int, Sequence[tuple[slice | int, ...]]]
    ) -> Callable[[list[Any]], tuple[Sequence[Shards], Callable[[], None]]] | None:
        """As `execute_with_wait`, but the arguments in ``parts`` are whole NumPy arrays; or None.

        They have the parameters' dtypes; ``parts[i]`` has, for each of `addressable_devices`, the
        index of its part in argument i; each part has the parameter's shape. The caller guarantees
        valid arguments, as for `launcher`. For backends that can pass host memory to launches on
        several devices more cheaply than by puts. The arrays are copied before it returns, even if
        other launches are running in other threads; the list of arguments may be overwritten. Where
        it is None, `Client.buffers_from_host` is used. Optional.
        """
        return None

    @abstractmethod
    def delete(self) -> None:
        """Unloads it; running launches finish. A second call does nothing."""

    @abstractmethod
    def is_deleted(self) -> bool:
        """Whether `delete` was called."""
