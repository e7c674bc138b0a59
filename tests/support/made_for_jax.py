"""A folder for plugins, and plugins made for JAX whose ``initialize()`` has given lines."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plugrt import interface
from plugrt.plugins import Backends, vendors
from plugrt.plugins.starting import jax_trial
from plugrt.plugins.vendors import Hardware
from plugrt.processes.run_in_child import Outcome
from support.distributions import install
from support.registries import registry

REGISTERS = 'xb.register_plugin("chip", library_path="lib.so")'
START = """
import os, sys
import jax._src.xla_bridge as xb
sys.modules.get("runs_of_chip", []).append(1)
"""
ENV = ("CHIP_MODE", "CHIP_SECRET")


def made_for_jax(site: Path, body: str, *files: str, **settings: str) -> Backends:
    """Installs a plugin made for JAX whose ``initialize()`` has these lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"{START}\ndef initialize():\n{lines}"
    info = install(site, "chip-pjrt", {"jax_plugins": {"chip": "made_chip"}})
    (site / "made_chip.py").write_text(source)
    for file in files:
        (site / file).write_bytes(b"no library")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return registry(path=site, **settings)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, whose modules are removed from ``sys.modules`` afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def show_hardware(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Hardware]], None]:
    """Makes hardware detection find these accelerators."""
    return lambda seen: monkeypatch.setattr(vendors, "hardware_seen", lambda root="/": seen)


@pytest.fixture
def be_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[int, int]], None]:
    """Gives plugrt's interface another version."""
    return lambda version: monkeypatch.setattr(interface, "VERSION", version)


@pytest.fixture
def hides_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the trial of plugins made for JAX find no jax."""
    monkeypatch.setattr(jax_trial, "_has_jax", lambda: False)


@pytest.fixture
def runs(hides_jax: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The runs of the code of plugins made for JAX.

    The child's side runs in this process, where jax is imported.
    """

    def run(target: str, argument: Any, seconds: float, **_: Any) -> Outcome:
        lines: list[dict[str, Any]] = []
        jax_trial.examine(json.loads(json.dumps(argument)), lambda **line: lines.append(line))
        return Outcome("exit", lines=tuple(json.loads(json.dumps(lines))))

    monkeypatch.setattr(jax_trial, "run_in_child", run)
    found: list[int] = []
    monkeypatch.setitem(sys.modules, "runs_of_chip", found)
    yield found
    for name in ENV:
        os.environ.pop(name, None)
        ctypes.CDLL(None).unsetenv(name.encode())
