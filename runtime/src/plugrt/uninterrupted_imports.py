"""`import_native`: imports of extension modules that signal handlers cannot break off.

Many extension modules can be initialised once in a process: after a Ctrl-C amid the import of
NumPy (2.4) or of jaxlib's MLIR bindings (0.10), every later attempt fails ("cannot load module more
than once per process", "Dialect namespace 'stablehlo' is already registered") or ends the process.
"""

from __future__ import annotations

import sys
import threading
from _thread import start_new_thread
from importlib import import_module
from types import ModuleType


def import_native(*names: str) -> list[ModuleType]:
    """Returns the modules; what a signal handler raises meanwhile is raised after the import.

    Python runs signal handlers in the main thread only, so another thread imports them. They must
    not import plugrt: this thread may be amid the import of one of its modules. Raises what
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
    errors: list[BaseException] = []
    running, over = list[bool](), list[bool]()
    ended = threading.Lock()
    ended.acquire()

    def run() -> None:
        running.append(True)
        try:
            for name in names:
                import_module(name)
        except BaseException as error:  # noqa: BLE001 raised again by the waiting thread
            errors.append(error)
        finally:
            over.append(True)
            ended.release()

    interrupts: list[BaseException] = []
    begun = False
    while not over:
        try:
            if not begun:
                # Not `Thread.start`, which a signal handler may break off before the thread is
                # there or after. None runs between these two lines.
                begun = True
                start_new_thread(run, ())
            ended.acquire()
        except BaseException as raised:  # noqa: BLE001 raised when the import is over
            if isinstance(raised, RuntimeError) and not running:
                run()  # there are no more threads, or the interpreter is ending
            else:
                interrupts.append(raised)
    if interrupts or errors:
        raise (interrupts or errors)[0]
