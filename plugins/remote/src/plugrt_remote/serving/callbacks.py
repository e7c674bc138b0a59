"""`Callbacks`: the Python functions of a session's client, which programs call."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
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
    ResourceExhausted,
)
from plugrt.interface import Client, Program, TensorType, calling_launch
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
    """Calls functions in the client, each for at most ``seconds`` (0: without a limit)."""

    def __init__(self, send: Callable[..., None], seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self._requests = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        self._ended = False

    def bind(
        self,
        program: Program,
        stated: Sequence[Any],
        handlers: Mapping[str, int],
        client: Client,
    ) -> Program:
        """Returns a program that calls functions of this process, which call the client's.

        ``stated`` has the client's number, the title, ``of_parts`` and ``partitioned`` of each
        function. ``handlers`` has the client's numbers of handlers by target: custom calls of these
        targets become calls of functions. Raises `InvalidArgument` for calls of other functions.
        """
        from plugrt.stablehlo.call_attributes import CONFIG_OF_JAX, typed_values
        from plugrt.stablehlo.callback_order import (
            callback_number,
            called_target,
            renumber_callbacks,
        )
        from plugrt.stablehlo.modules import parse, portable_artifact
        from plugrt.stablehlo.types import ir_type_to_tensor_type, is_token

        facts = {number: rest for number, *rest in stated}
        made: dict[int, tuple[list[TensorType], NumberedCallback]] = {}

        def number_here(call: Any) -> int:
            results = [result.type for result in call.results]
            types = [ir_type_to_tensor_type(t) for t in results if not is_token(t)]
            target = called_target(call)
            if target in handlers:
                attributes = call.attributes
                name = CONFIG_OF_JAX if CONFIG_OF_JAX in attributes else "backend_config"
                values = typed_values(attributes[name]) if name in attributes else {}
                what: Any = [handlers[target], wire.pack_attributes(values)]
                number = -1 - len(made)
                facts[number] = [f"the handler of {target!r}", False, False]
            else:
                what = number = callback_number(call)
            if number not in made and number in facts:
                title, of_parts, partitioned = facts[number]
                made[number] = (types, NumberedCallback(
                    partial(self._call, what, types), str(title), has_effect=False,
                    of_parts=bool(of_parts), partitioned=bool(partitioned),
                ))  # fmt: skip
            if number not in made or made[number][0] != types:
                raise InvalidArgument(
                    f"the program {program.name!r} calls the function {number} for {types}; "
                    f"Program.callbacks has {[*facts]}, each with one list of result types"
                )
            return made[number][1].number

        module = parse(program.code, program.name)
        renumber_callbacks(module, number_here, handlers)
        if not made:  # the program only mentions a handler's name
            return program
        code = portable_artifact(module, client.capabilities.stablehlo_current_version)
        callbacks = {callback.number: callback for _, callback in made.values()}
        return Program(code, "mlir", program.name, callbacks)

    def _call(self, what: Any, types: Sequence[TensorType], *arguments: Any) -> Arrays:
        """Calls a function in the client, and returns arrays of the types.

        ``what`` is the number of a function, or a list of a handler's number and the attributes of
        the call.
        """
        request, call = next(self._requests), _Call()
        self._calls[request] = call
        try:
            if self._ended:
                self.end()
            packed, contents = wire.pack_arrays(arguments)
            results = [wire.pack_type(t) for t in types]
            body = wire.NUMBER.pack(request) + pack([what, packed, results, calling_launch()])
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
        """Receives the results of a function of the client, or its error."""
        [request] = wire.NUMBER.unpack_from(body)
        failed, types = unpack(body[wire.NUMBER.size :])
        call = self._calls.get(request)
        if call is None:  # the answer came after the time limit
            return
        if failed is not None:
            call.error = wire.unpack_error(failed)
        else:
            call.results = wire.unpack_arrays(types, payload)
        call.done.set()

    def end(self) -> None:
        """Makes calls that wait and later ones fail, because the client has ended."""
        self._ended = True
        self._fail(Cancelled("the client whose function was called has ended"))

    def relieve(self) -> None:
        """Makes calls that wait fail, because the backlog has no room up to their answers."""
        self._fail(ResourceExhausted(
            "the client sent more messages than the server queues for a session while a function "
            "of the client runs, and the function's results follow these messages"
        ))  # fmt: skip

    def _fail(self, error: PlugrtError) -> None:
        for call in list(self._calls.values()):
            call.error = call.error or error
            call.done.set()
