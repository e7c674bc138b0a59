"""`devices`, `get_backend` and the like: JAX's functions over the started backends.

The last argument ``of`` of each is a `Backends`; the default is the process's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from plugrt.base import bounded_cache
from plugrt.errors import InvalidArgument, WrongType
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Client, Device
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.record import Record
from plugrt.plugins.selection.clients import Backends

_own = Backends()


def process_backends() -> Backends:
    """Returns the process's own backends."""
    return _own


@with_argument_errors
def register(plugin: Plugin) -> Record:
    """Registers a plugin in this process; raises `RegistrationError` as `Backends.register`."""
    return _own.register(plugin)


@with_argument_errors
def table() -> tuple[Record, ...]:
    """Returns a `Record` for each known plugin; loads nothing."""
    return tuple(_own.table.rows)


@with_argument_errors
def backends(of: Backends | None = None) -> Mapping[str, Client]:
    """Returns the backends by name, the default first.

    With JAX_PLATFORMS, the backends that it names; else the chosen one, cpu (started at its first
    lookup) and backends started by name.

    Raises the errors of `get_backend`, for a backend that JAX_PLATFORMS names and that does not
    start.

    >>> "cpu" in plugrt.backends()
    True
    """
    return (of or _own).all()


@with_argument_errors
def get_backend(name: str | Client | None = None, of: Backends | None = None) -> Client:
    """Returns the client of that name or alias; of the default backend without one, or for ``""``.

    A client is returned unchanged. Raises `UnknownPlatform`, with a suggestion, also if
    JAX_PLATFORMS excludes the name, and `WrongType` for anything that is neither name nor client.

    >>> plugrt.get_backend("cpu").platform
    'cpu'
    """
    return (of or _own).get(name)


@with_argument_errors
def default_backend(of: Backends | None = None) -> str:
    """Returns the name of the default backend's platform, such as ``cpu``.

    The first call starts the backend. ``of`` is a table of backends other than this process's.
    Raises `UnknownPlatform` for a name in JAX_PLATFORMS that no plugin has, and the error of a
    backend that does not start.

    >>> plugrt.default_backend()
    'cpu'
    """
    return get_backend(None, of).platform


@with_argument_errors
def devices(backend: str | Client | None = None, of: Backends | None = None) -> list[Device]:
    """Returns all devices of a backend in id order, also those of other processes.

    Raises the errors of `get_backend`, as all functions here do.

    >>> plugrt.devices("cpu")[0].platform
    'cpu'
    """
    return list(get_backend(backend, of).devices())


@with_argument_errors
def local_devices(
    process_index: int | None = None,
    backend: str | Client | None = None,
    host_id: int | None = None,
    of: Backends | None = None,
) -> list[Device]:
    """Returns the devices of one process: ``process_index``, by default this one.

    ``host_id`` is its old name, as in JAX. Raises `InvalidArgument` (a ``ValueError``) for a
    process that does not exist, and `WrongType` (a ``TypeError``) for other than an index.

    >>> plugrt.local_devices()[0].process_index
    0
    """
    if host_id is not None:
        warnings.warn(
            "the argument host_id of plugrt.local_devices is called process_index now, as in JAX",
            stacklevel=2,
        )
        process_index = host_id
    client = get_backend(backend, of)
    index = client.process_index if process_index is None else process_index
    if not isinstance(index, int) or isinstance(index, bool):
        raise WrongType(
            f"local_devices: process_index is {index!r:.80}; it must be a number (a backend is the "
            "argument backend=)"
        )
    if not 0 <= index < client.process_count:
        raise InvalidArgument(
            f"Unknown process_index {index}; the processes of {client.platform} are 0 to "
            f"{client.process_count - 1}"
        )
    return [d for d in client.devices() if d.process_index == index]


@with_argument_errors
def device_count(backend: str | Client | None = None, of: Backends | None = None) -> int:
    """Returns the number of devices of a backend.

    Raises as `get_backend`.

    >>> plugrt.device_count("cpu") == len(plugrt.devices("cpu"))
    True
    """
    return len(get_backend(backend, of).devices())


@with_argument_errors
def local_device_count(backend: str | Client | None = None, of: Backends | None = None) -> int:
    """Returns the number of devices of a backend that belong to this process.

    Raises as `get_backend`.

    >>> plugrt.local_device_count() == len(plugrt.local_devices())
    True
    """
    return len(get_backend(backend, of).addressable_devices())


@with_argument_errors
def process_index(backend: str | Client | None = None, of: Backends | None = None) -> int:
    """Returns the index of this process among those that share a backend's devices.

    Raises the errors of `get_backend`.

    >>> plugrt.process_index()
    0
    """
    return get_backend(backend, of).process_index


@with_argument_errors
def process_count(backend: str | Client | None = None, of: Backends | None = None) -> int:
    """Returns the number of processes that share a backend's devices.

    Raises as `get_backend`.

    >>> plugrt.process_count()
    1
    """
    return get_backend(backend, of).process_count


@with_argument_errors
def process_indices(backend: str | Client | None = None, of: Backends | None = None) -> list[int]:
    """Returns the indices of the processes that share a backend's devices.

    (JAX's ``host_id``, ``host_count`` and ``host_ids``, which it warns of, are not here: they are
    `process_index`, `process_count` and this.)

    Raises as `get_backend`.

    >>> plugrt.process_indices()
    [0]
    """
    return list(range(process_count(backend, of)))


# Process-wide: modules above add at import what `clear_backends` calls.
_forgetters: list[Callable[[], None]] = []


def on_clear(forget: Callable[[], None]) -> None:
    """Makes `clear_backends` call ``forget()`` first: for caches that hold clients."""
    _forgetters.append(forget)


def clear_backends(of: Backends | None = None) -> None:
    """Closes every client and drops choice and failures: the next call starts backends again.

    Arrays of the closed clients are unusable. The environment's settings are read again. Compiled
    programs are dropped.
    """
    from plugrt.native.finalizers import finish_pending  # `plugrt doctor` starts without the core

    finish_pending()
    bounded_cache.clear(interned=True)
    for forget in _forgetters:
        forget()
    (of or _own).clear()
