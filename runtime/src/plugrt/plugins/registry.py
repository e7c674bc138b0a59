"""`Registry`: the table of candidates, with their clients. It never forgets one."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plugrt.config import Config
from plugrt.config import config as default_config
from plugrt.errors import PlugrtError, RegistrationError
from plugrt.interface import Client
from plugrt.plugins import discovery, environment, selection, vendors
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.record import Record, Source, State, order
from plugrt.plugins.validation import fault_of, implements_hooks

if TYPE_CHECKING:
    from plugrt.plugins.hooks import Hooks


@dataclass(frozen=True)
class Choice:
    """What initialisation came to: started names, the default first, its client, and why it."""

    request: selection.Request
    names: tuple[str, ...]
    client: Client
    why: str


class Registry:
    """Candidates from every source, and the state of their clients.

    Tests and embedders make their own: ``config`` are the settings to go by and ``path`` the
    folders to look for installed plugins in (``sys.path`` if None). `default_registry` is the
    one that ``plugrt.devices()`` and the like use.
    """

    def __init__(self, config: Config | None = None, path: Sequence[str] | None = None) -> None:
        self.config = default_config if config is None else config
        self.lock = threading.RLock()
        self.choice: Choice | None = None
        self.failure: PlugrtError | None = None
        self.starting: Record | None = None
        self.distributed: Any | None = None
        self.listener: Callable[[str, Record | None], None] | None = None
        self.warned: set[str] = set()
        self._path = path
        self._registered: list[Record] = []
        self._discovered: discovery.Discovered | None = None
        self._records: list[Record] = []
        self._extra_aliases: dict[str, tuple[str, ...]] = {}
        self._hooks: Hooks | None = None

    # --- the table ------------------------------------------------------------------------

    @property
    def records(self) -> list[Record]:
        """The candidates in the table's order; scans what is installed when first asked for."""
        if self._discovered is not None:
            return self._records  # without the lock, which a slow start may hold for a minute
        with self.lock:
            if self._discovered is None:
                begin = time.perf_counter()
                found = discovery.discover(self._path)
                libraries = environment.libraries(self.config.pjrt_names_and_library_paths or "")
                self._records = [*self._registered, *libraries, *found.records]
                self._judge()
                self._discovered = found
                took = (time.perf_counter() - begin) * 1e3
                self.trace(f"found {len(self._records)} candidates in {took:.1f} ms")
            return self._records

    def _judge(self) -> None:
        self._records.sort(key=order)
        config = self.config
        selection.mark_blocked(self._records, config.plugins_allow, config.plugins_block)
        selection.mark_duplicates(self._records)

    def table(self) -> tuple[Record, ...]:
        """Returns a row for each candidate: found, used, hidden or broken. Loads nothing."""
        return tuple(self.records)

    def get(self, name: str) -> Record | None:
        """Returns the candidate that ``name`` means, None if there is none; loads nothing."""
        usable = [r for r in self.records if r.state is not State.DUPLICATE]
        return next((r for r in usable if r.name == name), None) or next(
            (r for r in usable if r.answers_to(name)), None
        )

    @property
    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Alias to plugin names: built in, from metadata, and from the plugins loaded so far."""
        aliases = dict(vendors.ALIASES)
        found = self._discovered.aliases if self._discovered else {}
        for more in (found, self._extra_aliases):
            for alias, names in more.items():
                aliases[alias] = tuple(dict.fromkeys((*aliases.get(alias, ()), *names)))
        return aliases

    def add_alias(self, alias: str, name: str) -> None:
        """Makes ``alias`` mean the plugin ``name``, after those that it means already."""
        self._extra_aliases[alias] = (*self._extra_aliases.get(alias, ()), name)

    @property
    def command_providers(self) -> list[Record]:
        """The installed objects that add commands to the command line; none is loaded."""
        return self._discovered.commands if self.records is not None and self._discovered else []

    # --- registration ---------------------------------------------------------------------

    def register(self, plugin: Plugin, *, value: str = "") -> Record:
        """Offers a plugin by hand; it takes precedence over an installed one of its name.

        Raises `RegistrationError` for what is not a well-formed instance of `Plugin`, for a name
        that is registered already, and once backends are initialised. ``value`` says in messages
        where the plugin comes from; its module if empty.
        """
        fault = fault_of(plugin)
        if fault:
            raise RegistrationError(f"register: {fault}")
        with self.lock:
            for record in self._registered:
                if record.name == plugin.name:
                    raise RegistrationError(
                        f"register: the name {plugin.name!r} is taken by {record.plugin!r}, "
                        f"which was registered before {plugin!r}; give yours another name"
                    )
            if self.choice is not None or self.starting is not None:
                started = ", ".join(r.name for r in self._records if r.client is not None)
                raise RegistrationError(
                    f"register: {plugin!r} comes too late, as backends are initialised "
                    f"({started or 'one is starting'}); register it before devices are first "
                    "asked for, or call plugrt.clear_backends() first"
                )
            record = self._admit(plugin, value or type(plugin).__module__)
            self.failure = None  # what could not be found before may be this one
        return record

    def _admit(self, plugin: Plugin, value: str) -> Record:
        record = Record(plugin.name, Source.REGISTERED, value=value, plugin=plugin)
        self.describe(record, plugin)
        self._registered.append(record)
        if self._discovered is not None:
            for hidden in self._records:
                if hidden.name == plugin.name and not hidden.blocked:
                    hidden.became(State.DUPLICATE, f"hidden by {record.who} (registered)")
            self._records.append(record)
            self._records.sort(key=order)
        if implements_hooks(plugin):
            self.hooks.register(plugin, record.who)
        return record

    def describe(self, record: Record, plugin: Plugin) -> None:
        """Notes in the record what the plugin says of itself, and its aliases in the table."""
        record.plugin, record.priority = plugin, plugin.priority
        record.platform = plugin.platform
        for alias in plugin.aliases:
            self.add_alias(alias, record.name)

    def add_records(self, records: Sequence[Record]) -> None:
        """Adds candidates that showed up when a package was loaded."""
        self._records.extend(records)
        self._judge()

    def forget(self) -> None:
        """Forgets choice and failures, and scans anew when next asked; the caller closed clients.

        Plugins that were registered or loaded stay so: Python does not import a module twice.
        """
        self.choice = self.failure = None
        plugins = {(r.source, r.name, r.distribution): r.plugin for r in self._records}
        self._registered = [self._fresh(r) for r in self._registered]
        self._discovered, self._records = None, []
        for record in self.records:
            plugin = plugins.get((record.source, record.name, record.distribution))
            if plugin is not None and record.state is State.FOUND:
                self.describe(record, plugin)
                record.became(State.LOADED)

    @staticmethod
    def _fresh(record: Record) -> Record:
        record.failure, record.traceback, record.blocked = None, "", False
        record.became(State.FOUND)
        return record

    # --- hooks and tracing ----------------------------------------------------------------

    @property
    def hooks(self) -> Hooks:
        """The hook implementations; made when first needed, as most programs have none."""
        if self._hooks is None:
            from plugrt.plugins.hooks import Hooks  # pluggy takes 9 ms to import

            self._hooks = Hooks(self.config.trace_plugins)
        return self._hooks

    @property
    def has_hooks(self) -> bool:
        """Whether any object with hook implementations has been loaded."""
        return self._hooks is not None

    def trace(self, text: str, record: Record | None = None) -> None:
        """Prints a step to stderr under PLUGRT_TRACE_PLUGINS=1, and tells the listener."""
        if self.listener is not None:
            self.listener(text, record)
        if self.config.trace_plugins:
            print(f"plugrt: {text}", file=sys.stderr, flush=True)


_default = Registry()


def default_registry() -> Registry:
    """Returns the process's own registry."""
    return _default
