"""`core`: the C extension module that runs calls fast, or None if Python code runs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from plugrt.errors import ConfigError
from plugrt.lifetime.main_interpreter import is_main_interpreter
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.native.core_sources import SOURCES
from plugrt.native.source_stamps import explain_other_sources
from plugrt.settings.declarations import config
from plugrt.settings.options import surroundings


def choose_core(
    asked: str | None, load: Callable[[str], Sequence[Any]] = import_native
) -> tuple[Any, str]:
    """Returns the extension, or None for Python, and the reason; ``asked`` is PLUGRT_CORE.

    Without a setting, returns the extension if it exists and was built from the sources of these
    files, else None. Raises `ConfigError` if ``"c"`` is set and there is no such extension.
    """
    if asked == "python":
        return None, "PLUGRT_CORE=python"
    try:
        [found] = load("plugrt._core")
        why, refusal = explain_other_sources(found, SOURCES, "plugrt", "runtime"), None
    except Exception as error:  # noqa: BLE001 - one built or copied in part may raise anything
        found, why, refusal = None, _explain(error), error
    if not why:
        return found, "PLUGRT_CORE=c" if asked else "the compiled core is installed"
    if asked is None:
        return None, why
    raise ConfigError(
        f"PLUGRT_CORE=c requests the compiled core, which is not installed: {why}; or unset "
        "PLUGRT_CORE"
    ) from refusal


def _explain(error: Exception) -> str:
    import sysconfig  # for this alone

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python has no GIL, which the core requires"
    if isinstance(error, ModuleNotFoundError):
        why = "plugrt was installed without it: no wheel for this platform, and no C compiler"
        return f"{why}. {_CURE}"
    if not is_main_interpreter():
        return "the core works only in the first interpreter of a process, and this is another"
    kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
    return f"it cannot be loaded ({kind}{error}). {_CURE}"


_CURE = (
    "Install plugrt from its wheel, or again where there is a C compiler (in a clone "
    '"make clean demo")'
)


core, reason = choose_core(config.core)
"""The chosen core and the reason, for `plugrt doctor`. Chosen at the first import."""

new_lock: Callable[[], threading.RLock] = threading.RLock if core is None else core.Lock
"""Makes a reentrant lock; the core acquires locks of its own type without a Python call."""


def _guard(function: Callable[..., Any], settle: Callable[..., object]) -> Callable[..., object]:
    def guarded(*arguments: object) -> object:
        try:
            return function(*arguments)
        except BaseException as error:  # noqa: BLE001 - a library calls this
            answer = settle(error, *arguments)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return guarded


catching: Callable[[Callable[..., object], Callable[..., object]], Callable[..., Any]] = (
    _guard if core is None else core.catching
)
"""Wraps a function for calls from a library, which needs its own kind of errors.

The result of ``catching(function, settle)`` calls ``function(*arguments)``, and on an exception
``settle(error, *arguments)``, whose result it returns, or raises if that is an exception. In C an
interrupt can only occur within one of the two, and is settled as well; in Python it may also occur
at the entry of the wrapper.
"""

if core is not None:
    surroundings.change = core.change_surroundings

config.fix("core", f"plugrt's calls run in {'C' if core else 'Python'} already")
