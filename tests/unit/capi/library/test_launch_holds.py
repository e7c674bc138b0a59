"""Another thread donates the arguments of a launch whose devices wait for each other."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrt.capi.buffers import launch_holds
from plugrt.capi.buffers.launch_holds import call_holding_in_python, delete_later_in_python
from plugrt.errors import Internal
from plugrt.interface import Client, CompileOptions, Device
from plugrt.native.native_core import core
from support.interruption import Interruption
from support.library_calls import LibraryCalls
from support.xla_cpu import DONATED, add, needs_library, run_python

needs_core = pytest.mark.skipif(core is None, reason="no compiled core here")

_RACE = """
import faulthandler, os, sys, threading
faulthandler.dump_traceback_later(50, exit=True)
os.environ["PLUGRT_CORE"] = CHOSEN
import numpy as np, plugrt
from plugrt.capi import create_client, load_library
from plugrt.errors import DeletedBuffer

client = create_client(
    load_library(os.environ["PATH_OF_LIBRARY"]), {"cpu_device_count": 4}, name="over")
mesh = plugrt.sharding.Mesh(np.array(client.devices()), ("x",))
rows = plugrt.sharding.NamedSharding(mesh, plugrt.sharding.PartitionSpec("x"))
host = np.ones((64, 64), np.float32)
product = plugrt.jit(lambda a: a @ a.T)  # which every device sends its part of
exchange = plugrt.jit(lambda a: a @ a.T, donate_argnums=0)
part = plugrt.jit(lambda a: a * 2, donate_argnums=0)
losses = {
    "delete": lambda x, shard: x.delete(),
    "donate": lambda x, shard: exchange(x),
    "delete a part": lambda x, shard: shard.delete(),
    "donate a part": lambda x, shard: part(shard),
}

def put():
    x = plugrt.device_put(host, rows)
    return x, x.addressable_shards[2].data

for loss in losses.values():
    for _ in range(3):
        product(put()[0])
        loss(*put())
sys.setswitchinterval(1e-6)
for name, loss in losses.items():
    for _ in range(40):
        x, shard = put()
        together = threading.Barrier(2)

        def take():
            together.wait()
            try:
                loss(x, shard)
            except DeletedBuffer:
                assert "donate" in name

        thread = threading.Thread(target=take)
        thread.start()
        together.wait()
        try:
            assert float(np.asarray(product(x))[63, 0]) == 64
        except DeletedBuffer:
            pass
        thread.join()
    assert shard.is_deleted() or name == "donate"
