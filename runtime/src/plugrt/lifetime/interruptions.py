"""`is_interruption`: exceptions of signal handlers; `Scope`: `with` blocks that end with one."""

from __future__ import annotations

import atexit
import functools
import signal
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType
from typing import Any, NoReturn, ParamSpec, TypeVar

from plugrt.errors import FailedPrecondition

Q = ParamSpec("Q")
T = TypeVar("T")


def is_interruption(error: BaseException) -> bool:
    """Whether Ctrl-C, or a signal handler of the program, raised an exception.

    A handler runs between any two lines of the main thread, a plugin's among them: its ``sys.exit``
    or its timeout is no fault of the plugin, and must reach the program.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in handlers:
            return True
        step = step.tb_next
    return False


def _code_of(handler: Any) -> Any:
    """Returns the code that runs for a handler; None where that is none of Python's."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = getattr(handler, "__func__", None) or getattr(type(handler), "__call__", None)  # noqa: B004
    return getattr(handler, "__code__", None)


# Process-wide: threads share scopes.
open_scopes: list[tuple[Scope, int, Iterator[Any]]] = []
"""The scope, the thread and the generator of each block that has begun; the innermost last."""


class Scope:
    """Base of context managers that an interrupt cannot leave entered.

    ``_surround`` is a generator. It makes a change within a ``try``, yields once, and reverts the
    change in the ``finally``, by assignments and functions in C alone. No signal handler runs
    between the end of the block and that ``finally``: the compiled core replaces both methods by
    functions in C. Without it an interrupt at the entry of ``__exit__`` leaves the change.
    """

    __slots__ = ()

    def _surround(self) -> Iterator[Any]:
        raise NotImplementedError

    def __enter__(self) -> Any:
        generator = self._surround()
        value = next(generator)
        open_scopes.append((self, get_ident(), generator))
        return value

    def __exit__(self, *_: object) -> None:
        for index in reversed(range(len(open_scopes))):
            scope, thread, generator = open_scopes[index]
            if scope is self and thread == get_ident():
                del open_scopes[index]
                generator.close()  # type: ignore[attr-defined]
                return
        self._refuse_exit()

    def _refuse_exit(self) -> NoReturn:
        name = type(self).__name__
        raise FailedPrecondition(
            f"{name}.__exit__ was called, and this thread is in no `with` block of {self!r:.100} "
            "that it could end"
        )


def _end_scopes() -> None:
    """Ends the blocks that this thread has entered still, while modules have their globals."""
    while mine := [scope for scope, thread, _ in open_scopes if thread == get_ident()]:
        mine[-1].__exit__(None, None, None)


atexit.register(_end_scopes)


class _FunctionScope(Scope):
    """The blocks of a generator function, called with these arguments."""

    __slots__ = ("_arguments", "_function", "_named")

    def __init__(
        self, function: Callable[..., Iterator[Any]], arguments: Any, named: dict[str, Any]
    ) -> None:
        self._function, self._arguments, self._named = function, arguments, named

    def _surround(self) -> Iterator[Any]:
        return self._function(*self._arguments, **self._named)

    def __call__(self, function: Callable[Q, T]) -> Callable[Q, T]:
        """Returns the function with each call in such a block, as a decorator does."""

        @functools.wraps(function)
        def call(*args: Q.args, **kwargs: Q.kwargs) -> T:
            with self:
                return function(*args, **kwargs)

        return call


def scope(function: Callable[Q, Iterator[T]]) -> Callable[Q, AbstractContextManager[T]]:
    """Makes a generator function one that returns a `Scope`, as ``contextlib.contextmanager``.

    Its generator may not handle the block's exception.
    """

    in_python = contextmanager(function)

    @functools.wraps(function)
    def begin(*args: Q.args, **kwargs: Q.kwargs) -> AbstractContextManager[T]:
        # Without the core contextlib is safer: its generator ends with the object that holds it.
        if isinstance(Scope.__exit__, FunctionType):
            return in_python(*args, **kwargs)
        return _FunctionScope(function, args, kwargs)

    return begin
