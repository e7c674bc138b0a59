"""Plugins made for JAX: their ``initialize()`` is run with our recorder, or their library found.

A module of the groups ``jax_plugins`` has a function ``initialize()`` that calls
``jax._src.xla_bridge.register_plugin``. Where jax is installed it is run with a recorder in that
function's place, so that nothing is registered with jax itself. Where jax is not installed, and
for the group ``xla_plugins`` (which has no such function), the library is looked for among the
files of the distribution.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plugrt.errors import PluginBroken, PluginIncompatible, PluginUnavailable
from plugrt.plugins import distributions
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.log import logger
from plugrt.plugins.plugin import Plugin
from plugrt.plugins.record import Record, Source

_SUFFIXES = (".so", ".dylib", ".dll")


def load(record: Record) -> Plugin:
    """Returns a `LibraryPlugin` for a plugin made for JAX, under the record's name."""
    if record.source is Source.JAX and importlib.util.find_spec("jax") is not None:
        return _initialized(record)
    record.library = find_library(record)
    return LibraryPlugin(record.name, record.library)


# --- with jax: run initialize() ---------------------------------------------------------------


@dataclass
class _Registration:
    name: str
    arguments: dict[str, Any]


class _Recorder:
    """Stands in for jax's ``register_plugin``: keeps what it is told, and registers nothing."""

    def __init__(self) -> None:
        self.registrations: list[_Registration] = []

    def __call__(self, plugin_name: str, **arguments: Any) -> None:
        self.registrations.append(_Registration(plugin_name, arguments))


@contextlib.contextmanager
def _recording() -> Iterator[_Recorder]:
    """Puts a recorder in the place of jax's ``register_plugin`` until the block ends."""
    bridge = importlib.import_module("jax._src.xla_bridge")
    recorder, original = _Recorder(), bridge.register_plugin
    bridge.register_plugin = recorder  # type: ignore[attr-defined]
    try:
        yield recorder
    finally:
        bridge.register_plugin = original  # type: ignore[attr-defined]


def _initialized(record: Record) -> Plugin:
    with _recording() as recorder:
        module = importlib.import_module(record.value.partition(":")[0])
        if not hasattr(module, "initialize"):
            raise PluginBroken(f"{record}: the module {record.value} has no initialize()")
        try:
            module.initialize()
        except Exception as error:
            if not recorder.registrations:
                raise
            # What follows registration prepares jax (custom calls, profilers), not the library.
            logger.info("%s: initialize() failed after registering: %r", record, error)
    if not recorder.registrations:
        raise PluginUnavailable(
            f"{record}: its initialize() registered no backend, as plugins made for JAX do "
            "where their library or hardware is missing"
        )
    return _recorded(record, recorder.registrations)


def _recorded(record: Record, registrations: list[_Registration]) -> Plugin:
    named = [r for r in registrations if record.answers_to(r.name)]
    found = (named or registrations)[0]
    path, table = found.arguments.get("library_path"), found.arguments.get("c_api")
    options = found.arguments.get("options")
    more: dict[str, Any] = {
        "priority": found.arguments.get("priority", 400),
        "platform": found.name,
        "aliases": () if found.name == record.name else (found.name,),
    }
    if path:
        record.library = os.fspath(path)
        return LibraryPlugin(record.name, path, options, **more)
    if table is not None:
        return LibraryPlugin(record.name, None, options, c_api=table, **more)
    raise PluginIncompatible(
        f"{record}: it registers {found.name!r} with neither library_path nor c_api (but "
        f"{', '.join(sorted(found.arguments)) or 'nothing'}), so that only jax can use it"
    )


# --- without jax: find the library ------------------------------------------------------------


def find_library(record: Record) -> str:
    """Returns the one PJRT library of the distribution, or of the module's folder.

    Raises `PluginIncompatible` if there is none or more than one.
    """
    files = [f for f in _files(record) if f.name.endswith(_SUFFIXES) and f.is_file()]
    found = files if len(files) == 1 else [f for f in files if _exports_pjrt(f)]
    if len(found) == 1:
        return str(found[0])
    what = f"has no file that exports GetPjrtApi (of {len(files)} libraries)"
    if found:
        what = f"has several libraries that export GetPjrtApi: {', '.join(map(str, found))}"
    raise PluginIncompatible(
        f"{record}: it {what}; name the library yourself: "
        f"PJRT_NAMES_AND_LIBRARY_PATHS={record.name}:/path/to/library.so"
    )


def _files(record: Record) -> list[Path]:
    """Returns the files of the record's distribution; without one, those beside its module."""
    if record.distribution:
        distribution = distributions.at(record.location)
        listed = distribution.files() if distribution else []
        if listed:
            return listed
        root = Path(record.location).parent.joinpath(*record.value.split("."))
    else:
        root = Path(record.location)
    return sorted(root.rglob("*")) if root.is_dir() else []


def _exports_pjrt(file: Path) -> bool:
    """Whether the symbol's name is in the file: a mapped search reads 250 MB in about 0.1 s."""
    if file.stat().st_size == 0:
        return False
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"GetPjrtApi") >= 0
