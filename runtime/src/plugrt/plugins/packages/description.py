"""`Description`: facts about a plugin from the files of its package; none of its code runs."""

from __future__ import annotations

import ast
import contextlib
import mmap
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from plugrt.base import files
from plugrt.errors import PluginError, PluginIncompatible
from plugrt.plugins.packages import distributions
from plugrt.plugins.packages.distributions import Distribution

if TYPE_CHECKING:
    from pathlib import Path

_FUNCTIONS = {"register_plugin": "plugin_name", "register_backend_factory": "name"}
"""JAX's functions that register a plugin, and their parameter for its name."""
_SUFFIXES = (".so", ".dylib", ".dll")


@dataclass(frozen=True)
class Description:
    """Facts about one candidate, each read once, at its first use.

    ``module`` is the module that its entry point names, ``location`` the metadata of its
    distribution or, where it has none, the module's folder. ``given`` is the path of its library if
    that is known. Packages with code for plugrt name their library, so it is not searched for
    (``searched`` False).
    """

    module: str
    location: str
    has_distribution: bool
    searched: bool
    given: str = ""

    @cached_property
    def registers(self) -> str:
        """The one name that the module registers in JAX.

        Empty where the source cannot be read, registers several names, or computes its name.
        """
        names = set(_registered(self._code)) if self._code else set()
        return (len(names) == 1 and names.pop()) or ""

    @cached_property
    def registers_more(self) -> bool:
        """Whether the module calls functions that register other things, or cannot be read."""
        if self._code is None:
            return True
        names = {name for name, _ in _calls(self._code)} - _FUNCTIONS.keys()
        return any(name.lstrip("_").startswith("register") for name in names)

    @cached_property
    def _code(self) -> ast.Module | None:
        source = self._source
        try:
            return ast.parse(files.read_bytes(source)) if source else None
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return None  # the code that loads the plugin reports it

    @property
    def _source(self) -> str | None:
        """The file of the module; none of its packages is imported."""
        if not self.has_distribution:
            found = [self.location + ".py", os.path.join(self.location, "__init__.py")]
            return next(filter(os.path.isfile, found), None)
        folders: Sequence[str] = [os.path.dirname(self.location), *sys.path]
        path, origin = "", None
        for part in self.module.partition(":")[0].strip().split("."):
            path = f"{path}.{part}" if path else part
            spec = PathFinder.find_spec(path, folders)
            if spec is None:
                return None
            folders, origin = list(spec.submodule_search_locations or ()), spec.origin
        return origin if origin and origin.endswith(".py") else None

    def identify(self) -> list[tuple[str, list[int] | None]]:
        """Returns its module and files without compiled modules, with values that track changes."""
        paths = {str(path) for path in self._files()} | {self._source or ""}
        return [(path, files.identify(path)) for path in sorted(paths) if "__pycache__" not in path]

    @cached_property
    def library(self) -> str:
        """The one PJRT library among the files, for this machine if any is; empty without one."""
        return self.given or (str(self._libraries[0]) if len(self._libraries) == 1 else "")

    def explain_no_library(self) -> str:
        """Returns why no library is known, to follow "it"."""
        if self._libraries:
            names = ", ".join(map(str, self._libraries))
            return f"has several libraries that export GetPjrtApi: {names}"
        count = len(self._shared_libraries)
        return f"has no file that exports GetPjrtApi (of {count} libraries)"

    @cached_property
    def misfit(self) -> PluginIncompatible | None:
        """Why its library is for another machine or operating system; None if it is not."""
        from plugrt.capi.loading.elf import is_for_this_machine

        if not self.library or is_for_this_machine(self.library):
            return None
        found = _explain_other_machine(self.library)
        return found if isinstance(found, PluginIncompatible) else None

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The shared libraries that its library states; empty where it cannot be read."""
        from plugrt.capi.loading.elf import needed_by

        return needed_by(self.library) if self.library else ()

    def find_missing(self) -> list[str]:
        """Returns the shared libraries that its library needs and this system does not have."""
        from plugrt.capi.loading.elf import missing_libraries

        return [name for name, _ in missing_libraries(self.library)] if self.library else []

    @cached_property
    def _libraries(self) -> list[Path]:
        found = self._shared_libraries
        if len(found) > 1:
            found = [file for file in found if _has_pjrt_entry(file)]
            fitting = [file for file in found if not _explain_other_machine(str(file))]
            found = fitting if len(fitting) == 1 else found
        return found

    @cached_property
    def _shared_libraries(self) -> list[Path]:
        listed = self._files() if self.searched else []
        return [file for file in listed if file.name.endswith(_SUFFIXES) and file.is_file()]

    def _files(self) -> list[Path]:
        """Returns the files of the distribution; without one, or a list, the module's."""
        from pathlib import Path

        root = Path(self.location)
        if self.has_distribution:
            distribution = distributions.at(self.location)
            if distribution and (listed := distribution.files()):
                return listed
            root = root.parent.joinpath(*self.module.split("."))
        return sorted(root.rglob("*")) if root.is_dir() else []


def find_unannounced(
    announced: Collection[str], libraries: Collection[str], path: Sequence[str] | None = None
) -> Iterator[tuple[Distribution, Path]]:
    """Yields the PJRT libraries of installed packages that offer no plugin, with their packages.

    ``announced`` are the distributions that do. A library with the file name of one in
    ``libraries``, of known plugins, is left out: that plugin may use it.
    """
    names = set[str]().union(*map(files.names_of, libraries))
    for distribution in distributions.installed(path):
        if distribution.name in announced:
            continue
        for file in distribution.files(_SUFFIXES):
            # Python's extension modules are many, and no PJRT libraries.
            module = ".cpython-" in file.name or file.name.endswith(".abi3.so")
            if module or file.name in names:
                continue
            with contextlib.suppress(OSError):  # its name is too long, or it may not be read
                if file.is_file() and _has_pjrt_entry(file):
                    yield distribution, file


def _registered(module: ast.Module) -> Iterator[str | None]:
    """Yields the name in each call that registers a plugin; None for one that is computed."""
    constants = {
        target.id: _text(node.value)
        for node in module.body if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }  # fmt: skip
    for function, node in _calls(module):
        if function in _FUNCTIONS:
            named = [k.value for k in node.keywords if k.arg == _FUNCTIONS[function]]
            given = [*node.args[:1], *named, None][0]
            yield constants.get(given.id) if isinstance(given, ast.Name) else _text(given)


def _calls(module: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yields each call of a function that has a name, with that name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            called = node.func
            yield getattr(called, "attr", None) or getattr(called, "id", None) or "", node


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _has_pjrt_entry(file: Path) -> bool:
    """Whether a library defines GetPjrtApi; if it is not ELF, whether it contains the name."""
    from plugrt.capi.loading.elf import NotElf, read_elf

    if file.stat().st_size == 0:
        return False
    try:
        return read_elf(str(file)).exports_api
    except NotElf:
        pass
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"GetPjrtApi") >= 0


def _explain_other_machine(library: str) -> PluginError | None:
    from plugrt.capi.loading.load_errors import wrong_file

    return wrong_file(library)
