"""`CalledFunctions`: the Python functions of a client that programs on its server call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from plugrt.callbacks.host_callbacks import CallbackTable
from plugrt.errors import FailedPrecondition, Unavailable
from plugrt.interface import HostCallback
from plugrt.lifetime.thread_work import start_thread
from plugrt_remote import wire
from plugrt_remote.values import pack, unpack
from plugrt_remote.wire import Op, frame


class CalledFunctions:
    """Calls functions as the server asks, each call on a thread of its own.

    A function may wait for another one, and the threads of the connection go on receiving.
    """

    def __init__(self, send: Callable[[list[Any]], object]) -> None:
        self._send = send
        self._table = CallbackTable()
        self.threads: set[int] = set()
        """The threads that a function runs on."""

    def add(self, callbacks: Mapping[int, HostCallback]) -> None:
        """Makes the functions of a program callable, for as long as the program lives."""
        self._table.add(callbacks)

    def begin(self, body: bytes, payload: Any) -> Callable[[], None]:
        """Returns a function that starts a call."""

        def call() -> None:
            self._call(body, payload)

        return lambda: None if start_thread(call) else call()

    def _call(self, body: bytes, payload: Any) -> None:
        [request] = wire.NUMBER.unpack_from(body)
        thread = threading.get_ident()
        self.threads.add(thread)
        failed, contents = None, b""
        types: list[Any] = []
        try:
            number, stated = unpack(body[wire.NUMBER.size :])
            results = self._table.find(number)(wire.unpack_arrays(stated, payload))
            types, contents = wire.pack_arrays(results)
        except BaseException as error:  # noqa: BLE001 the launch raises it, an exit too
            failed = wire.pack_error(error)
        finally:
            self.threads.discard(thread)
        answer = wire.NUMBER.pack(request) + pack([failed, types])
        with suppress(Unavailable):  # the connection has ended meanwhile
            self._send([frame(Op.RETURN, answer, len(contents)), contents])

    def refuse(self) -> NoReturn:
        """Raises `FailedPrecondition` for a use of the server by a function that it calls.

        The server may wait for the function before it does anything else for this client.
        """
        raise FailedPrecondition(
            "a Python function that a program calls uses the devices of the server that runs the "
            "program, which waits for the function; use NumPy in it, or another backend"
        )
