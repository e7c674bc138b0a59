"""Parts that exchange no data, launched in Python, one device after the other."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.capi.programs import loaded_executable
from plugrt.capi.programs.loaded_executable import LoadedExecutable
from plugrt.errors import DeletedBuffer, PjrtError
from support.broken_library import REFUSE, WORDS
from support.clib import needs_cc
from support.four_devices import FourDevices, H
from support.watched_calls import at_calls
from support.xla_cpu import needs_library

pytestmark = [needs_cc, needs_library]


class Library(FourDevices):
    """A library on four devices, which the fixture makes Python launch."""

    def refuse_launch(self, number: int) -> None:
        """Makes the library refuse the launch ``number``, counted from 0, and later ones."""
        self.misbehave("LoadedExecutable_Execute", REFUSE, number)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    made = Library(tmp_path_factory.mktemp("parts"), "parts")
    yield made
    made.close()


@pytest.fixture
def library(loaded: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setattr(loaded_executable, "core", None)
    yield loaded
    loaded.control.behave()


def test_parts_that_exchange_nothing_are_launched_one_after_the_other(library: Library) -> None:
    x, double, dot = library.put(), plugrt.jit(lambda a: a * 2), plugrt.jit(lambda a: a.sum())
    double(x), dot(x)  # Python checks the arguments
    calls = library.calls_during
    assert calls("LoadedExecutable_Execute", lambda: double(x)) == 4
    assert calls("LoadedExecutable_Execute", lambda: dot(x)) == 1
    np.testing.assert_array_equal(np.asarray(double(x)), H * 2)
    np.testing.assert_array_equal(np.asarray(double(double(x))), H * 4)


def test_a_library_that_launches_no_single_part_launches_all(library: Library) -> None:
    x, double = library.put(), plugrt.jit(lambda a: a * 2)
    double(x)
    library.refuse_launch(0)
    with pytest.raises(PjrtError, match=WORDS):  # a single part, then all parts
        double(x)
    library.control.behave()
    assert library.calls_during("LoadedExecutable_Execute", lambda: double(x)) == 1
    np.testing.assert_array_equal(np.asarray(double(x)), H * 2)


def test_a_failure_half_way_frees_what_was_made_and_says_what_is_gone(library: Library) -> None:
    step = plugrt.jit(lambda a, b: a + b, donate_argnums=0)
    state, other = library.put(), library.put()
    for _ in range(3):
        state = step(state, other)
    parts = [shard.data for shard in state.addressable_shards]
    gc.collect()

    def fail() -> None:
        library.refuse_launch(2)
        with pytest.raises(PjrtError, match=WORDS):
            step(state, other)
        library.control.behave()

    assert library.calls_during("Buffer_Destroy", fail) == 2
    assert [part.is_deleted() for part in parts] == [True, True, False, False]
    with pytest.raises(DeletedBuffer, match="was deleted"):
        step(state, other)
    np.testing.assert_array_equal(np.asarray(step(library.put(), other)), H + H)


def test_a_launch_without_results_has_taken_what_was_donated(library: Library) -> None:
    library.require_donation_without_results()


def test_events_of_parts_are_destroyed_and_an_interrupt_leaves_no_results(
    library: Library,
) -> None:
    made: list[LoadedExecutable] = []
    x, double = library.put(), plugrt.jit(lambda a: a * 2)
    prepares = [LoadedExecutable._prepare_python]
    with at_calls(prepares, lambda inputs, _: made.append(inputs["self"])):
        double(x)
    [program] = made
    results, wait = program.execute_with_wait([x._shards])
    wait()
    np.testing.assert_array_equal(results[0][3].to_host(), H[3:] * 2)
    gc.collect()

    def fail() -> None:
        library.refuse_launch(3)
        with pytest.raises(PjrtError, match=WORDS):
            program.execute_with_wait([x._shards])
        library.control.behave()

    assert library.calls_during("Event_Destroy", fail) == 3
    launch, left = program._launch, iter(range(2))

    def interrupt(args: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return launch(args)

    program._launch = interrupt

    def end() -> None:
        with pytest.raises(KeyboardInterrupt):
            program.execute([x._shards])

    assert library.calls_during("Buffer_Destroy", end) == 2
    program._launch = launch
    np.testing.assert_array_equal(np.asarray(double(x)), H * 2)
