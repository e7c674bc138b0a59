"""`names_from`: public names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_from(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns the ``__getattr__`` of a package whose names (keys) are in other modules (values).

    Plugins are imported wherever hosts look for platforms; the modules that they need to run are
    imported only in processes that choose them.
    """

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
