"""The hook ``plugrt_start_isolated``: runs a plugin in a child process, which is watched."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from plugrt.errors import Unavailable
from plugrt.interface import Client, OptionValue
from plugrt.lifetime.thread_work import ThreadWork, start_thread
from plugrt.plugins import hookimpl
from plugrt.processes.child_main import STARTUP_SECONDS
from plugrt.processes.run_in_child import Outcome, run_in_child
from plugrt_remote import wire
from plugrt_remote.client import RemoteClient
from plugrt_remote.connection import Connection

_FOR_LIFE = 1e9
_TO_END = 10.0
"""Seconds to wait for a process to end, after its connection has closed."""


@hookimpl
def plugrt_start_isolated(name: str, options: Mapping[str, OptionValue], seconds: float) -> Client:
    """Starts the plugin in a child process, and returns a client of that process."""
    return _Isolated(name, seconds).start(options)


class _Isolated:
    """A child process with the backend of one plugin."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name, self._seconds = name, seconds
        self._lines: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._process = 0
        self._outcome: Outcome | None = None
        self._hung = False

    def start(self, options: Mapping[str, OptionValue]) -> Client:
        """Starts the process and returns its client.

        Raises the plugin's error, and `Unavailable` if the process ended or did not answer in time.
        """
        self._work = ThreadWork(partial(self._run, dict(options)))
        if not self._work.start():
            raise Unavailable(f"{self._what}: this process can start no thread to watch it")
        try:
            deadline = None
            if self._seconds:
                deadline = time.monotonic() + STARTUP_SECONDS + self._seconds
            while "address" not in (line := self._next_line(deadline)):
                self._process = line.get("process", self._process)
                if "error" in line:
                    raise wire.unpack_error(line["error"])
                if "over" in line:
                    raise Unavailable(self._explain())
            client = RemoteClient(line["address"])
        except BaseException:  # after an interrupt, too, no process may stay
            self._end()
            raise
        client.connection.explain = self._explain
        if self._seconds:
            start_thread(partial(self._watch, client.connection))
        return client

    @property
    def _what(self) -> str:
        return f"the process of the plugin {self._name} (PLUGRT_ISOLATE)"

    def _run(self, options: dict[str, OptionValue]) -> None:
        try:
            self._outcome = run_in_child(
                "plugrt_remote.isolated_process:serve",
                {"name": self._name, "options": options},
                _FOR_LIFE,
                env={"PLUGRT_ISOLATE": None, "PLUGRT_REMOTE": None, "JAX_PLATFORM_NAME": None,
                     "JAX_PLATFORMS": self._name, "PLUGRT_PROBE_LIBRARIES": "0"},
                on_line=self._lines.put,
            )  # fmt: skip
        finally:
            self._lines.put({"over": True})

    def _next_line(self, deadline: float | None) -> dict[str, Any]:
        """Waits for the next line of the process, and kills the process at the deadline."""
        while True:
            with suppress(Empty):  # waits are short, so that an interrupt is seen
                return self._lines.get(timeout=0.5)
            if deadline is not None and time.monotonic() > deadline and self._process:
                self._hung, deadline = True, None
                self._end()

    def _watch(self, connection: Connection) -> None:
        """Kills the process if it does not answer in time; returns once the connection is lost."""
        since, seen = time.monotonic(), -1
        while connection.lost is None:
            time.sleep(min(1.0, self._seconds / 4))
            if seen != connection.received or not connection.waits or connection.functions.threads:
                since, seen = time.monotonic(), connection.received
            elif time.monotonic() - since > self._seconds:
                self._hung = True
                self._end()
                return

    def _end(self) -> None:
        with suppress(OSError):
            if self._process:
                os.kill(self._process, signal.SIGKILL)

    def _explain(self) -> str:
        """Returns a text: how the process ended, and its last output."""
        self._work.wait(_TO_END)
        outcome = self._outcome or Outcome("lost")
        ending = outcome.ending
        if self._hung:
            ending = (
                f"did not answer for {self._seconds:g} s (PLUGRT_ISOLATE_SECONDS) and was killed"
            )
        return (
            f"{self._what} {ending}; its last output: {outcome.last_output(8, 1500) or 'nothing'}"
        )
