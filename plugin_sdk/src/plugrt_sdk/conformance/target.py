"""`Target`: an installed plugin, a library, or an object to test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from plugrt.base.files import why_no_file
from plugrt.errors import (
    InvalidArgument,
    PluginBroken,
    PluginUnavailable,
    PlugrtError,
    describe,
)
from plugrt.interface import Client, OptionValue
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.plugin import Plugin, find_fault
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record
from plugrt.plugins.starting.loading import load

_COMMAND = "plugrt conform"
_LIBRARY_ENDINGS = (".so", ".dylib", ".dll")


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a run.

    ``kind`` is ``plugin``, ``library`` or ``object``. ``name`` is a plugin's name, a library's
    absolute path, or ``module:name`` of a `Plugin` or of a function that returns one (called with
    ``argument``, if given). ``options`` are create options. ``topology`` names the devices to
    compile for, which need not exist; by default it is the plugin's first. ``topology_options`` are
    its options.
    """

    kind: str
    name: str
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    argument: str = ""
    topology: str = ""
    topology_options: Mapping[str, OptionValue] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, text: str, options: Mapping[str, OptionValue] | None = None, **rest: Any
    ) -> Target:
        """Parses the target of a command line; ``rest`` are further fields.

        Raises `InvalidArgument` for a library that is not a file; other names are looked up at
        their first use.
        """
        given = dict(options or {})
        if os.sep in text or text.endswith(_LIBRARY_ENDINGS):
            if fault := why_no_file(text):
                raise InvalidArgument(f"{text} {fault}; give the path of a PJRT library")
            return cls("library", str(Path(text).resolve()), given, **rest)
        return cls("object" if ":" in text else "plugin", text, given, **rest)

    def as_dict(self) -> dict[str, Any]:
        """Returns it as a JSON object."""
        return asdict(self)

    def record(self, asked_by: str = _COMMAND) -> Record:
        """Returns an installed plugin's row in plugrt's table; imports nothing.

        Raises `plugrt.errors.UnknownPlatform`, with a suggestion, and `DuplicatePlugin`.
        """
        return Table().find(self.name, asked_by)[0]

    def require(self, asked_by: str = _COMMAND) -> None:
        """Raises an error if the target does not exist; imports nothing.

        `InvalidArgument` for a missing module; for a plugin the errors of `record`, which name
        ``asked_by``.
        """
        if self.kind == "plugin":
            self.record(asked_by)
        top = self.name.partition(":")[0].partition(".")[0]
        if self.kind == "object" and find_spec(top) is None:
            raise InvalidArgument(
                f"{asked_by} asks for {self.name!r}, and there is no module {top!r}; install it, "
                "or put its folder into PYTHONPATH"
            )

    def load(self) -> Plugin:
        """Imports and returns the plugin; starts nothing."""
        if self.kind == "library":
            return LibraryPlugin("library", self.name)
        if self.kind == "plugin":
            table = Table()
            return load(table.find(self.name, _COMMAND)[0], table)
        module, _, name = self.name.partition(":")
        found = getattr(import_module(module), name)
        if not isinstance(found, Plugin):
            found = found(self.argument) if self.argument else found()
        if fault := find_fault(found):
            raise PluginBroken(f"{self.name}: {fault}")
        assert isinstance(found, Plugin)
        return found

    def create_client(self, plugin: Plugin) -> Client:
        """Starts a client as a program would, with the plugin's `conformance_options` added.

        Raises `PluginUnavailable` without the hardware.
        """
        answer = plugin.probe()
        if not answer.available:
            raise PluginUnavailable("; ".join(filter(None, (answer.reason, answer.cure))))
        return plugin.create_client(self.create_options(plugin))

    def create_options(self, plugin: Plugin) -> dict[str, OptionValue]:
        """Returns the create options: the plugin's for the kit, configured ones, and given ones."""
        configured = plugin.client_options(Table().config)
        return {**plugin.conformance_options, **configured, **self.options}


def find_library_fault(plugin: LibraryPlugin) -> str:
    """Returns why there is no library file, or an empty string."""
    try:
        path = plugin.library()
    except PlugrtError as error:
        return describe(error)
    fault = why_no_file(path) if os.sep in path else ""
    return f"{path} {fault}" if fault else ""
