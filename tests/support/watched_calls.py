"""`at_calls`: runs a test's code at the calls of functions: to record, raise, or change a state."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import unwrap
from types import FrameType
from typing import Any


@contextmanager
def at_calls(
    functions: Any, act: Callable[[Mapping[str, Any], Any], object], *, after: bool = False
) -> Iterator[None]:
    """Calls ``act`` within the block when this thread calls one of ``functions``, or after it
    returned.

    No name is replaced, so any module may make the call, under any name. ``act`` gets the variables
    of the function (of its caller, if it is written in C) and its result. An exception of ``act``
    propagates from the call, like one of a signal handler, and ends the watch.
    """
    moment = "return" if after else "call"
    watched = [getattr(each, "__code__", each) for each in map(unwrap, functions)]

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        called = arg if event.startswith("c_") else frame.f_code
        if event.endswith(moment) and any(called is each for each in watched):
            act(frame.f_locals, arg)
        if before is not None:
            before(frame, event, arg)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


def interrupt(*_: Any) -> None:
    """Raises the exception of Ctrl-C; for `at_calls`."""
    raise KeyboardInterrupt
