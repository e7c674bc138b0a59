"""`Topology`: devices that programs can be compiled for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plugrt.interface.backend_object import BackendObject
from plugrt.interface.promises import OptionValue

if TYPE_CHECKING:
    from plugrt.interface.executable import Executable
    from plugrt.interface.program import CompileOptions, Program


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """A device as a topology knows it: there may be no such device on this machine."""

    id: int
    process_index: int
    kind: str
    debug_string: str = ""
    attributes: Mapping[str, OptionValue] = field(default_factory=dict)


class Topology(BackendObject, ABC):
    """Devices that programs can be compiled for, present on this machine or not."""

    __slots__ = ()

    @property
    @abstractmethod
    def platform(self) -> str:
        """The platform that it describes, such as ``tpu``."""

    @property
    @abstractmethod
    def platform_version(self) -> str:
        """The version of the platform's runtime."""

    @property
    @abstractmethod
    def devices(self) -> Sequence[DeviceDescription]:
        """The devices, in id order."""

    @property
    def attributes(self) -> Mapping[str, OptionValue]:
        """Facts that the backend states of the topology."""
        return {}

    @property
    def stablehlo_current_version(self) -> tuple[int, int, int] | None:
        """The newest StableHLO version that the compiler reads; None if unknown."""
        return None

    @abstractmethod
    def compile(self, program: Program, options: CompileOptions) -> Executable:
        """Compiles for these devices; `InvalidArgument` for a launch on more than there are."""

    def serialize(self) -> bytes:
        """Returns a description that the same backend reads back. Optional."""
        self._unimplemented("serialize")

    def fingerprint(self) -> int:
        """Equal for equal topologies. Optional."""
        self._unimplemented("fingerprint")
