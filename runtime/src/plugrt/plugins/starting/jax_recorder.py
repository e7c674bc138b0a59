"""Records what a plugin made for JAX registers, without registering it in jax.

A plugin may refer to jax's functions by any name (``from jax._src.xla_bridge import
register_plugin``), so replacing the module's attributes would miss its calls. So the functions'
``__code__`` is replaced, and only has an effect in the recording thread: calls of other threads run
jax's code.

The plugin's modules are imported as fresh copies. Some register at import, and some only at their
first call: a module that has registered with plugrt would not register with jax, and vice versa.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from plugrt.errors import PluginBroken, PluginError, PluginIncompatible
from plugrt.lifetime.interruptions import is_interruption, scope
from plugrt.plugins import vendors
from plugrt.plugins.library import LibraryPlugin
from plugrt.plugins.log import logger
from plugrt.plugins.starting import probe_cache
from plugrt.settings.declarations import config

BRIDGE = "jax._src.xla_bridge"
# Process-wide: guards the code objects of JAX's functions. Reentrant: recordings are nested.
_LOCK = threading.RLock()
# Process-wide: JAX's functions are process-wide; their replacements find the recorders here.
_active: list[Recorder] = []
# Process-wide: JAX's functions are process-wide; this has their code, to restore it.
_originals: dict[str, CodeType] = {}


@dataclass(frozen=True)
class Registration:
    """One call of ``register_plugin`` or ``register_backend_factory``, with jax's names.

    ``unknown`` are names of arguments that plugrt does not know from any version of jax.
    """

    name: str
    priority: int = 400
    library_path: Any = None
    options: Any = None
    c_api: object = None
    factory: object = None
    make_topology: object = None
    unknown: tuple[str, ...] = ()


class Recorder:
    """Receives the calls of jax's registration functions in the thread that created it."""

    def __init__(self, opens: bool = True) -> None:
        self.registrations: list[Registration] = []
        self.opens = opens
        self.thread = threading.get_ident()

    def register_plugin(
        self, plugin_name: str, priority: int = 400, library_path: object = None,
        options: object = None, c_api: object = None, factory: object = None,
        make_topology: object = None, **unknown: object,
    ) -> object:  # fmt: skip
        """Records a plugin, and returns a capsule with its table, as jax's function does.

        Plugins pass it to jaxlib for their custom calls; jaxlib keeps the first one. Returns None
        if the recorder opens no library.
        """
        self.registrations.append(
            Registration(plugin_name, priority, library_path, options, c_api, factory,
                         make_topology, tuple(unknown))
        )  # fmt: skip
        if library_path and c_api is None and self.opens:
            return _load_table(str(library_path))
        return c_api

    def register_backend_factory(
        self, name: str, factory: object, priority: int = 0, *_: object, **more: object
    ) -> None:
        """Records a factory of jax's own clients."""
        self.registrations.append(
            Registration(name, priority, c_api=more.get("c_api"), factory=factory)
        )

    def register_plugin_callbacks(self, *_: object, **__: object) -> None:
        """Ignores a callback for jax's plugins."""

    def register_backend_initialization_hook(self, *_: object, **__: object) -> None:
        """Ignores a callback for jax's clients."""


RECORDED = (
    "register_plugin",
    "register_backend_factory",
    "register_plugin_callbacks",
    "register_backend_initialization_hook",
)


def _load_table(path: str) -> object | None:
    """Returns a capsule with the table of a library, None where it cannot be opened.

    In that case starting the backend reports the reason. A library that no child has opened is
    first opened in one: it may end the process.
    """
    from plugrt import capi
    from plugrt.base.xla_environment import quiet_logging

    if config.probe_libraries and not probe_cache.is_known_good(path, None):
        tried = LibraryPlugin("", path).try_in_child(config, options={}, start=False)
        if tried.state != "ok":
            logger.debug("a plugin made for JAX registers a library: %s", tried.reason)
            return None
        probe_cache.record_good(path, None)
    try:
        with quiet_logging():
            return capi.capsule_of(capi.load_library(path, hints=vendors.SHARED_LIBRARIES))
    except PluginError as error:
        logger.debug("a plugin made for JAX registers a library that cannot be opened: %s", error)
        return None


