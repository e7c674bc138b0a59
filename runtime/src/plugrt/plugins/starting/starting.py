"""`start`: creates a plugin's client and records time and outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from plugrt import monitoring
from plugrt.errors import (
    HARDWARE_ABSENT,
    ConfigError,
    PjrtError,
    PluginBroken,
    PluginError,
    PluginIncompatible,
    PluginUnavailable,
    Unimplemented,
    describe,
    read_message,
)
from plugrt.frames.argument_errors import after_checks
from plugrt.interface import Client, Device, OptionValue
from plugrt.lifetime.interruptions import is_interruption
from plugrt.monitoring.distributed_debug import log_step
from plugrt.plugins import vendors
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.log import logger
from plugrt.plugins.plugin import Availability, Plugin
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record, State
from plugrt.plugins.starting import probe_cache
from plugrt.plugins.starting.loading import copy_error, fail, load, name_owner
from plugrt.plugins.starting.slow_start import warn_if_slow
from plugrt.processes.address_space import address_limit

if TYPE_CHECKING:
    from plugrt.plugins.coordination import Connection

T = TypeVar("T")


@after_checks
def start(row: Record, table: Table, distributed: Connection | None = None) -> Client:
    """Returns the client of a candidate, starting it at the first call.

    The caller must hold a lock. Raises `PluginUnavailable` if the hardware is absent and another
    `PluginError` otherwise, the same at every call; `ConfigError`, and exceptions of Ctrl-C or the
    program's signal handlers, propagate.
    """
    if row.client is not None:
        return row.client
    plugin = load(row, table)
    if row.failure is not None:
        raise copy_error(row.failure)
    begin, row.cure = time.perf_counter(), ""
    try:
        with row.noting_environment():
            client = _start(plugin, row, table, distributed)
        row.client, row.platform = client, client.platform
        row.set_state(State.INITIALISED, row.note)
    except ConfigError:
        raise
    except BaseException as error:  # a plugin may call sys.exit
        if is_interruption(error):
            raise
        raise fail(row, _failure(row, error), error) from error
    finally:
        elapsed = time.perf_counter() - begin
        row.elapsed_ms += elapsed * 1e3
        table.log.step(f"starting {row} took {elapsed * 1e3:.1f} ms: {row.state}", row)
    monitoring.record_event_duration_secs(monitoring.CLIENT_CREATED, elapsed, platform=row.name)
    if table.config.distributed_debug:
        _log_start(client)
    if table.has_hooks:
        table.hooks.notify_client_created(row.name, client)
    return client


def _log_start(client: Client) -> None:
    local = [device.id for device in client.addressable_devices()]
    log_step(
        f"started the backend {client.backend_name}",
        {
            "platform": client.platform,
            "process": f"{client.process_index} of {client.process_count}",
            "devices": f"{len(client.devices())}; of this process {len(local)}: {local}",
        },
    )


def stop(row: Record) -> None:
    """Closes the client of a candidate, if it has one; a failure is only logged."""
    client, row.client = row.client, None
    if client is None:
        return
    try:
        client.close()
    except Exception as error:  # noqa: BLE001  # the other clients must also be closed
        logger.warning("closing the backend of %s raised %s", row, describe(error))
    row.set_state(State.LOADED)


def prepare_topologies(row: Record, table: Table) -> Plugin:
    """Returns the plugin of a candidate, ready to create topologies; starts no client.

    Its library is first opened in a child process.
    """
    plugin = load(row, table)
    _try_in_child(plugin, row, table, None)
    return plugin


def start_first_working(
    rows: Iterable[Record],
    step: Callable[[Record], T],
    fold: Callable[[list[PluginError]], PluginError],
    passed_over: Callable[[Record, PluginError], None] = lambda row, error: None,
) -> tuple[Record, T]:
    """Returns the first candidate whose ``step`` raises no `PluginError`, and its result.

    ``passed_over`` is called for each that does. If all do, ``fold(errors)`` is raised.
    """
    errors: list[PluginError] = []
    for row in rows:
        try:
            return row, step(row)
        except PluginError as error:
            passed_over(row, error)
            errors.append(error)
    raise fold(errors)


def fold_errors(asked_by: str, cure: str = "") -> Callable[[list[PluginError]], PluginError]:
    """Returns a function that merges several candidates' errors, keeping a common class."""

    def fold(errors: list[PluginError]) -> PluginError:
        classes = {type(error) for error in errors}
        cls = classes.pop() if len(classes) == 1 else PluginUnavailable
        whys = "; ".join(dict.fromkeys(map(str, errors)))
        error = cls("; ".join(filter(None, (f"{asked_by}: {whys}", cure))))
        error.__cause__ = errors[0].__cause__
        return error

    return fold


def _start(plugin: Plugin, row: Record, table: Table, distributed: Connection | None) -> Client:
    config, log = table.config, table.log
    log.step(f"probing {row}", row)
    _check_available(plugin, row)
    options = plugin.client_options(config)
    if not isinstance(options, Mapping):
        raise PluginBroken(f"its client_options returned a {type(options).__name__}, not a mapping")
    options = {**options, **config.client_create_options.get(row.name, {})}
    isolated = row.name in config.isolate
    if not isolated:
        _try(plugin, row, table, options, distributed)
    if plugin.experimental:
        words = f"the plugin {row} is experimental: not all may work, nor work right"
        log.warn_once(f"experimental {row.name}", words)
    log.step(f"starting {row} with {options}", row)
    with warn_if_slow(f"starting {row}", config.init_warn_seconds, plugin.waits_for):
        if isolated:
            # Imported late: few programs use it.
            from plugrt.plugins.starting.isolation import start_isolated

            client = start_isolated(row, table, options, distributed)
        else:
            client = plugin.create_client(options, distributed)
    if not isinstance(client, Client):
        raise PluginBroken(
            f"create_client returned a {type(client).__name__}, not a plugrt.interface.Client"
        )
    if fault := _find_fault(client, distributed):
        client.close()
        raise PluginBroken(f"it started a backend {fault} (options: {dict(options)})")
    return client