print("ended")
"""


@needs_library
@pytest.mark.parametrize("in_core", [pytest.param("c", marks=needs_core), "python"])
def test_no_device_waits_for_one_whose_argument_was_taken(in_core: str) -> None:
    done = run_python(_RACE.replace("CHOSEN", repr(in_core)))
    assert done.stdout.strip() == "ended", done.stderr[-2000:]


def _library(deleted: list[Any]) -> tuple[Any, list[Any]]:
    """Returns a library for the core that records deleted buffers in ``deleted``, and this list."""
    library = LibraryCalls()
    handle = library.spec.handle
    handle.lock, handle.exiting, handle.delete_buffer = threading.RLock(), [], deleted.append
    return library, deleted


class _InterruptedDeletions(list[Any]):
    """Records deletions, the second of which is interrupted."""

    def append(self, buffer: Any) -> None:
        super().append(buffer)
        if len(self) == 2:
            raise KeyboardInterrupt


@needs_core
def test_a_deletion_in_a_launch_over_devices_waits_for_its_end() -> None:
    library, deleted = _library([])
    executable = core.Executable(library.core, 64, None, 2, (library.spec,) * 2)
    executable.arity = 1
    x, y = library.buffer(), library.buffer()
    told = list[list[Any]]()

    def during(name: str) -> None:
        if name == "LoadedExecutable_Execute":
            x.delete()
            x.delete()
            told.append([*deleted, x.is_deleted()])

    library.during = during
    core.Launcher(executable, None, None)([(x, y)])
    assert told == [[True]]
    assert deleted == [x._dead]
    y.delete()  # no launch holds it any more
    assert deleted == [x._dead, y._dead]


@needs_core
def test_a_launch_whose_deletion_is_interrupted_leaves_no_results_and_no_hold() -> None:
    library, deleted = _library(_InterruptedDeletions())
    executable = core.Executable(library.core, 64, None, 2, (library.spec,) * 2)
    executable.arity = 2
    buffers = [library.buffer() for _ in range(4)]

    def during(name: str) -> None:
        if name == "LoadedExecutable_Execute":
            for buffer in buffers[:3]:
                buffer.delete()

    library.during = during
    with pytest.raises(KeyboardInterrupt):
        core.Launcher(executable, None, None)([tuple(buffers[:2]), tuple(buffers[2:])])
    assert (len(deleted), library.alive["buffer"]) == (3, 4)
    buffers[3].delete()
    assert len(deleted) == 4


@needs_core
def test_a_launch_that_fails_ends_its_hold() -> None:
    library, deleted = _library([])
    executable = core.Executable(library.core, 64, None, 2, (library.spec,) * 2)
    executable.arity = 1
    owner = SimpleNamespace(_launch_error=lambda error, arguments: LookupError("launch"))
    x, y = library.buffer(), library.buffer()
    library.failing = {"LoadedExecutable_Execute"}
    with pytest.raises(LookupError, match="launch"):
        core.Launcher(executable, owner, None)([(x, y)])
    x.delete()
    assert deleted == [x._dead]


@needs_core
@pytest.mark.parametrize("parts", [1, 2])
def test_a_launch_in_conflict_with_another_is_left_to_python(parts: int) -> None:
    library, _ = _library([])
    executable = core.Executable(library.core, 64, None, parts, (library.spec,) * parts)
    executable.arity = 1
    executable.know_donated((0,), "was donated")
    owner = SimpleNamespace(_launch_unchecked=lambda a: "Python", execute=lambda a: "Python")
    buffers = (library.buffer(), library.buffer())
    launcher, given = core.Launcher(executable, owner, len), buffers[0] if parts == 1 else buffers
    assert core.call_holding(buffers, (), launcher, [given]) == (-1, "Python")
    if parts > 1:
        assert core.call_holding((), buffers, launcher, [given]) == (-1, "Python")
    assert launcher([given]) != "Python"


def _in_python(deleted: list[Any]) -> tuple[Any, list[Any]]:
    """Returns a function that makes a buffer, and the list of buffers whose memory was freed."""

    def make() -> Any:
        made: Any = SimpleNamespace(_delete_now=lambda: deleted.append(made))
        made.delete = lambda: delete_later_in_python(made) or made._delete_now()
        return made

    return make, deleted


def _in_core(deleted: list[Any]) -> tuple[Any, list[Any]]:
    return _library(deleted)[0].buffer, deleted


_PATHS = [
    pytest.param((_in_core, core and core.call_holding), id="c", marks=needs_core),
    pytest.param((_in_python, call_holding_in_python), id="python"),
]


@pytest.mark.parametrize("path", _PATHS)
def test_holds_are_counted_and_exclude_what_takes(path: Any) -> None:
    make, call = path[0]([])[0], path[1]
    x, y = make(), make()

    def nothing() -> str:
        return "made"

    def refusals() -> list[Any]:
        return [call((y, x), (), nothing), call((), (y, x), nothing), call((x,), (x,), nothing)]

    free = [(-1, "made")] * 3
    assert refusals() == free
    held = [(-1, "made"), (1, None), (1, None)]
    assert call((x,), (), lambda: call((x,), (), refusals)) == (-1, (-1, held))
    taken = [(1, None), (-1, "made"), (0, None)]  # the library itself refuses a second donation
    assert call((), (x,), lambda: call((), (x,), refusals)) == (-1, (-1, taken))
    assert refusals() == free


@pytest.mark.parametrize("path", _PATHS)
def test_a_deletion_waits_for_the_last_hold(path: Any) -> None:
    (make, deleted), call = path[0]([]), path[1]
    x = make()

    def delete() -> int:
        x.delete()
        return len(deleted)

    assert call((x,), (), lambda: (call((x,), (), delete), len(deleted))) == (-1, ((-1, 0), 0))
    assert len(deleted) == 1
    assert call((make(),), (), lambda: 3) == (-1, 3)
    assert len(deleted) == 1


@needs_core
def test_the_core_holds_buffers_and_calls_functions() -> None:
    for wrong in (((1,), (), len), ((), (1,), len)):
        with pytest.raises(TypeError, match="are buffers"):
            core.call_holding(*wrong)
    with pytest.raises(TypeError, match="takes exactly 3 arguments"):
        core.call_holding((), ())
    with pytest.raises(TypeError, match="not callable"):
        core.call_holding((), (), 3)
    with pytest.raises(TypeError, match="is a buffer"):
        core.delete_later(1)


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize("error", [None, LookupError])
def test_an_interrupted_deletion_is_raised_after_the_others_are_made(
    path: Any, error: type[BaseException] | None
) -> None:
    """If the launch failed, its exception is the interrupt's context."""
    (make, deleted), call = path[0](_InterruptedDeletions()), path[1]
    buffers = tuple(make() for _ in range(3))

    def delete() -> None:
        for buffer in buffers:
            buffer.delete()
        if error:
            raise error

    with pytest.raises(KeyboardInterrupt) as raised:
        call(buffers, (), delete)
    assert type(raised.value.__context__) is (error or type(None))
    assert len(deleted) == 3


