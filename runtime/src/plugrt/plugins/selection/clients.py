"""`Backends`: the clients of one table of plugins, and which of them is the default."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from plugrt import interface
from plugrt.errors import (
    PluginError,
    PluginUnavailable,
    RegistrationError,
    UnknownPlatform,
    WrongType,
)
from plugrt.interface import Client, OptionValue
from plugrt.lifetime.forks import warn_of_forks
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record
from plugrt.plugins.selection.platform_choice import Choice, Request, choose, parse_request
from plugrt.plugins.starting.loading import copy_error, load_for_names, without_frames
from plugrt.plugins.starting.plugin_work import PluginWork
from plugrt.plugins.starting.starting import fold_errors, start_first_working, stop
from plugrt.settings.declarations import Config

if TYPE_CHECKING:
    from plugrt.interface import Topology
    from plugrt.plugins.coordination import Connection


class ClientsByName(Mapping[str, Client]):
    """Name to client, the default first; ``get`` starts the client of a name."""

    def __init__(self, names: tuple[str, ...], table: Table, get: Callable[[str], Client]) -> None:
        self._names, self._table, self._get = names, table, get

    def __getitem__(self, name: str) -> Client:
        if name in self._names:
            return self._get(name)
        # It may be another name of one of them.
        rows = (row for row in self._table.rows if row.matches_name(name))
        for label in map(self._table.label, rows):
            if label in self._names:
                return self._get(label)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<backends {', '.join(self._names)}>"


class Backends:
    """The clients of one table of plugins, and which of them is the default.

    Tests and embedders create their own: ``config`` are the settings and ``path`` the folders to
    search for installed plugins (``sys.path`` if None). Those that
    ``plugrt.devices()`` and the like use are `plugrt.plugins.process_backends()`.
    """

    def __init__(self, config: Config | None = None, path: Sequence[str] | None = None) -> None:
        self.table = Table(config, path)
        self.config = self.table.config
        self.distributed: Connection | None = None
        """The connection to the other processes, passed to plugins; None in a single process."""
        # Reentrant: plugins run within it, and get an error if they call for devices.
        self._lock = threading.RLock()
        self._choice: Choice | None = None
        self._failure: PluginError | None = None
        self._work = PluginWork(self.table)
        self._found: dict[object, Client] = {}
        self._topologies: WeakKeyDictionary[Topology, str] = WeakKeyDictionary()
        """Maps topologies to the plugins that made them."""
        self._warns_of_forks = False

    def initialise(self) -> Choice:
        """Starts the backends that the settings request, once, and returns the choice.

        Two threads get the same clients. After a failure every call raises the same error, until
        `clear`. An invalid setting is a `ConfigError`, whichever backend is chosen.
        """
        choice = self._choice  # read without the lock: it is set last, when all are started
        if choice is not None:
            return choice
        with self._lock:
            if self._choice is not None:
                return self._choice
            self._work.refuse_reentry()
            if self._failure is not None:
                raise copy_error(self._failure)
            self.config.check()
            try:
                config = self.config
                for name in config.isolate:
                    self._find(name, "PLUGRT_ISOLATE")
                choice = self._choose(parse_request(config.platforms, config.platform_name))
            except PluginError as error:
                self._failure = without_frames(error)
                raise
            self._choice = choice
            self._forget_names()
            self._hold_settings()
            return choice

    def _choose(self, request: Request) -> Choice:
        return choose(request, self.table, self._find, self._work.load, self._start)

    def _hold_settings(self) -> None:
        """Refuses changes of the settings that were read, and warns of forks, from now on."""
        self.config.hold(self, f"{', '.join(self.started_names)} started")
        if not self._warns_of_forks:
            self._warns_of_forks = True
            warn_of_forks(self)

    @property
    def choice(self) -> Choice | None:
        """The choice; None while no backend is started."""
        return self._choice

    @property
    def started_names(self) -> tuple[str, ...]:
        """The names of the clients that live, the default first."""
        names = self._choice.names if self._choice else ()
        tried = self._choice is not None or self._failure is not None
        rows = [row for row in self.table.rows if row.client is not None] if tried else []
        return tuple(dict.fromkeys((*names, *map(self.table.label, rows))))

    def get(self, name: str | Client | None = None, asked_by: str = "") -> Client:
        """Returns the client of that name or alias; of the default backend without one.

        A client is returned unchanged. A name needs no default: even if no plugin can be chosen
        automatically, a named one is started. ``asked_by`` names the caller in errors (default:
        ``get_backend``). Raises `UnknownPlatform` with a suggestion, or stating that JAX_PLATFORMS
        excludes the name.
        """
        try:
            found = self._found.get(name)
        except TypeError:  # it cannot be hashed
            found = None
        return self._get(name, asked_by) if found is None else found

    def _get(self, name: object, asked_by: str) -> Client:
        if isinstance(name, Client):
            return name
        if name is not None and not isinstance(name, str):
            raise WrongType(
                f"a backend is requested by name, or by a client such as device.client; got "
                f"{name!r:.80}, a {type(name).__name__}"
            )
        if not name:
            return self.initialise().client
        choice = self._initialise_beside()
        with self._lock:
            asked_by = asked_by or f"get_backend({name!r})"
            found = self._found[name] = self._look_up(name, choice, asked_by)
            if self._choice is None:
                self._hold_settings()
            return found

    def _initialise_beside(self) -> Choice | None:
        """Initialises for a call that needs no default; returns None if none can be chosen.

        The platforms in JAX_PLATFORMS must work, and under PLUGRT_STRICT_PLUGINS=1 every plugin.
        JAX_PLATFORM_NAME only names a default.
        """
        try:
            return self.initialise()
        except PluginError as error:
            config = self.config
            if config.strict_plugins and not isinstance(error, PluginUnavailable | UnknownPlatform):
                raise
            named = parse_request(config.platforms)
            if not named.names:
                return None
            if not parse_request(None, config.platform_name).names:
                raise
            with self._lock:
                return self._choose(named)

    def _look_up(self, name: str, choice: Choice | None, asked_by: str) -> Client:
        if choice is None or not choice.request.exclusive:
            rows = self._find(name, asked_by)
            return start_first_working(rows, self._start, fold_errors(asked_by))[1]
        for row in self.table.find(name, asked_by):
            if row.client is not None:
                return row.client
        raise UnknownPlatform(
            f"{asked_by}: {choice.request} leaves {name!r} out (started: "
            f"{', '.join(choice.names)}); set JAX_PLATFORMS={','.join(choice.request.names)},"
            f"{name} to have it as well"
        )

    def _find(self, name: str, asked_by: str) -> list[Record]:
        """Returns the rows for a name; loads JAX's plugins if no metadata has it."""
        try:
            return self.table.find(name, asked_by)
        except UnknownPlatform:
            if not load_for_names(self.table):
                raise
            self._forget_names()
            return self.table.find(name, asked_by)

    def all(self) -> Mapping[str, Client]:
        """Returns the clients by name, the default first; see `backends`."""
        choice = self.initialise()
        if choice.request.exclusive:
            return ClientsByName(choice.names, self.table, self.get)
        cpu = [
            r.name for r in self.table.rows if r.name == "cpu" and r.is_eligible and not r.failure
        ]
        names = dict.fromkeys((*choice.names, *cpu, *self.started_names))
        return ClientsByName(tuple(names), self.table, self.get)

    def topology(self, platform: str, name: str, options: Mapping[str, OptionValue]) -> Topology:
        """Returns a platform's topology of that name; starts no client."""
        asked_by = f"topology({platform!r}, {name!r})"
        with self._lock:
            self.config.check()
            row, plugin = start_first_working(
                self._find(platform, asked_by),
                self._work.prepare_topologies,
                fold_errors(asked_by),
            )
            self._forget_names()
        self.table.log.step(f"asking {row} for the topology {name!r} with {dict(options)}", row)
        made = plugin.create_topology(name, options)
        with suppress(TypeError):  # without weak references, its platform must do
            self._topologies[made] = row.name
        return made

    def platforms_of(self, target: Client | Topology) -> tuple[str, ...]:
        """Returns the names of a client's platform, or a topology's: its plugin's, then its own."""
        made_by = [row.name for row in self.table.rows if row.client is target]
        if isinstance(target, interface.Topology):
            with suppress(TypeError, KeyError):
                made_by = [self._topologies[target]]
        return tuple(dict.fromkeys((*made_by, target.platform)))

    def find_plugin(self, platforms: Sequence[str]) -> Record | None:
        """Returns the loaded plugin for the first of a platform's names that has one; else None.

        ``platforms`` are in the form of `platforms_of`. Does not load plugins that were not made
        for plugrt; returns None for a plugin that cannot be loaded.
        """
        named = (
            row
            for name in platforms
            for row in sorted(self.table.rows, key=lambda row: row.client is None)
            if row.name == name and not (row.blocked or row.hidden)
        )
        row = next(named, None)
        if row is None or row.is_made_for_others:
            return row
        with suppress(PluginError):
            self._work.load(row)
        return row

    def _start(self, row: Record) -> Client:
        if row.client is not None:
            return row.client
        client = self._work.start(row, self.distributed)
        self._forget_names()
        return client

    def _forget_names(self) -> None:
        """Drops the cache of names: loading or starting a plugin may change them."""
        choice = self._choice
        self._found = {} if choice is None else {None: choice.client, "": choice.client}

    def register(self, plugin: Plugin) -> Record:
        """Registers a plugin; it takes precedence over an installed one with the same name.

        Raises `RegistrationError` for anything but a valid instance of `Plugin`, for a name that is
        already registered, and once backends are initialised.
        """
        by = describe_caller()
        with self._lock:
            if self.started_names or self._work.is_under_way:
                started = ", ".join(self.started_names) or "one is starting"
                raise RegistrationError(
                    f"register: {plugin!r} of {by} is too late, as backends are initialised "
                    f"({started}); register it before devices are first used, or call "
                    "plugrt.clear_backends() first"
                )
            row = self.table.register(plugin, by)
            self._failure = None  # this may be the plugin that was missing
        return row

    def clear(self) -> None:
        """Closes every client and drops choice and failures; see `clear_backends`."""
        with self._lock:
            for row in self.table.rows:
                stop(row)
            self._choice, self._failure, self._found = None, None, {}
            self.config.release(self)
            self.config.reread()
            self.table.rescan()


def describe_caller() -> str:
    """Returns module, file and line of the caller outside this package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "plugrt":
        frame = frame.f_back
    file = os.path.basename(frame.f_code.co_filename)
    return f"{frame.f_globals.get('__name__', 'a program')} ({file}:{frame.f_lineno})"
