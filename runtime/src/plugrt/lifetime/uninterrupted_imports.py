"""`import_native`, `names_from`: imports that can be repeated after a signal handler's exception.

`ImportAfter` imports a module of plugrt whenever a module of another package is imported.

Many extension modules can be initialised once in a process: after a Ctrl-C amid the import of
NumPy (2.4), of jaxlib's MLIR bindings (0.10) or of plugrt's core, every later attempt fails
("cannot load module more than once per process", "Dialect namespace 'stablehlo' is already
registered") or ends the process. So another thread imports them.

An import of a Python module can be repeated. But if a package's import is interrupted, the
submodules that it had imported stay in ``sys.modules``. If the next import begins in one of them,
that one imports the package, which imports from the half-initialised submodule, and fails. So
a package with subpackages does not import its submodules (`names_from`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from plugrt.lifetime.thread_work import ThreadWork

_WITHOUT_DTYPES = {"errors", "interface", "monitoring", "plugins", "settings"}
"""Packages that do not need ml_dtypes; its import is 4 % of the time of a start on a library."""


def import_native(*names: str) -> list[ModuleType]:
    """Imports and returns the modules; an exception of a signal handler is raised after the import.

    Python runs signal handlers in the main thread only, so another thread imports them. They must
    not import plugrt modules: this thread may be in the middle of importing one. Raises the errors
    of the imports.
    """
    new = any(name not in sys.modules for name in names)
    # Workaround for numpy-second-import
    # Workaround for mlir-second-import
    # No other thread runs while the interpreter ends.
    if new and not sys.is_finalizing() and _is_main_thread():
        _import_aside(names)
    return [import_module(name) for name in names]


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _import_aside(names: tuple[str, ...]) -> None:
    """Imports the modules in a thread and waits for its end, also when that is interrupted."""
    imports = ThreadWork(lambda: [import_module(name) for name in names])
    interrupts: list[BaseException] = []
    over = False
    while not over:
        try:
            # Starts again if an interrupt came before the work had begun.
            if not imports.start():
                imports.run()
            over = imports.wait()
        except BaseException as raised:  # noqa: BLE001 raised when the import is over
            interrupts.append(raised)
    if interrupts:
        raise interrupts[0]
    imports.result()


def names_from(
    package: str, homes: Mapping[str, str], missing: Callable[[str], str] | None = None
) -> Callable[[str], Any]:
    """Returns the ``__getattr__`` of a package that imports each name when it is first used.

    ``homes`` maps a name to the full name of its module; a name may be a module itself. ``missing``
    returns the message for an unknown name.
    """

    def __getattr__(name: str) -> Any:
        module = homes.get(name)
        if module is None:
            text = missing(name) if missing else f"module {package!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=sys.modules[package])
        if module.split(".")[1] not in _WITHOUT_DTYPES:
            import_native("numpy", "ml_dtypes")  # which all others import
        elif module != "plugrt.errors":
            import_native("numpy")
        found = import_module(module)
        value = found if module == f"{package}.{name}" else getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__


def homes_of(names: Mapping[str, str]) -> dict[str, str]:
    """Returns the module of each name; ``names`` lists each module's, separated by spaces."""
    return {name: module for module, listed in names.items() for name in listed.split()}


class ImportAfter:
    """An importer that imports ``follower`` after each first import of the module ``name``."""

    def __init__(self, name: str, follower: str) -> None:
        self._name, self._follower = name, follower
        if name in sys.modules:
            self._follow()
        else:
            sys.meta_path.insert(0, self)

    def _follow(self) -> None:
        with suppress(ImportError):  # other versions of that package may lack names
            import_module(self._follower)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the spec of the other finders, whose loader then imports ``follower``, too."""
        if name != self._name:
            return None
        from importlib.util import find_spec  # 2 ms, only where that module is imported

        sys.meta_path.remove(self)
        spec = find_spec(name)
        loader: Any = spec and spec.loader
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                self._follow()

            loader.exec_module = exec_module
        return spec
