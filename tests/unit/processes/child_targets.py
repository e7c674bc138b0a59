"""Functions for child processes; each writes its process's id first."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

HERE = "unit.processes.child_targets"
Say = Callable[..., None]


def note(file: str) -> None:
    """Appends this process's id to a file."""
    with open(file, "a") as stream:
        stream.write(f"{os.getpid()}\n")


def echo(argument: Any, say: Say) -> None:
    say(argument=argument, group=os.getpgid(0), pid=os.getpid(), env=os.environ.get("X"))
    print("a word")
    print("another", file=sys.stderr)


def sleep(file: str, say: Say) -> None:
    note(file)
    time.sleep(600)


def spin(file: str, say: Say) -> None:
    """Never releases the interpreter's lock."""
    note(file)
    ctypes.PyDLL(None).usleep(600_000_000)


def deaf(file: str, say: Say) -> None:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    sleep(file, say)


def daemon(file: str, say: Say) -> None:
    """Starts a grandchild in another session, without its parents' files."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 1000)
            note(file)
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not Path(file).exists():
        time.sleep(0.01)


def family(file: str, say: Say) -> NoReturn:
    """Starts daemons, and hangs."""
    for _ in range(3):
        daemon(file, say)
    sleep(file, say)
    raise AssertionError


def close_all(file: str, say: Say) -> None:
    note(file)
    os.closerange(0, 1000)
    say(late=True)


def replace_all(file: str, say: Say) -> None:
    os.closerange(0, 1000)
    for _ in range(200):
        os.open(os.devnull, os.O_WRONLY)
    say(late=True)


def stop(file: str, say: Say) -> None:
    note(file)
    os.kill(os.getpid(), signal.SIGSTOP)


def stop_group(file: str, say: Say) -> None:
    note(file)
    os.killpg(0, signal.SIGSTOP)


def kill_group(file: str, say: Say) -> None:
    note(file)
    os.killpg(0, signal.SIGKILL)


def kill_keeper(file: str, say: Say) -> None:
    note(file)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def stop_keeper(file: str, say: Say) -> None:
    note(file)
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(600)


def term_keeper(file: str, say: Say) -> None:
    """Starts a daemon, and sends SIGTERM to the parent process."""
    daemon(file, say)
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(600)


def real_time_signal(file: str, say: Say) -> None:
    os.kill(os.getpid(), 40)


def leave(code: int, say: Say) -> None:
    os._exit(code)


def fail(argument: Any, say: Say) -> None:
    raise KeyError("no such thing")


def flood(argument: Any, say: Say) -> None:
    block = b"noise " * 20_000
    for _ in range(50):
        os.write(1, block)
        os.write(2, block)
    os.write(2, b"\nthe \x1b[31mlast\n")
    say(done=True)


def steps(argument: dict[str, Any], say: Say) -> None:
    """Reports the limit of each step; each ends when the file of its number exists. Then hangs."""
    for number, seconds in enumerate(argument["limits"]):
        say(within=seconds, number=number)
        while not os.path.exists(f"{argument['folder']}/{number}"):
            time.sleep(0.01)
    time.sleep(600)


def nested(argument: dict[str, Any], say: Say) -> None:
    """Runs another child, with more time than this one has."""
    from plugrt.processes.run_in_child import run_in_child

    outcome = run_in_child(f"{HERE}:{argument['target']}", argument["file"], 600)
    say(how=outcome.how, seconds=outcome.seconds)
    if argument["hang"]:
        time.sleep(600)
