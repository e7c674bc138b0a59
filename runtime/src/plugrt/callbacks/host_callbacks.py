"""The Python functions that programs call while they run, and the functions' numbers."""

from __future__ import annotations

import contextlib
import itertools
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plugrt.base.logger import get_logger
from plugrt.callbacks.launch_watch import WatchedFunction
from plugrt.errors import Internal, PjrtError, Unimplemented
from plugrt.frames.traceback_filter import filter_traceback
from plugrt.interface import Client, CompileOptions, HostCallback, Program
from plugrt.lifetime.callback_exits import as_failure
from plugrt.lifetime.forks import call_in_child

T = TypeVar("T")

logger = get_logger("plugrt.callbacks")

# Process-wide: numbers are unique in the process, as the interface requires.
_numbers = itertools.count(1)
# Process-wide: the call may run on a library's thread, and any thread may raise its failure.
_failures: deque[tuple[int, PjrtError]] = deque(maxlen=64)
"""Failures of callbacks with an effect, each with the id of the calling thread."""
# Process-wide: the calls of each thread, by its id; launches read other threads' calls.
_calls: dict[int, tuple[object, ...]] = {}
call_in_child(_failures.clear)  # the parent raises them


class NumberedCallback(WatchedFunction):
    """A Python function for programs (`plugrt.interface.HostCallback`), and its number.

    ``title`` names it in errors, with the user's line that put it into the program. ``function``
    gets copies of the arguments, which it may keep. With ``has_effect`` a failure is also logged
    and kept for `take_failure`: there may be no result at which it could be raised. It lives as
    long as a program that calls it.

    In a program that is divided over devices, ``of_parts`` says that it is written for one part:
    each device calls. Else it is called once, with whole arrays (`SharedCallback`), or, with
    ``partitioned``, by each device with its own parts. A program with a ``one_device`` callback is
    not divided.

    While a launch on several devices has a ``watch`` here, a failure is noted there and ``blank()``
    is returned (`plugrt.callbacks.launch_watch`).
    """

    __slots__ = (
        "blank",
        "function",
        "has_effect",
        "number",
        "of_parts",
        "one_device",
        "ordered",
        "partitioned",
        "title",
    )

    def __init__(
        self,
        function: Callable[..., Sequence[npt.NDArray[Any]]],
        title: str,
        *,
        has_effect: bool,
        ordered: bool = False,
        of_parts: bool = False,
        partitioned: bool = False,
        one_device: bool = False,
        blank: Callable[[], Sequence[npt.NDArray[Any]]] | None = None,
    ) -> None:
        super().__init__()
        self.function = function
        self.blank = blank
        self.of_parts = of_parts
        self.partitioned = partitioned
        self.one_device = one_device
        self.has_effect = has_effect
        self.ordered = ordered
        self.title = title
        self.number = next(_numbers)

    @property
    def is_shared(self) -> bool:
        """Whether it is called once for all devices that a program is divided over."""
        return not (self.of_parts or self.partitioned or self.one_device)

    def __call__(self, arguments: Sequence[npt.NDArray[Any]]) -> Sequence[npt.NDArray[Any]]:
        watch = self.watch
        if watch is None:
            return self._call(arguments, is_watched=False)
        assert self.blank is not None  # only such callbacks are watched
        return self.call_watched(watch, lambda: self._call(arguments, is_watched=True), self.blank)

    def _call(
        self, arguments: Sequence[npt.NDArray[np.generic]], *, is_watched: bool
    ) -> Sequence[npt.NDArray[np.generic]]:
        """Calls the function. Keeps a failure for `take_failure` if no launch is watching."""
        try:
            return call_noted(self, self.function, *map(np.array, arguments))
        except BaseException as error:  # the user's function raised it in a launch
            failure = as_failure(self.title, error, _describe(error))
            if self.has_effect:
                logger.error("%s", failure.message)
                if not is_watched:
                    # A new error, without the frames that its cause has.
                    _failures.append((threading.get_ident(), Internal(failure.message)))
            raise failure from error


