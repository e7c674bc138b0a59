"""Finalisers under signals, collections, callbacks and the recursion limit."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.capi.library.callback_threads import mark_callback
from plugrt.interface import CompileOptions, Program
from plugrt.native.finalizers import is_collecting_here, running
from plugrt.plugins import LibraryPlugin
from plugrt_sdk import BackendClient
from plugrt_sdk.export import export_capsule
from support.distributions import run_python
from support.late_client import Adder
from support.native_core import runs_in_c


class Cycle:
    """An object in a cycle, which calls a function when it is collected."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.me = self

    def __del__(self) -> None:
        self.call()


def test_a_collection_is_noted_while_it_runs_and_in_its_own_thread() -> None:
    seen: list[Any] = []

    def note() -> None:
        seen.append((bool(running), is_collecting_here()))

    def call() -> None:
        note()
        other = threading.Thread(target=note)
        other.start()
        other.join()

    note()
    Cycle(call)
    gc.collect()
    note()
    assert seen == [(False, False), (True, True), (True, False), (False, False)]


INTERRUPTED = """
import _thread, gc, signal
from functools import partial
from operator import methodcaller
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs behind
{use}

class Interrupting:  # written in C, so that the signal waits for what is called after it
    interrupt = staticmethod(_thread.interrupt_main)
    nothing = staticmethod(int)
    {phase} = property(methodcaller("interrupt"))
    {other} = property(methodcaller("nothing"))

gc.disable()
before = partial(getattr, Interrupting())
gc.callbacks.insert(0, before)
for _ in range(20):
    try:
        gc.collect()
        print("lost")
    except KeyboardInterrupt:
        pass
gc.callbacks.remove(before)
print("over", gc.callbacks and not gc.garbage)
"""


def test_an_interrupt_within_a_collection_is_not_lost() -> None:
    """Python discards exceptions of the collector's callbacks, including a handler's interrupt."""
    for phase, other in [("start", "stop"), ("stop", "start")]:
        use = "import plugrt.tracing.trace"
        done = run_python(INTERRUPTED.format(use=use, phase=phase, other=other))
        assert (done.stdout, done.stderr) == ("over True\n", "")


AT_EACH_LINE = """
import gc, signal, sys
from pathlib import Path
import numpy as np
import plugrt
import plugrt_sdk.buffer, plugrt_sdk.session, plugrt_sdk.uses
from plugrt.capi.loading import function_table, owned_handles
from plugrt.native import finalizers
from plugrt_sdk import BackendClient
from support.late_client import Adder, LateAdder

class Late(Exception):
    pass

lost = []
sys.unraisablehook = lambda found: lost.append(repr(found.exc_value))
deleted, files = [], {m.__file__ for m in (
    plugrt_sdk.buffer, plugrt_sdk.session, plugrt_sdk.uses, finalizers, owned_handles,
    function_table)}

def late(*_):
    raise Late

signal.signal(signal.SIGUSR1, late)

class Told(BACKEND):
    def delete(self, handle):
        deleted.append(1)
    def view(self, handle):
        return self.get(handle)

class Interruption:
    '''A signal at the n-th line of these files that a finaliser comes to.'''
    def __init__(self, left):
        self.left, self.came = left, False
    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename not in files:
            return None
        if event in ("call", "line") and not self.came:
            self.left -= 1
            if self.left < 0:
                self.came = True
                sys.settrace(None)
                signal.raise_signal(signal.SIGUSR1)
        return self

def make_buffer():
    made = client.buffer_from_host(np.ones(3, np.float32), client.devices()[0])
    made.block_until_ready()
    return made

def make_view():
    buffer = make_buffer()
    host = buffer.to_host()
    buffer.delete()
    return host

client = BackendClient(Told())
wrong, interrupts = [], 0
for make in (make_buffer, make_view):
    for line in range(100):
        value, before = make(), len(deleted)
        interruption, raised = Interruption(line), False
        try:
            sys.settrace(interruption)
            value = None
            sys.settrace(None)
            int("0")
        except Late:
            raised = True
        sys.settrace(None)
        if raised != interruption.came or len(deleted) != before + 1 or lost:
            wrong.append((make.__name__, line, raised, len(deleted) - before, lost))
        interrupts += raised
        if not interruption.came:
            break
client.close()
print(wrong or "right", interrupts > 8)
"""


@runs_in_c
@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize("backend", ["Adder", "LateAdder"])
def test_exceptions_of_signal_handlers_in_finalisers_arrive(backend: str) -> None:
    """Earlier, Python printed "Exception ignored in" and continued; the backend's handle stayed."""
    done = run_python(AT_EACH_LINE.replace("BACKEND", backend))
    assert (done.stdout, done.stderr) == ("right True\n", "")


AT_THE_LIMIT = """
import sys
import numpy as np
import plugrt

from plugrt_sdk import BackendClient
from support.late_client import Adder

lost, deleted = [], []
sys.unraisablehook = lambda found: lost.append(repr(found.exc_value))

class Told(Adder):
    def delete(self, handle):
        self._deeper(handle)
    def _deeper(self, handle):
        deleted.append(1)
    def memory_stats(self, device):
        return {"bytes_in_use": made - len(deleted)}

client = BackendClient(Told())
[device] = client.devices()
made = 0

def descend(left, held):
    if left:
        descend(left - 1, held)
    else:
        held.clear()

sys.setrecursionlimit(400)
for left in range(250, 400):
    held = [client.buffer_from_host(np.ones(3, np.float32), device)]
    made += 1
    try:
        descend(left, held)
    except RecursionError:
        held.clear()
    found = device.memory_stats()["bytes_in_use"]
    assert not found, (left, found)
print(lost or "right", made)
"""


