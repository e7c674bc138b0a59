"""Waits of the compiled core: for an array, and for many buffers of a library at once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from plugrt.errors import ArgumentTypeError
from plugrt.execution.arrays import array_contents
from plugrt.execution.arrays.array import blank
from plugrt.execution.arrays.aval import ArrayAval
from plugrt.monitoring.listeners import listening
from plugrt.native.native_core import core
from support.native_core import runs_in_c

pytestmark = runs_in_c
if core is not None:
    from support.library_calls import LibraryCalls


def test_all_buffers_are_waited_for_and_their_events_destroyed() -> None:
    library = LibraryCalls()
    wait, one, *four = library.core.wait, *(library.buffer() for _ in range(5))
    assert wait([one, tuple(four), ()]) is True
    assert library.calls["Event_Await"] == library.calls["Buffer_ReadyEvent"] == 5
    assert library.alive["event"] == 0
    assert all(buffer._awaited for buffer in (one, *four)), "their readers need not wait again"
    assert wait([one, tuple(four)]) is True
    assert library.calls["Buffer_ReadyEvent"] == 5, "nor need another wait"
    many = tuple(library.buffer() for _ in range(160))
    assert wait(many) is True  # more than fit on the stack
    assert library.calls["Event_Await"] == 5 + 160
    assert library.alive["event"] == 0


@pytest.mark.parametrize("name", ["Buffer_ReadyEvent", "Event_Await", "Event_Destroy", "no event"])
def test_failures_of_a_wait_are_left_to_python(name: str) -> None:
    library = LibraryCalls()
    wait, buffers = library.core.wait, (library.buffer(), library.buffer())
    (library.silent.add("event") if name == "no event" else library.failing.add(name))
    assert wait(buffers) is False
    assert library.alive["error"] == 0
    assert library.calls["Buffer_ReadyEvent"] == 1  # the first failure ends the wait
    assert not any(buffer._awaited for buffer in buffers)
    assert library.alive["event"] == (name == "Event_Destroy")


def test_buffers_of_others_and_deleted_ones_are_not_waited_for() -> None:
    library, other = LibraryCalls(), LibraryCalls()
    wait, ours, deleted = library.core.wait, library.buffer(), library.buffer()
    deleted._pointer = None
    for given in ([ours, other.buffer()], [ours, (ours, deleted)], [ours, None], [[ours]]):
        assert wait(given) is False
    library.core.pending = True
    assert wait([ours]) is False  # Python must release the sources of puts
    library.core.pending = False
    library.core.refuse()
    assert wait([ours]) is False
    assert library.calls["Buffer_ReadyEvent"] == 0


def test_buffers_are_held_while_they_are_waited_for() -> None:
    library = LibraryCalls()
    given = [library.buffer(), (library.buffer(), library.buffer())]
    destroyed = []

    def let_go(name: str) -> None:
        given.clear()
        gc.collect()
        if name == "Event_Destroy":  # each buffer's last call
            destroyed.append(library.calls["Buffer_Destroy"])

    wait, library.during = library.core.wait, let_go
    assert wait(given) is True
    library.during = lambda _: None
    assert destroyed == [0, 0, 0]
    assert library.calls["Buffer_Destroy"] == 3


def test_wrong_arguments_are_refused() -> None:
    wait = LibraryCalls().core.wait
    wrong: tuple[Callable[[], Any], ...] = (wait, lambda: wait([], more=1), lambda: wait(1))
    for call in wrong:
        with pytest.raises(TypeError):
            call()


def _array(held: Any, waiter: Any = None) -> Any:
    """Returns an array over these buffers."""
    array: Any = blank()
    array._shards, array._aval = held, object.__new__(ArrayAval)
    array._aval.waiter = waiter
    return array


def _is_left_to_python(call: Callable[[], Any]) -> bool:
    """Whether Python's method runs. It fails: the aval has only the waiter."""
    seen = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.append(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    except ArgumentTypeError:
        return any(code.co_filename == array_contents.__file__ for code in seen)
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.parametrize("parts", [0, 1, 4])
def test_an_array_is_waited_for_once(parts: int) -> None:
    library = LibraryCalls()
    buffers = tuple(library.buffer() for _ in range(parts or 1))
    array = _array(buffers if parts else buffers[0])
    library.is_ready = False
    assert array.is_ready() is False
    assert library.calls["Event_IsReady"] == 1, "one part that is not there says enough"
    library.is_ready = True
    assert array.is_ready() is True
    assert not array._is_there, "it may have failed"
    assert array.block_until_ready() is array
    assert array._is_there
    assert library.calls["Event_Await"] == (parts or 1)
    assert library.alive["event"] == 0
    library.calls.clear()
    assert array.block_until_ready() is array
    assert array.is_ready() is True
    assert not library.calls, "it is known to be there"


@pytest.mark.parametrize(
    "name", ["Buffer_ReadyEvent", "Event_Await", "Event_IsReady", "Event_Destroy", "no event"]
)
def test_failures_of_an_arrays_wait_are_left_to_python(name: str) -> None:
    library = LibraryCalls()
    array = _array((library.buffer(), library.buffer()))
    (library.silent.add("event") if name == "no event" else library.failing.add(name))
    assert _is_left_to_python(array.block_until_ready) == (name != "Event_IsReady")
    array = _array((library.buffer(), library.buffer()))
    assert _is_left_to_python(array.is_ready) == (name != "Event_Await")
    assert library.alive["error"] == 0


@pytest.mark.parametrize("lacking", ["Buffer_ReadyEvent", "Event_Await", "Event_IsReady"])
def test_python_waits_if_a_library_lacks_a_function(lacking: str) -> None:
    library = LibraryCalls(lacking={lacking})
    array = _array(library.buffer())
    assert _is_left_to_python(array.is_ready)
    assert _is_left_to_python(array.block_until_ready) == (lacking != "Event_IsReady")
    assert library.core.wait([library.buffer()]) is (lacking == "Event_IsReady")


def _listen(event: str, duration: float, /, **_: str | int) -> None:
    """A listener; with one, Python waits, to measure the duration."""


def test_python_waits_for_what_is_unusual() -> None:
    library = LibraryCalls()
    deleted, mixed = library.buffer(), (library.buffer(), LibraryCalls().buffer())
    deleted._pointer = None
    for held in (deleted, (library.buffer(), deleted), mixed, (), [library.buffer()], object()):
        array = _array(held)
        assert _is_left_to_python(array.block_until_ready), held
        assert _is_left_to_python(array.is_ready), held
    many = tuple(library.buffer() for _ in range(40))
    assert _is_left_to_python(_array(many).block_until_ready), "more than fit on the stack"
    array = _array(library.buffer())
    listening.append(_listen)
    try:  # Python measures for listeners
        assert _is_left_to_python(array.block_until_ready)
    finally:
        listening.remove(_listen)
    library.core.pending = True
    assert _is_left_to_python(array.block_until_ready)
    library.core.pending = False
    library.core.refuse()
    assert _is_left_to_python(array.block_until_ready)
    assert set(library.calls) <= {"Buffer_Destroy"}


def test_another_thread_may_delete_an_array_that_is_waited_for() -> None:
    library = LibraryCalls()
    array = _array(library.buffer())
    library.during = lambda name: setattr(array, "_shards", None) if name == "Event_Await" else None
    assert array.block_until_ready() is array
    assert not array._is_there
    assert library.calls["Buffer_Destroy"] == 1


class Made:
    """An array of a backend that provides functions."""


def _wait_by(function: Callable[[Any], Any]) -> Any:
    return core.ShardsWait(
        set, Made, print, is_ready=function, wait_one=function, wait=print, wait_end=print
    )


def test_a_backends_function_waits_for_its_arrays() -> None:
    asked: list[Any] = []
    raised: list[BaseException] = []

    def answer(made: Any) -> bool:
        asked.append(made)
        if raised:
            raise raised[0]
        return len(asked) > 1

    made = Made()
    array = _array(made, _wait_by(answer))
    assert [array.is_ready(), array.is_ready()] == [False, True]
    assert array.block_until_ready() is array
    assert array._is_there
    assert asked == [made] * 3, "it may be deleted meanwhile, so that it is asked each time"
    raised.append(LookupError("failed"))
    assert _is_left_to_python(array.block_until_ready)
    assert _is_left_to_python(array.is_ready)
    raised[0] = KeyboardInterrupt("stop")
    for call in (array.block_until_ready, array.is_ready):
        with pytest.raises(KeyboardInterrupt, match="stop"):
            call()
