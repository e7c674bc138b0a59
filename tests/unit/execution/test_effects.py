"""Launches in flight, on a backend whose launches end on request."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import clear_backends
from plugrt.callbacks.host_callbacks import NumberedCallback, take_failure
from plugrt.errors import Internal
from plugrt.execution.executables import blocking_launches, client_launches
from plugrt.execution.executables.client_launches import calling_launches
from plugrt.interface import Capabilities, Device
from plugrt_sdk import BackendClient
from support.distributions import run_python
from support.registries import registry
from unit.execution.late_launches import LateLaunches

SCALAR = plugrt.ShapeDtypeStruct((), "int32")
OVERTAKES = 0.3
"""Seconds for a launch that must wait; short only if it does not wait."""


class Late:
    """A device whose launches wait for ``gate``, and the arguments of its Python calls."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.backend = LateLaunches(lambda n: self.gate.wait())
        self.client = BackendClient(self.backend)
        self.seen: list[int] = []

    @property
    def device(self) -> Device:
        return self.client.devices()[0]

    def jit(self, *, ordered: bool) -> Callable[[Any], Any]:
        """Returns a function whose program records its argument, and returns it."""

        def call(n: Any) -> Any:
            return plugrt.io_callback(self.note, SCALAR, n, ordered=ordered)

        return plugrt.jit(call, device=self.device)

    def note(self, n: Any) -> Any:
        self.seen.append(int(n))
        return n


@pytest.fixture
def late() -> Iterator[Late]:
    made = Late()
    yield made
    made.gate.set()
    plugrt.effects_barrier()
    made.client.close()


def hold_the_first(late: Late) -> threading.Event:
    """Releases all launches, the first a little later, or as soon as the event is set."""
    overtaken = threading.Event()
    late.backend.hold = lambda n: n > 1 or overtaken.wait(OVERTAKES)
    return overtaken


def test_an_ordered_launch_awaits_the_last_one(late: Late) -> None:
    overtaken = hold_the_first(late)
    f = late.jit(ordered=True)
    f(np.int32(1))
    f(np.int32(2)).block_until_ready()
    overtaken.set()
    plugrt.effects_barrier()
    assert late.seen == [1, 2]


def test_a_launch_without_order_awaits_nothing(late: Late) -> None:
    overtaken = threading.Event()
    late.backend.hold = lambda n: n > 1 or overtaken.wait()
    f = late.jit(ordered=False)
    f(np.int32(1))
    f(np.int32(2)).block_until_ready()
    overtaken.set()
    plugrt.effects_barrier()
    assert late.seen == [2, 1]


def test_an_ordered_call_by_python_awaits_the_last_launch(late: Late) -> None:
    overtaken = hold_the_first(late)
    x = plugrt.device_put(np.int32(2), late.device)
    late.jit(ordered=True)(np.int32(1))
    plugrt.io_callback(late.note, SCALAR, x, ordered=True)
    overtaken.set()
    plugrt.effects_barrier()
    assert late.seen == [1, 2]


def test_a_launch_on_another_backend_awaits_the_last_one(late: Late) -> None:
    other = Late()
    other.gate.set()
    overtaken = hold_the_first(late)
    late.jit(ordered=True)(np.int32(1))
    other.jit(ordered=True)(np.int32(2)).block_until_ready()
    assert (late.seen, other.seen) == ([1], [2])
    overtaken.set()
    plugrt.effects_barrier()
    other.client.close()


def test_launches_of_other_threads_are_not_awaited(late: Late) -> None:
    f = late.jit(ordered=True)
    f(np.int32(1))
    thread = threading.Thread(target=f, args=(np.int32(2),))
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert (late.seen, late.backend.launched) == ([], 2)
    late.gate.set()
    plugrt.effects_barrier()
    assert sorted(late.seen) == [1, 2]


def test_clearing_backends_awaits_launches(late: Late) -> None:
    cleared = hold_the_first(late)
    late.jit(ordered=False)(np.int32(1))
    clear_backends(registry())
    assert late.seen == [1]
    cleared.set()


def test_the_end_of_the_interpreter_awaits_launches() -> None:
    done = run_python(
        f"""
import atexit, threading
import numpy as np
import plugrt
from plugrt_sdk import BackendClient
from support.distributions import run_python
from unit.execution.late_launches import LateLaunches
ending, never = threading.Event(), threading.Event()
hold = lambda n: (ending.wait(), never.wait({3 * OVERTAKES}))
device = BackendClient(LateLaunches(hold)).devices()[0]
kind = plugrt.ShapeDtypeStruct((), "int32")
note = lambda n: (print("called", flush=True), n)[1]
plugrt.jit(lambda n: plugrt.io_callback(note, kind, n), device=device)(np.int32(1))
atexit.register(ending.set)  # and so called before the handlers that are there
print("end", flush=True)
"""
    )
    assert done.stdout.split() == ["end", "called"], done.stderr