def _try(
    plugin: Plugin, row: Record, table: Table, options: Mapping[str, OptionValue],
    distributed: Connection | None,
) -> None:  # fmt: skip
    """Raises the fault of a plugin's library, which is tried before it is opened here."""
    is_exclusive = isinstance(plugin, LibraryPlugin) and _is_exclusive(plugin)
    limit = address_limit()
    if limit is not None and not is_exclusive:
        # Imported late: a start without a limit, which is usual, imports less.
        from plugrt.plugins.starting.limit_trial import try_within_limit

        try_within_limit(plugin, row, options, table.config, limit)
    # In a program of several processes the child would start a client that waits for the others.
    _try_in_child(plugin, row, table, options if distributed is None else None)


def _find_fault(client: Client, distributed: Connection | None) -> str:
    """Returns the fault that makes a client unusable, to follow "a backend"; empty for none."""
    platform: object = client.platform
    if not isinstance(platform, str):
        return f"whose platform is {platform!r:.80}, not a text"
    devices = client.devices()
    wrong = next((d for d in devices or () if not isinstance(d, Device)), None)
    if wrong is not None:
        return f"one of whose devices is {wrong!r:.80}, not a plugrt.interface.Device"
    if not devices:
        return "that has no devices"
    if distributed is not None:
        me, count = distributed.process_id, distributed.num_processes
        if (client.process_index, client.process_count) != (me, count):
            return (
                f"that reports itself as process {client.process_index} of {client.process_count}, "
                f"where plugrt.distributed.initialize made this process {me} of {count}: it does "
                "not find the others, and each would compute by itself. Without initialize it "
                "works in this process alone"
            )
    return ""


def _check_available(plugin: Plugin, row: Record) -> None:
    """Probes the plugin; raises `PluginUnavailable` with its reason and cure."""
    try:
        answer = plugin.probe()
    except (PluginError, ConfigError):
        raise
    except Exception as error:  # a plugin may raise anything
        raise PluginBroken(f"its probe failed: {describe(error)}") from error
    if not isinstance(answer, Availability):
        raise PluginBroken(f"its probe returned a {type(answer).__name__}, not an Availability")
    if not answer.available:
        row.cure = answer.cure
        cure = f"; {answer.cure}" if answer.cure else ""
        raise PluginUnavailable(f"{row} cannot work here: {answer.reason}{cure}")


def _try_in_child(
    plugin: Plugin, row: Record, table: Table, options: Mapping[str, OptionValue] | None
) -> None:
    """Tries a plugin's library in a child process, once for each file and options.

    It starts a client there with these options; with None, or if one process alone can use the
    devices, it opens the library only. Raises the library's fault. A function table in this
    process cannot be tried in another, nor can the client of a plugin without a library.
    """
    config = table.config
    if not config.probe_libraries or not isinstance(plugin, LibraryPlugin):
        return
    if not (library := plugin.library()):
        return
    if _is_exclusive(plugin):
        options = None
    if probe_cache.is_known_good(library, options):
        return
    table.log.step(f"trying the library of {row} in a process of its own", row)
    tried = plugin.try_in_child(config, options=options, start=options is not None)
    if tried.state != "ok":
        row.cure = tried.cure
        states = {"unavailable": PluginUnavailable, "incompatible": PluginIncompatible}
        cure = f"; {tried.cure}" if tried.cure else ""
        raise states.get(tried.state, PluginBroken)(f"{row}: {tried.reason}{cure}")
    probe_cache.record_good(library, options)


def _is_exclusive(plugin: LibraryPlugin) -> bool:
    """Whether one process at a time can use the devices."""
    return plugin.exclusive or vendors.is_exclusive(plugin.library())


def _find_absent_hardware(row: Record, broken: str, is_opened: bool) -> PluginUnavailable | None:
    """Returns the error of a plugin whose device this machine does not have, else None.

    A library that cannot be opened without its vendor's libraries is for their devices. Any
    exception of a plugin made for another program, without its device, means that the device is
    missing.
    """
    needed = [] if is_opened else vendors.find_hardware((), row.description.find_missing())
    if not needed and row.is_made_for_others:
        needed = row.hardware
    seen = vendors.hardware_seen() if needed else []
    if not needed or any(hardware in seen for hardware in needed):
        return None
    return PluginUnavailable(
        f"{row} cannot work here: this machine shows no sign of {needed[0].label}, and "
        f"{broken.removeprefix(f'{row}: ')}"
    )


def _failure(row: Record, error: BaseException) -> PluginError:
    """Returns the `PluginError` for a plugin's exception; the message names the plugin."""
    for cls in (PluginUnavailable, PluginIncompatible):
        if isinstance(error, cls):
            return cls(name_owner(row, error))
    if isinstance(error, HARDWARE_ABSENT):
        return PluginUnavailable(f"{row} cannot work here: {read_message(error)}")
    if isinstance(error, PluginError):
        broken = name_owner(row, error)
    elif isinstance(error, SystemExit):
        broken = f"{row}: starting it called sys.exit({read_message(error)})"
    elif isinstance(error, Unimplemented):
        broken = f"{row}: {read_message(error)}"
    else:
        words = read_message(error) if isinstance(error, PjrtError) else describe(error)
        broken = f"{row}: it could not start its backend: {words}"
    is_opened = not isinstance(error, PluginError)
    return _find_absent_hardware(row, broken, is_opened) or PluginBroken(broken)
