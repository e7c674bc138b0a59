"""A buffer is used in one thread and deleted in another: a value or `DeletedBuffer`."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from plugrt.errors import DeletedBuffer
from plugrt.interface import Client, CompileOptions, Device, HostBufferSemantics
from support.effort import EFFORT
from support.xla_cpu import DONATED, add

SIZE = 4096
KIND = f"tensor<{SIZE}xf32>"
SOURCE = np.arange(SIZE, dtype=np.float32)
ROUNDS = 25 * EFFORT


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Makes threads switch as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class Programs:
    """The ways to use a buffer, and the ways to delete it."""

    def __init__(self, client: Client, device: Device) -> None:
        self.client, self.device = client, device
        self.add = client.compile(add(KIND), CompileOptions())
        self.donating = client.compile(add(KIND, DONATED), CompileOptions())
        self.zero = client.buffer_from_host(np.zeros(SIZE, np.float32), device)
        for loaded in (self.add, self.donating):
            loaded.execute([(self.make(),), (self.zero,)])

    def make(self, semantics: int = 0) -> Any:
        kept = SOURCE.copy()
        made = self.client.buffer_from_host(kept, self.device, None, HostBufferSemantics(semantics))
        return made if semantics else self.add.execute([(made,), (self.zero,)])[0][0]

    def launch(self, buffer: Any) -> Any:
        return self.add.launcher([buffer, self.zero])[0][0].to_host()

    def donate(self, buffer: Any) -> Any:
        return self.donating.launcher([buffer, self.zero])[0][0].to_host()

    def uses(self) -> dict[str, Callable[[Any], Any]]:
        other = self.client.devices()[1]
        return {
            "read": lambda b: b.to_host(),
            "launch": self.launch,
            "donate": self.donate,
            "wait": lambda b: b.block_until_ready(),
            "copy": lambda b: b.copy_to_device(other).to_host(),
            "raw": lambda b: np.frombuffer(b.copy_raw_to_host(0, 4 * SIZE), np.float32),
            "share": lambda b: self.client.buffer_from_dlpack(b.to_dlpack(), self.device).to_host(),
            "event": lambda b: b.ready_event().wait(),
        }


@pytest.fixture(scope="module")
def programs(client: Client, device: Device) -> Programs:
    return Programs(client, device)


def _race(functions: list[Callable[[], Any]]) -> list[Any]:
    """Runs all at once; returns the result or the exception of each."""
    together = threading.Barrier(len(functions))
    found: list[Any] = [None] * len(functions)

    def run(i: int) -> None:
        together.wait()
        try:
            found[i] = functions[i]()
        except Exception as error:  # noqa: BLE001 - which one it is, is the question
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _check(outcome: Any) -> None:
    if isinstance(outcome, DeletedBuffer):
        assert "float32[4096]" in str(outcome)
    elif isinstance(outcome, Exception):
        raise outcome
    elif outcome is not None:
        np.testing.assert_array_equal(outcome, SOURCE)


USES = ("read", "launch", "donate", "wait", "copy", "raw", "share", "event")


@pytest.mark.parametrize("loss", ["delete", "donate"])
@pytest.mark.parametrize("use", USES)
def test_use_and_loss_at_once(programs: Programs, use: str, loss: str) -> None:
    act = programs.uses()[use]
    take = (lambda b: b.delete()) if loss == "delete" else programs.donate
    for i in range(ROUNDS):
        buffer = programs.make(semantics=2 * (i % 5 == 0))
        for outcome in _race([lambda b=buffer: act(b), lambda b=buffer: take(b)]):
            _check(outcome)
        assert buffer.is_deleted()
        with pytest.raises(DeletedBuffer):
            buffer.to_host()


@pytest.mark.parametrize("loss", ["delete", "donate"])
def test_a_raw_copy_and_loss_at_once(programs: Programs, loss: str) -> None:
    # Earlier, XLA's CPU client crashed in one of some hundred rounds, if the threads existed
    # before.
    take = (lambda b: b.delete()) if loss == "delete" else programs.donate
    copy = programs.uses()["raw"]
    begin, end = threading.Barrier(2), threading.Barrier(2)
    buffers = [programs.make() for _ in range(10 * ROUNDS)]
    found: list[Any] = []

    def read() -> None:
        for buffer in buffers:
            begin.wait()
            try:
                found.append(copy(buffer))
            except Exception as error:  # noqa: BLE001 - which one it is, is the question
                found.append(error)
            end.wait()

    thread = threading.Thread(target=read)
    thread.start()
    for buffer in buffers:
        begin.wait()
        take(buffer)
        end.wait()
    thread.join()
    assert len(found) == len(buffers)
    for outcome in found:
        _check(outcome)


@pytest.mark.parametrize("loss", ["delete", "donate"])
def test_external_references_while_buffers_are_deleted_or_donated(
    programs: Programs, loss: str
) -> None:
    """Threads without pauses: without locks, XLA's CPU client crashed in seconds."""
    take = (lambda b: b.delete()) if loss == "delete" else programs.donate
    current, faults = [programs.make()], list[Exception]()
    end = threading.Event()

    def refer() -> None:
        while not end.is_set():
            try:
                current[0].refer()
            except DeletedBuffer:
                pass
            except Exception as error:  # noqa: BLE001 - which one it is, is the question
                faults.append(error)
                return

    threads = [threading.Thread(target=refer) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20 * ROUNDS):
            buffer, current[0] = current[0], programs.make(semantics=2)
            take(buffer)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert faults == []


def test_all_at_once(programs: Programs) -> None:
    uses = programs.uses()
    for semantics, _ in itertools.product((0, 2), range(ROUNDS // 3)):
        buffer = programs.make(semantics)
        acts = [*uses.values(), lambda b: b.delete(), lambda b: b.delete()]
        for outcome in _race([lambda a=act, b=buffer: a(b) for act in acts]):
            _check(outcome)


def test_an_executable_is_deleted_while_it_is_launched(client: Client, device: Device) -> None:
    from plugrt.errors import FailedPrecondition

    x = client.buffer_from_host(SOURCE, device)
    for _ in range(10):
        loaded = client.compile(add(KIND), CompileOptions())
        loaded.execute([(x,), (x,)])
        launches = [lambda p=loaded: p.execute([(x,), (x,)])[0][0].to_host()] * 3
        for outcome in _race([*launches, loaded.delete]):
            if isinstance(outcome, Exception):
                assert isinstance(outcome, FailedPrecondition)
            elif outcome is not None:
                np.testing.assert_array_equal(outcome, SOURCE * 2)
