"""`Table`: all candidate plugins, the look-up of names, and why a plugin is not used."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plugrt.errors import DuplicatePlugin, PluginError, RegistrationError, UnknownPlatform
from plugrt.plugins import precedence, vendors
from plugrt.plugins.discovery import env_paths, versions
from plugrt.plugins.discovery import installed_plugins as discovery
from plugrt.plugins.log import Log
from plugrt.plugins.plugin import Plugin, find_fault, is_hook_implementation
from plugrt.plugins.record import Record, Source, State, sort_key
from plugrt.settings.declarations import Config
from plugrt.settings.declarations import config as default_config

if TYPE_CHECKING:
    from plugrt.plugins.hooks import Hooks


class Table:
    """A row for each candidate from every source; rows are never removed, plugins never started.

    ``config`` are the settings and ``path`` the folders to search for installed plugins
    (``sys.path`` if None).
    """

    def __init__(self, config: Config | None = None, path: Sequence[str] | None = None) -> None:
        self.config = default_config if config is None else config
        self.log = Log(self.config)
        self._lock = threading.RLock()  # `register` calls `add`, `rescan` reads `rows`
        self.path = path
        self._registered: list[Record] = []
        self._discovered: discovery.Discovered | None = None
        self._rows: list[Record] = []
        self._found_later: list[Record] = []
        self._hooks: Hooks | None = None

    @property
    def rows(self) -> list[Record]:
        """The candidates in the table's order; scans the installed packages at the first use."""
        if self._discovered is not None:
            return self._rows
        with self._lock:
            if self._discovered is None:
                begin = time.perf_counter()
                found = discovery.discover(self.path)
                libraries = env_paths.parse_libraries(
                    self.config.pjrt_names_and_library_paths or ""
                )
                self._rows = [*self._registered, *libraries, *found.records, *self._found_later]
                self._mark_rows()
                for implementing in found.hooks.values():
                    precedence.mark_blocked(implementing, None, self.config.plugins_block)
                self._discovered = found
                took = (time.perf_counter() - begin) * 1e3
                self.log.step(f"found {len(self._rows)} candidates in {took:.1f} ms")
                for row in self._rows:
                    self.log.step(f"found {row} in {row.source}: {row.state}", row)
            return self._rows

    def _mark_rows(self) -> None:
        self._rows.sort(key=sort_key)
        config = self.config
        precedence.mark_blocked(self._rows, config.plugins_allow, config.plugins_block)
        precedence.mark_duplicates(self._rows)

    def implementing(self, group: str) -> list[Record]:
        """Returns the installed objects of a group of `discovery.HOOK_GROUPS`; none is loaded.

        Without those whose name or distribution is in PLUGRT_PLUGINS_BLOCK.
        """
        if self.rows is None or self._discovered is None:  # the rows are scanned with the hooks
            return []
        return [r for r in self._discovered.hooks.get(group, ()) if not r.blocked]

    @property
    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Alias to plugin names in order of preference: built in, from metadata, plugins' own."""
        aliases = dict(vendors.ALIASES)
        own: dict[str, tuple[str, ...]] = {}
        for row in self.rows:
            for alias in row.other_names:
                own[alias] = (*own.get(alias, ()), row.name)
        for more in (self._discovered.aliases if self._discovered else {}, own):
            for alias, names in more.items():
                aliases[alias] = tuple(dict.fromkeys((*aliases.get(alias, ()), *names)))
        return aliases

    def find(self, name: str, asked_by: str) -> list[Record]:
        """Returns the candidates for ``name``: one, or for an alias those to try in order.

        In this order: the plugin of exactly that name (``name@distribution`` where several have
        it), the plugins that it is an alias of, the one started backend that reports it as its
        platform. ``asked_by`` names the caller in errors: `UnknownPlatform` with a suggestion,
        `DuplicatePlugin` with the ways to choose, `PluginError` if it is blocked.
        """
        found = self._find_named(name, asked_by)
        if not found:
            _refuse_blocked(asked_by, self._rows_named(name))
            found = self._find_by_alias(name, asked_by) or self._find_by_platform(name, asked_by)
        if not found:
            _refuse_blocked(asked_by, [row for row in self.rows if row.matches_name(name)])
            raise UnknownPlatform(self._describe_unknown(name, asked_by))
        return found

    def _rows_named(self, name: str) -> list[Record]:
        plain, at, owner = name.partition("@")
        same = [row for row in self.rows if row.name == plain and row.named]
        if all(row.is_made_for_others for row in same):
            offered = {row.distribution for row in same}
            for row in self.rows:
                if row.registers == plain and row.distribution not in offered:
                    offered.add(row.distribution)
                    same.append(row)
        return [row for row in same if owner and row.belongs_to(owner)] if at else same

    def _find_named(self, name: str, asked_by: str) -> list[Record]:
        usable = [row for row in self._rows_named(name) if not row.blocked]
        if "@" in name:
            return usable[:1]
        usable = [row for row in usable if not row.hidden]
        started = [row for row in usable if row.client is not None]
        if len(started) == 1:
            return started  # the user chose it among several
        if any(row.rivalled for row in usable) or len(usable) > 1:
            fault = precedence.describe_conflict(name, usable)
            cure = precedence.describe_choices(name, usable)
            raise DuplicatePlugin(f"{asked_by}: {fault}; {cure}")
        return usable

    def _find_by_alias(self, name: str, asked_by: str) -> list[Record]:
        found: list[Record] = []
        for meant in self.aliases.get(name, ()):
            found += self._find_named(meant, asked_by) or self._find_matching(meant)
        found += self._find_matching(name)
        return list(dict.fromkeys(found))

    def _find_matching(self, name: str) -> list[Record]:
        return [row for row in self.rows if row.matches_name(name) and row.is_eligible]

    def _find_by_platform(self, name: str, asked_by: str) -> list[Record]:
        found = [row for row in self.rows if row.client is not None and row.platform == name]
        if len(found) > 1:
            names = ", ".join(row.name for row in found)
            raise UnknownPlatform(
                f"{asked_by} requests {name!r}, which is not the name of a plugin, and {names} "
                "all report "
                "it as their platform; ask for one of them by its name"
            )
        return found

    def _describe_unknown(self, name: str, asked_by: str) -> str:
        from difflib import get_close_matches  # only for errors

        usable = [row for row in self.rows if not row.blocked]
        names = sorted({row.name for row in usable if row.named})
        spelt = {known.lower(): known for known in (*self.aliases, *names)}
        close = get_close_matches(name.lower(), spelt, n=1, cutoff=0.6)
        if command := vendors.find_extra(name):
            cure = f"to get it: {command}"
        elif close:
            cure = f"did you mean {spelt[close[0]]!r}?"
        else:
            cure = f"install a plugin that provides {name!r}, or choose among those installed"
        unread = "".join(f"; {row.reason}" for row in usable if not row.named)
        unread += "".join(
            f"; {row} may register that name, but failed: {row.reason}"
            for row in usable if row.source is Source.JAX and row.failure
        )  # fmt: skip
        return (
            f"{asked_by} requests {name!r}, but no installed plugin has that name; {cure} "
            f"(installed: {', '.join(names) or 'none'}; `plugrt doctor` explains each){unread}"
        )

    def label(self, row: Record) -> str:
        """Returns a name that is unique to this candidate: its own if possible."""
        same = [r for r in self.rows if r.name == row.name and r.client is not None]
        best = not row.hidden and all(r is row for r in same if not r.hidden)
        return row.name if best else f"{row.name}@{row.distribution}"

    def missing_plugins(self) -> list[str]:
        """Returns a sentence for each accelerator of this machine that no automatic choice uses."""
        sentences = []
        # Kinds of devices with the same plugins get one sentence, about the first kind.
        seen = {h.plugins: h for h in reversed(vendors.hardware_seen())}
        for hardware in reversed(seen.values()):
            drivers = [row for row in self.rows if hardware in row.hardware]
            if all(row.is_made_for_others for row in drivers) and (drivers or not hardware.usual):
                usable = [row.name for row in drivers if row.is_eligible]
                sentences.append(vendors.explain_missing(hardware, usable))
        return sentences

    def register(self, plugin: Plugin, by: str) -> Record:
        """Adds a registered plugin; it hides an installed one of its name.

        ``by`` names the caller in messages. Raises `RegistrationError` for anything but a valid
        instance of `Plugin`, and for a name that is already registered.
        """
        if fault := find_fault(plugin):
            raise RegistrationError(f"register: {fault}")
        if misfit := versions.find_misfit(plugin):
            raise RegistrationError(f"register: {plugin!r}: {'; '.join(misfit)}")
        with self._lock:
            for row in self._registered:
                if row.name == plugin.name:
                    raise RegistrationError(
                        f"register: the name {plugin.name!r} is already used by the plugin "
                        f"registered by {row.value}; give yours, registered by {by}, another name"
                    )
            row = Record(plugin.name, Source.REGISTERED, value=by, plugin=plugin,
                         order=len(self._registered))  # fmt: skip
            self.describe(row, plugin)
            if is_hook_implementation(plugin):
                self.hooks.register(plugin, row.who)
            self._registered.append(row)
            if self._discovered is not None:
                self.add(row)
        return row

    def add(self, row: Record) -> None:
        """Adds a candidate found after the scan."""
        with self._lock:
            self._rows = [*self._rows, row]
            self._mark_rows()

    def add_found(self, row: Record) -> None:
        """Adds a candidate found when a package was loaded, unless it is known."""
        if all(row.identity != known.identity for known in self.rows):
            self._found_later.append(row)
            self.add(row)

    def describe(self, row: Record, plugin: Plugin) -> None:
        """Copies a plugin's attributes to its row."""
        row.plugin, row.priority, row.platform = plugin, plugin.priority, plugin.platform
        row.aliases = tuple(dict.fromkeys((*row.aliases, *plugin.aliases)))
        row.library = row.library or str(getattr(plugin, "library_path", ""))

    def explain_unused(self, names: Sequence[str], request: str, why: str) -> None:
        """Writes the reason ``why`` into the rows in ``names`` that were not started.

        Empty ``names`` mean all rows. ``request`` states the source of the names.
        """
        for row in self.rows:
            if row.state in (State.FOUND, State.LOADED):
                asked_for = not names or any(map(row.matches_name, names))
                row.set_state(
                    State.NOT_SELECTED, why if asked_for else f"{request} does not name it"
                )

    def rescan(self) -> None:
        """Scans for installed plugins again, with the current settings.

        Registered and loaded plugins stay so: Python does not import a module twice.
        """
        with self._lock:
            plugins = {row.identity: row.plugin for row in self._rows}
            for row in (*self._registered, *self._found_later):
                row.reset()
            self._discovered, self._rows = None, []
            for row in self.rows:
                plugin = plugins.get(row.identity)
                if plugin is not None and row.state is State.FOUND:
                    self.describe(row, plugin)
                    row.set_state(State.LOADED)

    @property
    def hooks(self) -> Hooks:
        """The hook implementations; created when first needed, as most programs have none."""
        if self._hooks is None:
            from plugrt.plugins.hooks import Hooks  # importing pluggy costs 9 ms

            self._hooks = Hooks(self.config.trace_plugins)
        return self._hooks

    @property
    def has_hooks(self) -> bool:
        """Whether any object with hook implementations has been loaded."""
        return self._hooks is not None


def _refuse_blocked(asked_by: str, rows: Iterable[Record]) -> None:
    for row in rows:
        if row.blocked:
            raise PluginError(f"{asked_by}: {row} is {row.reason}; {row.cure}")
