"""What wrapped functions share: a cache of programs, and the short way from call to launch."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from operator import attrgetter
from types import MethodType
from typing import Any, Self

from plugrt.config import config
from plugrt.execution.caches import remember
from plugrt.tracing.trace import _state
from plugrt.transforms.arguments import ArgumentRules, Bound

_MOST = 4096
_token = config.token
_signature_of = attrgetter("_signature")


class ProgramCache(dict[Any, Any]):
    """What was compiled for one function under one set of options, by kinds of arguments."""

    __slots__ = ("__weakref__", "_making")
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self._making: dict[Any, threading.RLock] = {}

    def __eq__(self, other: object) -> bool:
        return self is other

    def made(self, key: Any, make: Callable[[], Any]) -> Any:
        """Returns the program of ``key``; of threads that miss it together, one makes it."""
        lock = self._making.setdefault(key, threading.RLock())
        with lock:
            run = self.get(key)
            try:
                if run is None:
                    run = make()
                    self.keep(key, run)
            finally:  # whoever waits has the lock already; whoever comes later finds the program
                self._making.pop(key, None)
        return run

    def keep(self, key: Any, run: Any) -> None:
        """Adds a program; the oldest goes when there are too many."""
        while len(self) >= _MOST:
            self.pop(next(iter(self)), None)
        self[key] = run


_caches: weakref.WeakKeyDictionary[Any, dict[Any, ProgramCache]] = weakref.WeakKeyDictionary()


def cache_for(function: Any, options: tuple[Any, ...]) -> ProgramCache:
    """Returns the cache that all wrappers of a function with these options share, held weakly."""
    try:
        by_options = _caches.setdefault(function, {})
    except TypeError:  # neither weakly referable nor hashable: the wrapper keeps its own
        by_options = {}
    cache = by_options.get(options)
    if cache is None:
        cache = by_options.setdefault(options, ProgramCache())
        remember(cache)
    return cache


class CachedFunction:
    """A function whose calls are found by the signatures of their arguments and launched.

    Calls with arrays alone find their program by one lookup; everything else goes through
    `_general`, which keeps programs in ``_cache`` for both.
    """

    def __init__(
        self, function: Callable[..., Any], rules: ArgumentRules, options: tuple[Any, ...]
    ) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = rules.title  # a partial has none
        self._function = function
        self._rules = rules
        self._cache = cache_for(function, options)
        self._find = self._cache.get

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or _state.trace is not None:
            return self._general(args, kwargs)
        try:
            if len(args) == 2:  # the usual number, unrolled: a tenth less
                first, second = args
                run = self._find((_token(), first._signature, second._signature))
            else:
                run = self._find((_token(), *map(_signature_of, args)))
        except AttributeError:  # not all are arrays
            run = None
        return self._general(args, kwargs) if run is None else run(args)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def clear_cache(self) -> None:
        """Forgets the programs compiled for this function."""
        self._cache.clear()

    def _cache_size(self) -> int:
        return len(self._cache)

    def _flat(self, bound: Bound) -> Callable[..., Any]:
        """Returns the function of the flat leaves of a call like ``bound``."""

        def call(*leaves: Any) -> Any:
            args, kwargs = bound.rebuild(leaves)
            return self._function(*args, **kwargs)

        return call

    def __reduce__(self) -> str:
        # By name, as functions are: the module must hold this very object under it.
        return str(getattr(self, "__qualname__", repr(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # as functions are

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)
