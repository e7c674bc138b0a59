"""Launches, puts and reads of the compiled core, with a library of the tests that can fail."""

from __future__ import annotations

import functools
import gc
import itertools
import math
import mmap
import sys
import threading
import traceback
import weakref
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrt import (
    Array,
    config,
    jit,  # sets the class of NumPy's arrays in the core
)
from plugrt.capi.abi._abi import ffi
from plugrt.capi.buffers.native_read import _FUNCTIONS, _REFERENCES
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.errors import DeletedBuffer
from plugrt.execution.arrays.arguments import quick_avals
from plugrt.native.native_core import core, reason

if core is None:
    pytest.skip(f"no compiled core here: {reason}", allow_module_level=True)

from support.alone import alone
from support.library_calls import BYTES, LibraryCalls

assert jit

TAKE, RELEASE = _REFERENCES
WAIT, *LOOK = _FUNCTIONS


class Owner:
    """Makes the exceptions of launches and puts for the core, and records the requests."""

    def __init__(self, library: LibraryCalls) -> None:
        self.library = library
        self.told: list[tuple[str, Any]] = []

    def _note(self, kind: str, what: Any) -> Exception:
        self.told.append((kind, what))
        if kind != "missing":
            self.library.alive["error"] -= 1  # the receiver of an error frees it
        return LookupError(kind)

    def _launch_error(self, error: int, arguments: Any) -> Exception:
        return self._note("launch", arguments)

    def _put_error(self, error: int) -> Exception:
        return self._note("put", error)

    def _missing_result(self, addresses: list[int]) -> Exception:
        self.library.alive["buffer"] -= sum(map(bool, addresses))
        return self._note("missing", addresses)

    def _missing_handle(self, address: int) -> Exception:
        self.library.alive.clear()
        return self._note("missing", address)

    def _launch_unchecked(self, arguments: Any) -> str:
        return "Python"


def _explain(values: Any, error: Exception) -> Any:
    try:
        raise error
    finally:
        del values, error  # the error's traceback holds this frame


def _program(
    library: LibraryCalls, arity: int = 1, mark: Any = None, donated: tuple[int, ...] = ()
) -> tuple[Any, Any, Any]:
    """Returns an executable, its owner and its runner; "slow" means a call left to Python."""
    owner = Owner(library)
    executable = core.Executable(library.core, 64, None, 1, (library.spec,) * library.results)
    executable.arity = arity
    launcher = core.Launcher(executable, owner, mark)
    numbers = tuple(range(arity))
    outputs = core.Outputs(
        ("type",) * library.results, (-1,) * library.results, (), None,
        core.Tree(library.results, [*range(library.results)], None),
    )  # fmt: skip
    runner = core.Runner(
        launcher, arity, numbers, (None,) * arity, (), donated, "f", outputs,
        lambda values: "slow", _explain,
    )  # fmt: skip
    return executable, owner, runner


def _array(buffer: Any) -> Any:
    made: Any = object.__new__(Array)
    made._shards, made._aval = buffer, "type"
    return made


def test_buffers_of_a_launch_are_destroyed_once() -> None:
    library = LibraryCalls(results=3)
    _, _, runner = _program(library)
    x = _array(library.buffer())
    made = runner((x,))
    assert ([type(v) for v in made], library.alive["buffer"]) == ([Array] * 3, 4)
    held = made.pop()._shards
    del made
    assert (library.alive["buffer"], library.calls["Buffer_Destroy"]) == (2, 2)
    library.failing.add("Buffer_Destroy")
    del held
    assert [name for name, _ in library.logged] == ["Buffer_Destroy"]
    library.core.abandon()
    assert runner((x,)) == "slow"
    del x
    assert library.calls["Buffer_Destroy"] == 3


