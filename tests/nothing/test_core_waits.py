"""Waits of the compiled core for many buffers of a library at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from plugrt.compiled_core import core, reason

pytestmark = pytest.mark.skipif(core is None, reason=f"no compiled core here: {reason}")
if core is not None:
    from support.library_calls import LibraryCalls


def _wait(library: LibraryCalls) -> Any:
    return core.Wait(library.core, library.address_of("Buffer_ReadyEvent"))


def test_all_buffers_are_waited_for_and_their_events_destroyed() -> None:
    library = LibraryCalls()
    wait, one, *four = _wait(library), *(library.buffer() for _ in range(5))
    assert wait([one, tuple(four), ()]) is True
    assert wait(tuple(four * 40)) is True  # more than fit on the stack
    assert library.calls["Event_Await"] == library.calls["Buffer_ReadyEvent"] == 5 + 160
    assert library.alive["event"] == 0
    assert all(buffer._awaited for buffer in (one, *four)), "their readers need not wait again"


@pytest.mark.parametrize("name", ["Buffer_ReadyEvent", "Event_Await", "Event_Destroy", "no event"])
def test_what_fails_is_pythons_to_find_again(name: str) -> None:
    library = LibraryCalls()
    wait, buffers = _wait(library), (library.buffer(), library.buffer())
    (library.silent.add("event") if name == "no event" else library.failing.add(name))
    assert wait(buffers) is False
    assert library.alive["error"] == 0
    assert library.calls["Buffer_ReadyEvent"] == 1  # the first that failed ends it
    assert not any(buffer._awaited for buffer in buffers)
    assert library.alive["event"] == (name == "Event_Destroy")


def test_buffers_of_others_and_deleted_ones_are_not_waited_for() -> None:
    library, other = LibraryCalls(), LibraryCalls()
    wait, ours, deleted = _wait(library), library.buffer(), library.buffer()
    deleted._pointer = None
    for given in ([ours, other.buffer()], [ours, (ours, deleted)], [ours, None], [[ours]]):
        assert wait(given) is False
    library.core.pending = True
    assert wait([ours]) is False  # sources of puts are to be let go of, which Python does
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
        if name == "Event_Destroy":  # the last of each buffer's
            destroyed.append(library.calls["Buffer_Destroy"])

    wait, library.during = _wait(library), let_go
    assert wait(given) is True
    library.during = lambda _: None
    assert destroyed == [0, 0, 0]
    assert library.calls["Buffer_Destroy"] == 3


def test_a_wait_is_made_once_of_a_client_with_events_and_is_collected() -> None:
    library = LibraryCalls()
    wait, address = _wait(library), library.address_of("Buffer_ReadyEvent")
    wrong: tuple[Callable[[], Any], ...] = (
        lambda: type(wait).__init__(wait, library.core, address),
        lambda: core.Wait(library.core, 0),
        lambda: core.Wait(core.Client(*[0] * 7, None, None, None), address),
        lambda: core.Wait(None, address),
        lambda: core.Wait.__new__(core.Wait)([]),
        lambda: wait(),
        lambda: wait([], more=1),
        lambda: wait(1),
    )
    for make in wrong:
        with pytest.raises(TypeError):
            make()

    class Owner(set[Any]):
        """Part of a cycle that leads through a wait."""

    owner = Owner()
    client = core.Client(*[1] * 7, None, None, owner)
    owner.add(core.Wait(client, address))
    seen = weakref.ref(owner)
    del owner, client
    gc.collect()
    assert seen() is None
