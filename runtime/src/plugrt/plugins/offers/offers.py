"""`collect_offers`: collects installed packages' additions by a hook; `Kept` caches them.

It serves every hook of `discovery.HOOK_GROUPS`. A package is imported when its offers are first
needed, and each is called separately: a package that fails is named in a warning, and skipped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from plugrt.errors import PluginBroken, PluginError, PluginIncompatible, describe, read_message
from plugrt.lifetime.interruptions import is_interruption
from plugrt.plugins.discovery import versions
from plugrt.plugins.discovery.installed_plugins import HOOK_GROUPS
from plugrt.plugins.log import logger
from plugrt.plugins.plugin import is_version
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record
from plugrt.plugins.selection import backends
from plugrt.plugins.starting.loading import import_value

if TYPE_CHECKING:
    from plugrt.plugins.hooks import Hooks

T = TypeVar("T")
Read = Callable[[Record, object], T]
"""Converts a hook's result to an offer; raises `PluginBroken` for other types."""


def collect_offers(
    table: Table, group: str, what: str, read: Read[T], *, name: str = "", **arguments: object
) -> Iterator[T]:
    """Yields ``read``'s conversion of the answer of each entry point of a group of hooks.

    ``arguments`` are passed to the hook, ``what`` names the offers in messages, and ``name``
    selects entry points by name. A package that raises, or returns an invalid answer, is skipped
    with a warning; under PLUGRT_STRICT_PLUGINS=1 it is a `PluginBroken`.
    """
    records = table.implementing(group)
    if not records:
        return
    from plugrt.plugins.hooks import Hooks  # importing pluggy costs 9 ms

    hooks = Hooks(table.config.trace_plugins)
    asked: list[object] = []
    for record in records:
        if name in ("", record.name):
            table.log.step(f"asking {record} for {what}", record)
            try:
                offered = import_value(record)
                if any(offered is other for other in asked):
                    continue  # several entry points name it
                asked.append(offered)
                yield from [read(record, a) for a in _ask(hooks, group, record, offered, arguments)]
            except GeneratorExit:
                raise
            except BaseException as error:  # one package must not disable the others
                if is_interruption(error):
                    raise
                _leave_out(table, record, what, error)


def _ask(
    hooks: Hooks, group: str, record: Record, offered: object, arguments: dict[str, object]
) -> list[object]:
    _check_version(record, getattr(offered, "interface_version", None))
    hooks.register(offered, record.who)
    return hooks.call(HOOK_GROUPS[group], offered, **arguments)


def _check_version(record: Record, wanted: Any) -> None:
    """Raises `PluginIncompatible` for an object that states an incompatible interface version."""
    if wanted is None:
        return
    if not is_version(wanted):
        raise PluginBroken(
            f"its interface_version is {wanted!r:.60}; it must be a pair of numbers, such as (1, 0)"
        )
    if misfit := versions.find_version_misfit(wanted, record, record.distribution):
        raise PluginIncompatible("; ".join(misfit))


def _leave_out(table: Table, record: Record, what: str, error: BaseException) -> None:
    words = read_message(error) if isinstance(error, PluginError) else describe(error)
    more = versions.find_broken_requirement(record) or ()
    block = f"PLUGRT_PLUGINS_BLOCK={record.distribution or record.name} silences this"
    message = f"the {what} of {record.who} are left out: {'; '.join((words, *more, block))}"
    if table.config.strict_plugins:
        raise PluginBroken(message) from error
    logger.warning("%s", " ".join(message.split()))


class Kept(Generic[T]):
    """Packages' offers through one hook: collected once for a table, until `clear_backends`."""

    def __init__(self, group: str, what: str, read: Read[T]) -> None:
        self._group, self._what, self._read = group, what, read
        self._lock = threading.Lock()
        self._found: WeakKeyDictionary[Table, dict[str, tuple[T, ...]]] = WeakKeyDictionary()
        backends.on_clear(self._found.clear)

    def get(self, table: Table, name: str = "", **arguments: object) -> tuple[T, ...]:
        """Returns the offers of all entry points of the group, or of those with one name."""
        found = self._found.get(table, {}).get(name)
        if found is None:
            with self._lock:
                of_table = self._found.setdefault(table, {})
                found = of_table.get(name)
                if found is None:
                    offers = collect_offers(
                        table, self._group, self._what, self._read, name=name, **arguments
                    )
                    found = of_table[name] = tuple(offers)
        return found
