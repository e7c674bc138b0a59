"""The state that a thread's calls depend on besides arguments: trace, settings, meshes."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pytest

from plugrt import config
from plugrt.execution.arrays.arguments import quick_avals
from plugrt.execution.arrays.host_data import accepted_dtypes, scalar_dtypes
from plugrt.native.native_core import core
from plugrt.settings.options import Token, surroundings
from plugrt.stablehlo.bindings import ir
from plugrt.tracing import traceable
from plugrt.tracing.trace import Trace, current_trace
from support.native_core import runs_in_c
from support.watched_calls import at_calls, interrupt

assert traceable  # makes the core know which threads trace


@runs_in_c
def test_the_core_sees_each_change_at_the_next_call() -> None:
    class Function(core.Calls):  # type: ignore[misc]
        def _call_in_python(self, *args: Any) -> str:
            return "Python"

    function: Any = Function()
    avals = quick_avals([2.0])
    assert avals is not None
    function._runners = {(config.token(), None, *avals): tuple}
    for _ in range(3):
        assert function(2.0) == (2.0,)

    def traced() -> None:
        assert function(2.0) == "Python"
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(function(2.0)))
        thread.start()
        thread.join()
        assert others == [(2.0,)]
        assert function(2.0) == "Python"
        with config.override(enable_x64=config.enable_x64):
            assert function(2.0) == "Python"

    Trace("f").run(traced)
    assert function(2.0) == (2.0,)
    before = config.swap_surroundings("elsewhere")
    assert function(2.0) == "Python"
    config.swap_surroundings(before)
    assert function(2.0) == (2.0,)
    with config.override(enable_x64=not config.enable_x64):
        assert function(2.0) == "Python"
        config.reread()
        assert function(2.0) == "Python"
    assert function(2.0) == (2.0,)


@pytest.mark.parametrize(
    "run",
    [Trace("f").run, config.override(enable_x64=not config.enable_x64)],
    ids=["a trace", "settings"],
)
def test_an_interrupt_before_a_block_leaves_the_thread_unchanged(
    run: Callable[[Callable[[], NoReturn]], Any],
) -> None:
    def fail() -> NoReturn:
        raise AssertionError("it began")

    before = config.token()
    with pytest.raises(KeyboardInterrupt), at_calls([surroundings.change], interrupt, after=True):
        run(fail)()
    assert current_trace() is None
    assert config.token() is before
    assert ir.Context.current is None  # a remaining context aborts the process at exit
    assert ir.Location.current is None


def test_surroundings_that_an_interrupt_keeps_from_being_returned_are_set_back() -> None:
    before = config.token()
    with pytest.raises(KeyboardInterrupt), at_calls([surroundings.change], interrupt, after=True):
        config.swap_surroundings("elsewhere")
    assert config.surroundings is None
    assert config.token() is before


@runs_in_c
def test_a_finaliser_of_a_token_changes_no_settings_of_the_call_that_ends_it() -> None:
    """Earlier, the core used the state of the finaliser's own call for the outer call."""

    class Function(core.Calls):  # type: ignore[misc]
        def _call_in_python(self, *args: Any) -> str:
            return "Python"

    function: Any = Function()
    token = config.token()
    found: list[Any] = []

    def call_otherwise() -> None:
        with config.override(default_matmul_precision="highest"):
            found.append(function())

    with config.override(default_matmul_precision="high"):
        other = config.token()
        function._runners = {(other, None): tuple}
        assert function() == ()  # now the core keeps the token
        function._runners = {(token, None): tuple}
        weakref.finalize(other, call_otherwise)
        del other
    for _ in range(3):
        assert function() == ()
    assert found == ["Python"]


def test_a_finaliser_asks_for_settings_while_a_token_is_made() -> None:
    """Earlier, the finaliser waited for a lock that its own thread held."""
    asked: list[Any] = []

    def finalise(*_: Any) -> None:
        if not asked:  # like a finaliser that the garbage collector runs
            asked.append(None)
            with config.override(default_matmul_precision="high"):
                asked.append(config.token())

    with at_calls([Token.__init__], finalise), config.override(quick_compile_bytes=12345):
        token = config.token()
        assert token is config.token()
    assert asked[1] is not token


def test_values_cached_for_a_token_depend_on_its_settings() -> None:
    """Another thread may change a setting between the reading of a token and a cache's miss."""
    with config.override(enable_x64=True):
        wide = config.token()
    with config.override(enable_x64=False):
        narrow = config.token()
        for token, bits in ((wide, 64), (narrow, 32)):
            scalars, integers = scalar_dtypes.__wrapped__(token)
            assert (scalars[float], *integers) == (f"float{bits}", f"int{bits}")
            assert (np.dtype(np.float64) in accepted_dtypes.__wrapped__(token)) is (bits == 64)


@runs_in_c
def test_threads_that_have_the_same_place_in_the_core_are_told_apart() -> None:
    class Held:
        """The state of a thread other than its settings."""

    class Function(core.Calls):  # type: ignore[misc]
        def _call_in_python(self, *args: Any) -> str:
            return "Python"

    function: Any = Function()
    avals = quick_avals([2.0])
    assert avals is not None
    function._runners = {(config.token(), None, *avals): tuple}
    found: list[Any] = []
    held = weakref.WeakSet[Any]()

    def run() -> None:
        kept = config._token.kept = Held()
        held.add(kept)
        found.append(function(2.0))

    def run_threads() -> None:
        for _ in range(64):  # one per place of the core
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()

    with config.override(enable_x64=not config.enable_x64):
        assert function(2.0) == "Python"
        run_threads()
        assert function(2.0) == "Python"

    def traced() -> None:
        assert function(2.0) == "Python"
        run_threads()

    Trace("f").run(traced)
    assert found == [(2.0,)] * 128
    assert len(held) <= 64


@runs_in_c
@pytest.mark.parametrize("late", [False, True])
def test_calls_during_a_change_of_an_attribute_keep_no_old_value(late: bool) -> None:
    class Function(core.Calls):  # type: ignore[misc]
        def _call_in_python(self, *args: Any) -> str:
            return "Python"

    function: Any = Function()

    class Asking:
        def __setattr__(self, name: str, value: Any) -> None:
            if not late:
                assert function(2.0) == (2.0,)
            config._token.value = value
            if late:
                assert function(2.0) == "Python"

    def count_references(trace: Trace) -> None:
        count = sys.getrefcount(trace)
        assert function(2.0) == function(2.0) == "Python"
        assert sys.getrefcount(trace) == count

    avals, before = quick_avals([2.0]), config.token()
    assert avals is not None
    function._runners = {(before, None, *avals): tuple}
    with config.override(enable_x64=not config.enable_x64):
        other = config.token()
    holder, counts = config._token, list[int]()
    for _ in range(3):
        assert function(2.0) == (2.0,)
        core.change_surroundings(Asking(), "any", other)
        try:
            assert function(2.0) == "Python"
        finally:
            core.change_surroundings(holder, "value", before)
        assert function(2.0) == (2.0,)
        trace = Trace("f")
        trace.run(partial(count_references, trace))
        counts.append(sys.getrefcount(holder))
    assert counts == counts[:1] * 3