def test_arguments_that_a_launch_must_not_have_are_left_to_python() -> None:
    library, other = LibraryCalls(), LibraryCalls()
    executable, _, runner = _program(library)
    x, gone = _array(library.buffer()), _array(library.buffer())
    gone._shards._pointer = None  # deleted, without the array's knowledge
    without = _array(None)
    for wrong in (gone, without, _array(other.buffer()), _array("no buffer"), "no array"):
        assert runner((wrong,)) == "slow", wrong
    assert runner((x, x)) == "slow"
    executable.arity = 2
    assert runner((x,)) == "slow"
    executable.arity = 1
    assert not +library.calls
    assert type(runner((x,))[0]) is Array
    library.core.refuse()
    assert runner((x,)) == "slow"
    assert library.calls == {"LoadedExecutable_Execute": 1, "Buffer_Destroy": 1}
    del x, gone
    assert (library.calls["Buffer_Destroy"], +library.alive, +other.alive) == (3, {}, {})


def test_an_argument_is_held_until_the_launch_returns() -> None:
    """Another thread may delete the array and with it the last reference to the buffer."""
    library = LibraryCalls()
    _, _, runner = _program(library)
    alive: list[int] = []
    x = _array(library.buffer())

    def delete(name: str) -> None:
        if name == "LoadedExecutable_Execute":
            x._shards = None
            alive.append(library.alive["buffer"])

    library.during = delete
    runner((x,))
    assert alive == [2]  # the argument and the result
    assert not +library.alive


def test_an_argument_that_is_an_output_is_shared_before_the_launch() -> None:
    """A donation meanwhile finds that another array has the buffers, too."""
    library = LibraryCalls()
    executable = core.Executable(library.core, 64, None, 1, (library.spec,))
    executable.arity = 1
    shared: list[Any] = []

    def share(*given: Any) -> str:
        shared.append(given)
        if fails:
            raise DeletedBuffer("gone")
        return "shared"

    outputs = core.Outputs(
        ("result", "argument", "argument"), (-1, 0, 0), (), share, core.Tree(3, [0, 1, 2], None)
    )
    launcher = core.Launcher(executable, Owner(library), None)
    runner = core.Runner(
        launcher, 1, (0,), (None,), (), (), "f", outputs, lambda _: "slow", _explain
    )
    fails, launches = False, "LoadedExecutable_Execute"
    x = _array(library.buffer())
    library.during = lambda name: shared.append(name) if name == launches else None
    assert runner((x,))[1:] == ["shared", "shared"]
    assert shared == [(x, "argument"), (x, "argument"), launches]
    fails = True
    shared.clear()
    with pytest.raises(DeletedBuffer, match="gone"):
        runner((x,))
    assert shared == [(x, "argument")]
    x._shards = None
    assert runner((x,)) == "slow"


def test_the_events_of_a_launch_are_awaited_and_destroyed() -> None:
    library, queue = LibraryCalls(), deque([(lambda: None, True)])
    executable = core.Executable(library.core, 64, None, 2, (library.spec,) * 2)
    executable.arity = 1
    launcher = core.BoundedLauncher(
        core.Launcher(executable, Owner(library), None), queue, threading.RLock(), 8, True, ()
    )
    outputs = core.Outputs(("type",), (-1,), (), None, core.Tree(1, 0, None))
    runner = core.Runner(
        launcher, 1, (0,), (None,), (), (), "f", outputs, lambda _: "slow", _explain
    )
    x = _array((library.buffer(), library.buffer()))
    made = runner((x,))
    assert (type(made), library.alive["buffer"], library.alive["event"]) == (Array, 4, 2)
    assert len(queue) == 2
    wait, exchanges = queue.pop()
    assert exchanges
    wait()
    assert (library.calls["Event_Await"], library.calls["Event_Destroy"]) == (2, 0)
    del wait
    assert (library.calls["Event_Destroy"], library.alive["event"]) == (2, 0)
    del made
    library.failing.add("LoadedExecutable_Execute")
    counts = []
    for _ in range(5):
        with pytest.raises(LookupError, match="launch"):
            runner((x,))
        counts.append(sys.getrefcount(library.core))
    assert counts[-1] == counts[1]  # the last error's frames hold references
    library.failing.clear()
    runner((x,))
    library.core.abandon()  # as in a forked child, where the handles are the parent's
    queue.clear()
    assert library.calls["Event_Destroy"] == 2