def test_ended_callbacks_are_released_without_a_barrier(late: Late) -> None:
    class Captured:
        """An object captured by a callback."""

    def launch() -> threading.Event:
        captured, freed = Captured(), threading.Event()
        weakref.finalize(captured, freed.set)

        def call(n: Any, captured: Any = captured) -> Any:
            return plugrt.io_callback(lambda v: (captured, v)[1], SCALAR, n)

        plugrt.jit(call, device=late.device)(np.int32(1))
        return freed

    freed = launch()
    plugrt.clear_caches()
    gc.collect()
    assert not freed.is_set()  # the launch has begun
    late.gate.set()
    assert freed.wait(60)


def test_an_end_that_launches_again_while_it_is_released(late: Late) -> None:
    """Releasing it may delete objects of the user's, whose finalisers use plugrt."""
    f, ended = late.jit(ordered=True), threading.Event()
    late.gate.set()

    class Captured:
        def __del__(self) -> None:
            f(np.int32(2)).block_until_ready()
            ended.set()

    def launch(captured: Any) -> None:
        def call(n: Any) -> Any:
            return plugrt.io_callback(lambda v: (captured, v)[1], SCALAR, n)

        plugrt.jit(call, device=late.device)(np.int32(1))

    launch(Captured())
    plugrt.clear_caches()
    gc.collect()
    assert ended.wait(60)


def test_no_more_than_so_many_are_under_way(late: Late, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_launches, "_MOST", 3)  # the device states no bound
    f = late.jit(ordered=False)
    f(np.int32(0))  # compiled
    for n in range(1, 3):
        f(np.int32(n))
    assert len(calling_launches()) == 3
    threading.Timer(OVERTAKES, late.gate.set).start()
    f(np.int32(3))  # waits for the oldest launch
    assert 0 in late.seen


def test_a_failure_is_raised_by_the_barrier_after_its_launch_was_released(late: Late) -> None:
    def fail(n: Any) -> Any:
        raise ValueError("told")

    def call(n: Any) -> Any:
        return plugrt.io_callback(fail, SCALAR, n)

    late.gate.set()
    plugrt.jit(call, device=late.device)(np.int32(1))
    while calling_launches():
        time.sleep(0.001)
    with pytest.raises(Internal, match="told"):
        plugrt.effects_barrier()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def passes_in_a_child(check: Callable[[], bool]) -> bool:
    """Whether a check holds in a forked child, which is ended if it hangs."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest-timeout has a handler for SIGALRM
        signal.alarm(60)
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0


@needs_fork
@pytest.mark.filterwarnings("ignore:os.fork", "ignore:This process")
def test_a_forked_child_has_none_of_the_launches(late: Late) -> None:
    late.jit(ordered=False)(np.int32(1))

    def check() -> bool:
        plugrt.effects_barrier()
        return not calling_launches()

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with client_launches._lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert passes_in_a_child(check)
    finally:
        done.set()
        holder.join()


class Ends:
    """A client that only a queue refers to; its deletion would call a library."""

    capabilities = Capabilities(max_blocking_launches=2)

    def __init__(self, ends: list[int]) -> None:
        self.ends = ends

    def __del__(self) -> None:
        self.ends.append(os.getpid())


@needs_fork
@pytest.mark.filterwarnings("ignore:os.fork", "ignore:This process")
def test_a_forked_child_ends_no_client() -> None:
    """Earlier, deleting a client that only its queue kept crashed the child in the library."""
    ends: list[int] = []
    client: Any = Ends(ends)
    queue = client_launches.client_launches(client)
    queue._launches.append((partial(bool, client), True))
    del client, queue
    assert passes_in_a_child(lambda: not ends)
    clear_backends(registry())
    assert ends == [os.getpid()]


@needs_fork
@pytest.mark.filterwarnings("ignore:os.fork", "ignore:This process")
def test_a_forked_child_has_none_of_the_failures() -> None:
    def fail() -> Any:
        raise ValueError("of the parent")

    callback = NumberedCallback(fail, "'fail'", has_effect=True)
    with pytest.raises(Internal):
        callback([])
    assert passes_in_a_child(lambda: take_failure() is None)
    assert take_failure() is not None
