"""Backends whose work ends later: their events, and the waits for them."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from plugrt.errors import DeletedBuffer, Internal, PjrtError, ResourceExhausted, Unimplemented
from plugrt.interface import CompileOptions, Event, Program
from plugrt_sdk import Backend, BackendClient, PendingEvent
from support.exported import change

ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
ONE = np.float32([1, 2, 3])


class Slot:
    """An array of `ByHand`, and its event."""

    def __init__(self, value: Any) -> None:
        self.value, self.event = value, PendingEvent()


class ByHand(Backend):
    """A backend of additions whose results the test completes. Counts deletions."""

    platform = "by_hand"

    def __init__(self) -> None:
        self.made: list[Slot] = []
        self.deleted: list[Slot] = []
        self.closed = False

    def _make(self, value: Any) -> Slot:
        self.made.append(Slot(value))
        return self.made[-1]

    def devices(self) -> Sequence[str]:
        return ["hand"]

    def put(self, array: Any, device: int) -> Slot:
        return self._make(array.copy())

    def get(self, handle: Slot) -> Any:
        assert handle.event.is_ready()
        return handle.value

    def copy(self, handle: Slot, device: int) -> Slot:
        return self._make(handle.value)

    def event(self, handle: Slot) -> Event:
        return handle.event

    def delete(self, handle: Slot) -> None:
        self.deleted.append(handle)

    def close(self) -> None:
        self.closed = True

    def compile(self, program: Program, options: CompileOptions) -> Any:
        return lambda arguments: [[self._make(sum(slot.value for [slot] in arguments))]]


@pytest.fixture
def client() -> Iterator[Any]:
    made = BackendClient(ByHand())
    yield made
    made.close()


def _put(client: Any) -> Any:
    return client.buffer_from_host(ONE, client.devices()[0])


def _add(client: Any, *arguments: Any) -> Any:
    program = client.compile(Program(ADD), CompileOptions())
    [[result]] = program.execute([(x,) for x in arguments])
    return result


@pytest.mark.parametrize("fails", [False, True])
def test_callbacks_are_called_once_before_and_after(fails: bool) -> None:
    event, told = PendingEvent(), []
    event.on_ready(told.append)
    event.on_ready(told.append)
    assert told == []
    error = ResourceExhausted("no room")
    event.fail(error) if fails else event.complete()
    event.on_ready(told.append)
    assert told == [error if fails else None] * 3


def test_a_callback_that_fails_stops_neither_author_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: PjrtError | None) -> None:
        raise KeyError("broken")

    event, told = PendingEvent(), []
    event.on_ready(broken)
    event.on_ready(told.append)
    with caplog.at_level(logging.ERROR):
        event.complete()
    assert told == [None]
    assert "KeyError: 'broken'" in caplog.text


@pytest.mark.parametrize("first", [PendingEvent.complete, lambda e: e.fail(KeyError())])
@pytest.mark.parametrize("again", [PendingEvent.complete, lambda e: e.fail(KeyError())])
def test_it_is_completed_once(
    first: Callable[[PendingEvent], None], again: Callable[[PendingEvent], None]
) -> None:
    event = PendingEvent()
    first(event)
    with pytest.raises(RuntimeError, match="completed before"):
        again(event)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (ResourceExhausted("no room"), ResourceExhausted, "RESOURCE_EXHAUSTED: no room"),
        (MemoryError("no room"), ResourceExhausted, "MemoryError: no room"),
        (NotImplementedError("sine"), Unimplemented, "NotImplementedError: sine"),
        (ZeroDivisionError("by zero"), Internal, "ZeroDivisionError: by zero"),
    ],
)
def test_errors_have_pjrts_codes_and_the_authors_traceback(
    error: Exception, kind: type[PjrtError], says: str
) -> None:
    event = PendingEvent()
    try:
        raise error
    except Exception as caught:  # noqa: BLE001  # as an author's thread would
        event.fail(caught)
    depths = []
    for _ in range(3):
        with pytest.raises(kind, match=says) as waited:
            event.wait()
        depths.append(len(waited.traceback))
        assert waited.value is error or waited.value.__cause__ is error
    assert depths == depths[:1] * 3, "the traceback grows with each wait"
    assert waited.traceback[-1].name == "test_errors_have_pjrts_codes_and_the_authors_traceback"


def test_a_wrong_event_is_the_backends_fault(client: Any) -> None:
    client.backend.event = lambda handle: "soon"
    with pytest.raises(Internal, match=r"ByHand.event .* returned 'soon'; an event"):
        _put(client)


def test_an_array_that_is_not_ready_is_deleted_when_it_is(client: Any) -> None:
    x = _put(client)
    x.delete()
    assert x.is_deleted()
    with pytest.raises(DeletedBuffer):
        x.ready_event()
    assert client.backend.deleted == []
    client.backend.made[0].event.complete()
    assert client.backend.deleted == client.backend.made


def test_arguments_are_kept_until_the_launch_that_reads_them_is_complete(client: Any) -> None:
    x, y = _put(client), _put(client)
    result = _add(client, x, y)
    made = client.backend.made
    made[0].event.complete()
    made[1].event.complete()
    x.delete()
    del y
    gc.collect()
    assert client.backend.deleted == []
    made[2].event.complete()
    assert sorted(map(id, client.backend.deleted)) == sorted(map(id, made[:2]))
    np.testing.assert_array_equal(result.to_host(), 2 * ONE)


def test_a_source_is_kept_until_its_copy_is_complete(client: Any) -> None:
    x = _put(client)
    made = client.backend.made
    made[0].event.complete()
    copy = x.copy_to_device(client.devices()[0])
    x.delete()
    assert client.backend.deleted == []
    made[1].event.complete()
    assert client.backend.deleted == made[:1]
    np.testing.assert_array_equal(copy.to_host(), ONE)


def test_reads_while_another_thread_deletes(client: Any) -> None:
    """`get` of a handle never runs after its `delete`."""
    reading, go = threading.Event(), threading.Event()

    def slow(slot: Slot) -> Any:
        reading.set()
        go.wait()
        assert slot not in client.backend.deleted
        return slot.value

    client.backend.get = slow
    x = _put(client)
    client.backend.made[0].event.complete()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(x.to_host()))
    thread.start()
    reading.wait()
    x.delete()
    assert client.backend.deleted == []
    go.set()
    thread.join()
    assert len(found) == 1
    assert client.backend.deleted == client.backend.made


def test_the_backend_is_closed_when_the_last_work_has_ended() -> None:
    client: Any = BackendClient(ByHand())
    x = _put(client)
    x.delete()
    client.close()
    assert not client.backend.closed
    client.backend.made[0].event.complete()
    assert client.backend.closed


def test_an_argument_that_another_thread_deletes_is_refused(client: Any) -> None:
    """It is deleted between the check of the arguments and the launch: here by a property."""
    x = _put(client)
    client.backend.made[0].event.complete()
    program = client.compile(Program(ADD), CompileOptions())
    handle = type(x).handle
    change(x, handle=property(lambda self: (handle.fget(self), self.delete())[0]))
    with pytest.raises(DeletedBuffer, match="was deleted"):
        program.execute([(x,), (_put(client),)])
    assert client.backend.deleted == client.backend.made[:1]


DONATING = ADD.replace(
    b"%a: tensor<3xf32>", b"%a: tensor<3xf32> {tf.aliasing_output = 0 : i32}"
).replace(b"%b: tensor<3xf32>", b"%b: tensor<3xf32> {jax.buffer_donor = true}")


class Donating(ByHand):
    """Records the handles that launches may consume."""

    def __init__(self) -> None:
        super().__init__()
        self.consumed: list[frozenset[int]] = []

    def donated(self, program: Program, options: CompileOptions) -> Any:
        from plugrt_sdk import read_aliases

        return read_aliases(program)

    def compile(self, program: Program, options: CompileOptions) -> Any:
        launch = super().compile(program, options)

        def donating(arguments: Any, consumed: frozenset[int]) -> Any:
            self.consumed.append(consumed)
            return launch(arguments)

        return donating


@pytest.fixture
def donating() -> Iterator[Any]:
    made = BackendClient(Donating())
    yield made
    made.close()


def _donate(client: Any, x: Any, y: Any, options: Any = None) -> Any:
    program = client.compile(Program(DONATING), CompileOptions())
    return program.execute([(x,), (y,)], options)[0][0]


def _ready(client: Any) -> Any:
    made = _put(client)
    client.backend.made[-1].event.complete()
    return made


def test_a_launch_consumes_what_is_donated(donating: Any) -> None:
    assert donating.capabilities.donation
    x, y = _ready(donating), _ready(donating)
    result = _donate(donating, x, y)
    assert donating.backend.consumed == [frozenset({0, 1})]
    for taken in (x, y):
        assert taken.is_deleted()
        with pytest.raises(DeletedBuffer, match="donated to a launch of 'main'"):
            taken.to_host()
    donating.backend.made[-1].event.complete()
    result.delete()
    assert donating.backend.deleted == donating.backend.made[2:], "the launch's own are not deleted"


def test_an_array_that_another_launch_reads_is_deleted_after_it(donating: Any) -> None:
    x, y, z = _ready(donating), _ready(donating), _ready(donating)
    plain = donating.compile(Program(ADD), CompileOptions())
    [[running]] = plain.execute([(x,), (z,)])
    result = _donate(donating, x, y)
    assert donating.backend.consumed == [frozenset(), frozenset({1})]
    assert x.is_deleted()
    assert donating.backend.deleted == []
    for slot in donating.backend.made[3:]:
        slot.event.complete()
    assert donating.backend.deleted == donating.backend.made[:1]
    for made in (running, result):
        np.testing.assert_array_equal(made.to_host(), 2 * ONE)


def test_a_launch_that_raises_has_consumed_nothing(donating: Any) -> None:
    def broken(arguments: Any, consumed: Any) -> Any:
        raise ZeroDivisionError

    donating.backend.compile = lambda program, options: broken
    x, y = _ready(donating), _ready(donating)
    with pytest.raises(ZeroDivisionError):
        _donate(donating, x, y)
    np.testing.assert_array_equal(x.to_host(), ONE)
    y.delete()
    assert donating.backend.deleted == donating.backend.made[1:]


def test_an_array_deleted_during_the_launch_that_fails_is_given_back(donating: Any) -> None:
    x, y = _ready(donating), _ready(donating)

    def broken(arguments: Any, consumed: Any) -> Any:
        x.delete()
        raise ZeroDivisionError

    donating.backend.compile = lambda program, options: broken
    with pytest.raises(ZeroDivisionError):
        _donate(donating, x, y)
    assert donating.backend.deleted == donating.backend.made[:1]


@pytest.mark.parametrize("wrong", [None, 3, [2], ["a"], "0"])
def test_wrong_parameters_are_the_backends_fault(donating: Any, wrong: Any) -> None:
    donating.backend.donated = lambda program, options: wrong
    with pytest.raises(Internal, match=r"Donating.donated .* of the 2 parameters of 'main'"):
        donating.compile(Program(DONATING), CompileOptions())