@runs_in_c
def test_objects_that_end_at_the_recursion_limit_are_freed() -> None:
    """Earlier, the finaliser failed: its error was printed, and the memory was never freed."""
    done = run_python(AT_THE_LIMIT)
    assert (done.stdout, done.stderr) == ("right 150\n", "")


class Told(Adder):
    """Counts deletions; `memory_stats` reports them."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = 0

    def put(self, array: Any, device: int) -> Any:
        self.alive += 1
        return super().put(array, device)

    def delete(self, handle: Any) -> None:
        self.alive -= 1

    def memory_stats(self, device: int) -> dict[str, int]:
        return {"bytes_in_use": self.alive}


def _told() -> tuple[Told, Any, Any]:
    client = BackendClient(Told())
    [device] = client.devices()
    return client.backend, device, lambda: client.buffer_from_host(np.ones(3, np.float32), device)  # type: ignore[return-value]


def test_memory_is_freed_when_the_last_reference_is_dropped() -> None:
    backend, device, put = _told()
    x = put()
    assert device.memory_stats() == {"bytes_in_use": 1}
    del x
    assert backend.alive == 0
    x = put()
    del x
    assert device.memory_stats() == {"bytes_in_use": 0}


def test_garbage_is_freed_before_the_memory_is_stated() -> None:
    backend, device, put = _told()
    seen: list[int] = []
    holder = Cycle(lambda: seen.append(backend.alive))
    holder.x = put()  # type: ignore[attr-defined]
    del holder
    gc.collect()
    assert device.memory_stats() == {"bytes_in_use": 0}
    assert seen == [1], "a finaliser of the same garbage may still use the buffer"


def test_memory_is_freed_while_another_thread_is_in_a_long_call() -> None:
    backend, device, put = _told()
    entered, over = threading.Event(), threading.Event()

    def wait(*_: Any) -> Any:
        entered.set()
        over.wait()
        return np.zeros(3, np.float32)

    backend.get = wait  # type: ignore[assignment,method-assign]
    read, x = put(), put()
    thread = threading.Thread(target=read.to_host)
    thread.start()
    entered.wait()
    try:
        del x
        assert device.memory_stats() == {"bytes_in_use": 1}
        holder = Cycle(int)
        holder.x = put()  # type: ignore[attr-defined]
        del holder
        gc.collect()
        assert device.memory_stats() == {"bytes_in_use": 1}
    finally:
        over.set()
        thread.join()


class Small(Told):
    """Has room for two arrays."""

    def put(self, array: Any, device: int) -> Any:
        self._take()
        return super().put(array, device)

    def compile(self, program: Any, options: Any) -> Any:
        launch = super().compile(program, options)

        def take_and_launch(arguments: Any) -> Any:
            self._take()
            self.alive += 1
            return launch(arguments)

        return take_and_launch

    def _take(self) -> None:
        if self.alive == 2:
            raise MemoryError("two arrays are there")


@pytest.mark.parametrize("exported", [False, True])
def test_no_allocation_is_refused_while_frees_are_put_off(exported: bool) -> None:
    """Earlier, a put and a launch were refused, although a collection had freed memory."""
    client: Any = BackendClient(Small())
    if exported:
        capsule = export_capsule(lambda made=client, **_: made)
        client = LibraryPlugin("small", c_api=capsule).create_client({})
    [device] = client.devices()
    text = plugrt.jit(lambda a, b: a + b).lower(*[np.ones(3, np.float32)] * 2).as_text()

    def drop_in_a_cycle() -> None:
        holder = Cycle(int)
        holder.x = put()  # type: ignore[attr-defined]
        del holder
        gc.collect()

    def put() -> Any:
        return client.buffer_from_host(np.ones(3, np.float32), device)

    x = put()
    for _ in range(3):
        drop_in_a_cycle()
    adds = client.compile(Program(text.encode()), CompileOptions())
    drop_in_a_cycle()
    for _ in range(2):
        [[_sum]] = adds.execute([client.shards([x]), client.shards([x])])
        del _sum
        drop_in_a_cycle()
    client.close()


def test_an_array_of_a_cycle_that_was_collected_is_none_of_live_arrays() -> None:
    holder = Cycle(int)
    holder.x = plugrt.device_put(np.float32([1, 2, 3]))  # type: ignore[attr-defined]
    assert any(x is holder.x for x in plugrt.live_arrays())  # type: ignore[attr-defined]
    name = id(holder.x)  # type: ignore[attr-defined]
    del holder
    gc.collect()
    assert name not in map(id, plugrt.live_arrays())


def test_objects_dropped_in_a_callback_end_in_the_next_call() -> None:
    """A library that calls Python may hold locks that its destructors acquire."""
    backend, device, put = _told()
    held = [put()]
    mark_callback(held.clear)()
    assert backend.alive == 1
    assert device.memory_stats() == {"bytes_in_use": 0}
    held = [put()]
    mark_callback(held.clear)()
    plugrt.jit(lambda v: v + 1)(np.float32(1))
    assert backend.alive == 0


def test_an_error_of_a_backends_delete_is_reported_once(unraisable: Any) -> None:
    backend, _, put = _told()
    error = ValueError("no such handle")
    backend.delete = lambda handle: _raise(error)  # type: ignore[method-assign]
    x = put()
    del x
    int("0")
    assert [report.exc_value for report in unraisable] == [error]


def _raise(error: Exception) -> None:
    raise error
