"""`start`: a loaded plugin becomes a client, with time and reason recorded."""

from __future__ import annotations

import time

from plugrt import monitoring
from plugrt.errors import (
    HARDWARE_ABSENT,
    PjrtError,
    PluginBroken,
    PluginError,
    PluginIncompatible,
    PluginUnavailable,
    Unimplemented,
    message_of,
    words_of,
)
from plugrt.interface import Client
from plugrt.plugins.loading import again, fail, load
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.record import Record, State
from plugrt.plugins.registry import Registry
from plugrt.plugins.watch import logger, watch


def start(record: Record, registry: Registry) -> Client:
    """Returns the client of a candidate, starting it at the first call.

    The caller holds ``registry.lock``. Raises `PluginUnavailable` where the hardware is absent
    and the `PluginError` that says why otherwise; the same at every call.
    """
    if record.client is not None:
        return record.client
    plugin = load(record, registry)
    if record.failure is not None:
        raise again(record.failure)
    if registry.starting is not None:
        raise PluginError(
            f"{registry.starting} asks for devices while it starts its backend, which are not "
            "there before it has; a plugin must not"
        )
    begin = time.perf_counter()
    registry.starting = record
    try:
        client = _start(plugin, record, registry)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise fail(record, _failure(record, error), error) from error
    finally:
        registry.starting = None
        elapsed = time.perf_counter() - begin
        record.elapsed_ms += elapsed * 1e3
        registry.trace(f"starting {record} took {elapsed * 1e3:.1f} ms", record)
    record.client, record.platform = client, client.platform
    record.became(State.INITIALISED)
    monitoring.record_event_duration_secs(monitoring.CLIENT_CREATED, elapsed, platform=record.name)
    if registry.has_hooks:
        registry.hooks.client_created(record.name, client)
    return client


def _check_available(plugin: Plugin, record: Record, registry: Registry) -> None:
    """Asks the plugin whether it can work here; `PluginUnavailable` has its reason and cure."""
    registry.trace(f"probing {record}", record)
    try:
        answer = plugin.probe()
    except Exception as error:
        raise PluginBroken(f"{record}: its probe failed: {words_of(error)}") from error
    if not answer.available:
        record.cure = answer.cure
        cure = f"; {answer.cure}" if answer.cure else ""
        raise PluginUnavailable(f"{record} cannot work here: {answer.reason}{cure}")


def _start(plugin: Plugin, record: Record, registry: Registry) -> Client:
    _check_available(plugin, record, registry)
    options = plugin.client_options(registry.config)
    registry.trace(f"starting {record} with {options}", record)
    if plugin.experimental and f"experimental {record.name}" not in registry.warned:
        registry.warned.add(f"experimental {record.name}")
        logger.warning("the plugin %s is experimental: not all may work, nor work right", record)
    with watch(f"starting {record}", registry.config.init_warn_seconds, plugin.waits_for):
        client = plugin.create_client(options, registry.distributed)
    if not isinstance(client, Client):
        raise PluginBroken(
            f"{record}: create_client returned a {type(client).__name__}, not a "
            "plugrt.interface.Client"
        )
    if not client.devices():
        client.close()
        raise PluginUnavailable(f"{record} started a backend that has no devices")
    return client


def _failure(record: Record, error: BaseException) -> PluginError:
    """Returns the `PluginError` for what a plugin raised; the plugin's name is in its message."""
    message = message_of(error)
    prefix = "" if message.startswith(str(record)) else f"{record}: "
    for cls in (PluginUnavailable, PluginIncompatible):
        if isinstance(error, cls):
            return cls(f"{prefix}{message}")
    if isinstance(error, PluginError):
        return PluginBroken(f"{prefix}{message}")
    if isinstance(error, SystemExit):
        return PluginBroken(f"{record}: starting it called sys.exit({error.code!r})")
    if isinstance(error, Unimplemented):
        return PluginBroken(f"{record}: {error.message}")
    if isinstance(error, HARDWARE_ABSENT):
        return PluginUnavailable(f"{record} cannot work here: {message}")
    words = message if isinstance(error, PjrtError) else words_of(error)
    return PluginBroken(f"{record} could not start its backend: {words}")
