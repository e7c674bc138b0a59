"""`ServedBackend`: a backend, and the programs that it compiled for all clients."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any, NamedTuple

from plugrt.interface import Capabilities, Client, CompileOptions, Program
from plugrt_remote.serving.programs import ServedProgram
from plugrt_remote.serving.turns import Turns

_MOST_PROGRAMS = 1024
"""The number of compiled programs that are kept for later sessions."""


class Policy(NamedTuple):
    """The permissions and limits of a server's clients."""

    token: bytes = b""
    """The token that clients on other machines must send."""
    custom_calls: Collection[str] = ()
    """Targets of custom calls that programs may name; ``*`` allows all."""
    session_bytes: int = 0
    """The bytes that a session may have on devices; 0 means no limit."""
    callback_seconds: float = 0
    """How long a Python function of a client may run; 0 means no limit."""
    backlog_bytes: int = 1 << 30
    """The bytes of a session's messages that are queued while a function of its client runs."""


class ServedBackend:
    """A client of plugrt that several sessions share."""

    def __init__(self, client: Client, policy: Policy | None = None) -> None:
        self.client, self.policy = client, policy or Policy()
        self.pool = ThreadPoolExecutor(4, "plugrt-serve")
        self.sessions: set[object] = set()
        """The open sessions."""
        self.turns: list[Turns] = []
        self._codes: OrderedDict[bytes, bytes] = OrderedDict()
        self._programs: OrderedDict[object, ServedProgram] = OrderedDict()
        self._compilations = 0
        self._lock = threading.Lock()

    def describe(self) -> dict[str, Any]:
        """Returns the description of the backend that each client receives at first."""
        client = self.client
        attributes = {
            name: value
            for name, value in client.attributes.items()
            if isinstance(value, str | bool | int | float | list)
        }
        return {
            "platform": client.platform,
            "platform_version": client.platform_version,
            "compiler_identity": client.compiler_identity,
            "capabilities": {
                f.name: getattr(client.capabilities, f.name) for f in fields(Capabilities)
            },
            "attributes": attributes,
            "devices": [
                {
                    "id": device.id,
                    "kind": device.kind,
                    "local_hardware_id": device.local_hardware_id,
                    "attributes": dict(device.attributes),
                    "memories": [[memory.id, memory.kind] for memory in device.memories()],
                    "default_memory": device.default_memory().id,
                }
                for device in client.addressable_devices()
            ],
        }

    def stats(self) -> dict[str, int]:
        """Returns the counts of sessions, of programs, and of compilations so far."""
        return {
            "sessions": len(self.sessions),
            "programs": len(self._programs),
            "compilations": self._compilations,
        }

    def code(self, digest: bytes) -> bytes | None:
        """Returns the code of that hash, if a client has sent it."""
        return self._codes.get(digest)

    def compile(
        self, key: tuple[Any, ...], program: Program, options: Callable[[], CompileOptions]
    ) -> ServedProgram:
        """Returns the compiled program, from the cache if an equal one was compiled before.

        A program that calls Python functions is always compiled: the functions are its session's.
        """
        if program.callbacks:
            self._compilations += 1
            return ServedProgram(self.client, program, options())
        with self._lock:
            self._codes[key[0]] = program.code
            found = self._programs.get(key)
            if found is not None:
                self._programs.move_to_end(key)
                return found
            self._compilations += 1
        made = ServedProgram(self.client, program, options())
        with self._lock:
            self._programs[key] = made
            while len(self._programs) > _MOST_PROGRAMS:
                self._programs.popitem(last=False)
            while len(self._codes) > _MOST_PROGRAMS:
                self._codes.popitem(last=False)
        return made
