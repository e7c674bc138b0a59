"""`Inputs`: the environment variables, files and modules that the code of a plugin reads.

While they are the same, the code does the same in another process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from types import FrameType
from typing import Any

from plugrt.base import files

_QUERIES = ("stat", "lstat", "access", "readlink")
_FILES = ("open", "os.listdir", "os.scandir")
_UNCOMPARABLE = ("subprocess.", "socket.", "os.fork", "os.posix_spawn", "os.system", "os.exec")
"""The prefixes of audit events whose results may differ the next time."""
_VOLATILE = ("/proc/", "/sys/")
_IMPORTERS = ("_frozen_importlib_external", "importlib._bootstrap_external")
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_READ = type(os.environ).__getitem__.__code__
_ITERATED = type(os.environ).__iter__.__code__

# Process-wide: an audit hook cannot be removed; it is added once, and passes events to these.
_active: list[Inputs] = []
# Process-wide: whether the hook was added.
_hooked: list[bool] = []


class Inputs:
    """Notes the inputs that code reads within a block; a context manager.

    Its user calls `note_call` from a profile function, for environment variables. Of code in C,
    it notes only the files opened through Python.
    """

    def __init__(self) -> None:
        self._variables: set[str] = set()
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._modules: set[str] = set()
        self._comparable = True
        self._queries = {name: getattr(os, name) for name in _QUERIES}

    def __enter__(self) -> None:
        if not _hooked:
            sys.addaudithook(_pass_on)
            _hooked.append(True)
        for name, function in self._queries.items():
            setattr(os, name, self._noting(function))
        sys.meta_path.insert(0, self)
        _active.append(self)

    def __exit__(self, *_: object) -> None:
        _active.remove(self)
        sys.meta_path.remove(self)
        for name, function in self._queries.items():
            setattr(os, name, function)

    def noted(self) -> dict[str, object] | None:
        """Returns the inputs, for `are_unchanged`; None if they cannot be compared."""
        if not self._comparable:
            return None
        return {
            "variables": {name: _digest_variable(name) for name in sorted(self._variables)},
            "files": {path: files.identify(path) for path in sorted(self._files)},
            "folders": {path: files.identify(path, listed=True) for path in sorted(self._folders)},
            "modules": {name: _find_module(name) for name in sorted(self._modules)},
        }

    def note_call(self, frame: FrameType) -> None:
        """Notes the variable that a call of a Python function reads, if it reads one."""
        if frame.f_code is _READ:
            self._variables.add(os.fsdecode(frame.f_locals["key"]))
        elif frame.f_code is _ITERATED:
            self._comparable = False

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> None:
        """Notes a module that is looked for, as an importer; finds none."""
        if path is None:
            self._modules.add(name)
        else:
            for folder in path:
                self._note_file(folder, listed=True)

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        """Notes an audit event of Python's, of code that called `_pass_on`."""
        if event in _FILES:  # sys._getframe is an event, too
            importing = sys._getframe(2).f_globals.get("__name__") in _IMPORTERS
            if event == "open" or not importing:
                self._note_file(arguments[0], listed=event != "open", importing=importing)
        elif event == "ctypes.dlopen":
            self._comparable &= arguments[0] is None
        elif event.startswith(_UNCOMPARABLE):
            self._comparable = False

    def _note_file(self, path: Any, *, listed: bool = False, importing: bool = False) -> None:
        if isinstance(path, int):
            return
        given = os.fsdecode(os.curdir if path is None else path)
        if not os.path.isabs(given):
            self._files.add(os.curdir)
        found = os.path.abspath(given)
        if importing and found.endswith(".pyc"):
            with contextlib.suppress(ValueError):  # it has no source
                found = importlib.util.source_from_cache(found)
        if found.startswith(_VOLATILE):
            self._comparable = False
        elif not found.startswith(_STANDARD) or "-packages" in found:
            (self._folders if listed else self._files).add(found)

    def _noting(self, function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def call(path: object, *arguments: object, **named: object) -> object:
            self._note_file(path)
            self._comparable &= named.get("dir_fd") is None
            return function(path, *arguments, **named)

        return call


def _pass_on(event: str, arguments: tuple[object, ...]) -> None:
    for inputs in _active:
        inputs.hear(event, arguments)


def are_unchanged(noted: dict[str, Any]) -> bool:
    """Whether a result of `Inputs.noted`, possibly of another process, still holds."""
    return (
        all(_digest_variable(name) == value for name, value in noted["variables"].items())
        and all(files.identify(path) == known for path, known in noted["files"].items())
        and all(
            files.identify(path, listed=True) == known for path, known in noted["folders"].items()
        )
        and all(_find_module(name) == origin for name, origin in noted["modules"].items())
    )


def describe_jax() -> list[object]:
    """Returns facts that change with jax, its variables, which it reads itself, and Python.

    The change time of files is not used: uv links one file into many environments, and each link
    changes it.
    """
    origins = [_find_module(name) or "" for name in ("jax", "jaxlib")]
    variables = {name: _digest_variable(name) for name in os.environ if name.startswith("JAX_")}
    found = [(origin, (files.identify(origin) or [])[:-1]) for origin in origins]
    return [sys.version, *found, sorted(variables.items())]


def _digest_variable(name: str) -> str | None:
    """Returns a digest of a variable: its value, which may be secret, is not to be stored."""
    value = os.environ.get(name)
    return value and hashlib.sha256(os.fsencode(value)).hexdigest()


def _find_module(name: str) -> str | None:
    """Returns the file of a top-level module on ``sys.path``; None if there is none."""
    try:
        spec = PathFinder.find_spec(name)
    except (ImportError, ValueError):
        return None
    return None if spec is None else str(spec.origin)
