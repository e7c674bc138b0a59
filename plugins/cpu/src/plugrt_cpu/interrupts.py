"""Keeping Ctrl-C away from jaxlib's waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def uninterrupted(work: Callable[[], T]) -> T:
    """Returns what ``work()`` gives. Ctrl-C raises at once, and the work ends in the background.

    jaxlib (0.10) compiles in a thread of its own and looks for signals while it waits: an
    interrupt then frees the program that the thread is still reading, and the process crashes.
    Python's signal handlers run in the main thread only, so that the wait is made in another.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # raised again by the waiting thread
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="plugrt-cpu-compile").start()
    # Not join: interrupted, it takes the thread for ended (CPython 3.11), and then the process
    # does not wait for it at its end.
    done.wait()
    if errors:
        raise errors[0]
    return results[0]