def test_an_array_donated_and_passed_twice_is_left_to_python() -> None:
    library = LibraryCalls()
    _, _, runner = _program(library, arity=2, donated=(0,))
    x, y = (_array(library.buffer()) for _ in range(2))
    seen: list[Any] = []
    library.during = lambda name: seen.append((name, x._shards))
    held = x._shards
    assert runner((x, x)) == "slow"
    assert (x._shards, seen) == (held, [])
    assert runner((x, y)) != "slow"
    assert x._shards is None


def test_a_launch_on_one_device_holds_what_it_is_given() -> None:
    library = LibraryCalls()
    _, _, runner = _program(library)
    x = _array(library.buffer())
    take = lambda *given: core.call_holding((), (x._shards,), *given)  # noqa: E731
    found: list[int] = []

    def during(name: str) -> None:
        if name == "LoadedExecutable_Execute":
            found.append(take(int)[0])

    library.during = during
    runner((x,))
    assert found == [0], "another launch took it meanwhile"
    assert take(lambda: runner((x,))) == (-1, "slow")
    assert take(int) == (-1, 0)


def test_a_call_during_which_python_forked_is_not_counted_in_the_child() -> None:
    library = LibraryCalls()
    _, _, runner = _program(library)
    seen: list[int] = []

    def fork(name: str) -> None:
        seen.append(core.calls_under_way())
        core.forget_calls()  # as a forked process does

    library.during = fork
    made = runner((_array(library.buffer()),))
    library.during = lambda name: None
    del made
    assert (seen[0], core.calls_under_way()) == (1, 0)


def test_a_launch_that_fails_leaves_nothing_behind() -> None:
    library, marked = LibraryCalls(results=3), list[Any]()
    executable, owner, runner = _program(library, mark=marked.append)
    x = _array(library.buffer())
    library.failing.add("LoadedExecutable_Execute")
    with pytest.raises(LookupError, match="launch"):
        runner((x,))
    assert (owner.told, marked) == ([("launch", (x._shards,))], [])
    library.failing.clear()
    library.silent.add("first result")
    with pytest.raises(LookupError, match="missing"):
        runner((x,))
    assert [bool(address) for address in owner.told[1][1]] == [False, True, True]
    assert marked == [(x._shards,)]  # the library may have donated the argument
    marked.clear()
    library.silent.clear()
    executable.know_donated((0,), "was donated")
    library.failing.add("Buffer_IsDeleted")
    del owner.told[:]
    assert runner((x,))
    assert (owner.told, marked) == ([], [(x._shards,)])  # Python repeats the query, and raises
    marked.clear()
    del x
    assert not +library.alive
    assert core.calls_under_way() == 0


@pytest.mark.parametrize("missing", [False, True])
def test_an_interrupt_while_donated_arguments_are_marked_is_raised_when_all_are(
    missing: bool,
) -> None:
    library, marked = LibraryCalls(), list[Any]()

    def mark(given: Any) -> None:
        marked.append(given)
        if len(marked) == 1:
            raise KeyboardInterrupt

    _, owner, runner = _program(library, mark=mark)
    x = _array(library.buffer())
    library.silent = {"first result"} if missing else set()
    with pytest.raises(KeyboardInterrupt) as raised:
        runner((x,))
    assert marked == [(x._shards,)] * 2
    assert [kind for kind, _ in owner.told] == ["missing"] * missing
    assert type(raised.value.__context__) is (LookupError if missing else type(None))
    assert library.alive["buffer"] == 1


