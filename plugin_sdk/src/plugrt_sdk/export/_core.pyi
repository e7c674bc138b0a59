"""The core in C (``plugin_sdk/core``)."""

from collections.abc import Callable, Set

from plugrt.errors import PjrtError
from plugrt.interface import OptionValue
from plugrt_sdk.export.bridge import Bridge

SOURCES: str
"""The sources that it was built from, a line for each with the hash of its contents."""

class HostMemory:
    """A block of the host's memory, with the buffer protocol."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

class Completion:
    """Completes an event: called with nothing, None or an exception, from any thread."""

    def __call__(self, error: PjrtError | None = None, /) -> None: ...

class KeyValueStore:
    """The key-value store of a host, for the clients of several processes."""

    def get(self, key: str, timeout_ms: int, /) -> bytes: ...
    def try_get(self, key: str, /) -> bytes | None: ...
    def put(self, key: str, value: bytes, /) -> None: ...

def configure(
    describe: Callable[[str, BaseException], tuple[int, str, BaseException | None]],
    error_from_code: Callable[[int, str], PjrtError],
    element_sizes: bytes,
    /,
) -> None:
    """States how exceptions become errors, and back, and the bytes of an element of each type."""

def create_table(
    bridge: Bridge, attributes: dict[str, OptionValue], minor: int, hidden: Set[str], /
) -> object:
    """Returns a ``pjrt_c_api`` capsule with a new table, which lives as long as the process."""

def close() -> None:
    """Lets no other thread enter Python from now on, and waits until all threads have left it."""

def count_handles() -> dict[str, int]:
    """Returns how many handles of each kind hosts hold now."""

def refused_functions() -> list[str]:
    """Returns the names of the functions that every exported table refuses as unimplemented."""

def struct_sizes() -> dict[str, int]:
    """Returns the size of each struct that the core uses, as its compiler lays it out."""
