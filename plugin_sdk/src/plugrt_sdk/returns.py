"""Checks of values that an author's methods return; errors name the method and its distribution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from plugrt.errors import Internal
from plugrt.interface import TensorType
from plugrt.interface.checks import is_iterable
from plugrt.plugins.packages import distributions

T = TypeVar("T")


def wrong_return(backend: object, method: str, expected: str, found: object) -> Internal:
    """Returns the error for an author's method that returned something else than it should.

    The method ``launch`` is the function that the backend's ``compile`` returned.
    """
    cls = type(backend).__qualname__
    what = f"the launch that {cls}.compile made" if method == "launch" else f"{cls}.{method}"
    return Internal(
        f"{what} (of {owner(backend)}) returned {_abbreviate(found)}; {expected} was expected"
    )


def owner(backend: object) -> str:
    """Returns the distribution and version that a backend's class is in, or else its module."""
    module = type(backend).__module__
    for found in distributions.installed():
        try:
            if _has(found, module.partition(".")[0]):
                return f"{found.name} {found.version}"
        except OSError:
            continue  # a damaged distribution is no reason to lose the message
    return f"the module {module}"


def _has(distribution: distributions.Distribution, module: str) -> bool:
    """Returns whether a distribution installed a module of that import name.

    It searches the distribution's list of files as text: parsing the lists of all distributions
    costs 0.4 s.
    """
    if module in distribution.read("top_level.txt").decode(errors="replace").split():
        return True
    if record := distribution.read("RECORD"):
        listed = rb'^"?%s(/[^/\n]+)?\.py"?,' % re.escape(module).encode()
        return re.search(listed, record, re.MULTILINE) is not None
    root = Path(distribution.location).parent
    found = distribution.files((".py",))
    return any(path == root / f"{module}.py" or path.parent == root / module for path in found)


def _abbreviate(value: object) -> str:
    try:
        return str(value) if isinstance(value, TensorType) else f"{value!r:.60}"
    except Exception:  # noqa: BLE001  # an author's __repr__ may raise anything
        return f"an object of type {type(value).__qualname__}"


def require(backend: object, method: str, value: Any, kind: type[T], expected: str) -> T:
    """Returns a value of an author's method; raises unless it has that type."""
    if not isinstance(value, kind):
        raise wrong_return(backend, method, expected, value)
    return value


def require_handle(backend: object, method: str, value: Any) -> Any:
    """Returns a handle; raises for None, the result of a forgotten ``return``."""
    if value is None:
        raise wrong_return(backend, method, "a handle", None)
    return value


def require_sequence(backend: object, method: str, value: Any, expected: str) -> Sequence[Any]:
    """Returns what an author's method returned as a list, if it is a list, a tuple or the like."""
    if isinstance(value, str | bytes | Mapping) or not is_iterable(value):
        raise wrong_return(backend, method, expected, value)
    return list(value)


def require_count(backend: object, method: str, value: Any) -> int:
    """Returns a number of at least one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise wrong_return(backend, method, "a number of at least 1", value)
    return value


def require_figures(backend: object, method: str, value: Any) -> Mapping[str, Any]:
    """Returns a mapping from names to numbers or other values of attributes."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong_return(backend, method, "a mapping from names to figures", value)
    return dict(value)
