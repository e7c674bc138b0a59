"""Launches over several devices through functions of the tests' backend, which can fail."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest

from plugrt import (
    Array,
    jit,  # sets the class of NumPy's arrays in the core
)
from plugrt.native.native_core import core, reason

if core is None:
    pytest.skip(f"no compiled core here: {reason}", allow_module_level=True)

assert jit
_GIVEN: tuple[Any, ...] = (
    None, int, (), None, ((1, 2),), ((1, 2, 3),), *[None] * 6, (), None, None,
)  # fmt: skip
"""The constructor's arguments of a launcher."""

PLACE, PARAMETER, RESULTS = "place", "type", (("first", "there"), ("second", "here"))


class Made:
    """The results of a backend's function, such as a launch's."""

    def __init__(self, backend: Backend, *items: Any) -> None:
        self.items, self.deleted = items, False
        backend.alive.add(self)

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, at: int) -> Any:
        return self.items[at]


class Shards:
    """Like the backend's own class: an array over all devices, or one on each."""

    __slots__ = ("__weakref__", "_parts", "place", "raw", "type")
    step: Callable[[str], None] = print

    def __setattr__(self, name: str, value: Any) -> None:
        self.step(name)
        object.__setattr__(self, name, value)


class Queue(deque[Any]):
    step: Callable[[str], None] = print

    def append(self, item: Any) -> None:
        self.step("append")
        super().append(item)


class Backend:
    """Each function is a numbered step; step `fails` raises. A call makes `launches` launches."""

    def __init__(self, launches: int, arity: int = 1, donated: tuple[int, ...] = ()) -> None:
        self.steps: list[str] = []
        self.taken: list[Made] = []  # one per launch
        self.deleted: list[Made] = []
        self.fails, self.produced = 0, 2
        self.locked = 0
        self.alive = WeakSet[Any]()
        self.refusals: list[int] = []
        kinds = {"step": staticmethod(self.step)}
        self.shards, self.queue = type("Own", (Shards,), kinds), type("OwnQueue", (Queue,), kinds)()
        lock = SimpleNamespace(acquire=lambda: self._lock(1), release=lambda: self._lock(-1))
        self.launcher = core.ShardsLauncher(
            owner=self,
            cls=self.shards,
            parameters=(PARAMETER,) * arity,
            place=PLACE,
            results=RESULTS,
            launches=tuple(
                (self._made("launch"), self._made("with token"), n) for n in range(launches)
            ),
            take=self._take,
            take_token=self._made("token"),
            make_wait=self._made("make wait"),
            is_deleted=self._is_deleted,
            prepare=self._made("prepare"),
            lock=lock,
            unless=(self.refusals,),
            explain=lambda error: ValueError(f"explained: {error}"),
            tidy=self._made("tidy"),
            donated=donated,
            delete=self._delete,
        )

    def step(self, name: str) -> None:
        self.steps.append(name)
        if len(self.steps) == self.fails:
            raise LookupError(name)

    def execute(self, given: Any) -> str:
        return "Python"

    def _is_deleted(self, array: Made) -> bool:
        self.step("is deleted")
        return array.deleted

    def _delete(self, array: Made) -> None:
        self.step("delete")
        assert not self.locked
        self.deleted.append(array)

    def _made(self, name: str) -> Callable[..., Made]:
        def call(*given: Any) -> Made:
            self.step(name)
            for array in self.taken:
                array.deleted = True
            return Made(self)

        return call

    def _take(self, launched: Made, where: int, donated: bool) -> Made:
        self.step("take")
        return Made(self, *(Made(self, where, i) for i in range(self.produced)))

    def _lock(self, change: int) -> None:
        self.locked += change
        self.step("lock" if change > 0 else "release")

    def argument(self, raw: bool, parts: int) -> Any:
        made: Any = self.shards()
        made.raw = Made(self) if raw else None
        made._parts = Made(self, *(Made(self) for _ in range(parts))) if parts else None
        made.place, made.type = PLACE, PARAMETER
        self.steps.clear()
        return made

    def runner(self, launcher: Any, arity: int = 1) -> Any:
        outputs = core.Outputs(
            ("a", "b"), (-1, -1), (), None, core.Tree(2, [0, 1], None)
        )  # fmt: skip
        numbers = tuple(range(arity))
        return core.Runner(
            launcher, arity, numbers, (None,) * arity, (), (), "f", outputs,
            lambda values: "slow", _raise,
        )  # fmt: skip