def test_an_error_of_marking_is_reported_where_another_is_raised(unraisable: Any) -> None:
    library = LibraryCalls()

    def fail(given: Any) -> None:
        raise ValueError("mark")

    _, _, runner = _program(library, mark=fail)
    x = _array(library.buffer())
    with pytest.raises(ValueError, match="mark"):
        runner((x,))
    library.silent = {"first result"}
    with pytest.raises(LookupError, match="missing"):
        runner((x,))
    assert [report.exc_type for report in unraisable] == [ValueError]


def test_donated_arguments_are_marked_as_the_library_says() -> None:
    library = LibraryCalls()
    marked = []
    executable, _, runner = _program(library, mark=lambda given: marked.append(given))
    x = _array(library.buffer())
    runner((x,))
    assert marked == [(x._shards,)]  # the donated arguments are not known yet
    reason = "".join(["was ", "donated"])
    executable.know_donated((0,), reason)
    count = sys.getrefcount(reason)
    library.is_deleted = False  # memory in use: Python deletes the array
    runner((x,))
    assert (marked, x._shards._pointer is None) == ([(x._shards,)] * 2, False)
    library.is_deleted = True
    runner((x,))
    assert (len(marked), x._shards._pointer, x._shards._reason) == (2, None, reason)
    marked.clear()
    del x
    assert (library.alive["buffer"], sys.getrefcount(reason)) == (0, count)
    y = _array(library.buffer())
    asked = library.calls["Buffer_IsDeleted"]

    def delete(name: str) -> None:
        if name == "LoadedExecutable_Execute":
            y._shards._pointer = None

    library.during = delete  # another thread's deletions are not checked
    runner((y,))
    assert library.calls["Buffer_IsDeleted"] == asked


@alone
def test_results_for_which_there_is_no_memory_are_destroyed() -> None:
    """The launch still deleted its donated arguments."""
    testcapi = pytest.importorskip("_testcapi")
    anew = 8  # results beyond the freed memory that the core reuses
    library, marked = LibraryCalls(results=64 + anew), list[Any]()
    _, _, runner = _program(library, mark=marked.append)
    x = _array(library.buffer())
    failed = 0
    gc.collect()  # so that no collection runs without memory

    def fail(name: str, n: int) -> None:
        if name == "LoadedExecutable_Execute":
            testcapi.set_nomemory(n, n + 1)  # the n-th allocation after the launch

    for n in range(40):
        library.during = functools.partial(fail, n=n)
        made = None
        try:
            made = runner((x,))
        except MemoryError:
            failed += 1
        finally:
            testcapi.remove_mem_hooks()
        del made
        assert library.alive["buffer"] == 1, n
    assert failed > anew
    assert 40 - len(marked) <= 2  # failures without memory for the message
    marked.clear()
    _, _, runner = _program(library, mark=None, donated=(0,))
    before = failed
    for n in range(1000):  # until all succeed: sanitized cores reuse no memory
        held = library.buffer()
        x = _array(held)
        library.during = functools.partial(fail, n=n)
        made = None
        try:
            made = runner((x,))
        except MemoryError:
            failed += 1
        finally:
            testcapi.remove_mem_hooks()
        whole = made is not None
        del made, held
        assert library.alive["buffer"] == (x._shards is not None), n
        if whole:
            break
    assert (whole, x._shards) == (True, None)
    assert failed - before > anew


