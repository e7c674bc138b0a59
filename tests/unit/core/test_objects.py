"""Objects of the compiled core: the garbage collector sees all objects that they hold."""

from __future__ import annotations

import gc
import sys
import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrt import (
    config,
    jit,  # makes the core know which threads trace
)
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers import buffer as class_of_buffers  # makes the core know cffi's pointers
from plugrt.execution.arrays.arguments import quick_avals
from plugrt.native.native_core import core
from support.alone import alone
from support.distributions import run_python
from support.native_core import runs_in_c

assert class_of_buffers
assert jit

pytestmark = runs_in_c


class Held:
    """A value for fields of the core's objects."""


def test_the_garbage_collector_sees_all_that_objects_of_the_core_hold() -> None:
    """Otherwise it counts a hidden reference as external, and a cycle through it stays."""
    a, b, c, d, e = (Held() for _ in range(5))
    call = lambda *_: None  # noqa: E731
    client = core.Client(*[0] * 4, *[64] * 5, a, b, c, 144)
    spec = SimpleNamespace(handle=SimpleNamespace(core=client))

    class Derived(core.Buffer):  # type: ignore[misc]
        """A subclass, whose buffers the core does not own."""

    buffer: Any = Derived()
    buffer._spec = spec
    buffer._pointer = ffi.cast("PJRT_Buffer*", 64)
    array: Any = core.Array()
    array._shards, array._aval, array._extra = a, b, c
    array_aval: Any = core.Aval()
    array_aval.sharding, array_aval.reader, array_aval.waiter = a, b, c
    deletion: Any = core.Deletion()
    deletion._code = a
    args = ffi.new("struct PJRT_Client_BufferFromHostBuffer_Args*")
    put = core.Put(client, a, b, int(ffi.cast("uintptr_t", args)), c, np.dtype("f4"), True)
    lock = SimpleNamespace(acquire=a, release=b)
    references = core.References(client, 0, 0, lock)
    dtype = np.dtype("f4")
    reader = core.Reader(references, (0,) * 3, c, (16,), dtype, True)
    eventless = core.References(core.Client(*[0] * 6, 64, 0, 0, a, b, c, 144), 0, 0, lock)
    with pytest.raises(TypeError, match="of a client that has events"):  # would call address 0
        core.Reader(eventless, (0,) * 3, c, (16,), dtype, True)
    reads = core.FunctionReader(Held, a, b, lock, call, (16,), dtype, (d,))
    specs, gates, constants, avals = (a,), (d,), (b,), (c,)
    executable = core.Executable(client, 0, a, 1, specs)
    ids = iter(())
    executable.know_ids(ids)
    launcher = core.Launcher(executable, a, b)
    bounded = core.BoundedLauncher(launcher, a, b, 1, True, gates)
    parameters, pairs, launches = (c,), ((d, e),), ((a, b, c),)
    shards = core.ShardsLauncher(
        a, Held, parameters, b, pairs, launches, c, d, e, spec, call, a, gates, b, e
    )
    shards_wait = core.ShardsWait(Held, Held, a, b, c, d, e)
    given = core.FunctionLauncher(call, 1, a, (b, c), Held, gates, e)
    tree = core.Tree(1, {"k": 0}, None)
    unflatten = core.Tree(1, None, call)
    alone = core.Tree(1, 0, None)
    scratch_put = core.ScratchPut(lambda: (d, bytearray(4)), e, dtype, (), "f")
    outputs = core.Outputs(avals, (-1,), constants, a, alone)
    runner = core.Runner(launcher, 1, (0,), (put,), constants, (), "f", outputs, c, d)
    # A put value must not be donated: the donation would use it as an array.
    with pytest.raises(ValueError, match="donated that is put"):
        core.Runner(launcher, 1, (0,), (put,), constants, (0,), "f", outputs, c, d)
    jitted: Any = core.Calls()
    runners: dict[Any, Any] = {}
    jitted._runners = runners
    numbers, names = frozenset({0}), frozenset({"n"})
    jitted._set_statics(numbers, names)
    (aval,), text, token = quick_avals([2.0]) or (), "x" * 3, config.token()
    runners[token, (2, (), (str, text), None), aval] = tuple
    for _ in range(3):
        jitted(text, 2.0)
    held: list[tuple[Any, tuple[Any, ...]]] = [
        (client, (a, b, c)),
        (buffer, (spec, client, buffer._pointer)),
        (array, (a, b, c)),
        (array_aval, (a, b, c)),
        (deletion, (a,)),
        (put, (client, a, b, c)),
        (references, (client, lock)),
        (reader, (references, c, dtype)),
        (reads, (Held, a, b, lock.acquire, lock.release, call, dtype)),
        (executable, (client, a, specs, ids)),
        (launcher, (executable, a, b)),
        (bounded, (launcher, a, b)),
        (shards, (a, Held, parameters, b, pairs, launches, c, d, e, spec, call, gates)),
        (shards_wait, (Held, a, b, c)),
        (given, (call, a, b, c, Held, gates, e)),
        (unflatten, (call,)),
        (outputs, (avals, constants, a, alone)),
        (runner, (launcher, put, constants, outputs, c, d)),
        (scratch_put, (e, dtype)),
        (jitted, (runners, numbers, names, token, text, aval, tuple)),
    ]
    for owner, expected in held:
        found = {*map(id, gc.get_referents(owner))}
        missing = [x for x in (*expected, type(owner)) if id(x) not in found]
        assert not missing, type(owner)
    assert {type(x) for x in gc.get_referents(tree)} == {type, dict, tuple}


