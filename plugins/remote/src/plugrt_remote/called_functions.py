"""`CalledFunctions`: the Python functions of a client that programs on its server call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from plugrt.callbacks.host_callbacks import CallbackTable
from plugrt.errors import FailedPrecondition, NotFound, Unavailable
from plugrt.interface import Handler, HostCallback
from plugrt.interface.handler_calls import call_in_launch
from plugrt.lifetime.thread_work import start_thread
from plugrt_remote import wire
from plugrt_remote.values import pack, unpack
from plugrt_remote.wire import Op, frame

Arrays = Sequence[npt.NDArray[Any]]


class HeldHandler:
    """A registered handler, and its number in messages."""

    __slots__ = ("__weakref__", "handler", "number")

    def __init__(self, handler: Handler, number: int) -> None:
        self.handler, self.number = handler, number


class CalledFunctions:
    """Calls functions at the server's request, each call on a thread of its own.

    So a function can wait for another one, and the threads of the connection go on receiving.
    """

    def __init__(self, send: Callable[[list[Any]], object]) -> None:
        self._send = send
        self._table = CallbackTable()
        self._handlers: WeakValueDictionary[int, HeldHandler] = WeakValueDictionary()
        self.threads: set[int] = set()
        """The identifiers of the threads that run a function."""

    def add(self, callbacks: Mapping[int, HostCallback]) -> None:
        """Makes the functions of a program callable, for as long as the program lives."""
        self._table.add(callbacks)

    def add_handlers(self, handlers: Iterable[HeldHandler]) -> None:
        """Makes the handlers of a program callable, for as long as they are referenced."""
        self._handlers.update({held.number: held for held in handlers})

    def _compute(
        self, what: Any, arguments: Arrays, results: Sequence[Any]
    ) -> Sequence[npt.NDArray[Any]]:
        """Calls the function ``what``, or if that is a list, a handler with a call's attributes."""
        if isinstance(what, int):
            return self._table.find(what)(arguments)
        number, attributes = what
        held = self._handlers.get(number)
        if held is None:
            raise NotFound(f"a program called the handler {number}, whose programs were dropped")
        for argument in arguments:
            argument.flags.writeable = False
        made = [np.zeros(t.shape, t.dtype) for t in map(wire.unpack_type, results)]
        held.handler(arguments, made, wire.unpack_attributes(attributes))
        return made

    def begin(self, body: bytes, payload: Any) -> Callable[[], None]:
        """Returns a function that starts a call on a thread, or makes it if no thread can start."""

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
            what, stated, expected, launch = unpack(body[wire.NUMBER.size :])
            arguments = wire.unpack_arrays(stated, payload)
            results = call_in_launch(lambda: launch, self._compute, what, arguments, expected)
            types, contents = wire.pack_arrays(results)
        except BaseException as error:  # noqa: BLE001 the launch raises it, an exit too
            failed = wire.pack_error(error)
        finally:
            self.threads.discard(thread)
        answer = wire.NUMBER.pack(request) + pack([failed, types])
        with suppress(Unavailable):  # the connection has ended meanwhile
            self._send([frame(Op.RETURN, answer, len(contents)), contents])

    def refuse(self) -> NoReturn:
        """Raises `FailedPrecondition`: a function that a program calls has used the server.

        The server may wait for the function before it handles other messages of this client.
        """
        raise FailedPrecondition(
            "a Python function that a program calls uses the devices of the server that runs the "
            "program, which waits for the function; use NumPy in it, or another backend"
        )