def test_a_put_that_fails_leaves_nothing_behind() -> None:
    library = LibraryCalls()
    owner = Owner(library)
    dims = ffi.new("int64_t[]", [4])
    args = ffi.new("struct PJRT_Client_BufferFromHostBuffer_Args*", {"dims": dims, "num_dims": 1})
    address, dtype = int(ffi.cast("uintptr_t", args)), np.dtype(np.float32)
    put = core.Put(library.core, library.spec, owner, address, (args, dims), dtype, False)
    value = np.arange(4, dtype=np.float32)
    assert put(value)._spec is library.spec
    assert not +library.alive
    none = ffi.new("int64_t[]", 1)
    args_of_one = ffi.new(
        "struct PJRT_Client_BufferFromHostBuffer_Args*", {"dims": none, "type": 11}
    )  # F32
    one = int(ffi.cast("uintptr_t", args_of_one))
    number = core.Put(library.core, library.spec, owner, one, (args_of_one, none), dtype, True)
    half = 0.5
    made = number(half)
    assert number(half) is made  # the core keeps the buffer of a literal
    assert any(found is made for found in gc.get_referents(number))
    for kept, left in ((math.inf, 1e39), (-3e38, -1e39)):
        assert number(kept) is not None
        assert number(left) is None  # left to Python: NumPy warns of the overflow
    args_of_one.type = 4  # S32
    whole = core.Put(library.core, library.spec, owner, one, (args_of_one, none), dtype, True)
    for inside, outside in ((2**31 - 1, 2**31), (-(2**31), -(2**31) - 1), (0, 2**70)):
        assert whole(inside) is not None
        assert whole(outside) is None
    del number, whole, made
    assert not +library.alive
    for left in (value.reshape(2, 2), value.astype("i4"), value[:3], value.astype(">f4"), [1.0]):
        assert put(left) is None
    library.failing.add("Client_BufferFromHostBuffer")
    with pytest.raises(LookupError, match="put"):
        put(value)
    library.failing.clear()
    for handle in ("buffer", "event"):
        library.silent = {handle}
        with pytest.raises(LookupError, match="missing"):
            put(value)
    library.silent.clear()
    library.failing.add("Event_Destroy")
    assert put(value) is not None
    assert [name for name, _ in library.logged] == ["Event_Destroy"]
    library.alive.clear()
    for flag in ("pending", "closed"):
        setattr(library.core, flag, True)
        assert put(value) is None, flag
        setattr(library.core, flag, False)
    library.core.refuse()
    assert put(value) is None
    assert not +library.alive
    value.resize(8, refcheck=False)  # no view of it is left


def test_abstract_values_whose_place_another_takes_are_let_go() -> None:
    class Aval:
        """A weakly referable type of a value."""

    made: list[weakref.ref[Any]] = []
    change: list[tuple[int, ...]] = []

    def find_avals(values: list[Any]) -> list[Any]:
        if change:
            values[0].shape = change.pop()
        aval = Aval()
        made.append(weakref.ref(aval))
        return [aval]

    class Calls(core.Calls):  # type: ignore[misc]
        """Has no runner: the core looks for one."""

        def _call_in_python(self, value: Any) -> None:
            pass

    jitted: Any = Calls()
    jitted._runners = {}
    jitted(np.zeros(0, bool))
    token = config.token()
    count = sys.getrefcount(token)
    core.set_host_hooks(find_avals)
    try:
        for size in range(10_000, 13_000):
            jitted(np.zeros(size, bool))
        for left in (2**70, np.zeros((1,) * 30, bool)):  # not in int32, too many dimensions
            jitted(left)
        assert len(made) == 3000
        change.append((4, 2503))  # as by another thread meanwhile: not kept
        jitted(np.zeros(4 * 2503, bool))
        asked = len(made)
        for _ in range(2):
            jitted(np.zeros(4 * 2503, bool))
            assert len(made) == asked + 1
    finally:
        core.set_host_hooks(quick_avals)
    places = 256  # the table's size
    assert sum(ref() is not None for ref in made) <= places
    assert sys.getrefcount(token) <= count + places


class Lock:
    """Records whether it is held."""

    def __init__(self) -> None:
        self.held = False

    def acquire(self) -> None:
        assert not self.held
        self.held = True

    def release(self) -> None:
        assert self.held
        self.held = False