def _raise(values: Any, error: Exception) -> Any:
    try:
        raise error
    finally:
        del values, error


def _array(shards: Any) -> Any:
    made: Any = object.__new__(Array)
    made._shards, made._aval = shards, PARAMETER
    return made


def _error_of(function: Callable[[], Any]) -> str | None:
    try:
        function()
    except (LookupError, ValueError) as error:
        return str(error)
    return None


FORMS: dict[str, tuple[int, bool, int, tuple[int, ...]]] = {
    "one array over all": (1, True, 0, ()),
    "one array and its parts": (1, True, 2, ()),
    "an array on each": (2, False, 2, ()),
    "an array on each, donated": (2, False, 2, (0,)),
}
"""The launches, an argument's form, and the donated ones."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounded", [False, True])
def test_a_launch_that_fails_at_any_step_leaves_nothing_behind(
    form: str, bounded: bool, unraisable: Any
) -> None:
    launches, raw, parts, donated = FORMS[form]
    backend = Backend(launches, donated=donated)
    launcher = backend.launcher
    if bounded:
        launcher = core.BoundedLauncher(launcher, backend.queue, threading.Lock(), 2, True, ())
    runner, x = backend.runner(launcher), _array(backend.argument(raw, parts))
    before = len(backend.alive)
    first, second = runner((x,))
    made = [(s.type, s.place) for s in (first._shards, second._shards)]
    assert (made, len(backend.queue)) == ([*RESULTS], bounded)
    split = [0, 1] if launches == 2 else None  # each part names its launch
    for i, one in enumerate((first._shards, second._shards)):
        found = [list(part) for part in one._parts] if split else list(one.raw)
        assert found == ([[0, i], [1, i]] if split else [0, i])
    del first, second, one
    every, shards = list(backend.steps), x._shards
    backend.queue.clear()
    assert backend.deleted == (list(shards._parts) if donated else [])
    backend.deleted.clear()
    held = [part for part in (shards.raw, shards._parts, *(shards._parts or ())) if part]
    counts = [*map(sys.getrefcount, held)]
    looks = (parts or 1) * (2 if donated else 1)
    assert (len(backend.alive), every.count("is deleted")) == (before, looks)
    assert (every.count("take"), every.count("prepare")) == (launches, 1)
    for at, name in enumerate(every, 1):
        backend.steps.clear()
        unraisable.clear()
        backend.fails, backend.locked = at, 0
        told = _error_of(lambda: runner((x,)))
        backend.queue.clear()
        backend.deleted.clear()
        assert (backend.locked, len(backend.alive)) == (name == "lock", before), name
        assert [*map(sys.getrefcount, held)] == counts, name
        if name == "release":  # after the launch
            assert (told, [str(r.exc_value) for r in unraisable]) == (None, [name])
        else:
            explained = name in ("launch", "with token", "token", "take")
            assert (told, unraisable) == (f"explained: {name}" if explained else name, []), name


def test_unsuitable_arguments_are_left_to_python() -> None:
    for launches, raw, parts, donated in FORMS.values():
        backend = Backend(launches, donated=donated)
        runner, x = backend.runner(backend.launcher), _array(backend.argument(raw, parts))
        before = len(backend.alive)
        for name in ("place", "type"):
            other = backend.argument(raw, parts)
            setattr(other, name, "another")
            assert runner((_array(other),)) == "slow", name
        gone = backend.argument(raw, parts)
        (gone._parts[-1] if parts else gone.raw).deleted = True
        assert runner((_array(gone),)) == "slow"
        assert runner((_array("of another class"),)) == "slow"
        if launches == 2:
            for wrong in (backend.argument(True, 0), backend.argument(False, 3)):
                assert runner((_array(wrong),)) == "slow"
            del wrong
        assert backend.launcher([]) == backend.launcher([x._shards] * 2) == "Python"
        backend.steps.clear()
        backend.refusals.append(1)
        assert (runner((x,)), backend.launcher([x._shards])) == ("slow", "Python")
        assert not backend.steps
        del other, gone
        assert (len(backend.alive), backend.locked) == (before, 0)


def test_donated_parts_that_a_launch_kept_are_deleted() -> None:
    backend = Backend(2, arity=2, donated=(1,))
    kept, given = backend.argument(False, 2), backend.argument(False, 2)
    assert backend.launcher([given, given]) == "Python"
    assert backend.deleted == []
    backend.taken = [given._parts[0]]
    assert len(backend.launcher([kept, given])) == 2
    assert backend.deleted == [given._parts[1]]
    with pytest.raises(ValueError, match="one launch on all devices takes no arguments"):
        Backend(1, donated=(0,))
    with pytest.raises(ValueError, match="must know how they are deleted"):
        core.ShardsLauncher(*_GIVEN[:5], ((1, 2, 3),) * 2, *_GIVEN[6:], donated=(0,))
    with pytest.raises(IndexError, match="that the call does not have"):
        Backend(2, donated=(1,))


def test_a_launcher_called_by_python_gives_the_shards_of_the_results() -> None:
    backend = Backend(2, arity=60)  # more than there is room for on the stack
    x = backend.argument(False, 2)
    before, count = len(backend.alive), sys.getrefcount(x)
    for _ in range(3):
        first, second = backend.launcher([x] * 60)
        assert [type(first), type(second)] == [backend.shards] * 2
        assert [list(part) for part in second._parts] == [[0, 1], [1, 1]]
    del first, second
    assert (len(backend.alive), sys.getrefcount(x)) == (before, count)
    backend.produced = 1
    for _ in range(2):
        assert _error_of(lambda: backend.launcher([x] * 60)) == (
            "explained: a launch gave another number of results"
        )
    assert len(backend.alive) == before
    with pytest.raises(TypeError, match="takes the arguments of the launch alone"):
        backend.launcher([x], other=1)
    with pytest.raises(TypeError, match="made once"):
        backend.launcher.__init__(*_GIVEN)
    for at, wrong in ((4, ((1,),)), (5, ((1, 2),)), (5, ("abc",)), (5, ())):
        given = [*_GIVEN]
        given[at] = wrong
        with pytest.raises(TypeError, match=r"a launch is of three|once, of launches"):
            core.ShardsLauncher(*given)


def test_a_backend_is_tidied_up_after_a_thousand_launches() -> None:
    backend = Backend(1)
    x = backend.argument(True, 0)
    for _ in range(2000):
        backend.launcher([x])
    assert backend.steps.count("tidy") == 2
    for _ in range(999):
        backend.launcher([x])
    backend.steps.clear()
    backend.fails = 1
    assert _error_of(lambda: backend.launcher([x])) == "tidy"


def test_a_wait_gives_up_at_what_fails_and_leaves_nothing_behind() -> None:
    """After False, Python waits for each result and raises; interrupts are raised directly."""
    failing: list[BaseException] = []
    waited: list[Any] = []

    def wait(what: Any) -> None:
        waited.append(what)
        if failing:
            raise failing[0]

    def is_deleted(array: Made) -> bool:
        return array.deleted

    backend = Backend(2)
    wait_for = core.ShardsWait(backend.shards, Made, is_deleted, wait, wait, wait, wait)
    whole, put, made, other = (backend.argument(form == 0, 2 * (form > 0)) for form in range(4))
    put._ends, made._ends = None, ("end", "other end")
    other._ends = made._ends
    alone = Made(backend)
    assert wait_for([whole, put, made, other, alone])
    assert waited == ["end", "other end", [whole.raw, *put._parts, alone]]
    waited.clear()
    assert wait_for([made])
    assert waited == ["end", "other end"]
    assert not wait_for([made, None])
    other._parts[1].deleted = True
    assert not wait_for([made, other])
    assert waited == ["end", "other end"]
    for each in (whole, made):
        failing[:] = [LookupError("failed")]
        assert not wait_for([each])
        failing[:] = [KeyboardInterrupt("stop")]
        with pytest.raises(KeyboardInterrupt, match="stop"):
            wait_for([each])
    with pytest.raises(TypeError, match="made once"):
        wait_for.__init__(backend.shards, Made, is_deleted, wait, wait, wait, wait)
    with pytest.raises(TypeError, match="takes the shards alone"):
        wait_for([], other=1)
