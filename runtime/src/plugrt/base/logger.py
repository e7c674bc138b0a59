"""`get_logger`: loggers of the standard library's ``logging``, which a start does not import."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import logging


class _Logger:
    """Imports ``logging`` at the first warning; without it, lower levels are not shown anyway."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        if method in {"debug", "info"} and "logging" not in sys.modules:
            return _ignore
        found = getattr(import_module("logging").getLogger(self._name), method)
        # Kept: a Ctrl-C within a later getLogger would leave its lock acquired.
        setattr(self, method, found)
        return found


def get_logger(name: str) -> logging.Logger:
    """Returns an object with the methods of the standard logger of that name.

    The import of ``logging`` is 2 % of the time of a start.
    """
    return cast("logging.Logger", _Logger(name))


def _ignore(*_: object, **__: object) -> None:
    """Logs nothing: without handlers, records below WARNING are dropped."""
