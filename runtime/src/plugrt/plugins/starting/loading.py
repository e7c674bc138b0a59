"""`load`: imports a candidate's code, or one made for PyTorch/XLA, and returns its `Plugin`."""

from __future__ import annotations

import importlib
import os
import time
from typing import Any

from plugrt import monitoring
from plugrt.errors import (
    ConfigError,
    PluginBroken,
    PluginError,
    PluginIncompatible,
    PluginUnavailable,
    describe,
    read_message,
)
from plugrt.frames.argument_errors import after_checks
from plugrt.lifetime.interruptions import is_interruption
from plugrt.plugins.discovery import env_paths, versions
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.log import logger
from plugrt.plugins.plugin import Plugin, find_fault, is_hook_implementation
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record, Source, State
from plugrt.plugins.starting.slow_start import warn_if_slow


@after_checks
def load(row: Record, table: Table) -> Plugin:
    """Returns the plugin of a candidate, importing it at the first call; starts nothing.

    Raises a `PluginError` on failure, the same at every call. A plugin's ``SystemExit`` also
    becomes one; `ConfigError`, and exceptions of Ctrl-C or the program's signal handlers,
    propagate.
    """
    if row.plugin is not None:
        return row.plugin
    if row.failure is not None:
        raise copy_error(row.failure)
    if row.state is State.BROKEN:
        raise fail(row, PluginBroken(f"{row}: {row.reason}"))
    table.log.step(f"loading {row}: {row.value or row.library}", row)
    begin, row.cure = time.perf_counter(), ""
    try:
        plugin = _load(row, table)
        table.describe(row, plugin)
        row.set_state(State.LOADED, row.note)
    except ConfigError:
        raise
    except BaseException as error:  # an import may call sys.exit
        if is_interruption(error):
            raise
        raise fail(row, _explain_import_error(row, error), error) from error
    finally:
        elapsed = time.perf_counter() - begin
        row.elapsed_ms += elapsed * 1e3
        table.log.step(f"loading {row} took {elapsed * 1e3:.1f} ms: {row.state}", row)
    monitoring.record_event_duration_secs(monitoring.PLUGIN_LOAD, elapsed, plugin=row.name)
    return plugin


def _load(row: Record, table: Table) -> Plugin:
    if row.source is Source.ENVIRONMENT:
        from plugrt.plugins.library import LibraryPlugin

        if fault := env_paths.explain_missing(row):
            row.cure = "correct the path"
            raise PluginBroken(f"{row}: {fault}; {row.cure}")
        return LibraryPlugin(row.name, row.library, row.options)
    hint = f"PLUGRT_PLUGINS_BLOCK={row.name} excludes it"
    with warn_if_slow(f"importing the plugin {row}", table.config.load_warn_seconds, hint):
        if row.source in (Source.JAX, Source.XLA):
            return _load_registered(row, table)
        with row.noting_environment():
            if row.source is Source.TORCH:
                from plugrt.plugins.starting import loading as torch_plugins

                return torch_plugins.make_plugin(row, import_value(row))
            return _load_offered(row, import_value(row), table)


def import_value(row: Record) -> object:
    """Returns the object that an entry point names; `PluginBroken` if it does not exist."""
    module_name, _, attribute = row.value.partition("[")[0].partition(":")
    found: object = importlib.import_module(module_name.strip())
    for part in filter(None, attribute.strip().split(".")):
        if not hasattr(found, part):
            raise PluginBroken(
                f"{row}: its entry point names {row.value!r}, but {module_name.strip()} has "
                f"no {part!r}"
            )
        found = getattr(found, part)
    return found


def _load_registered(row: Record, table: Table) -> Plugin:
    """Returns the plugin that a JAX plugin registers; further registrations get their own rows."""
    from plugrt.plugins.starting import jax_plugins

    first, *others = jax_plugins.collect_registrations(row, table.config)
    for found in others:
        other = Record(found.name, row.source, row.distribution, row.version, row.value,
                       row.location, registered=found.name)  # fmt: skip
        try:
            table.describe(other, jax_plugins.make_plugin(other, found))
            other.set_state(State.LOADED)
        except PluginError as error:
            fail(other, error)
        table.add_found(other)
    row.registered = first.name  # also if it is refused, so that a request for it reports why
    return jax_plugins.make_plugin(row, first)


def _load_offered(row: Record, offered: Any, table: Table) -> Plugin:
    """Returns the plugin with the entry point's name among those that its object offers."""
    hooks = not isinstance(offered, type) and is_hook_implementation(offered)
    plugins = [offered] if isinstance(offered, Plugin) or not hooks else []
    what = "its entry point is wrong" if plugins else "plugrt_offer_plugins"
    if hooks:
        table.hooks.register(offered, row.who)
        plugins += table.hooks.collect_plugins(offered)
    for plugin in plugins:
        if fault := find_fault(plugin):
            raise PluginBroken(f"{row}: {what}: {fault}")
    mine: list[Plugin] = [plugin for plugin in plugins if plugin.name == row.name]
    if not mine:
        names = ", ".join(repr(p.name) for p in plugins) or "none"
        raise PluginBroken(
            f"{row}: the entry point is named {row.name!r} but offers plugins named {names}; "
            "its author must make the names equal"
        )
    _warn_of_unnamed(row, plugins, table)
    if misfit := versions.find_misfit(mine[0], row):
        row.cure = misfit[1]
        raise PluginIncompatible(f"{row}: {'; '.join(misfit)}")
    return mine[0]


