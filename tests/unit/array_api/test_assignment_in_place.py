"""Assignments in place: the cases that write to the array's own buffers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from threading import Event, Lock
from types import FrameType
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.array_api.indexing import at
from plugrt.execution.arrays.array import array_holding
from plugrt.native.native_core import core
from support.native_core import IN_C
from support.watched_calls import at_calls


@pytest.fixture
def in_place() -> Iterator[list[bool]]:
    """The results of `_assign_in_place`: whether each attempted assignment was in place."""
    found: list[bool] = []
    with at_calls([at._assign_in_place], lambda _, result: found.append(result), after=True):
        yield found


def test_all_but_the_first(in_place: list[bool]) -> None:
    x = xp.zeros(65536)
    for i in range(8):
        x[i] = i
        x[8:] = x[:-8]
        x.block_until_ready()
    assert in_place == [True] * 15


USES: dict[str, Callable[[Any], Any]] = {
    "numpy": np.asarray,
    "memory": memoryview if IN_C else np.asarray,
    "dlpack": np.from_dlpack,
    "pointer": lambda x: x.unsafe_buffer_pointer(),
    "part": lambda x: x.addressable_shards[0].data,
    "shared": plugrt.jit(lambda x: x),
    "put": lambda x: plugrt.device_put(x, x.device),
    "captured": lambda x: plugrt.jit(lambda: x + 1)(),
    "read ahead": lambda x: x.copy_to_host_async(),
}


@pytest.mark.parametrize("use", USES)
def test_not_where_something_else_may_read(use: str, in_place: list[bool]) -> None:
    x = xp.zeros(65536)
    x[0] = 1
    x[1] = 1
    kept = USES[use](x)
    x[2] = 1
    x[3] = 1
    assert in_place[0]
    assert in_place[1:] != [True, True]
    assert in_place[-1]
    del kept


@pytest.mark.parametrize("known", ["reference", "host copy", "use", "view"])
def test_each_sign_of_another_reader_is_enough(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.zeros(65536)
    x[0] = 1
    taker = array_holding(x._shards, x._aval)
    kept = x._shards if known == "reference" else None  # as in a thread that reads
    if known == "host copy":
        x._extra = np.ones(65536)  # a copy that holds no buffers
    if known == "use":
        USES["pointer"](x)
    if known == "view" and core is not None:  # a view that holds no buffers
        reader = core.FunctionReader(
            held_class=type(x._shards), is_ready=lambda held: True, wait=id, lock=Lock(),
            view=lambda held: bytes(x.nbytes), shape=x.shape, dtype=x.dtype, unless=(), format="f",
        )  # fmt: skip
        monkeypatch.setattr(x._aval, "reader", reader)
        assert memoryview(x).tolist() == [0] * 65536
    elif known == "view":
        pytest.skip("the Python array makes views by its host copies")
    assert not x._lend_to(taker, [])
    assert x._shards is taker._shards
    del kept


def test_not_where_buffers_with_a_pointer_were_kept(in_place: list[bool]) -> None:
    x = xp.zeros(65536)
    x[0] = 1
    pointer = x.unsafe_buffer_pointer()
    x[:0] = 2
    assert x.unsafe_buffer_pointer() == pointer
    x[:0] = 2
    x[1] = 3
    assert in_place == []


def test_not_from_the_array_itself(in_place: list[bool]) -> None:
    x = xp.arange(65536)
    x[0] = 1
    x[:] = x
    assert in_place == [False]
    x[x] = 7
    assert x[:3].tolist() == [1, 7, 7]


def test_few_bytes_are_copied(in_place: list[bool]) -> None:
    x = xp.zeros(64)
    for i in range(3):
        x[i] = 1
    assert in_place == []


def test_another_thread_waits_for_the_end() -> None:
    x = xp.arange(65536)
    x[0] = 5
    taker = array_holding(x._shards, x._aval)
    made: list[Any] = []
    assert x._lend_to(taker, made)
    uses: list[Callable[[], Any]] = [
        lambda: np.asarray(x).tolist()[:4],
        lambda: plugrt.jit(lambda y: y + 0)(x).tolist()[:4],
        lambda: (x + 0).tolist()[:4],
        lambda: x[:].tolist()[:4],
        lambda: plugrt.device_put(x).tolist()[:4],
        lambda: x.block_until_ready().tolist()[:4],
        lambda: np.from_dlpack(x).tolist()[:4],
        lambda: plugrt.jit(lambda: x + 0)().tolist()[:4],
        lambda: (memoryview(x) if IN_C else np.asarray(x)).tolist()[:4],
        lambda: plugrt.jit(lambda y: y + 0, donate_argnums=0)(x.copy()).tolist()[:4],
        lambda: x.addressable_shards[0].data.tolist()[:4],
        lambda: [5, 9, 2, 3] if not x.is_deleted() else None,
    ]
    with ThreadPoolExecutor(len(uses)) as pool:
        found = [pool.submit(use) for use in uses]
        for use in found[:-1]:
            with pytest.raises(TimeoutError):
                use.result(0.02)
        made.append(taker.at[1].set(9))
        x._end_loan(taker, made)
        assert [use.result() for use in found] == [[5, 9, 2, 3]] * len(uses)


def test_a_thread_that_waited_may_keep_the_buffers(in_place: list[bool]) -> None:
    x = xp.arange(65536)
    x[0] = 5
    taker = array_holding(x._shards, x._aval)
    made: list[Any] = []
    assert x._lend_to(taker, made)
    with ThreadPoolExecutor(1) as pool:
        kept = pool.submit(x._held)
        with pytest.raises(TimeoutError):
            kept.result(0.05)
        made.append(taker.at[1].set(9))
        x._end_loan(taker, made)
        assert kept.result() is x._shards
    x[0] = 7
    assert in_place == []  # not even tried: a pointer holds no reference


def test_its_own_thread_does_not_wait() -> None:
    x = xp.arange(65536)
    x[0] = 5
    taker = array_holding(x._shards, x._aval)
    made: list[Any] = []
    assert x._lend_to(taker, made)
    with pytest.raises(plugrt.errors.DeletedBuffer, match="being assigned to"):
        np.asarray(x)
    x._end_loan(taker, made)
    assert x[:4].tolist() == [5, 1, 2, 3]


@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_the_next_use_ends_an_assignment_that_an_interrupt_left(
    is_made: bool, elsewhere: bool
) -> None:
    x = xp.arange(65536)
    x[0] = 5

    def assign() -> None:
        made: list[Any] = []
        taker = array_holding(x._shards, x._aval)
        assert x._lend_to(taker, made)
        made += [taker.at[1].set(9)] * is_made

    assign()
    assert not x.is_deleted()
    with ThreadPoolExecutor(1) as pool:
        use = np.asarray if not elsewhere else lambda y: pool.submit(np.asarray, y).result()
        assert use(x)[:4].tolist() == [5, 9 if is_made else 1, 2, 3]
    x[2] = 7
    assert x[:3].tolist() == [5, 9 if is_made else 1, 7]


def test_a_generator_yields_while_another_thread_looks_for_its_caller() -> None:
    x = xp.arange(65536)
    x[0] = 5
    lent, yielded, looked, lock = Event(), Event(), Event(), Lock()
    lock.acquire()

    def wait() -> Iterator[None]:
        lent.set()
        lock.acquire()  # in C: this frame is the thread's last
        yield

    def assign() -> None:
        made: list[Any] = []
        taker = array_holding(x._shards, x._aval)
        assert x._lend_to(taker, made)
        for _ in wait():
            yielded.set()
            assert looked.wait(60)
        made.append(taker.at[1].set(9))
        x._end_loan(taker, made)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_name != "is_under_way":
            return None
        if event == "line" and "frame" in frame.f_locals and lock.locked():
            lock.release()
            assert yielded.wait(60)
        return trace

    before = sys.gettrace()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(assign)
        assert lent.wait(60)
        sys.settrace(trace)
        try:
            assert not x.is_deleted()
        finally:
            sys.settrace(before)
            looked.set()
        done.result()
    assert yielded.is_set()
    assert x[:3].tolist() == [5, 9, 2]


def test_an_assignment_ends_no_other() -> None:
    x = xp.arange(65536)
    x[0] = 5
    taker = array_holding(x._shards, x._aval)
    made: list[Any] = []
    assert x._lend_to(taker, made)
    x._end_loan(xp.zeros(65536, dtype=x.dtype), [])  # as in a thread that has ended
    made.append(taker.at[1].set(9))
    x._end_loan(taker, made)
    assert x[:3].tolist() == [5, 9, 2]


def test_parts_may_be_of_the_value_before_an_assignment() -> None:
    x = xp.arange(65536)
    held = x._held()
    part = x.addressable_shards[0].data
    x[0] = 5
    x._keep_parts([part], held)  # like a thread that checked earlier
    assert part[:2].tolist() == [0, 1]
    x.delete()
    with pytest.raises(plugrt.errors.DeletedBuffer, match="was deleted"):
        x._keep_parts([part], held)
