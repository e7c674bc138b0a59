"""Calls over several devices of a PJRT library in the compiled core."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.capi.client.client import Client
from plugrt.errors import DeletedBuffer, InvalidArgument, InvalidReply, PjrtError
from plugrt.execution.executables.blocking_launches import BlockingLaunches
from plugrt.interface import CompileOptions
from plugrt.native.native_core import core
from support.broken_library import REFUSE, SILENT, WORDS
from support.clib import needs_cc
from support.four_devices import FourDevices, H
from support.native_core import python_calls, runs_in_c
from support.xla_cpu import needs_library, program

pytestmark = [needs_cc, needs_library, runs_in_c]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FourDevices]:
    made = FourDevices(tmp_path_factory.mktemp("over"), "over")
    yield made
    made.close()


@pytest.fixture
def over(loaded: FourDevices) -> Iterator[FourDevices]:
    yield loaded
    loaded.control.behave()


IN_PYTHON = {"execute", "_execute", "_execute_on_all", "execute_with_events"}
"""Python's functions for launches."""


def _warm(function: Callable[..., Any], *args: Any) -> None:
    for _ in range(2):
        function(*args)


def test_warm_calls_over_devices_run_no_python(over: FourDevices) -> None:
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
    with python_calls() as seen:
        for function, args, _ in calls.values():
            _warm(function, *args)
    assert not IN_PYTHON.isdisjoint(seen), "the first calls are Python's"
    placed = {"pmap": calls["pmap"][0](H), "psum": calls["pmap"][0](H)}
    for name in placed:  # divided arguments, like results
        _warm(calls[name][0], placed[name])
    for name, (function, args, expected) in calls.items():
        factor = 2 if name in placed else 1
        with python_calls() as seen:
            found = function(*([placed[name]] if name in placed else args))
        assert IN_PYTHON.isdisjoint(seen), name
        for one, other in zip(plugrt.tree.leaves(found), plugrt.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(np.asarray(one), other * factor, name)


def test_parts_that_ask_their_number_are_launched_one_by_one_and_told_it(tmp_path: Path) -> None:
    # A new client: after a launch that exchanges data, clients start all parts at once.
    over = FourDevices(tmp_path, "numbered")
    add = plugrt.jit(lambda a, b: a + b)
    x, whole = over.put(), plugrt.device_put(H, over.whole)
    number = plugrt.pmap(lambda a: a + lax.axis_index("i"), "i", devices=over.client.devices())
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(add(x, whole)), H + H)
        np.testing.assert_array_equal(np.asarray(number(H)), H + np.arange(4)[:, None])
    assert over.calls_during("LoadedExecutable_Execute", lambda: add(x, whole)) == 4
    assert over.calls_during("LoadedExecutable_Execute", lambda: number(H)) == 4
    over.close()


def test_a_failure_half_way_frees_what_was_made_and_says_what_is_gone(over: FourDevices) -> None:
    step = plugrt.jit(lambda a, b: a + b, donate_argnums=0)
    state, other = over.put(), over.put()
    for _ in range(3):
        state = step(state, other)
    parts = [*state._live()]  # Python donates arrays whose parts were read
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
    with pytest.raises(PjrtError, match=WORDS):  # a single part, then all parts
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
    """Launches a program without results, like one whose devices wait for each other."""
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
