"""Calls over several devices of a PJRT library in the compiled core."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.capi.buffers.host_put import Transfers
from plugrt.capi.client.client import Client
from plugrt.capi.programs import program_launches
from plugrt.capi.programs.launch_order import is_launched_one_by_one
from plugrt.capi.programs.loaded_executable import LoadedExecutable
from plugrt.errors import DeletedBuffer, InvalidArgument, InvalidReply, PjrtError
from plugrt.execution.executables.blocking_launches import BlockingLaunches
from plugrt.execution.executables.client_launches import client_launches
from plugrt.interface import CompileOptions
from plugrt.native.native_core import core
from support.broken_library import REFUSE, SILENT, WORDS
from support.clib import needs_cc
from support.four_devices import FourDevices, H
from support.native_core import runs_in_c
from support.xla_cpu import needs_library, program

pytestmark = [
    needs_cc,
    needs_library,
    runs_in_c,
]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FourDevices]:
    made = FourDevices(tmp_path_factory.mktemp("over"), "over")
    yield made
    made.close()


@pytest.fixture
def over(loaded: FourDevices) -> Iterator[FourDevices]:
    yield loaded
    loaded.control.behave()


def _warm(function: Callable[..., Any], *args: Any) -> None:
    for _ in range(2):
        function(*args)


def test_parts_of_host_arrays_are_the_cores_to_put_and_to_launch(
    over: FourDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = plugrt.jit(lambda a, b: a + b, in_shardings=over.rows)
    turned = np.arange(8, dtype=np.float32).reshape(2, 4).T[::-1]  # its parts are strided
    _warm(add, H, turned)
    while over.client.handle().pending:  # sources of earlier puts, which Python drops
        over.client.handle().sweep()
    while under_way := client_launches(over.client):  # collectives before it, as well
        under_way._await(under_way._launches[0])

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("Python puts or launches")

    monkeypatch.setattr(Transfers, "_put_with_semantics", refuse)
    for name in ("execute", "_execute", "_execute_on_all", "execute_with_events"):
        monkeypatch.setattr(LoadedExecutable, name, refuse)
    np.testing.assert_array_equal(np.asarray(add(H, turned)), H + turned)
    np.testing.assert_array_equal(np.asarray(over.put(turned)), turned)


def test_warm_calls_over_devices_run_no_python(
    over: FourDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = over.put()
    devices = over.client.devices()
    calls: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {
        "alone": (plugrt.jit(lambda a, b: (a + b, a - 1)), [x, x], (H + H, H - 1)),
        "exchange": (plugrt.jit(lambda a: a.sum()), [x], H.sum()),
        "pmap": (plugrt.pmap(lambda a: a * 2, devices=devices), [H], H * 2),
        "psum": (
            plugrt.pmap(lambda a: lax.psum(a, "i"), axis_name="i", devices=devices),
            [H],
            np.tile(H.sum(0), (4, 1)),
        ),
        "without results": (plugrt.jit(lambda a: ()), [x], ()),
        "many": (
            plugrt.jit(lambda *v: [a + i for i, a in enumerate(v)]),
            [x] * 20,
            [H + i for i in range(20)],
        ),
    }
    for function, args, _ in calls.values():
        _warm(function, *args)
    placed = {"pmap": calls["pmap"][0](H), "psum": calls["pmap"][0](H)}
    for name in placed:  # what is divided already, as results are
        _warm(calls[name][0], placed[name])

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("Python launched")

    for name in ("execute", "_execute", "_execute_on_all", "execute_with_events"):
        monkeypatch.setattr(LoadedExecutable, name, refuse)
    for name, (function, args, expected) in calls.items():
        factor = 2 if name in placed else 1
        found = function(*([placed[name]] if name in placed else args))
        for one, other in zip(plugrt.tree.leaves(found), plugrt.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(np.asarray(one), other * factor, name)


def test_parts_that_ask_their_number_are_launched_one_by_one_and_told_it(
    over: FourDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(program_launches, "is_launched_one_by_one", _noting(told))
    add = plugrt.jit(lambda a, b: a + b)
    x, whole = over.put(), plugrt.device_put(H, over.whole)
    number = plugrt.pmap(lambda a: a + lax.axis_index("i"), "i", devices=over.client.devices())
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(add(x, whole)), H + H)
        np.testing.assert_array_equal(np.asarray(number(H)), H + np.arange(4)[:, None])
    assert told == [True, True]


def _noting(told: list[Any]) -> Any:
    def note(*args: Any) -> bool:
        told.append(is_launched_one_by_one(*args))
        return bool(told[-1])

    return note


def test_a_failure_half_way_frees_what_was_made_and_says_what_is_gone(over: FourDevices) -> None:
    step = plugrt.jit(lambda a, b: a + b, donate_argnums=0)
    state, other = over.put(), over.put()
    for _ in range(3):
        state = step(state, other)
    parts = [*state._live()]  # an array whose parts were asked for is Python's to donate
    gc.collect()
    before = len(plugrt.live_arrays())
    over.misbehave("LoadedExecutable_Execute", REFUSE, skip=2)
    with pytest.raises(PjrtError, match=WORDS):
        step(state, other)
    over.control.behave()
    assert [part.is_deleted() for part in parts] == [True, True, False, False]
    with pytest.raises(DeletedBuffer, match="was deleted"):
        step(state, other)
    gc.collect()
    assert len(plugrt.live_arrays()) <= before
    np.testing.assert_array_equal(np.asarray(step(over.put(), other)), H + H)


def test_a_library_that_launches_no_single_part_launches_all(over: FourDevices) -> None:
    double = plugrt.jit(lambda a: a * 2)
    x = over.put()
    double(x)  # all devices at once: Python checks the arguments
    over.misbehave("LoadedExecutable_Execute", REFUSE)
    with pytest.raises(PjrtError, match=WORDS):  # one part, then all
        double(x)
    over.control.behave()
    np.testing.assert_array_equal(np.asarray(double(x)), H * 2)


def test_a_launch_without_results_or_events_is_the_librarys_fault(over: FourDevices) -> None:
    total = plugrt.jit(lambda a: a.sum())
    x = over.put()
    _warm(total, x)
    over.misbehave("LoadedExecutable_Execute", SILENT)
    with pytest.raises(InvalidReply, match=r"gave no output_lists\[0\]\[0\] \(NULL\)"):
        total(x)
    with pytest.raises(InvalidReply, match=r"gave no device_complete_events \(NULL\)"):
        _run_without_results(over, x)
    over.control.behave()
    assert float(total(x)) == H.sum()


def test_a_launch_without_results_has_taken_what_was_donated(over: FourDevices) -> None:
    over.require_donation_without_results()


def _run_without_results(over: FourDevices, x: plugrt.Array) -> None:
    """Launches a program without results, as one whose devices wait for each other."""
    nothing = program("return", "%a: tensor<1x2xf32>", "")
    executable: Any = over.client.compile(nothing, CompileOptions(num_replicas=4))
    over.control.behave()
    executable.execute([x._shards])
    over.misbehave("LoadedExecutable_Execute", SILENT)
    bounded = BlockingLaunches(1).compiled_launcher(executable.launcher, True, 4)
    outputs = core.Outputs((), (), (), None, core.Tree(0, (), None))

    def raise_it(values: Any, error: Exception) -> Any:
        raise error

    core.Runner(bounded, 1, (0,), (None,), (), (), "", outputs, raise_it, raise_it)((x,))


def test_a_deleted_shard_and_a_donation_of_one_array_twice_are_refused(over: FourDevices) -> None:
    step = plugrt.jit(lambda a, b: (a + b, b), donate_argnums=(0,))
    plus = plugrt.jit(lambda a: a + 1)
    x, y = over.put(), over.put()
    for _ in range(3):
        step(over.put(), y)
        plus(x)
    with pytest.raises(InvalidArgument, match="is donated"):
        step(x, x)
    assert not x.is_deleted()
    x.addressable_shards[2].data.delete()
    with pytest.raises(DeletedBuffer, match="was deleted"):
        plus(x)


def test_threads_launch_collectives_and_others_at_once(over: FourDevices) -> None:
    total, plus = plugrt.jit(lambda a: a.sum()), plugrt.jit(lambda a: a + 1)
    x = over.put()
    _warm(total, x)
    _warm(plus, x)
    found: list[Any] = []

    def run() -> None:
        y = x
        for _ in range(30):
            y = plus(y)
            found.append(total(y))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(float, found)) == sorted([H.sum() + H.size * i for i in range(1, 31)] * 3)


def test_an_executable_and_a_bound_are_made_of_what_fits(over: FourDevices) -> None:
    handle: Any = over.client.handle() if isinstance(over.client, Client) else None
    with pytest.raises(ValueError, match="same results on each of its devices"):
        core.Executable(handle.core, 0, None, 2, (1, 2, 3))
    executable = core.Executable(handle.core, 0, None, 2, ())
    with pytest.raises(TypeError, match="addresses of all devices"):
        executable.launch_one_by_one((1,))
    with pytest.raises(TypeError, match="an iterator"):
        executable.know_ids(3)
    launcher = core.Launcher(executable, None, None)
    with pytest.raises(TypeError, match="what is bounded, once, is a launcher"):
        core.BoundedLauncher(len, [], None, 1, True, ())
    with pytest.raises(ValueError, match="at least one launch"):
        core.BoundedLauncher(launcher, [], None, 0, True, ())
    with pytest.raises(TypeError, match="cannot create"):
        core.Events()


def test_arrays_are_deleted_while_they_are_launched_with(over: FourDevices) -> None:
    much, alone = plugrt.jit(lambda a: a @ a.T), plugrt.jit(lambda a: a + 1)
    host = np.ones((256, 256), np.float32)
    x = over.put(host)
    for function in (much, alone):
        _warm(function, x)
    made = much(x)
    x.delete()  # while the launch is under way
    np.testing.assert_array_equal(np.asarray(made), np.full((256, 256), 256, np.float32))
    for _ in range(10):
        x = over.put(host)
        thread = threading.Thread(target=x.delete)
        thread.start()
        try:  # no collective: XLA hangs where one device of such a launch refuses its argument
            made = alone(x)
        except DeletedBuffer:
            made = None
        thread.join()
        assert made is None or float(np.asarray(made)[255, 0]) == 2
