"""Registries with a test's plugins, and settings from a test's variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plugrt.plugins import Backends, Plugin, Record
from plugrt.plugins.record import Source
from plugrt.plugins.selection import backends
from plugrt.settings.declarations import Config


def settings(**environ: str) -> Config:
    """Returns the settings from these environment variables."""
    return Config(environ)


def registry(*plugins: Plugin, path: Path | None = None, **environ: str) -> Backends:
    """Returns a registry of these plugins and those installed in ``path``, in this environment."""
    made = Backends(settings(**environ), path=[str(path)] if path else [])
    for plugin in plugins:
        made.register(plugin)
    return made


@contextmanager
def as_own(made: Backends) -> Iterator[None]:
    """Makes plugrt's functions use this registry instead of the process's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "_own", made)
        yield


def record(name: str, source: str = "plugrt.plugins", *fields: str, **more: Any) -> Record:
    """Returns a row of the table for a candidate of that name, found in ``source``."""
    return Record(name, Source(source), *fields, **more)