def dispatch_call(name: str, arguments: tuple[object, ...], named: dict[str, object]) -> object:
    """Records a call of one of jax's functions, or runs jax's own code.

    jax's code also runs for calls from within jax, whose modules register callbacks when they are
    imported, possibly by a plugin.
    """
    caller = sys._getframe(2).f_globals.get("__name__", "").partition(".")[0]
    if _active and _active[-1].thread == threading.get_ident() and caller != "jax":
        return getattr(_active[-1], name)(*arguments, **named)
    function = getattr(sys.modules[BRIDGE], name)
    original = FunctionType(_originals[name], function.__globals__, name, function.__defaults__)
    original.__kwdefaults__ = function.__kwdefaults__
    return original(*arguments, **named)


def _stub(*arguments: object, **named: object) -> object:
    from plugrt.plugins.starting.jax_recorder import dispatch_call

    return dispatch_call("NAME", arguments, named)


def _code_for(name: str) -> CodeType:
    code = _stub.__code__
    return code.replace(co_consts=tuple(name if c == "NAME" else c for c in code.co_consts))


@scope
def record_registrations(opens: bool = True) -> Iterator[Recorder]:
    """Records the calls of jax's registration functions until the block ends.

    ``opens`` is whether the libraries that are registered are opened for their capsules.
    """
    bridge = importlib.import_module(BRIDGE)
    recorder = Recorder(opens)
    with _LOCK:
        functions = {name: getattr(bridge, name) for name in RECORDED if hasattr(bridge, name)}
        before = {name: _require_code(function) for name, function in functions.items()}
        if not _active:
            _originals.update(before)
        _active.append(recorder)
        try:
            for name, function in functions.items():
                function.__code__ = _code_for(name)
            yield recorder
        finally:
            for name, function in functions.items():
                function.__code__ = before[name]
            _active.remove(recorder)


def run_initialize(
    module: str, opens: bool = True
) -> tuple[list[Registration], BaseException | None]:
    """Imports a fresh copy of a module and runs its ``initialize()``; returns the registrations.

    The second result is the exception that ended it, or None; an interruption is raised.
    """
    with record_registrations(opens) as recorder:
        try:
            with import_fresh(module) as made:
                if not hasattr(made, "initialize"):
                    raise PluginBroken(f"the module {module} has no initialize()")
                made.initialize()
        except (Exception, SystemExit) as error:  # a plugin's own code
            if is_interruption(error):
                raise
            return recorder.registrations, error
    return recorder.registrations, None


def _require_code(function: object) -> CodeType:
    if isinstance(function, FunctionType) and function.__closure__ is None:
        return function.__code__
    version = getattr(sys.modules["jax"], "__version__", "")
    raise PluginIncompatible(
        f"plugrt cannot record what plugins made for JAX register with jax {version}: its "
        f"{function!r} is not a plain function; name the library with "
        "PJRT_NAMES_AND_LIBRARY_PATHS"
    )


# Process-wide: native modules must not be freed while the process lives.
_kept: list[dict[str, ModuleType]] = []


@scope
def import_fresh(name: str) -> Iterator[ModuleType]:
    """Imports a fresh copy of a module and of its package's Python modules.

    Afterwards ``sys.modules`` is restored. Extension modules are shared: most cannot be imported
    twice. The copies live until the process ends: addresses that a plugin passes on (a table, the
    name of a capsule) may point into objects that they hold.
    """
    theirs = _remove_modules(name)
    try:
        yield importlib.import_module(name)
    finally:
        _kept.append(_remove_modules(name))
        for module_name, module in theirs.items():
            _restore_module(module_name, module)


def _remove_modules(name: str) -> dict[str, ModuleType]:
    """Removes the modules of a package that are written in Python, and returns them."""
    found = {
        module_name: module
        for module_name, module in sorted(sys.modules.items())  # a package before its modules
        if (module_name == name or module_name.startswith(f"{name}.")) and _is_source(module)
    }
    for module_name, module in found.items():
        del sys.modules[module_name]
        parent, _, child = module_name.rpartition(".")
        if getattr(sys.modules.get(parent), child, None) is module:
            delattr(sys.modules[parent], child)
    return found


def _restore_module(module_name: str, module: ModuleType) -> None:
    sys.modules[module_name] = module
    parent, _, child = module_name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)


def _is_source(module: ModuleType) -> bool:
    spec = getattr(module, "__spec__", None)
    loader = getattr(spec, "loader", None)
    return not isinstance(loader, importlib.machinery.ExtensionFileLoader)