def test_a_runner_whose_parts_do_not_fit_is_refused() -> None:
    """Otherwise the runner would read past its memory or return uninitialised memory."""
    for wrong, words in (({0}, "of this class"), ([1], "another number")):
        with pytest.raises(ValueError, match=words):
            core.Tree(1, wrong, None)

    def make(produced: int, *origins: int, donated: tuple[int, ...] = ()) -> Any:
        launcher = core.FunctionLauncher(list, produced, None, (), None, (), None)
        tree = core.Tree(2, (0, 1), None)
        outputs = core.Outputs(("a", "b"), origins, ("constant",), None, tree)
        return core.Runner(
            launcher, 2, (0,), (None,), ("constant",), donated, "f", outputs, list, list
        )

    launched, constant = -1, -2
    make(2, launched, launched)
    make(1, launched, 1)
    make(1, launched, constant)
    for produced, other in ((2, 0), (1, 2)):  # 1 of 2 results; the third of 2 arguments
        with pytest.raises(ValueError, match="not those of its launches"):
            make(produced, launched, other)
    with pytest.raises(IndexError, match="what the call does not have"):
        make(1, launched, constant - 1)
    refused = core.Outputs.__new__(core.Outputs)
    with pytest.raises(IndexError):
        refused.__init__(("a",), (-3,), (), None, None)
    never = core.FunctionLauncher(list, 0, None, (), None, (), None)
    with pytest.raises(ValueError, match="not those of its launches"):
        core.Runner(never, 0, (), (), (), (), "f", refused, list, list)
    with pytest.raises(ValueError, match="donated that is not kept"):
        make(2, launched, launched, donated=(1,))


def test_results_are_put_where_the_tree_says() -> None:
    launcher = core.FunctionLauncher(lambda given: ["x", "y"], 2, None, (), None, (), None)

    def results(form: Any) -> Any:
        outputs = core.Outputs(("a", "b"), (-1, -1), (), None, core.Tree(2, form, None))
        return core.Runner(launcher, 0, (), (), (), (), "f", outputs, list, list)(())

    assert [x._shards for x in results((0, 1))] == ["x", "y"]
    assert [x._shards for x in results((1, 0))] == ["y", "x"]
    last, held = results((1, {"a": 0, "b": (0, 1)}))
    assert (last._shards, held["a"]._shards) == ("y", "x")
    assert [x._shards for x in held["b"]] == ["x", "y"]
    deep: Any = 0
    for _ in range(100_000):
        deep = (deep,)
    for form, says in (
        (deep, "deeper than"),
        ((0, 2), "another number"),
        ((0, -1), "another number"),
    ):
        with pytest.raises(ValueError, match=says):
            core.Tree(2, form, None)