def test_a_read_gives_back_all_that_it_took() -> None:
    library, other, lock = LibraryCalls(), LibraryCalls(), Lock()
    asked: list[tuple[int, int]] = []
    is_memory = [True]

    def ask(address: int, size: int) -> bool:
        asked.append((address, size))
        return is_memory[0]

    reader = library.reader(lock, ask)
    x, gone = library.buffer(), library.buffer()
    held = []

    def note(name: str) -> None:
        assert core.calls_under_way() == 1, name  # the GIL is released
        held.append((name, lock.held))

    library.during = note
    is_memory[0] = False
    assert reader(x) is None
    is_memory[0] = True
    for _ in range(2):  # a page is checked until it is readable
        assert bytes(reader(x)) == BYTES
    assert len(asked) == 2
    counts = ("Buffer_IncreaseExternalReferenceCount", "Buffer_DecreaseExternalReferenceCount")
    waits = {"Buffer_ReadyEvent", "Event_Await", "Event_Destroy"}
    assert {name for name, locked in held if not locked} == waits, "what waits has no lock"
    assert {name for name, locked in held if locked} == {*counts, *_FUNCTIONS} - waits
    assert [library.calls[name] for name in waits] == [1] * 3, "then it is known to be there"
    pages = ffi.new("char[]", 4 * mmap.PAGESIZE)
    begin = -int(ffi.cast("uintptr_t", pages)) % mmap.PAGESIZE
    for at, more in ((begin, 1), (begin + 16, 0), (begin + mmap.PAGESIZE - 8, 1), (begin + 8, 0),
                     (begin + mmap.PAGESIZE + 8, 0)):  # fmt: skip
        library._memory, count = pages + at, len(asked)
        assert reader(x) is not None
        assert len(asked) == count + more, "the second of two pages is asked about, too"
    library.during = lambda name: None
    library.size = len(BYTES) - 1
    assert reader(x) is None
    library.size += 1
    for name in ("Buffer_ReadyEvent", "Event_Await", "Buffer_UnsafePointer",
                 "Buffer_OnDeviceSizeInBytes", "Event_Destroy", *counts[:1]):  # fmt: skip
        library.failing, x._awaited = {name}, False
        assert reader(x) is None or name == "Event_Destroy", name
        assert x._awaited == (name not in {"Buffer_ReadyEvent", "Event_Await"})
        library.failing.clear()
        assert library.alive == {"buffer": 2, "event": name == "Event_Destroy"} | dict.fromkeys(
            ("reference", "error"), 0
        ), name
        library.alive["event"] = 0
    gone._pointer = None
    library.core.pending = True
    taken = library.calls[counts[0]]
    for left in (x, gone, other.buffer()):
        assert reader(left) is None
        library.core.pending = False
    library.core.refuse()
    assert reader(x) is None
    assert (library.calls[counts[0]], lock.held) == (taken, False)


@pytest.mark.parametrize("where", ["acquire", "release"])
def test_a_read_that_is_interrupted_gives_back_what_it_took_under_the_lock(where: str) -> None:
    """Earlier, an exception of a signal handler was lost, and memory released without the lock."""
    library, lock = LibraryCalls(), Lock()
    raised: list[BaseException] = []
    held: list[tuple[str, bool]] = []
    library.during = lambda name: held.append((name, lock.held))
    method = getattr(lock, where)

    def interrupted() -> None:
        if where == "release":
            method()
        if raised:
            raise raised.pop()
        if where == "acquire":
            method()

    setattr(lock, where, interrupted)
    reader = library.reader(lock, lambda *_: True)
    x = library.buffer()
    for error in (TimeoutError("late"), KeyboardInterrupt()):
        raised.append(error)
        held.clear()
        x._awaited = False
        with pytest.raises(type(error)):
            reader(x)
        assert not raised
        used = [TAKE, *LOOK, RELEASE] if where == "release" else []
        assert [name for name, locked in held if locked] == used
        assert held[0] == (WAIT, False), "what waits has no lock"
        assert not lock.held
        assert library.alive["reference"] == 0
    assert bytes(reader(x)) == BYTES
    gc.collect()
    blocks = sys.getallocatedblocks()
    for _ in range(100):
        raised.append(TimeoutError("late"))
        with pytest.raises(TimeoutError):
            reader(x)
        held.clear()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 50  # the contents that were read are released


