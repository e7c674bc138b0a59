"""The order and the end of side effects: between launches, in threads, after failures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.errors import Internal
from support.behaviour import behaviour

SCALAR = plugrt.ShapeDtypeStruct((), "int32")


@pytest.fixture(autouse=True)
def nothing_under_way() -> Iterator[None]:
    """Skips if programs cannot call Python; leaves no failure behind."""
    client = plugrt.get_backend()
    if not client.capabilities.host_callbacks:
        pytest.skip(f"{client.platform} does not declare host_callbacks")
    yield
    plugrt.effects_barrier()


def run_child(code: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on the platform under test."""
    return subprocess.run(
        [sys.executable, "-c", f"import numpy as np, plugrt\n{code}"],
        capture_output=True, text=True, timeout=120, check=False, env=os.environ,
    )  # fmt: skip


@behaviour(
    7,
    "ordered effects of one launch precede the effects of the next launch of the same "
    "thread and device",
)
def test_launches_keep_their_order() -> None:
    seen: list[int] = []
    wait = threading.Event()

    def note(n: Any) -> None:
        wait.wait(0.001)  # gives the next launch the chance to overtake
        seen.append(int(n))

    @plugrt.jit
    def f(n: Any, x: Any) -> Any:
        plugrt.io_callback(note, None, n + (0 * (x @ x)[0, 0]).astype(np.int32), ordered=True)
        return x

    @plugrt.jit
    def g(n: Any) -> None:
        plugrt.debug.callback(note, n, ordered=True)

    big = xp.ones((200, 200))
    for n in range(0, 40, 2):
        f(n, big)
        g(n + 1)
    plugrt.io_callback(note, None, 40, ordered=True)  # outside of jit: it comes after the launches
    assert seen == [*range(41)]


@behaviour(
    7,
    "a failed effect is an error once, of the launch or of `effects_barrier`; the next launch runs",
)
def test_a_failed_effect_does_not_poison_the_next_call() -> None:
    seen: list[int] = []

    def note(n: Any) -> None:
        if n < 0:
            raise ValueError("below zero")
        seen.append(int(n))

    @plugrt.jit
    def f(n: Any) -> None:
        plugrt.io_callback(note, None, n, ordered=True)

    f(1)
    raised = 0
    for call in (lambda: f(-1), lambda: f(2), plugrt.effects_barrier):
        try:
            call()
        except Internal as error:
            raised += bool(
                re.search(r"'note' of io_callback, called at .*: below zero", str(error))
            )
    assert raised == 1  # by the first call if the backend runs the program within it
    plugrt.effects_barrier()
    assert seen == [1, 2]
    f(3)
    plugrt.effects_barrier()
    assert seen == [1, 2, 3]


def test_a_failure_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("told")

    def call() -> None:
        plugrt.jit(lambda: plugrt.debug.callback(fail))()
        plugrt.effects_barrier()

    with pytest.raises(Internal, match="told"):
        call()
    [message] = [r.getMessage() for r in caplog.records if r.name == "plugrt.callbacks"]
    assert "ValueError: told" in message


@behaviour(7, "effects that are under way are awaited at the interpreter's end; nothing is logged")
def test_the_end_of_the_interpreter_waits() -> None:
    ended = run_child(
        """
import time
from plugrt import array_api as xp
from plugrt import lax
def note(n):
    time.sleep(0.3)
    print("seen", int(n), flush=True)
@plugrt.jit
def f(n, x):
    plugrt.io_callback(note, None, n + (0 * (x @ x)[0, 0]).astype(np.int32), ordered=True)
@plugrt.jit
def g(n, x):
    return plugrt.pure_callback(lambda n: (note(n), n)[1], plugrt.ShapeDtypeStruct((), "int32"), n)
x = xp.ones((300, 300))
f(1, x)
f(2, x)
keep = g(3, x)
print("end", flush=True)
"""
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.split("\n")
    assert sorted(filter(None, lines)) == ["end", "seen 1", "seen 2", "seen 3"]
    assert lines.index("seen 1") < lines.index("seen 2")
    said = [line for line in ended.stderr.splitlines() if not _of_the_library(line)]
    assert said == []


def _of_the_library(line: str) -> bool:
    return line.startswith(("WARNING: All log messages", "I0000", "W0000"))


def test_a_barrier_in_a_callback_does_not_wait_for_that_callback() -> None:
    seen: list[int] = []
    inner = plugrt.jit(lambda n: plugrt.io_callback(lambda v: seen.append(int(v)), None, n))

    def outer(n: Any) -> Any:
        inner(np.asarray(n))
        plugrt.effects_barrier()
        seen.append(10)
        return n

    f = plugrt.jit(lambda n: plugrt.io_callback(outer, SCALAR, n))
    assert int(f(np.int32(1))) == 1
    plugrt.effects_barrier()
    assert seen == [1, 10]


@behaviour(25, "callbacks in eight threads: results, order of each thread, exceptions")
def test_eight_threads() -> None:
    seen: dict[int, list[int]] = {t: [] for t in range(8)}
    failed: list[BaseException] = []

    def note(thread: Any, n: Any) -> Any:
        if n % 10 == 9:
            raise ValueError("nine")
        seen[int(thread)].append(int(n))
        return n * 2

    @plugrt.jit
    def f(thread: Any, n: Any) -> Any:
        return plugrt.io_callback(note, SCALAR, thread, n, ordered=True) + 1

    def work(thread: int) -> None:
        try:
            for n in range(30):
                fails = pytest.raises(Internal, match="nine") if n % 10 == 9 else nullcontext()
                with fails:
                    assert int(f(np.int32(thread), np.int32(n))) == 2 * n + 1
                if n == 15 and not thread:
                    plugrt.clear_caches()
        except BaseException as error:  # noqa: BLE001  # told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(t,), daemon=True) for t in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not failed
    assert all(found == [n for n in range(30) if n % 10 != 9] for found in seen.values())
    for _ in range(2):  # the failures that no launch raised within its call
        try:
            plugrt.effects_barrier()
        except Internal as error:
            failed.append(error)
    assert len(failed) <= 1
