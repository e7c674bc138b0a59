"""One wait for what several arrays hold: jaxlib's arrays, and shards of a class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from plugrt.native.native_core import core
from plugrt_cpu import adapter
from plugrt_cpu.errors import JAXLIB_ERRORS


def wait_for_class(cls: type) -> Callable[[Sequence[Any]], bool]:
    """Returns what waits for shards of that class and jaxlib's arrays, in C where there is a core.

    It returns False where one was deleted, or making it failed: the wait for that one raises the
    error. Of shards that launches on each device made, ``_ends`` are the tokens of these; they are
    waited for: each part's own end tells the same at more cost.
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
