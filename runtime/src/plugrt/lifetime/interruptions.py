"""`is_interruption`: exceptions of signal handlers; `Scope`: `with` blocks that end with one."""

from __future__ import annotations

import atexit
import functools
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import ref

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
    import signal  # not needed by every start

    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in handlers:
            return True
        step = step.tb_next
    return False


def _code_of(handler: Any) -> object:
    """Returns the code that runs for a handler; None if it is not written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = getattr(handler, "__func__", None) or getattr(type(handler), "__call__", None)  # noqa: B004
    return getattr(handler, "__code__", None)


class _Block:
    """A `with` block: it ends when its generator does, at the latest when this object is freed."""

    __slots__ = ("__weakref__", "generator", "thread")

    def __init__(self) -> None:
        self.generator: object = None
        self.thread = get_ident()


class _Ending(partial[None]):
    """The ``__exit__`` of one block, and the only object that refers to the block.

    Only the ``with`` statement refers to it, and drops it if an interrupt occurs at the call. A
    traceback keeps the function's arguments alive, but these do not refer to the block.
    """

    block: _Block


# Process-wide: by thread and scope, the blocks whose statements call `__enter__` next.
_begun: dict[tuple[int, int], ref[_Block]] = {}
# Process-wide: blocks that a statement has entered; `_end_scopes` ends them at exit.
_open: set[ref[_Block]] = set()
"""Functions in C remove them: an interrupt in a Python function would be lost."""
# Process-wide: blocks that were entered without a `with` statement, with their threads.
_by_hand: list[tuple[Scope, int, Iterator[Any]]] = []


class _Exit:
    """``__exit__`` of `Scope`: a `with` statement looks it up before it calls ``__enter__``."""

    def __get__(self, scope: Scope | None, cls: type[Scope]) -> Callable[..., None]:
        if scope is None:
            return _end_by_hand  # what `contextlib.ExitStack` calls
        block = _Block()
        ending = _Ending(_end, ref(block), scope)
        ending.block = block
        key = block.thread, id(scope)
        _begun[key] = ref(block, partial(_begun.pop, key))
        return ending


# No block or generator in a variable of these functions: a traceback would keep it alive.
def _end(block: Callable[[], Any], scope: Scope, *_: object) -> None:
    if block() is None:  # `_end_scopes` has ended it at exit
        return
    if block().generator is not None and block().thread == get_ident():
        block().generator.close()
        return
    if block().generator is not None:  # another thread entered it: it stays entered there
        _by_hand.append((scope, block().thread, block().generator))
    _end_by_hand(scope)


def _end_by_hand(scope: Scope, *_: object) -> None:
    for index in reversed(range(len(_by_hand))):
        if _by_hand[index][0] is scope and _by_hand[index][1] == get_ident():
            _by_hand.pop(index)[2].close()  # type: ignore[attr-defined]
            return
    raise FailedPrecondition(
        f"{type(scope).__name__}.__exit__ was called, and this thread is in no `with` block of "
        f"{scope!r:.100} that it could end"
    )


class Scope:
    """Base of context managers that an interrupt cannot leave entered.

    ``_surround`` is a generator. It makes a change within a ``try``, yields once, and reverts the
    change in the ``finally``, by assignments and C functions alone. An interrupt at the entry of an
    ``__exit__`` in Python would leave the change in place. Here it ends the generator, because
    nothing refers to that any more.
    """

    __slots__ = ()

    def _surround(self) -> Iterator[object]:
        raise NotImplementedError

    def __enter__(self) -> Any:
        block: Callable[[], Any] | None = _begun.get((get_ident(), id(self)))
        if block is None:
            generator = self._surround()
            value = next(generator)
            _by_hand.append((self, get_ident(), generator))
            return value
        block().generator = self._surround()
        del _begun[get_ident(), id(self)]
        _open.add(ref(block(), _open.discard))
        return next(block().generator)

    __exit__ = _Exit()


@atexit.register
def _end_scopes() -> None:
    """Ends the blocks that this thread is still in, before modules lose their globals."""
    if not _open and not _by_hand:
        return
    from plugrt.lifetime.forks import keep_forever

    blocks = [(block.thread, block.generator) for block in [found() for found in [*_open]] if block]
    for thread, generator in [*blocks, *((thread, end) for _, thread, end in reversed(_by_hand))]:
        keep_forever(generator)  # of another thread: it would end when modules have none
        if thread == get_ident():
            generator.close()


class _FunctionScope(Scope):
    """Context manager of a generator function that is called with these arguments."""

    __slots__ = ("_arguments", "_function", "_named")

    def __init__(
        self, function: Callable[..., Iterator[object]], arguments: Any, named: dict[str, object]
    ) -> None:
        self._function, self._arguments, self._named = function, arguments, named

    def _surround(self) -> Iterator[object]:
        return self._function(*self._arguments, **self._named)

    def __call__(self, function: Callable[Q, T]) -> Callable[Q, T]:
        """Decorator: runs each call of the function in such a block."""

        @functools.wraps(function)
        def call(*args: Q.args, **kwargs: Q.kwargs) -> T:
            with self:
                return function(*args, **kwargs)

        return call


def scope(function: Callable[Q, Iterator[T]]) -> Callable[Q, AbstractContextManager[T]]:
    """Decorator: makes a generator function return a `Scope`, as ``contextlib.contextmanager``.

    The generator cannot handle the block's exception.
    """

    @functools.wraps(function)
    def begin(*args: Q.args, **kwargs: Q.kwargs) -> AbstractContextManager[T]:
        return _FunctionScope(function, args, kwargs)

    return begin
