"""`Callbacks`: the Python functions of a session's client, which programs call."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt

from plugrt.callbacks.host_callbacks import NumberedCallback
from plugrt.errors import (
    Cancelled,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    PlugrtError,
)
from plugrt.interface import Client, Program, TensorType
from plugrt_remote import wire
from plugrt_remote.values import pack, unpack
from plugrt_remote.wire import Op, frame

Arrays = Sequence[npt.NDArray[Any]]


class _Call:
    """A call that the client has not answered."""

    __slots__ = ("done", "error", "results")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: PlugrtError | None = None
        self.results: Arrays = ()


class Callbacks:
    """Calls functions in the client, at most ``seconds`` each (0: without a limit)."""

    def __init__(self, send: Callable[..., None], seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self._requests = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        self._ended = False

    def bind(self, program: Program, stated: Sequence[Any], client: Client) -> Program:
        """Returns the program with functions under numbers of this process.

        ``stated`` has the client's number, the title, ``of_parts`` and ``partitioned`` of each.
        Raises `InvalidArgument` for a program that calls others.
        """
        from plugrt.stablehlo.callback_order import callback_number, renumber_callbacks
        from plugrt.stablehlo.modules import parse, portable_artifact
        from plugrt.stablehlo.types import ir_type_to_tensor_type, is_token

        facts = {number: rest for number, *rest in stated}
        made: dict[int, tuple[list[TensorType], NumberedCallback]] = {}

        def number_here(call: Any) -> int:
            number = callback_number(call)
            results = [result.type for result in call.results]
            types = [ir_type_to_tensor_type(t) for t in results if not is_token(t)]
            if number not in made and number in facts:
                title, of_parts, partitioned = facts[number]
                made[number] = (types, NumberedCallback(
                    partial(self._call, number, types), str(title), has_effect=False,
                    of_parts=bool(of_parts), partitioned=bool(partitioned),
                ))  # fmt: skip
            if number not in made or made[number][0] != types:
                raise InvalidArgument(
                    f"the program {program.name!r} calls the function {number} for {types}; "
                    f"Program.callbacks has {[*facts]}, each with one list of result types"
                )
            return made[number][1].number

        module = parse(program.code, program.name)
        renumber_callbacks(module, number_here)
        code = portable_artifact(module, client.capabilities.stablehlo_current_version)
        callbacks = {callback.number: callback for _, callback in made.values()}
        return Program(code, "mlir", program.name, callbacks)

    def _call(self, number: int, types: Sequence[TensorType], *arguments: Any) -> Arrays:
        """Calls the function of that number in the client, and returns arrays of the types."""
        request, call = next(self._requests), _Call()
        self._calls[request] = call
        try:
            if self._ended:
                self.end()
            packed, contents = wire.pack_arrays(arguments)
            body = wire.NUMBER.pack(request) + pack([number, packed])
            self._send(frame(Op.CALL, body, len(contents)), contents or None)
            if not call.done.wait(self._seconds or None):
                raise DeadlineExceeded(
                    f"the client did not return from the function within {self._seconds:g} s; "
                    "whoever starts the server can set another limit: --callback-seconds"
                )
        finally:
            self._calls.pop(request, None)
        if call.error is not None:
            raise call.error
        found = [TensorType(x.shape, x.dtype) for x in call.results]
        if found != [*types]:
            raise Internal(f"the client returned {found} from a function; {types} was expected")
        return call.results

    def take(self, body: bytes, payload: Any) -> None:
        """Takes what a function of the client returned, or its error."""
        [request] = wire.NUMBER.unpack_from(body)
        failed, types = unpack(body[wire.NUMBER.size :])
        call = self._calls.get(request)
        if call is None:  # it came after the limit
            return
        if failed is not None:
            call.error = wire.unpack_error(failed)
        else:
            call.results = wire.unpack_arrays(types, payload)
        call.done.set()

    def end(self) -> None:
        """Fails the calls that wait for the client, which has ended, and later ones."""
        self._ended = True
        for call in list(self._calls.values()):
            call.error = call.error or Cancelled("the client whose function was called has ended")
            call.done.set()
