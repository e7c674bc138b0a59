"""The started backends: `backends`, `get_backend`, `devices` and what follows from them.

Every function takes a registry last; without one, the process's own serves.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping

from plugrt.errors import PluginError, PluginUnavailable, UnknownPlatform, words_of
from plugrt.interface import Client, Device
from plugrt.plugins import selection
from plugrt.plugins.choosing import choose
from plugrt.plugins.loading import again
from plugrt.plugins.record import Record, State
from plugrt.plugins.registry import Choice, Registry, default_registry
from plugrt.plugins.starting import start
from plugrt.plugins.watch import logger


def initialise(registry: Registry | None = None) -> Choice:
    """Starts the backends that the settings ask for, once, and returns what was chosen.

    Two threads get the same clients. After a failure every call raises the same error, until
    `clear_backends`.
    """
    registry = registry or default_registry()
    choice = registry.choice  # read without the lock: it is set last, when all is started
    if choice is not None:
        return choice
    with registry.lock:
        if registry.choice is not None:
            return registry.choice
        if registry.failure is not None:
            raise again(registry.failure)
        try:
            registry.choice = choose(registry)
        except PluginError as error:
            registry.failure = error
            raise
        _watch_forks(registry)
        return registry.choice


class _Backends(Mapping[str, Client]):
    """Name to client, the default first; a client that is not started yet is when looked up."""

    def __init__(self, names: tuple[str, ...], registry: Registry) -> None:
        self._names, self._registry = names, registry

    def __getitem__(self, name: str) -> Client:
        if name not in self._names:
            raise KeyError(name)
        return get_backend(name, self._registry)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<backends {', '.join(self._names)}>"


def backends(registry: Registry | None = None) -> Mapping[str, Client]:
    """Returns the backends by name, the default first.

    Under JAX_PLATFORMS those that it names; else the chosen one, cpu (started when it is first
    looked up) and what was started by name.
    """
    registry = registry or default_registry()
    choice = initialise(registry)
    names = list(choice.names)
    if not choice.request.exclusive:
        started = [r.name for r in registry.records if r.client is not None]
        cpu = registry.get("cpu")
        usable = cpu is not None and not cpu.blocked and cpu.failure is None
        names += [*(["cpu"] if usable else []), *started]
    return _Backends(tuple(dict.fromkeys(names)), registry)


def get_backend(name: str | Client | None = None, registry: Registry | None = None) -> Client:
    """Returns the client of that name or alias; of the default backend without one.

    A client is returned as it is. Raises `UnknownPlatform` with a suggestion, and says so if
    JAX_PLATFORMS excludes the name.
    """
    if isinstance(name, Client):
        return name
    registry = registry or default_registry()
    choice = initialise(registry)
    if name is None:
        return choice.client
    with registry.lock:
        if choice.request.exclusive:
            return _among(name, choice, registry)
        return _on_demand(name, registry)


def _among(name: str, choice: Choice, registry: Registry) -> Client:
    meant = {name, *registry.aliases.get(name, ())}
    for record in registry.records:
        named = record.name in meant or record.answers_to(name) or record.platform == name
        if named and record.client is not None:
            return record.client
    asked_by = f"get_backend({name!r})"
    selection.candidates(name, registry.records, registry.aliases, asked_by)  # raises if unknown
    raise UnknownPlatform(
        f"{asked_by}: {choice.request} leaves {name!r} out (started: {', '.join(choice.names)}); "
        f"set JAX_PLATFORMS={','.join(choice.request.names)},{name} to have it, too"
    )


def _on_demand(name: str, registry: Registry) -> Client:
    asked_by = f"get_backend({name!r})"
    found = selection.candidates(name, registry.records, registry.aliases, asked_by)
    errors: list[PluginError] = []
    for record in found:
        try:
            return start(record, registry)
        except PluginError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise PluginUnavailable(f"{asked_by}: none can be used: " + "; ".join(map(str, errors)))


def default_backend(registry: Registry | None = None) -> str:
    """Returns the name of the default backend's platform, such as ``cpu``."""
    return get_backend(None, registry).platform


# --- devices ----------------------------------------------------------------------------------


def devices(backend: str | Client | None = None, registry: Registry | None = None) -> list[Device]:
    """Returns all devices of a backend, those of other processes too."""
    return list(get_backend(backend, registry).devices())


def local_devices(
    process_index: int | None = None,
    backend: str | Client | None = None,
    registry: Registry | None = None,
) -> list[Device]:
    """Returns the devices of one process: this one, unless ``process_index`` says which."""
    client = get_backend(backend, registry)
    index = client.process_index if process_index is None else process_index
    return [d for d in client.devices() if d.process_index == index]


def device_count(backend: str | Client | None = None, registry: Registry | None = None) -> int:
    """Returns the number of devices of a backend."""
    return len(get_backend(backend, registry).devices())


def local_device_count(
    backend: str | Client | None = None, registry: Registry | None = None
) -> int:
    """Returns the number of devices of a backend that belong to this process."""
    return len(get_backend(backend, registry).addressable_devices())


def process_index(backend: str | Client | None = None, registry: Registry | None = None) -> int:
    """Returns the index of this process among those that share a backend's devices."""
    return get_backend(backend, registry).process_index


def process_count(backend: str | Client | None = None, registry: Registry | None = None) -> int:
    """Returns the number of processes that share a backend's devices."""
    return get_backend(backend, registry).process_count


# --- the end ----------------------------------------------------------------------------------


_forgetters: list[Callable[[], None]] = []


def on_clear(forget: Callable[[], None]) -> None:
    """Has `clear_backends` call ``forget()`` first: for tables that hold on to clients."""
    _forgetters.append(forget)


def clear_backends(registry: Registry | None = None) -> None:
    """Closes every client and forgets choice and failures, so that the next call starts anew.

    Arrays of the closed clients are unusable. Settings are read as they are then. Compiled
    programs are forgotten.
    """
    registry = registry or default_registry()
    for forget in _forgetters:
        forget()
    with registry.lock:
        for record in registry.records:
            client, record.client = record.client, None
            if client is not None:
                _close(client, record)
        registry.forget()


def _close(client: Client, record: Record) -> None:
    try:
        client.close()
    except Exception as error:  # noqa: BLE001 the other clients must be closed, too
        logger.warning("closing the backend of %s raised %s", record, words_of(error))
    record.became(State.LOADED)


def _watch_forks(registry: Registry) -> None:
    """Has `os.fork` warn, once, while clients of the registry live."""
    if "fork watched" in registry.warned or not hasattr(os, "register_at_fork"):
        return
    registry.warned.add("fork watched")
    reference = weakref.ref(registry)

    def warn() -> None:
        alive = reference()
        if alive is None or alive.choice is None or "forked" in alive.warned:
            return
        alive.warned.add("forked")
        warnings.warn(
            f"os.fork() was called after plugrt started {', '.join(alive.choice.names)}: backends "
            "run threads, which the child lacks, so that it is likely to hang; start processes "
            "before, or with multiprocessing's 'spawn'",
            RuntimeWarning,
            stacklevel=2,
        )

    os.register_at_fork(before=warn)
