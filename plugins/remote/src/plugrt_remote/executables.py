"""`RemoteExecutable` and `RemoteLoadedExecutable`: programs that a server compiled."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from plugrt.errors import FailedPrecondition, InvalidArgument, PjrtError
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse_call
from plugrt.interface import (
    Executable,
    ExecuteOptions,
    LoadedExecutable,
    MemoryAnalysis,
    OptionValue,
    Program,
    Shards,
    TensorType,
)
from plugrt_remote import wire
from plugrt_remote.arrays import RemoteShards
from plugrt_remote.called_functions import HeldHandler
from plugrt_remote.connection import Connection
from plugrt_remote.devices import ConnectedClient, RemoteDevice
from plugrt_remote.event import RemoteEvent
from plugrt_remote.wire import HEAD, Op


class RemoteExecutable(Executable):
    """Describes a compiled program, and requests its analyses from the server."""

    __slots__ = ("_connection", "_facts", "_number", "input_types_known", "output_types")

    output_types: Sequence[TensorType]

    def __init__(self, connection: Connection, number: int, facts: Mapping[str, Any]) -> None:
        self._connection, self._number, self._facts = connection, number, facts
        self.output_types = [wire.unpack_type(t) for t in facts["output_types"]]
        known = facts["input_types"]
        self.input_types_known = None if known is None else [wire.unpack_type(t) for t in known]

    def __del__(self) -> None:
        self._connection.dead.append(self._number)

    @property
    def name(self) -> str:
        return str(self._facts["name"])

    @property
    def num_replicas(self) -> int:
        return int(self._facts["num_replicas"])

    @property
    def num_partitions(self) -> int:
        return int(self._facts["num_partitions"])

    @property
    def input_types(self) -> Sequence[TensorType]:
        if self.input_types_known is None:
            self._unimplemented("input_types")
        return self.input_types_known

    @property
    def donated_parameters(self) -> Sequence[int]:
        donated: Sequence[int] = self._facts["donated"]
        return donated

    def _known(self, name: str) -> Any:
        if self._facts[name] is None:
            self._unimplemented(name)
        return self._facts[name]

    @property
    def output_memory_kinds(self) -> Sequence[str]:
        kinds: Sequence[str] = self._known("output_memory_kinds")
        return kinds

    @property
    def parameter_memory_kinds(self) -> Sequence[str]:
        kinds: Sequence[str] = self._known("parameter_memory_kinds")
        return kinds

    def output_shardings(self) -> Sequence[bytes]:
        shardings: Sequence[bytes] = self._known("output_shardings")
        return shardings

    def parameter_shardings(self) -> Sequence[bytes]:
        shardings: Sequence[bytes] = self._known("parameter_shardings")
        return shardings

    def _ask(self, method: str) -> Any:
        body = wire.ASK.pack(0, self._number, wire.METHODS.index(method))[wire.NUMBER.size :]
        return self._connection.ask(Op.ASK, body).result

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        figures: Mapping[str, OptionValue] = self._ask("cost_analysis")
        return figures

    def memory_analysis(self) -> MemoryAnalysis:
        return MemoryAnalysis(**self._ask("memory_analysis"))

    def optimized_program(self) -> Program:
        return Program(*self._ask("optimized_program"))

    def as_text(self) -> str:
        return str(self._ask("as_text"))

    def fingerprint(self) -> bytes:
        return bytes(self._ask("fingerprint"))

    def generated_code_size_in_bytes(self) -> int:
        return int(self._ask("generated_code_size_in_bytes"))


class RemoteLoadedExecutable(LoadedExecutable):
    """Launches a program on a server, by messages that are not answered.

    Arguments are checked here, against the types that the server stated, so that the call itself
    raises the errors.
    """

    __slots__ = (
        "_connection", "_deleted", "_donated", "_handlers", "_heads", "_number", "_results",
        "addressable_devices", "client", "executable",
    )  # fmt: skip

    addressable_devices: tuple[RemoteDevice, ...]
    client: ConnectedClient
    executable: RemoteExecutable

    def __init__(
        self,
        client: ConnectedClient,
        number: int,
        facts: Mapping[str, Any],
        devices: tuple[RemoteDevice, ...],
        handlers: Sequence[HeldHandler] = (),
    ) -> None:
        self._deleted, self._handlers = False, handlers
        self.client, self._number, self._connection = client, number, client.connection
        self.executable = executable = RemoteExecutable(client.connection, number, facts)
        self.addressable_devices = devices
        kinds = facts["output_memory_kinds"] or [None] * len(facts["output_types"])
        default = devices[0].default_memory().kind
        self._results = [
            (type, None if kind == default else kind)
            for type, kind in zip(executable.output_types, kinds, strict=True)
        ]
        self._donated = tuple(executable.donated_parameters)
        self._heads: dict[int, struct.Struct] = {}

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        try:
            checked = self._check(arguments, options)
        except PYTHON_ERRORS as error:
            refuse_call(self.execute, error, arguments=arguments)
        return self.launcher(checked, options)

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        results = self.execute(arguments, options)
        event = results[0].ready_event() if results else None  # type: ignore[attr-defined]
        for result in results:
            result.event = event  # type: ignore[attr-defined]
        connection = self._connection

        def wait() -> None:
            try:
                if event is not None:
                    event.wait()
                else:
                    connection.ask(Op.PING, b"")
            except PjrtError:
                pass  # reading a result raises it

        return results, wait

    def _check(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None
    ) -> list[RemoteShards]:
        given = [cast("RemoteShards", self.client.shards(a)) for a in arguments]
        name, types = self.executable.name, self.executable.input_types_known
        if types is None:
            return given
        if len(given) != len(types):
            raise InvalidArgument(
                f"the program {name!r} takes {len(types)} arguments; {len(given)} were given"
            )
        for i, (shards, type) in enumerate(zip(given, types, strict=True)):
            shards.require()
            if shards.devices != self.addressable_devices:
                raise InvalidArgument(
                    f"argument {i} of {name!r} is on {[*shards.devices]}; the program runs on "
                    f"{[*self.addressable_devices]}"
                )
            found = shards.type
            if (found.shape, found.dtype) != (type.shape, type.dtype) and not type.is_token:
                raise InvalidArgument(f"argument {i} of {name!r} is {found}; it takes {type}")
        kept = () if options is None else options.non_donatable_input_indices
        donated = {i for i in self._donated if i not in kept}
        for i in donated:
            if any(given[i] is other for j, other in enumerate(given) if i != j):
                raise InvalidArgument(
                    f"argument {i} of {name!r} is donated, and is passed twice; pass a copy of one"
                )
        return given

    def launcher(
        self, arguments: Sequence[Any], options: ExecuteOptions | None = None
    ) -> Sequence[RemoteShards]:
        if self._deleted:
            raise FailedPrecondition(f"the program {self.executable.name!r} was deleted")
        connection, results, devices = self._connection, self._results, self.addressable_devices
        given: list[RemoteShards] = [
            a if type(a) is RemoteShards else cast("RemoteShards", self.client.shards(a))
            for a in arguments
        ]
        numbers = [shards.require() for shards in given]
        kept = () if options is None else options.non_donatable_input_indices
        first = connection.numbers(len(results) or 1)
        event = None
        if connection.notices and results:
            event = RemoteEvent(connection, first, asked=True)
        made = []
        for number, (result_type, kind) in enumerate(results, first):
            shards = RemoteShards(connection, number, result_type, devices, kind)
            shards.event = event
            made.append(shards)
        count = len(numbers)
        form = self._heads.get(count)
        if form is None:
            form = self._heads[count] = struct.Struct(f"<B3xIQQQHHB{count}Q")
        flags = (wire.NOTICE if event else 0) | (wire.KEPT if kept else 0)
        size = form.size - HEAD.size + 2 * len(kept)
        message = form.pack(
            Op.EXECUTE, size, 0, self._number, first, count, len(kept), flags, *numbers
        )
        if kept:
            message += struct.pack(f"<{len(kept)}H", *kept)
        connection.post(message)
        for i in self._donated:
            if i not in kept:
                given[i].mark_donated()
        connection.pace()
        return made

    def cancel(self) -> int:
        """Cancels the launches that wait in the server's backlog; returns their number."""
        body = wire.CANCEL.pack(0, self._number)[wire.NUMBER.size :]
        return int(self._connection.ask(Op.CANCEL, body).result)

    def delete(self) -> None:
        """Makes later launches raise; the server frees the program with ``executable``."""
        self._deleted = True

    def is_deleted(self) -> bool:
        return self._deleted
