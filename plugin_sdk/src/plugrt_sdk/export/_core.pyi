"""The core in C (``plugin_sdk/core``)."""

from collections.abc import Callable, Set

from plugrt.errors import PjrtError
from plugrt.interface import OptionValue
from plugrt_sdk.export.bridge import Bridge

class HostMemory:
    """A block of the host's memory, with the buffer protocol."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

class Completion:
    """Completes an event: called with nothing, None or an exception, from any thread."""

    def __call__(self, error: PjrtError | None = None, /) -> None: ...

def configure(
    describe: Callable[[str, BaseException], tuple[int, str]], element_sizes: bytes, /
) -> None:
    """States how exceptions become errors, and the bytes of an element of each PJRT type."""

def create_table(
    bridge: Bridge, attributes: dict[str, OptionValue], minor: int, hidden: Set[str], /
) -> object:
    """Returns a ``pjrt_c_api`` capsule with a new table, which lives as long as the process."""

def close() -> None:
    """Lets no other thread enter Python from now on, and waits until those that have are back."""

def count_handles() -> dict[str, int]:
    """Returns how many handles of each kind hosts hold now."""

def struct_sizes() -> dict[str, int]:
    """Returns the size of each struct that the core uses, as its compiler lays it out."""