def test_replaced_and_refused_objects_are_released() -> None:
    jitted: Any = core.Calls()
    first: dict[Any, Any] = {}
    jitted._runners = first
    jitted._runners = {}
    assert sys.getrefcount(first) == 2

    class Half(list[Any]):
        """States two elements, but can return only one."""

        def __getitem__(self, at: Any) -> Any:
            if at:
                raise LookupError(at)
            return held

    held = Held()

    def fail(error: Any, given: Any) -> Any:
        assert error.__traceback__.tb_frame.f_code is Half.__getitem__.__code__
        return error.with_traceback(None)

    launcher = core.FunctionLauncher(lambda given: Half([0, 0]), 2, None, (), None, (), fail)
    pair = core.Outputs(("a", "b"), (-1, -1), (), None, core.Tree(2, (0, 1), None))

    def raise_it(values: Any, error: Any) -> Any:
        raise error

    runner = core.Runner(launcher, 0, (), (), (), (), "f", pair, list, raise_it)
    for _ in range(3):
        with pytest.raises(LookupError):
            runner(())
    gc.collect()
    assert sys.getrefcount(held) == 2


def test_objects_that_are_freed_are_not_seen_by_a_collection_meanwhile() -> None:
    """A collection during the deallocation would free the object's references a second time."""

    class Collecting:
        def __del__(self) -> None:
            gc.collect()
            seen.append(1)

    seen: list[int] = []
    client = core.Client(*[0] * 9, None, None, None, 144)
    made: list[Any] = [
        core.Client(*[0] * 9, Collecting(), None, None, 144),
        core.Executable(client, 0, Collecting(), 1, (None,)),
        core.Launcher(core.Executable(client, 0, None, 1, (None,)), Collecting(), None),
        core.FunctionLauncher(Collecting(), 1, None, (), None, (), None),
        core.Tree(1, None, Collecting()),
        core.Outputs((None,), (-1,), (), Collecting(), None),
    ]
    array, calls, deletion = core.Array(), core.Calls(), core.Deletion()
    array._shards, deletion._code = Collecting(), Collecting()
    calls._runners = {0: Collecting()}
    made += [array, calls, deletion]
    del array, calls, deletion
    while made:
        made.pop()
    assert len(seen) == 9


@alone
def test_the_lock_of_launches_is_released_where_memory_is_scarce() -> None:
    testcapi = pytest.importorskip("_testcapi", reason="no module here that refuses memory")
    lock = threading.RLock()
    left: Any = core.ShardsLauncher(
        None, Held, (), None, (), ((1, 2, 3),), *[None] * 5, lock, ([0],), None, None
    )
    bounded = core.BoundedLauncher(left, deque(), lock, 1, True, ())
    outputs = core.Outputs((), (), (), None, core.Tree(0, (), None))
    runner: Any = core.Runner(bounded, 0, (), (), (), (), "f", outputs, len, None)
    for at in range(12):
        testcapi.set_nomemory(at, at + 1)
        try:
            runner(())
        except MemoryError:
            pass
        finally:
            testcapi.remove_mem_hooks()
        if lock._is_owned():  # type: ignore[attr-defined]
            lock.release()
            raise AssertionError(at)
    assert runner(()) == 0


def test_an_object_in_the_memory_of_a_freed_one_has_nothing_of_it() -> None:
    code = """
    import gc, sys, weakref
    from plugrt.native.native_core import core

    class Array(core.Array):
        __slots__ = ("__weakref__", "more")

    class WithFinalizer(core.Array):
        __slots__ = ("__weakref__",)
        def __del__(self): finalised.append(1)

    finalised = []
    outputs = core.Outputs(("type",), (-1,), (), None, None)
    launcher = core.FunctionLauncher(lambda given: [object()], 1, None, (), None, (), None)
    run = core.Runner(launcher, 0, (), (), (), (), "f", outputs, len, None)
    core.set_array_class(WithFinalizer)
    for _ in range(3):  # the memory of one that was finalised would never be again
        run(())
    print(len(finalised))
    core.set_array_class(Array)
    gone, count = [], sys.getrefcount(Array)
    for _ in range(30):
        made = [run(()) for _ in range(3)]
        for x in made:
            found = (x._extra, hasattr(x, "more"), x._aval, type(x), gc.is_tracked(x))
            assert found == (None, False, "type", Array, True), found
            assert weakref.getweakrefcount(x) == 0
            x._extra, x.more = object(), x
            weakref.finalize(x, gone.append, 1)
        del x, made, found
        gc.collect()
    print(len(gone), sys.getrefcount(Array) - count)
    """
    assert run_python(code).stdout == "3\n90 0\n"
