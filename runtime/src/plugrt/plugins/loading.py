"""`load`: a candidate becomes a `Plugin`; its code runs here for the first time."""

from __future__ import annotations

import importlib
import time
import traceback
from typing import Any

from plugrt import monitoring
from plugrt.errors import (
    PluginBroken,
    PluginError,
    PluginIncompatible,
    PluginUnavailable,
    PlugrtError,
    message_of,
    words_of,
)
from plugrt.plugins import environment, verdicts
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.record import Record, Source, State
from plugrt.plugins.registry import Registry
from plugrt.plugins.validation import fault_of, implements_hooks
from plugrt.plugins.watch import watch


def load(record: Record, registry: Registry) -> Plugin:
    """Returns the plugin of a candidate, importing it at the first call.

    Raises the `PluginError` that says what went wrong, the same at every call. A plugin's
    ``SystemExit`` is its fault and becomes one; ``KeyboardInterrupt`` is the user's and passes.
    """
    if record.plugin is not None:
        return record.plugin
    if record.failure is not None:
        raise again(record.failure)
    if record.state is State.BROKEN:
        raise fail(record, PluginBroken(f"{record}: {record.reason}"))
    registry.trace(f"loading {record}: {record.value or record.library}", record)
    begin = time.perf_counter()
    try:
        plugin = _load(record, registry)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise fail(record, _broken(record, error), error) from error
    finally:
        elapsed = time.perf_counter() - begin
        record.elapsed_ms += elapsed * 1e3
        registry.trace(f"loading {record} took {elapsed * 1e3:.1f} ms: {record.state}", record)
    monitoring.record_event_duration_secs(monitoring.PLUGIN_LOAD, elapsed, plugin=record.name)
    registry.describe(record, plugin)
    record.became(State.LOADED)
    return plugin


def _load(record: Record, registry: Registry) -> Plugin:
    if record.source is Source.ENVIRONMENT:
        return _library(record, registry)
    what = f"importing the plugin {record}"
    hint = f"PLUGRT_PLUGINS_BLOCK={record.name} leaves it out"
    with watch(what, registry.config.load_warn_seconds, hint):
        if record.source in (Source.JAX, Source.XLA):
            from plugrt.plugins import jax_plugins

            return jax_plugins.load(record)
        return _from_entry_point(record, registry)


def _library(record: Record, registry: Registry) -> Plugin:
    """Returns the plugin for a library named in the environment; opens nothing here."""
    from plugrt.plugins.library import LibraryPlugin

    if fault := environment.missing(record):
        raise PluginBroken(f"{record}: {fault}; correct the path")
    plugin = LibraryPlugin(record.name, record.library, record.options)
    options = plugin.client_options(registry.config)
    if registry.config.probe_libraries and not verdicts.is_known_good(record.library, options):
        registry.trace(f"probing {record} in a process of its own", record)
        probed = plugin.try_apart(registry.config)
        if probed.state != "ok":
            record.cure = probed.cure
            states = {"unavailable": PluginUnavailable, "incompatible": PluginIncompatible}
            raise states.get(probed.state, PluginBroken)(f"{record}: {probed.reason}")
        verdicts.remember_good(record.library, options)
    return plugin


def import_value(record: Record) -> Any:
    """Returns what the candidate's entry point names; `PluginBroken` if it is not there."""
    module_name, _, attribute = record.value.partition("[")[0].partition(":")
    found: Any = importlib.import_module(module_name.strip())
    for part in filter(None, attribute.strip().split(".")):
        if not hasattr(found, part):
            raise PluginBroken(
                f"{record}: its entry point names {record.value!r}, but {module_name.strip()} has "
                f"no {part!r}"
            )
        found = getattr(found, part)
    return found


def _from_entry_point(record: Record, registry: Registry) -> Plugin:
    offered = import_value(record)
    if isinstance(offered, Plugin) or not implements_hooks(offered) or isinstance(offered, type):
        fault = fault_of(offered)
        if fault:
            raise PluginBroken(f"{record}: its entry point is wrong: {fault}")
        plugins = [offered]
    else:
        plugins = []
    if implements_hooks(offered):
        registry.hooks.register(offered, record.who)
        plugins += registry.hooks.offered_plugins(offered)
        for alias, names in registry.hooks.aliases(offered).items():
            for name in names:
                registry.add_alias(alias, name)
    for plugin in plugins:
        if fault := fault_of(plugin):
            raise PluginBroken(f"{record}: plugrt_offer_plugins: {fault}")
    return _pick(record, plugins, registry)


def _pick(record: Record, plugins: list[Plugin], registry: Registry) -> Plugin:
    """Returns the plugin of the entry point's name; others that are offered get their own rows."""
    mine = [p for p in plugins if p.name == record.name]
    if not mine:
        names = ", ".join(repr(p.name) for p in plugins) or "none"
        raise PluginBroken(
            f"{record}: the entry point is named {record.name!r} but offers plugins named {names}; "
            "its author must make the names equal"
        )
    known = {(r.name, r.distribution) for r in registry.records}
    more = []
    for plugin in plugins:
        if (plugin.name, record.distribution) not in known:
            other = Record(plugin.name, record.source, record.distribution, record.version,
                           record.value, record.location)  # fmt: skip
            registry.describe(other, plugin)
            more.append(other)
    if more:
        registry.add_records(more)
    return mine[0]


# --- what went wrong --------------------------------------------------------------------------


def fail(
    record: Record, error: PluginError, cause: BaseException | None = None, cure: str = ""
) -> PluginError:
    """Notes a failure and its cause in the record and returns it, for the caller to raise."""
    states = {PluginUnavailable: State.UNAVAILABLE, PluginIncompatible: State.INCOMPATIBLE}
    state = next((s for cls, s in states.items() if isinstance(error, cls)), State.BROKEN)
    error.__cause__, record.failure = cause, error
    cure = cure or record.cure
    reason = str(error).removeprefix(str(record)).lstrip(": ")
    record.became(state, reason.removesuffix(f"; {cure}") if cure else reason, cure)
    if cause is not None:
        record.traceback = "".join(traceback.format_exception(cause))
    return error


def again(error: PlugrtError) -> PlugrtError:
    """Returns a fresh copy of a stored error, so that its traceback does not grow at each raise."""
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__
    return copy


def _broken(record: Record, error: BaseException) -> PluginError:
    """Returns the `PluginError` for what an import raised; the plugin is named in its message."""
    message = message_of(error)
    prefix = "" if message.startswith(str(record)) else f"{record}: "
    for cls in (PluginUnavailable, PluginIncompatible, PluginBroken):
        if isinstance(error, cls):
            return cls(f"{prefix}{message}")
    module = record.value.partition(":")[0].strip()
    if isinstance(error, ModuleNotFoundError) and error.name:
        if module == error.name or module.startswith(error.name + "."):
            return PluginBroken(
                f"{record}: its entry point names the module {module!r}, which is not there; "
                f"pip install --force-reinstall {record.distribution or record.name}"
            )
        return PluginBroken(
            f"{record}: importing it needs the module {error.name!r}, which is not installed; "
            f"install that, or {record.distribution or record.name} again with its dependencies"
        )
    if isinstance(error, SystemExit):
        return PluginBroken(f"{record}: importing it called sys.exit({error.code!r})")
    return PluginBroken(f"{record}: importing it failed: {words_of(error)}")
