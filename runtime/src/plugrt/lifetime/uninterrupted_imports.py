"""`import_native`: imports of extension modules that signal handlers cannot break off.

Many extension modules can be initialised once in a process: after a Ctrl-C amid the import of
NumPy (2.4), of jaxlib's MLIR bindings (0.10) or of plugrt's core, every later attempt fails
("cannot load module more than once per process", "Dialect namespace 'stablehlo' is already
registered") or ends the process.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import ModuleType

from plugrt.lifetime.thread_work import ThreadWork


def import_native(*names: str) -> list[ModuleType]:
    """Returns the modules; what a signal handler raises meanwhile is raised after the import.

    Python runs signal handlers in the main thread only, so another thread imports them. They must
    not import modules of plugrt in Python: this thread may be amid the import of one. Raises what
    importing them raises.
    """
    new = any(name not in sys.modules for name in names)
    # No thread runs any more once the interpreter has begun to end.
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
            # Once more where an interrupt came before the work had begun.
            if not imports.start():
                imports.run()
            over = imports.wait()
        except BaseException as raised:  # noqa: BLE001 raised when the import is over
            interrupts.append(raised)
    if interrupts:
        raise interrupts[0]
    imports.result()