def test_an_interrupted_view_releases_its_reference_under_the_lock(unraisable: Any) -> None:
    library, lock = LibraryCalls(), Lock()
    raised: list[BaseException] = [KeyboardInterrupt()]
    held: list[str] = []
    told: list[type[BaseException]] = []
    library.during = lambda name: held.append(name) if lock.held else None
    library.failing = {LOOK[0]}
    acquire = lock.acquire

    def interrupted() -> None:
        if library.alive["reference"] and raised:
            raise raised.pop()
        acquire()

    lock.acquire = interrupted  # type: ignore[method-assign]
    try:  # a pending call raises it: here, or in the next function of the library, which is Python
        library.reader(lock, lambda *_: True, views=True)(library.buffer())
    except KeyboardInterrupt as error:
        told.append(type(error))
    told += [report.exc_type for report in unraisable]
    assert told == [KeyboardInterrupt]
    assert (held, lock.held, library.alive["reference"]) == ([TAKE, RELEASE], False, 0)


@pytest.mark.parametrize("views", [False, True])
def test_whether_an_address_is_memory_the_system_says_without_python(views: bool) -> None:
    room = ffi.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
    nowhere = ffi.from_buffer(mmap.mmap(-1, mmap.PAGESIZE, prot=0))  # without read permission
    open_at, closed_at = (int(ffi.cast("uintptr_t", at)) for at in (room, nowhere))
    if core.is_readable(open_at) is None:
        pytest.skip("no system here that says whether an address is memory")
    readable = [core.is_readable(at) for at in (open_at, open_at + mmap.PAGESIZE - 1, closed_at, 8)]
    assert readable == [True, True, False, False]
    assert [core.is_readable(at) for at in (-1, 1 << 63, 1 << 64)] == [False] * 3
    handle: Any = SimpleNamespace(known_pages=set())
    found = [ClientHandle.is_memory(handle, at, 16) for at in (open_at, closed_at, closed_at - 8)]
    assert found == [True, False, False], "Python does not read it either"
    asked: list[int] = []

    def ask(address: int, _: int) -> bool:
        asked.append(address)
        return True

    library = LibraryCalls()
    reader = library.reader(Lock(), ask, views=views, asks_system=True)
    x = library.buffer()
    assert bytes(reader(x)) == BYTES
    library._memory = nowhere
    assert reader(x) is None
    assert not asked
    assert library.alive["reference"] == 0


def test_interrupts_are_told_one_as_the_context_of_the_other_and_let_go() -> None:
    class Interrupt(KeyboardInterrupt):
        """Supports weak references."""

    def mark(given: Any) -> None:
        raise Interrupt

    def run() -> list[Any]:
        """Returns weak references to the exceptions, after checking them."""
        try:
            runner((x,))
        except Interrupt as second:
            first = second.__context__
            assert type(first) is Interrupt
            for raised in (first, second):
                frames = [frame.name for frame in traceback.extract_tb(raised.__traceback__)]
                assert frames[-1] == "mark"
            return [weakref.ref(first), weakref.ref(second)]
        raise AssertionError

    library = LibraryCalls()
    _, _, runner = _program(library, mark=mark)
    x = _array(library.buffer())
    run()
    gc.collect()
    count = sys.getrefcount(Interrupt)
    told = [reference for _ in range(3) for reference in run()]
    gc.collect()
    assert [reference() for reference in told] == [None] * 6
    assert sys.getrefcount(Interrupt) == count


