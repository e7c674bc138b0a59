"""Whether Python's garbage collector runs, and in this thread: known without running any Python.

Python calls what is in `gc.callbacks` before and after each collection, at whatever place the
collection comes, and drops what such a callback raises ("Exception ignored in"). Functions written
in Python would be places where Ctrl-C can come: it was lost there. So these callbacks consist of
functions written in C, within which no signal handler runs.
"""

from __future__ import annotations

import gc
import threading
from functools import partial
from operator import methodcaller


class _Running(list[bool]):
    """Holds one entry while a collection runs: a list, because that is the quickest to look at.

    Python calls ``getattr(running, "start", information)`` before a collection, ``"stop"`` after
    it. Reading the property calls the method that it names.
    """

    start = property(methodcaller("append", True))
    stop = property(methodcaller("clear"))


class _Here(threading.local):
    """The same for each thread, in an attribute."""

    collecting = False
    start = property(methodcaller("__setattr__", "collecting", True))
    stop = property(methodcaller("__setattr__", "collecting", False))


running = _Running()
"""True in a condition while the garbage collector runs, in any thread."""
_here = _Here()

gc.callbacks += [partial(getattr, running), partial(getattr, _here)]


def is_collecting_here() -> bool:
    """Whether the garbage collector runs in this thread: the caller is part of a finaliser."""
    return bool(running) and _here.collecting
