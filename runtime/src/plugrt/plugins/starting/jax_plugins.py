"""Loads plugins made for JAX: records what their ``initialize()`` registers.

A module of the group ``jax_plugins`` has a function ``initialize()`` that calls
``jax._src.xla_bridge.register_plugin``. Where jax is installed it runs in a child process
(`plugrt.plugins.starting.jax_trial`), and in this one if the program needs more than its
registration, which is recorded instead of given to jax (`plugrt.plugins.starting.jax_recorder`).
Where jax is not installed, where that function raises or registers nothing, and for the group
``xla_plugins`` (which has no such function), the library is searched among the files of the
distribution.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from types import MappingProxyType

from plugrt.errors import (
    PluginBroken,
    PluginError,
    PluginIncompatible,
    PluginUnavailable,
    Unimplemented,
    describe,
    read_message,
)
from plugrt.interface import OptionValue, Topology
from plugrt.lifetime.interruptions import is_interruption
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.log import logger
from plugrt.plugins.plugin import Declared
from plugrt.plugins.record import Record, Source
from plugrt.plugins.starting import jax_trial
from plugrt.plugins.starting.jax_recorder import BRIDGE, Registration, run_initialize
from plugrt.settings.declarations import Config, config


def collect_registrations(record: Record, config: Config = config) -> list[Registration]:
    """Returns the registrations of a plugin made for JAX; the one with the record's name is first.

    If its code registers nothing, its files decide, and the code's error becomes the record's note.
    If they contain no single library either, the error is raised: `PluginBroken` for a module
    without ``initialize()``, `PluginUnavailable` if nothing was registered, else the code's
    exception. Raises `PluginIncompatible` for a library of another machine or system, and runs no
    code then.
    """
    if misfit := record.description.misfit:
        raise PluginIncompatible(f"{record}: {misfit}")
    if record.source is not Source.JAX or importlib.util.find_spec("jax") is None:
        return [_read_files(record)]
    trial = jax_trial.try_initialize(record, config)
    if trial.registration is not None:
        return [trial.registration]
    try:
        if trial.ended or (trial.failed and record.description.library):
            raise PluginBroken(f"{record}: {trial.ended or trial.failed}")
        found = _run_initialize(record)
    except (Exception, SystemExit) as error:  # a plugin's own code
        if is_interruption(error):
            raise
        try:
            found = [_read_files(record)]
        except PluginError:
            raise error from None
        words = read_message(error) if isinstance(error, PluginError) else describe(error)
        words = words.removeprefix(f"{record}: ")
        record.add_note(f"its own code did not register it: {words}")
        logger.info("%s: %s", record, record.note)
    return sorted(found, key=lambda registration: not record.matches_name(registration.name))


def _read_files(record: Record) -> Registration:
    """Returns a registration made from a distribution's files; runs none of its code."""
    described = record.description
    if not described.library:
        raise PluginIncompatible(
            f"{record}: it {described.explain_no_library()}; name the library yourself: "
            f"PJRT_NAMES_AND_LIBRARY_PATHS={record.name}:/path/to/library.so"
        )
    return Registration(record.registers or record.name, library_path=described.library)


def _run_initialize(record: Record) -> list[Registration]:
    """Returns the registrations by the module's import and by its ``initialize()``."""
    importlib.import_module(BRIDGE)  # first, as it changes the environment
    with record.noting_environment():
        found, error = run_initialize(record.module)
    if error is not None and not found:
        raise error
    if error is not None:
        # Code after the registration prepares jax (custom calls, profilers), not the library.
        logger.info("%s: initialize() failed after registering: %r", record, error)
    if not found:
        raise PluginUnavailable(
            f"{record}: its initialize() registered no backend, as plugins made for JAX do "
            "where their library or hardware is missing"
        )
    return found


class JaxPlugin(LibraryPlugin):
    """A library that a plugin made for JAX registers."""

    has_topologies = True
    _declared = MappingProxyType({
        **LibraryPlugin._declared,
        # JAX compares priorities, whatever numbers they are.
        "priority": Declared("a number", lambda value: isinstance(value, int | float)),
    })  # fmt: skip

    def create_topology(self, name: str, options: Mapping[str, OptionValue]) -> Topology:
        """Returns the library's topology; `Unimplemented` where jax would ask a function."""
        if self.has_topologies:
            return super().create_topology(name, options)
        raise Unimplemented(
            f"the plugin {self.name!r} registers make_topology=, a function that makes topologies "
            "of jax's own, which only jax can use"
        )


def make_plugin(record: Record, found: Registration) -> JaxPlugin:
    """Returns the plugin of a registration; `PluginIncompatible` if only jax can use it."""
    if fault := _find_fault_in(found):
        raise PluginIncompatible(f"{record}: it registers {found.name!r} {fault}")
    plugin = JaxPlugin(
        record.name,
        os.fspath(found.library_path) if found.library_path else None,
        found.options,
        c_api=found.c_api,
        priority=found.priority,
        aliases=() if found.name == record.name else (found.name,),
        platform=found.name,
    )
    plugin.has_topologies = found.make_topology is None
    return plugin


def _find_fault_in(found: Registration) -> str:
    if found.unknown:
        return f"with {', '.join(found.unknown)}, which plugrt does not know"
    if found.factory is not None:
        fault = "with a factory, which makes a client of jax's own, so that only jax can use it"
        if not found.library_path:
            return fault
        variable = f"PJRT_NAMES_AND_LIBRARY_PATHS={found.name}:{found.library_path}"
        return f"{fault}; {variable} tries its library without the factory"
    if found.library_path and found.c_api is not None:
        return "with both library_path and c_api, which jax also refuses; one is needed"
    if not found.library_path and found.c_api is None:
        return "with neither library_path nor c_api, which jax also refuses; one is needed"
    return ""
