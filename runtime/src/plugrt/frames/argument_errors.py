"""Turns Python's errors inside a public function into `ArgumentTypeError` for its caller.

No function checks everything that Python lets a caller pass: None for an axis, text for sizes, a
class for a function. The result, an `AttributeError` deep inside, does not help the caller and is
not in the tree of ``plugrt.errors``. `with_argument_errors` turns it into an `ArgumentTypeError`
that names function and arguments. Exceptions of the user's own code (a branch, a loop body, an
``__array__``) pass unchanged. An exception from a function marked by `after_checks` is not due to
an argument: it becomes `Internal`, whose message says that the fault is not the caller's.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

from plugrt.errors import ArgumentTypeError, BufferUnavailable, Internal, PlugrtError, describe
from plugrt.frames.traceback_filter import filter_traceback, frames_of

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])
PYTHON_ERRORS = (
    TypeError,
    ValueError,
    AttributeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    BufferError,
)
_PACKAGES = ("optree", "numpy", "ml_dtypes", "jaxlib")
"""Dependencies: their exceptions are about arguments that plugrt passed on."""
# Process-wide: tracebacks of any thread are compared with it; plugins add theirs at import.
_checked_folders = {os.path.dirname(os.path.dirname(__file__)) + os.sep}
"""plugrt's own, and those of other packages with functions that are decorated here."""
# Process-wide: decorators fill it at import, and tracebacks of any thread are compared with it.
_after_checks: set[CodeType] = set()


def after_checks(function: F) -> F:
    """Decorator: errors raised within ``function`` are faults of plugrt, a plugin or a library.

    For functions that work on arguments which were checked before. It returns the function itself,
    so that a call costs nothing.
    """
    _after_checks.add(function.__code__)
    return function


def refuse(title: str, error: Exception, passed: Iterable[tuple[str, object]] = ()) -> NoReturn:
    """Raises `ArgumentTypeError` for an error that wrong arguments of ``title`` caused.

    ``passed`` are (name, value) of the arguments to list. Errors of plugrt's tree, errors raised
    in the user's own functions, and `RecursionError`, whose cause is how deep functions or
    containers are nested, are raised unchanged.
    """
    if isinstance(error, PlugrtError | RecursionError):
        raise error
    frames = frames_of(error)
    if any(not _is_library_file(_file_of(frame)) for frame in frames):
        raise error
    if any(frame.f_code in _after_checks for frame in frames):
        place = f"{_file_of(frames[-1])}, line {frames[-1].f_lineno}"
        raise Internal(
            f"{title} failed after it had checked its arguments: {describe(error)} ({place}). This "
            "is a fault of the package of that file, not of the call; please report it there"
        ) from error
    listed = (
        ", ".join(f"{name}={_abbreviate(value)}" for name, value in passed) or "these arguments"
    )
    error_class = BufferUnavailable if isinstance(error, BufferError) else ArgumentTypeError
    # Python names a method after the class that defines it, which may be an internal base.
    filter_traceback(error)  # the cause of the one that is raised, and shown with it
    says = re.sub(rf"\b\w+\.{re.escape(title.rpartition('.')[2])}\(", f"{title}(", str(error))
    raise error_class(f"{title} cannot be called with {listed}: {says}") from error


def refuse_call(method: Callable[..., object], error: Exception, **passed: object) -> NoReturn:
    """`refuse` for a bound method, as the ``except`` of a hot one that has no wrapper calls it.

    A ``try`` costs nothing unless something is raised.
    """
    refuse(f"{type(method.__self__).__qualname__}.{method.__name__}", error, passed.items())  # type: ignore[attr-defined]


def with_argument_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: errors that wrong arguments cause become `ArgumentTypeError` (see above)."""
    method = "." in function.__qualname__.rpartition("<locals>.")[2]
    _checked_folders.update(_package_folders(function.__module__))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            try:
                return function(*args, **kwargs)
            except PYTHON_ERRORS as error:
                # Not the object whose method it is, which a failing __init__ has not finished.
                named = [(f"argument {i}", value) for i, value in enumerate(args[method:])]
                title = _method_title(function, args) if method else function.__name__
                refuse(title, error, [*named, *kwargs.items()])
        except Exception as error:  # raised again without plugrt's frames
            filter_traceback(error)
            raise

    return call


def require_flag(function: str, name: str, value: object, *, optional: bool = False) -> None:
    """Raises `ArgumentTypeError` unless ``value`` is True or False (or None where ``optional``)."""
    known = (
        value in (0, 1) if isinstance(value, bool | int | np.bool_) else value is None and optional
    )
    if not known:
        takes = "True, False or None" if optional else "True or False"
        raise ArgumentTypeError(f"{name} of {function} is {value!r:.60}; it takes {takes}")


def with_checked_methods(cls: type[C]) -> type[C]:
    """Class decorator: `with_argument_errors` for each public method that the class defines.

    Properties and special methods are not wrapped: operators and calls are the hot path.
    """
    for name, member in list(vars(cls).items()):
        checked = isinstance(member, FunctionType) and hasattr(member, "__wrapped__")
        if isinstance(member, FunctionType) and not name.startswith("_") and not checked:
            setattr(cls, name, with_argument_errors(member))
    return cls


def _method_title(function: Callable[..., object], args: tuple[object, ...]) -> str:
    """Returns the name of a method with the class of its object, not the base that defines it."""
    title = function.__qualname__
    if args:
        owner = args[0] if isinstance(args[0], type) else type(args[0])
        if hasattr(owner, function.__name__):
            title = f"{owner.__qualname__}.{function.__name__}"
    for constructor in (".__new__", ".__init__", ".__post_init__"):
        title = title.removesuffix(constructor)
    return title


def _abbreviate(value: object) -> str:
    """Returns the start of a value's repr, also where its ``__repr__`` raises."""
    try:
        return f"{value!r:.40}"
    except Exception:  # noqa: BLE001 a stranger's __repr__
        return f"an object of type {type(value).__qualname__}"


def _file_of(frame: FrameType) -> str:
    """Returns the file of a frame; for a dataclass's generated method, the class's file."""
    file = frame.f_code.co_filename
    return str(frame.f_globals.get("__file__", file)) if file == "<string>" else file


def _package_folders(module: str) -> list[str]:
    """Returns the folders of the package that a module belongs to; none for a lone module."""
    package = sys.modules.get(module.partition(".")[0])
    return [folder + os.sep for folder in getattr(package, "__path__", ())]


def _is_library_file(filename: str) -> bool:
    if filename.startswith((*_checked_folders, "<frozen", "<__array_function__")):
        return True
    parts = os.path.normpath(filename).split(os.sep)
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1] in _PACKAGES
    return filename.startswith(_standard_folders())


@functools.cache
def _standard_folders() -> tuple[str, ...]:
    import sysconfig  # for errors alone

    return sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")
