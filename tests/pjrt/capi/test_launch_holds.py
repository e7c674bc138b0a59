"""Launches over devices that wait for each other, while another thread takes their arguments."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from plugrt.capi import launch_holds
from plugrt.compiled_core import core
from plugrt.errors import Internal
from support.library_calls import LibraryCalls
from support.xla_cpu import needs_library, run_python

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


def _library() -> tuple[Any, list[Any]]:
    """Returns a library in the core, and the list of the buffers that it was told to delete."""
    library, deleted = LibraryCalls(), list[Any]()
    handle = library.spec.handle
    handle.lock, handle.exiting, handle.delete_buffer = threading.RLock(), [], deleted.append
    return library, deleted


@needs_core
def test_a_deletion_in_a_launch_over_devices_waits_for_its_end() -> None:
    library, deleted = _library()
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
    y.delete()  # nothing holds it any more
    assert deleted == [x._dead, y._dead]


@needs_core
def test_a_launch_that_fails_ends_its_hold() -> None:
    library, deleted = _library()
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
def test_what_another_launch_needs_is_left_to_python(parts: int) -> None:
    library, _ = _library()
    executable = core.Executable(library.core, 64, None, parts, (library.spec,) * parts)
    executable.arity = 1
    executable.know_donated((0,), "was donated")
    owner = SimpleNamespace(_launch_unchecked=lambda a: "Python", execute=lambda a: "Python")
    buffers = (library.buffer(), library.buffer())
    launcher, given = core.Launcher(executable, owner, len), buffers[0] if parts == 1 else buffers
    core.hold_buffers(buffers, ())
    assert launcher([given]) == "Python"
    core.release_buffers(buffers, ())
    core.hold_buffers((), buffers)
    if parts > 1:
        assert launcher([given]) == "Python"
    core.release_buffers((), buffers)
    assert launcher([given]) != "Python"


def _plain() -> Any:
    deleted = list[int]()
    return SimpleNamespace(deleted=deleted, _delete_now=lambda: deleted.append(1))


def _in_core() -> Any:
    library, deleted = _library()
    buffer = library.buffer()
    return SimpleNamespace(deleted=deleted, buffer=buffer)


@pytest.mark.parametrize("in_core", [pytest.param(True, marks=needs_core), False])
def test_holds_are_counted_and_exclude_what_takes(in_core: bool) -> None:
    made = _in_core() if in_core else _plain()
    x: Any = made.buffer if in_core else made
    functions: tuple[Any, ...] = (
        launch_holds.hold_in_python, launch_holds.release_in_python,
        launch_holds.delete_later_in_python,
    )  # fmt: skip
    if in_core:
        functions = (core.hold_buffers, core.release_buffers, core.delete_later)
        with pytest.raises(TypeError, match="are buffers"):
            core.hold_buffers((1,), ())
        with pytest.raises(TypeError, match="is a buffer"):
            core.delete_later(1)
    hold, release, delete_later = functions
    assert hold((x,), ()) == -1
    assert hold((), (x,)) == 0  # in use
    assert hold((x,), ()) == -1
    assert delete_later(x)
    release((x,), ())
    assert made.deleted == []
    release((x,), ())
    assert len(made.deleted) == 1
    assert not delete_later(x)
    assert hold((), (x,)) == hold((), (x,)) == -1  # a library sees to two of these
    assert hold((x,), ()) == 0  # taken
    release((), (x,))
    assert hold((x,), (x,)) == 0
    release((), (x,))
    assert hold((x,), (x,)) == -1
    release((x,), (x,))


def test_a_deletion_that_fails_is_reported_and_the_others_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise Internal("no deletion")

    told = list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    x, y = SimpleNamespace(_delete_now=refuse), _plain()
    launch_holds.hold_in_python((x, y), ())
    assert launch_holds.delete_later_in_python(x)
    assert launch_holds.delete_later_in_python(y)
    launch_holds.release_in_python((x, y), ())
    assert y.deleted == [1]
    assert [(report.object, report.exc_value.message) for report in told] == [(x, "no deletion")]


_FORK = """
import os, threading
from types import SimpleNamespace
from plugrt.capi import launch_holds
taken, over = threading.Event(), threading.Event()

def hold():
    with launch_holds._lock:
        taken.set()
        over.wait()

thread = threading.Thread(target=hold)
thread.start()
taken.wait()
if not (child := os.fork()):
    import signal
    signal.alarm(20)
    os._exit(3 + launch_holds.delete_later_in_python(SimpleNamespace()))
over.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_of_a_process_that_was_holding_does_not_wait() -> None:
    done = run_python(_FORK)
    assert done.stdout.strip() == "3", done.stderr[-2000:]