def _warn_of_unnamed(row: Record, plugins: list[Plugin], table: Table) -> None:
    """Warns of plugins without an entry point: they cannot be selected before their code runs."""
    known = {r.name for r in table.rows if r.belongs_to(row.distribution)}
    for plugin in plugins:
        if plugin.name not in known:
            table.log.warn_once(
                f"nameless {plugin.name} {row.who}",
                f"{row.who} also offers the plugin {plugin.name!r}, which no entry point names, so "
                f"that it is left out; its author must add {plugin.name} = {row.value!r} to the "
                f"entry points of the group {row.source}",
            )


def fail(row: Record, error: PluginError, cause: BaseException | None = None) -> PluginError:
    """Records a failure and its cause in the row and returns it, for the caller to raise.

    A plugin that fails and requires other versions of plugrt is incompatible, not broken.
    """
    if isinstance(error, PluginBroken) and (misfit := versions.find_broken_requirement(row)):
        row.cure = misfit[1]
        error = PluginIncompatible(f"{error}; {'; '.join(misfit)}")
    states = {PluginUnavailable: State.UNAVAILABLE, PluginIncompatible: State.INCOMPATIBLE}
    state = next((s for cls, s in states.items() if isinstance(error, cls)), State.BROKEN)
    if row.note and row.note not in str(error):
        error = without_frames(type(error)(f"{error}; {row.note}"))
    error.__cause__ = cause
    row.failure = without_frames(error)
    reason = str(error).removeprefix(str(row)).lstrip(": ")
    row.set_state(state, reason.removesuffix(f"; {row.cure}") if row.cure else reason, row.cure)
    if cause is not None:
        import traceback  # not needed by every start

        row.traceback = "".join(traceback.format_exception(cause))
    return error


def copy_error(error: PluginError) -> PluginError:
    """Returns a fresh copy of a stored error, so that its traceback does not grow at each raise."""
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__
    return copy


def without_frames(error: PluginError) -> PluginError:
    """Returns a copy to keep: a traceback would keep callers' local variables alive."""
    copy = copy_error(error)
    if isinstance(error.__cause__, PluginError):
        copy.__cause__ = without_frames(error.__cause__)
    return copy


def name_owner(row: Record, error: BaseException) -> str:
    """Returns an exception's message, prefixed with the candidate's name and owner."""
    text = read_message(error)
    return text if text.startswith(str(row)) else f"{row}: {text}"


def _explain_import_error(row: Record, error: BaseException) -> PluginError:
    """Returns the `PluginError` for an exception of an import; the message names the plugin."""
    for cls in (PluginUnavailable, PluginIncompatible, PluginBroken):
        if isinstance(error, cls):
            return cls(name_owner(row, error))
    module = row.module
    if isinstance(error, ModuleNotFoundError) and error.name and isinstance(error.name, str):
        if module == error.name or module.startswith(error.name + "."):
            return PluginBroken(
                f"{row}: its entry point names the module {module!r}, which is not there; "
                f"pip install --force-reinstall {row.distribution or row.name}"
            )
        return PluginBroken(
            f"{row}: importing it needs the module {error.name!r}, which is not installed; "
            f"install that, or {row.distribution or row.name} again with its dependencies"
        )
    if isinstance(error, SystemExit):
        return PluginBroken(f"{row}: importing it called sys.exit({read_message(error)})")
    return PluginBroken(f"{row}: importing it failed: {describe(error)}")


def load_for_names(table: Table) -> bool:
    """Loads the plugins made for JAX that are not loaded; returns whether there were any.

    The names that they register with JAX are in no metadata. Failures are recorded in the rows.
    """
    silent = [
        row for row in table.rows
        if row.is_eligible and row.source is Source.JAX and not (row.plugin or row.failure)
    ]  # fmt: skip
    for row in silent:
        try:
            load(row, table)
        except PluginError as error:
            logger.debug("not known by further names: %s", error)
    return bool(silent)


def make_plugin(record: Record, offered: Any) -> LibraryPlugin:
    """Returns the plugin for the object that an entry point names.

    As for PyTorch/XLA, an `OSError` of the class means that its library or hardware is absent
    (`PluginUnavailable`). Raises `PluginBroken` for an object without ``library_path()``.
    """
    try:
        device_plugin = offered() if isinstance(offered, type) else offered
        if not callable(getattr(device_plugin, "library_path", None)):
            raise PluginBroken(
                f"{record}: its entry point names {offered!r}, which has no library_path()"
            )
        path = os.fspath(device_plugin.library_path())
    except OSError as error:
        raise PluginUnavailable(f"{record} cannot work here: {error}") from error
    options = getattr(device_plugin, "client_create_options", None)
    return LibraryPlugin(record.name, path, options, aliases=record.aliases)