def test_an_explained_error_is_raised_as_it_was_and_let_go() -> None:
    class Wrong(LookupError):
        """An error to which no reference may stay."""

    def launch(given: Any) -> Any:
        raise Wrong

    outputs = core.Outputs((), (), (), None, core.Tree(0, (), None))

    def run() -> Any:
        launcher = core.FunctionLauncher(launch, 0, None, (), None, (), lambda e, given: e)
        runner = core.Runner(launcher, 0, (), (), (), (), "f", outputs, len, _explain)
        try:
            runner(())
        except Wrong as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
            assert frames == ["run", "_explain", "launch"]
            return weakref.ref(error)

    run()
    count = sys.getrefcount(Wrong)
    assert [run()() for _ in range(3)] == [None] * 3
    assert sys.getrefcount(Wrong) == count


def test_each_array_that_a_launch_takes_has_lost_its_data() -> None:
    library = LibraryCalls()
    _, _, runner = _program(library, arity=3, mark=lambda given: None, donated=(0, 2))
    x, y, z = (_array(library.buffer()) for _ in range(3))
    runner((x, y, z))
    assert (x._shards, z._shards) == (None, None)
    assert y._shards is not None
    assert type(x._extra) is type(z._extra) is not type(None)


def test_arrays_are_donated_before_the_launch_and_given_back_where_it_fails() -> None:
    library = LibraryCalls()
    _, _, runner = _program(library, arity=2, mark=lambda given: None, donated=(0, 1))
    x, y = (_array(library.buffer()) for _ in range(2))
    x._extra, buffers = "host copy", (x._shards, y._shards)
    library.failing = {"LoadedExecutable_Execute"}
    with pytest.raises(LookupError):
        runner((x, y))
    assert (x._shards, y._shards, x._extra, y._extra) == (*buffers, "host copy", None)
    library.failing.clear()
    sharing = weakref.ref(y)
    assert runner((x, y)) == "slow", "another array may have the buffers"
    assert (x._shards, y._shards, x._extra, y._extra) == (*buffers, "host copy", None)
    assert sharing() is y
    del sharing
    during: list[Any] = []

    def look(name: str) -> None:
        if name == "LoadedExecutable_Execute":
            during.extend([x._shards, y._shards, str(x._extra)])

    library.during = look
    runner((x, y))
    assert during[:2] == [None, None]
    assert "donated to 'f'" in during[2]


def test_parts_are_launched_one_by_one_where_the_library_knows_that() -> None:
    def program(mark: Any = None) -> tuple[Any, Any]:
        executable = core.Executable(library.core, 64, None, 2, (library.spec,) * 2)
        executable.arity = 2
        executable.launch_one_by_one((71, 72))
        executable.know_ids(itertools.count(7))
        return executable, core.Launcher(executable, owner, mark)

    library = LibraryCalls()
    owner = Owner(library)
    owner.execute = lambda given: "Python"  # type: ignore[attr-defined]
    x, y = ((library.buffer(), library.buffer()) for _ in range(2))
    _, launch = program()
    library.refusing = {71}  # a library that only launches all parts at once
    for _ in range(2):
        assert len(launch((x, y))) == 1
    assert (library.launch_ids, library.alive["error"]) == ([7, 7, 8], 0)
    executable, launch = program()
    library.refusing = {72}
    del library.launch_ids[:]
    with pytest.raises(LookupError, match="launch"):
        launch((x, y))
    library.refusing.clear()
    launch((x, y))
    library.refusing = {71}
    with pytest.raises(LookupError, match="launch"):
        launch((x, y))
    assert library.launch_ids == [7, 7, 8, 8, 9]
    assert +library.alive == {"buffer": 4}
    with pytest.raises(TypeError, match="given once"):
        executable.launch_one_by_one((71, 72))
    library.refusing.clear()
    assert program(len)[1]((x, x)) == "Python"  # one buffer, perhaps donated twice
    assert launch((x, y[:1])) == launch((x, y[0])) == "Python"
    executable, launch = program(len)
    executable.know_donated((1,), "was taken")
    launch((x, y))
    assert [buffer._pointer is None for buffer in (*x, *y)] == [False, False, True, True]
