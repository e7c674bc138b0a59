"""`Request` and `Choice`: the backends that the settings request, and the started ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from plugrt.errors import (
    ConfigError,
    PluginBroken,
    PluginError,
    PluginUnavailable,
    UnknownPlatform,
)
from plugrt.interface import Client
from plugrt.plugins import vendors
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record, Source, State
from plugrt.plugins.starting.starting import fold_errors, start_first_working, stop

Load = Callable[[Record], object]
Start = Callable[[Record], Client]
Find = Callable[[str, str], list[Record]]


class Request(NamedTuple):
    """The user's request: names in order, the default among them, and the setting.

    No names mean an automatic choice. An ``exclusive`` request admits no other platform.
    """

    names: tuple[str, ...] = ()
    setting: str = ""
    exclusive: bool = False
    default: str = ""

    def __str__(self) -> str:
        return self.setting or "JAX_PLATFORMS unset"


class Choice(NamedTuple):
    """The result of initialisation: started names, default first, its client, and the reason."""

    request: Request
    names: tuple[str, ...]
    client: Client
    why: str


def parse_request(platforms: str | None, platform_name: str | None = None) -> Request:
    """Returns the request that JAX_PLATFORMS and JAX_PLATFORM_NAME make.

    Spaces, empty items and repetitions are ignored. The first name is the default, unless
    JAX_PLATFORM_NAME names another.
    """
    names, default = _names(platforms), "".join(_names(platform_name)[:1])
    if names:
        return Request(names, f"JAX_PLATFORMS={platforms}", True, default)
    if default:
        return Request((default,), f"JAX_PLATFORM_NAME={platform_name}", default=default)
    return Request()


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, (text or "").split(",")))))


def choose(request: Request, table: Table, find: Find, load: Load, start: Start) -> Choice:
    """Starts the backends that the request selects, and returns the choice."""
    table.log.step(f"choosing: {request}")
    try:
        if request.names:
            choice = choose_named(request, table, find, start)
        else:
            choice = choose_automatically(request, table, load, start)
    except PluginError:
        why = "another one, which was requested, does not work"
        table.explain_unused(request.names, str(request), why)
        raise
    table.log.step(f"chose {', '.join(choice.names)}: {choice.why}")
    table.explain_unused(request.names, str(request), choice.why)
    return choice


def choose_named(request: Request, table: Table, find: Find, start: Start) -> Choice:
    """Starts each named platform; if one fails, closes those that were started for it.

    All names are looked up before any plugin is loaded.
    """
    groups = [find(name, str(request)) for name in request.names]
    for fault in find_malformed(table):
        table.log.warn_once(fault, f"{fault} (not needed for {request}, so ignored)")
    setting = request.setting.partition("=")[0]
    defaults = _find_default(request, groups, find)
    started: list[Record] = []
    try:
        for name, group in zip(request.names, groups, strict=True):
            cure = f"take {name!r} out of {setting} to go on without it"
            fold = fold_errors(f"{request} requests {name!r}", cure)
            started.append(start_first_working(group, start, fold)[0])
        first = next((row for row in defaults if row in started), None)
        if first is None:
            raise _left_out(request)
    except BaseException:  # an interrupt, too: no client stays
        for row in started:
            stop(row)
        raise
    names = tuple(dict.fromkeys(table.label(row) for row in (first, *started)))
    by = f"JAX_PLATFORM_NAME={request.default}" if request.default else str(request)
    assert first.client is not None
    return Choice(request, names, first.client, f"{by} requests {names[0]}")


def _find_default(request: Request, groups: list[list[Record]], find: Find) -> list[Record]:
    """Returns the candidates for the default among the named ones; the first to start is used."""
    rows = [row for group in groups for row in group]
    if not request.default:
        return rows
    found = [r for r in find(request.default, f"JAX_PLATFORM_NAME={request.default}") if r in rows]
    if not found:
        raise _left_out(request)
    return found


def _left_out(request: Request) -> UnknownPlatform:
    return UnknownPlatform(
        f"JAX_PLATFORM_NAME={request.default} requests a default that {request} leaves out; take "
        "one of the two away"
    )


def find_malformed(table: Table) -> list[str]:
    """Returns the faults of malformed items of PJRT_NAMES_AND_LIBRARY_PATHS."""
    return [r.reason for r in table.rows if r.source is Source.ENVIRONMENT and not r.named]


def choose_automatically(request: Request, table: Table, load: Load, start: Start) -> Choice:
    """Starts the candidate of the highest priority that works.

    Plugins made for JAX come last: their names and priorities are known only once their code has
    run, so they are started only if no other backend works.
    """
    for fault in find_malformed(table):
        raise ConfigError(fault)

    def warn(row: Record, error: PluginError) -> None:
        _warn_of_failure(row, error, table)

    for row in {r.reason: r for r in table.rows if r.rivalled}.values():
        warn(row, PluginBroken(f"{row.reason}; {row.cure}"))
    for row in table.rows:
        if not row.named:
            warn(row, PluginBroken(f"{row}: {row.reason}; {row.cure}"))
    eligible = [row for row in table.rows if row.is_eligible]
    loaded = []
    for row in eligible:
        if not row.is_made_for_others:
            try:
                load(row)
            except PluginError as error:
                warn(row, error)
            else:
                loaded.append(row)
    for row in loaded:
        if (row.priority or 0) < 0 and row.state in (State.FOUND, State.LOADED):
            reason = f"its priority ({row.priority}) is negative: it is used only if requested"
            row.set_state(State.NOT_SELECTED, reason)
    loaded = [row for row in loaded if (row.priority or 0) >= 0]
    loaded.sort(key=lambda r: -(r.priority or 0))  # equal ones stay in the table's order
    table.log.step(f"ranked {', '.join(f'{r.name} {r.priority}' for r in loaded) or 'none'}")
    row, client = start_first_working(
        [*loaded, *(r for r in eligible if r.is_made_for_others)], start,
        lambda errors: _make_nothing_works_error(table), warn,
    )  # fmt: skip
    _warn_of_missing_plugins(row, table)
    why = f"{row.name} has the highest priority ({row.priority}) of those that work"
    return Choice(request, (table.label(row),), client, why)


def _warn_of_failure(row: Record, error: PluginError, table: Table) -> None:
    """Warns of a candidate that fails, in one line, once; raises under PLUGRT_STRICT_PLUGINS=1.

    Absent hardware is not reported (the table has the reason), except for a library that the user
    named in the environment.
    """
    if isinstance(error, PluginUnavailable) and row.source is not Source.ENVIRONMENT:
        return
    if table.config.strict_plugins:
        raise error
    text = str(error)
    text = text if row.cure in text else f"{text}; {row.cure}"
    table.log.warn_once(f"left out {row.name} {row.who}", f"left out: {text}")


def _warn_of_missing_plugins(chosen: Record, table: Table) -> None:
    """Warns of an accelerator without a plugin, where only cpu could be chosen."""
    if (chosen.priority or 0) <= 0:
        for sentence in table.missing_plugins():
            table.log.warn_once(sentence, sentence)


def _describe(row: Record) -> str:
    text = f"{row}: {row.state}: {row.reason}".rstrip(": ")
    return text if row.cure in text else f"{text}; {row.cure}"


def _make_nothing_works_error(table: Table) -> PluginError:
    if not table.rows:
        return UnknownPlatform(f"no plugin is installed; {vendors.install('cpu')}")
    cure = "`plugrt doctor` explains more"
    if not any(row.name == "cpu" for row in table.rows):
        cure = f"{vendors.install('cpu')}, or see `plugrt doctor`"
    rows = [_describe(row) for row in table.rows]
    return PluginUnavailable("\n  ".join([f"no installed plugin can be used; {cure}:", *rows]))
