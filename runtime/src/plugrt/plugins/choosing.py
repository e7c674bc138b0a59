"""`choose`: starts the backends that the settings ask for, or the best that works."""

from __future__ import annotations

from plugrt.errors import (
    ConfigError,
    PluginBroken,
    PluginError,
    PluginUnavailable,
    UnknownPlatform,
)
from plugrt.interface import Client
from plugrt.plugins import selection, vendors
from plugrt.plugins.loading import load
from plugrt.plugins.record import Record, State
from plugrt.plugins.registry import Choice, Registry
from plugrt.plugins.starting import start
from plugrt.plugins.watch import logger


def choose(registry: Registry) -> Choice:
    """Returns the choice, with its clients started; the caller holds ``registry.lock``."""
    request = selection.parse_request(registry.config.platforms, registry.config.platform_name)
    choice = _named(request, registry) if request.names else _automatic(request, registry)
    why = f"{request} does not name it" if request.names else choice.why
    for record in registry.records:
        if record.state in (State.FOUND, State.LOADED):
            record.became(State.NOT_SELECTED, why, f"JAX_PLATFORMS={record.name} selects it")
    return choice


# --- by name ----------------------------------------------------------------------------------


def _named(request: selection.Request, registry: Registry) -> Choice:
    """Starts each named platform. All names are looked up before any plugin is touched."""
    groups = [
        selection.candidates(name, registry.records, registry.aliases, str(request))
        for name in request.names
    ]
    _warn_malformed(registry)
    started: list[Record] = []
    clients: list[Client] = []
    try:
        for name, group in zip(request.names, groups, strict=True):
            record, client = _first_that_starts(name, group, request, registry)
            started.append(record)
            clients.append(client)
    except BaseException:
        for record in started:
            _undo(record)
        raise
    names = tuple(dict.fromkeys(r.name for r in started))
    return Choice(request, names, clients[0], f"{request} asks for {names[0]}")


def _first_that_starts(
    name: str, group: list[Record], request: selection.Request, registry: Registry
) -> tuple[Record, Client]:
    errors: list[PluginError] = []
    for record in group:
        try:
            return record, start(record, registry)
        except PluginError as error:
            errors.append(error)
    way_out = f"take {name!r} out of {request.setting.partition('=')[0]} to go on without it"
    whys = "; ".join(map(str, errors))
    kinds = {type(e) for e in errors}
    cls = kinds.pop() if len(kinds) == 1 else PluginUnavailable
    raise cls(f"{request} asks for {name!r}: {whys}; {way_out}") from errors[0].__cause__


def _undo(record: Record) -> None:
    """Closes a client that was started for a choice that failed."""
    client, record.client = record.client, None
    if client is not None:
        client.close()
        record.became(State.LOADED)


def _warn_malformed(registry: Registry) -> None:
    fault = selection.malformed(registry.records)
    if fault and "malformed" not in registry.warned:
        registry.warned.add("malformed")
        logger.warning("%s (not needed for JAX_PLATFORMS, so ignored)", fault)


# --- by priority ------------------------------------------------------------------------------


def _automatic(request: selection.Request, registry: Registry) -> Choice:
    fault = selection.malformed(registry.records)
    if fault:
        raise ConfigError(fault)
    first, rest = selection.automatic(registry.records)
    for conflict in {r.reason: r for r in registry.records if selection.is_conflict(r)}.values():
        _tell(conflict, PluginBroken(f"{conflict.reason}; {conflict.cure}"), registry)
    for record in [*selection.ranked(_loaded(first, registry)), *rest]:
        try:
            client = start(record, registry)
        except PluginUnavailable:
            continue  # absent hardware is no news; the table has the reason
        except PluginError as error:
            _tell(record, error, registry)
        else:
            _suggest(record, registry)
            why = f"{record.name} has the highest priority ({record.priority}) of those that work"
            return Choice(request, (record.name,), client, why)
    raise _nothing_works(registry)


def _loaded(records: list[Record], registry: Registry) -> list[Record]:
    """Returns those that load; what a package offers besides comes in when it is loaded."""
    good = []
    for record in records:
        try:
            load(record, registry)
        except PluginUnavailable:
            continue
        except PluginError as error:
            _tell(record, error, registry)
        else:
            good.append(record)
    more = [r for r in selection.automatic(registry.records)[0] if r.plugin and r not in good]
    return [*good, *(r for r in more if r.failure is None)]


def _tell(record: Record, error: PluginError, registry: Registry) -> None:
    """Warns of a broken plugin in one line, once; raises it under PLUGRT_STRICT_PLUGINS=1."""
    if registry.config.strict_plugins:
        raise error
    key = f"broken {record.name} {record.who}"
    if key not in registry.warned:
        registry.warned.add(key)
        cure = record.cure or (
            f"`plugrt doctor` shows more, and PLUGRT_PLUGINS_BLOCK={record.name} leaves it out"
        )
        logger.warning("%s", " ".join(f"left out: {error}; {cure}".split()))


def _suggest(chosen: Record, registry: Registry) -> None:
    """Says that an accelerator is there without a plugin, where only cpu could be chosen."""
    if (chosen.priority or 0) > 0 or "hardware" in registry.warned:
        return
    registry.warned.add("hardware")
    for sentence in vendors.missing_plugins({r.name for r in registry.records}):
        logger.warning("%s", sentence)


def _nothing_works(registry: Registry) -> PluginError:
    if not registry.records:
        return UnknownPlatform(f"no plugin is installed; {vendors.install('cpu')}")
    cure = "`plugrt doctor` explains more"
    if registry.get("cpu") is None:
        cure = f"{vendors.install('cpu')}, or see `plugrt doctor`"
    rows = [f"{r}: {r.state}: {r.reason}".rstrip(": ") for r in registry.records]
    return PluginUnavailable("\n  ".join([f"no installed plugin can be used; {cure}:", *rows]))
