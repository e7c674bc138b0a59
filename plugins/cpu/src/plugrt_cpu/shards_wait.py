"""One wait for several arrays: jaxlib's arrays, and shards of a class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from plugrt.native.native_core import core
from plugrt_cpu import adapter
from plugrt_cpu.errors import JAXLIB_ERRORS


def wait_for_class(cls: type) -> Callable[[Sequence[Any]], bool]:
    """Returns a wait for shards of that class and jaxlib's arrays, in C if there is a core.

    It returns False if one was deleted or its computation failed: the wait for that one raises the
    error. For shards that launches on each device made, ``_ends`` are the tokens of these; the wait
    is for them, since waiting for each part costs more.
    """
    if core is None:
        return partial(_wait, cls)
    made: Callable[[Sequence[Any]], bool] = core.ShardsWait(
        cls=cls,
        raw=adapter.RawArray,
        is_deleted=adapter.is_deleted,
        is_ready=adapter.is_ready,
        wait_one=adapter.wait,
        wait=adapter.wait_for_all,
        wait_end=adapter.wait_for_end,
    )
    return made


def _wait(cls: Any, held: Sequence[Any]) -> bool:
    raws: list[Any] = []
    ends: dict[int, tuple[Any, ...]] = {}
    for each in held:
        if type(each) is adapter.RawArray:
            raws.append(each)
        elif type(each) is not cls:
            return False
        elif each._parts is None:
            raws.append(each.raw)
        elif each._ends is None:
            raws.extend(each._parts)
        elif any(map(adapter.is_deleted, each._parts)):
            return False
        else:
            ends[id(each._ends)] = each._ends
    try:
        for tokens in ends.values():
            for token in tokens:
                adapter.wait_for_end(token)
        if raws:
            adapter.wait_for_all(raws)
    except JAXLIB_ERRORS:
        return False
    return True