def test_an_interrupt_at_any_line_leaves_nothing_held() -> None:
    make, deleted = _in_python([])
    for line in itertools.count():
        x, y = make(), make()
        interruption, before = Interruption(launch_holds.__file__, line), sys.gettrace()
        deleted.clear()
        sys.settrace(interruption)
        try:
            call_holding_in_python((x, y), (y, make()) if line % 2 else (), x.delete)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert call_holding_in_python((), (x, y), len, ()) == (-1, 0), line
        assert call_holding_in_python((x, y), (), len, ()) == (-1, 0), line
        assert not delete_later_in_python(y)
        if not interruption.came:
            break
    assert line > 20
    assert deleted == [x]


@pytest.mark.parametrize("path", _PATHS)
def test_a_signal_at_any_time_leaves_nothing_held(path: Any) -> None:
    make, call = path[0]([])[0], path[1]
    buffers = tuple(make() for _ in range(4))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before, interrupted = signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for i in range(2000):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 + i % 100 * 1e-6)
                    for _ in range(20):
                        call(buffers[:2], buffers[2:], sum, (1, 2))
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            assert call((), buffers, sum, ()) == call(buffers, (), sum, ()) == (-1, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 100


def test_a_deletion_that_fails_is_reported_and_the_others_are_made(unraisable: Any) -> None:
    def refuse() -> None:
        raise Internal("no deletion")

    make, deleted = _in_python([])
    x, y = make(), make()
    x._delete_now = refuse
    call_holding_in_python((x, y), (), lambda: (x.delete(), y.delete()))
    assert deleted == [y]
    assert [(report.object, report.exc_value.message) for report in unraisable] == [
        (x, "no deletion")
    ]


_FORK = """
import gc, os, signal, threading
import plugrt
from plugrt.capi import create_client, load_library
from plugrt.capi.buffers import launch_holds

client = create_client(load_library(os.environ["PATH_OF_LIBRARY"]), {}, name="forks")
x, y = (plugrt.device_put(1.0, client.devices()[0]) for _ in range(2))
cycle = [y]
cycle.append(cycle)
del y
taken, over = threading.Event(), threading.Event()

def hold():
    with launch_holds._lock, client.handle().lock:
        taken.set()
        over.wait()

thread = threading.Thread(target=hold)
thread.start()
taken.wait()
if not (child := os.fork()):
    signal.alarm(20)
    x.delete()
    del cycle, x
    os._exit(3 if gc.collect() else 4)
over.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@needs_library
def test_a_forked_child_deletes_though_a_thread_of_its_parent_had_the_locks() -> None:
    done = run_python(_FORK)
    assert done.stdout.strip() == "3", done.stderr[-2000:]


@needs_core
def test_a_call_that_holds_leaves_no_references() -> None:
    make = _in_core([])[0]
    value, held, taken = object(), (make(),), (make(),)

    def give(found: Any) -> Any:
        return found

    def refuse() -> Any:
        return core.call_holding((), held, give, value)

    def calls() -> None:
        assert core.call_holding(held, taken, give, value) == (-1, value)
        assert core.call_holding(held, (), refuse) == (-1, (0, None))
        for wrong in ((held, (value,), give), ((value,), taken, give), (held, taken)):
            with pytest.raises(TypeError):
                core.call_holding(*wrong)

    calls()
    things = (value, held, taken, give, refuse, held[0], taken[0])
    counts = [*map(sys.getrefcount, things)]
    for _ in range(3):
        calls()
    assert [*map(sys.getrefcount, things)] == counts


def test_a_launch_on_one_device_holds_what_it_is_given(client: Client, device: Device) -> None:
    """Only once a program that donates is loaded: both launches could wait for each other."""
    loaded = client.compile(add(), CompileOptions())
    x = client.buffer_from_host(np.ones(4, "f4"), device)
    client.compile(add(donate=DONATED), CompileOptions())
    loaded.execute([(x,), (x,)])
    launch, found = loaded._launch, list[int]()  # type: ignore[attr-defined]

    def take_and_launch(args: Any) -> Any:
        found.append(launch_holds._call_holding((), (x,), int)[0])
        return launch(args)

    loaded._launch = take_and_launch  # type: ignore[attr-defined]
    loaded.execute([(x,), (x,)])
    assert found == [0]
    assert launch_holds._call_holding((), (x,), int) == (-1, 0)