def is_partitioned(callback: object) -> bool:
    """Whether each device of a divided program calls a function with its own shards."""
    return getattr(callback, "partitioned", False) and not getattr(callback, "of_parts", False)


def refuse_partitioned(client: Client, program: Program, options: CompileOptions) -> None:
    """Raises `Unimplemented` for ``partitioned`` calls of a divided program.

    For backends whose compiler has no custom call that keeps the sharding of its arguments.
    """
    if options.num_partitions == 1:
        return
    for call in filter(is_partitioned, program.callbacks.values()):
        raise Unimplemented(
            f"{client.backend_name} cannot call {getattr(call, 'title', call)} with "
            f"partitioned=True in {program.name!r}, which is divided over "
            f"{options.num_partitions} devices. Leave it out, or call within plugrt.shard_map"
        )


def call_noted(noted: object, function: Callable[..., T], *arguments: object) -> T:
    """Calls a function, and records meanwhile that a program is calling ``noted`` on this thread.

    Not a ``with`` block: an interrupt at the entry of a Python ``__exit__`` would leave the record.
    """
    thread = threading.get_ident()
    before = _calls.get(thread, ())
    _calls[thread] = (*before, noted)
    try:
        return function(*arguments)
    finally:  # # no call here: an interrupt might come at its entry
        if before:
            _calls[thread] = before
        else:
            del _calls[thread]


def calls_under_way() -> tuple[object, ...]:
    """Returns the functions that programs are calling on this thread, the innermost last."""
    return _calls.get(threading.get_ident(), ())


def calls_of_thread(thread: int) -> tuple[object, ...]:
    """The same as `calls_under_way` for another thread."""
    return _calls.get(thread, ())


def take_failure() -> PjrtError | None:
    """Returns the oldest failure of a callback with an effect, and discards all failures."""
    try:
        _, failure = _failures.popleft()
    except IndexError:
        return None
    _failures.clear()
    return failure


def forget_failures() -> None:
    """Discards the failures on this thread: the launch that called the callbacks raised them."""
    thread = threading.get_ident()
    for failure in [*_failures]:
        if failure[0] == thread:
            with contextlib.suppress(ValueError):  # # another thread removed it
                _failures.remove(failure)


class CallbackTable:
    """The functions of compiled programs by number: the `Handler` for the target `HOST_CALLBACK`.

    For backends that find custom calls by their names instead of by `Program.callbacks`. The
    programs keep the functions alive, as the interface requires.
    """

    def __init__(self) -> None:
        self._functions: dict[int, weakref.ref[HostCallback]] = {}

    def add(self, callbacks: Mapping[int, HostCallback]) -> None:
        """Adds a program's functions by number, with weak references."""
        for number, callback in callbacks.items():
            # The weak reference's callback is a C function. In a Python function, as
            # `weakref.WeakValueDictionary` uses, a signal handler could run, and Python would
            # discard its exception (Ctrl-C).
            remove = partial(self._functions.pop, number)
            self._functions[number] = weakref.ref(callback, remove)

    def find(self, number: int) -> HostCallback:
        """Returns the function; raises `Internal` where no program has it any more."""
        reference = self._functions.get(number)
        callback = reference() if reference is not None else None
        if callback is None:
            raise Internal(
                f"a program called the Python function of number {number}, which no program has "
                "any more: whoever launched it did not keep the program until the launch had ended"
            )
        return callback

    def __call__(
        self,
        arguments: Sequence[npt.NDArray[np.generic]],
        results: Sequence[npt.NDArray[np.generic]],
        attributes: Mapping[str, Any],
    ) -> None:
        """Calls the function with the number ``index``."""
        callback = self.find(int(attributes["index"]))
        for place, result in zip(results, callback(arguments), strict=True):
            place[...] = result


def _describe(error: BaseException) -> str:
    """Returns an exception's text, with its traceback if the user's code raised it.

    The frames are the user's, as elsewhere (`filter_traceback`).
    """
    filter_traceback(error)
    said = f"{type(error).__name__}: {error}"
    if error.__traceback__ is None:
        return said
    return f"{said}\n{''.join(traceback.format_exception(error)).rstrip()}"
