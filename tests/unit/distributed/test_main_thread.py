"""`interrupt_main_thread`: another thread raises, with the main thread in each of some places."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from plugrt.distributed.watch import interrupt_main_thread
from plugrt.errors import ProcessLost
from support import children

_SPEND = """
import threading, time
for thread in threading.enumerate():
    if hasattr(thread, "main_is_there"):
        thread.main_is_there.set()
until = time.monotonic() + 0.5
while time.monotonic() < until:
    pass
"""


def _in_collection() -> None:
    def spend(*_: object) -> None:
        exec(_SPEND)

    gc.callbacks.append(spend)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(spend)


def _in_finalizer() -> None:
    class Ends:
        def __del__(self) -> None:
            exec(_SPEND)

    Ends()


def _in_callback_of_weak_reference() -> None:
    class Ends:
        pass

    ends = Ends()
    _reference = weakref.ref(ends, lambda _: exec(_SPEND))
    del ends


def _in_import_of_native_code() -> None:
    with suppress(Exception):  # like jaxlib, which discards the error of its import of JAX
        ctypes.pythonapi.PyImport_ImportModule(b"spends_time")


@pytest.mark.parametrize(
    "place",
    [_in_collection, _in_finalizer, _in_callback_of_weak_reference, _in_import_of_native_code],
)
def test_an_exception_is_raised_where_it_is_not_dropped(
    place: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spends_time.py").write_text(_SPEND)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "spends_time", raising=False)
    raised = list[bool]()

    main_is_there = threading.Event()

    def interrupt() -> None:
        assert main_is_there.wait(60)
        raised.append(
            interrupt_main_thread(ProcessLost, ("1 is gone", (1,)), 60.0, threading.Event())
        )

    other = threading.Thread(target=interrupt)
    other.main_is_there = main_is_there  # type: ignore[attr-defined]
    with pytest.raises(ProcessLost, match="1 is gone") as error:
        _start_and_go_on(other, place)
    other.join()
    assert error.value.processes == (1,)
    assert type(error.value).__name__ == "ProcessLost"
    assert raised == [True]


def _start_and_go_on(other: threading.Thread, place: Callable[[], None]) -> None:
    other.start()
    place()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        pass


_PROGRAM = """
import sys, threading, time
from plugrt.distributed.watch import interrupt_main_thread
def interrupt():
    time.sleep(0.3)  # until the main thread is where it stays
    print(interrupt_main_thread(ValueError, ("here",), 0.3, threading.Event()), flush=True)
threading.Thread(target=interrupt).start()
{}
"""


def test_an_exception_is_raised_in_a_program_that_was_imported(tmp_path: Path) -> None:
    (tmp_path / "whole.py").write_text(_PROGRAM.format("while True: pass"))
    ended = _run("import whole", tmp_path)
    assert ended.stdout == "True\n"
    assert "ValueError: here" in ended.stderr


def test_native_code_that_does_not_return_is_noticed(tmp_path: Path) -> None:
    ended = _run(_PROGRAM.format("time.sleep(2)"), tmp_path)
    assert ended.stdout == "False\n"


def _run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return children.run([sys.executable, "-c", program], timeout=120, cwd=folder)
