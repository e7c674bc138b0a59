"""`CpuLoadedExecutable`: launches of a compiled program on one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any, NoReturn

from plugrt.errors import (
    ArgumentTypeError,
    DeletedBuffer,
    FailedPrecondition,
    InvalidArgument,
    PlugrtError,
)
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse_call
from plugrt.interface import ExecuteOptions, LaunchSteps, LoadedExecutable, MakeScratch, Shards
from plugrt.lifetime.waiter import ended
from plugrt_cpu import adapter
from plugrt_cpu.adapter import is_due
from plugrt_cpu.calls_within import this_thread
from plugrt_cpu.device import ClientBase, CpuDevice
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.executable import CpuExecutable
from plugrt_cpu.fork import refuse_after_fork
from plugrt_cpu.scratch import make_scratch
from plugrt_cpu.shards import CpuShards
from plugrt_cpu.tracebacks import collecting, stop_recording
from plugrt_cpu.types import array_type, fits

_new = object.__new__
_get_raw = attrgetter("raw")
_get_type = attrgetter("type")


def wait_for_token(token: Any) -> None:
    """Waits until a launch has ended; a failure is raised where a result is read."""
    try:  # noqa: SIM105  # suppress() takes as long as the wait itself
        token.block_until_ready()
    except JAXLIB_ERRORS:
        pass


class CpuLoadedExecutable(LoadedExecutable):
    """A program that is loaded on one device."""

    __slots__ = (
        "__weakref__",
        "_deleted",
        "_donated",
        "_handlers",
        "_launch",
        "_parameter_types",
        "_refusals",
        "_result_pairs",
        "_result_places",
        "_result_types",
        "_sources",
        "addressable_devices",
        "client",
        "executable",
    )

    addressable_devices: tuple[CpuDevice, ...]
    client: ClientBase
    executable: CpuExecutable

    def __init__(
        self, client: ClientBase, executable: CpuExecutable, devices: tuple[CpuDevice, ...]
    ) -> None:
        self.client = client
        self.executable = executable
        self.addressable_devices = tuple(d for d in devices if d.is_addressable)
        self._deleted = False
        self._refusals: list[str] = []
        self._donated = tuple(executable.donated_parameters)
        self._parameter_types = executable.input_types
        here = self._sources = client.place(devices)
        self._result_types = executable.output_types
        self._result_places = [
            here if kind == here.memory_kind else client.place(devices, kind)
            for kind in executable.output_memory_kinds
        ]
        pairs = [*zip(self._result_types, self._result_places, strict=True)]
        self._result_pairs = pairs
        self._handlers = [
            adapter.result_handler(array_type(t.shape, t.dtype)[1], place.sharding)
            for t, place in pairs
        ]
        self._launch: Callable[..., Any] = executable.raw.execute_sharded
        refuse_after_fork(self)

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        """Launches; faster on `CpuShards` (the results of a launch and of `CpuClient.shards`)."""
        launch = self._launch
        if options is not None:
            arguments, launch = self._prepare(arguments, options)
        # The usual case: each argument is ours, and its type is the expected one (types are
        # interned, so that comparing them is comparing identities). jaxlib itself compares sizes
        # only. Any other arguments are checked one by one.
        try:
            fit = [*map(_get_type, arguments)] == self._parameter_types
            raws = [*map(_get_raw, arguments)]
        except (AttributeError, TypeError):
            fit = False
        if not fit:
            adopted = self._adopt(arguments)
            self._check(adopted)
            raws = [argument.raw for argument in adopted]
        return self._run(raws, launch)

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        launch, tokens = self._launch, []
        if options is not None:
            arguments, launch = self._prepare(arguments, options)
        try:
            opened = self._open(arguments)
        except PYTHON_ERRORS as error:
            refuse_call(self.execute_with_wait, error, arguments=arguments)
        adopted = self._adopt(opened)
        self._check(adopted)

        def launch_with_token(raws: list[Any]) -> Any:
            results = launch(raws, with_tokens=True)
            tokens.append(results.consume_token())
            return results

        this = this_thread.launch = object()
        made = self._run([argument.raw for argument in adopted], launch_with_token)
        if all(shards.raw.is_ready() for shards in made) if made else this_thread.called is this:
            return made, ended  # XLA ran it within this call
        return made, partial(wait_for_token, tokens[0])

    def _open(self, arguments: Sequence[Any]) -> Sequence[Shards]:
        """Returns arguments, some of them jaxlib's arrays, as shards for `launcher`."""
        if len(arguments) != len(self._parameter_types):
            return arguments  # raises an error
        return [
            CpuShards(x, kind, self._sources) if type(x) is adapter.RawArray else x
            for x, kind in zip(arguments, self._parameter_types, strict=True)
        ]

    def _run(self, raws: list[Any], launch: Callable[..., Any]) -> list[CpuShards]:
        """Launches with jaxlib's arrays, and deletes the donated ones."""
        try:
            if collecting:
                stop_recording()
            if is_due():
                adapter.collect_garbage()
            results = launch(raws).consume_with_handlers(self._handlers, False)
        except JAXLIB_ERRORS as error:
            raise self._launch_error(error, raws) from error
        for index in self._donated:
            if not raws[index].is_deleted():  # like `_launch_donating`
                adapter.delete(raws[index])
        # like calling the class, at half the cost
        made = [*map(_new, repeat(CpuShards, len(results)))]
        for shards, raw, (result_type, place) in zip(made, results, self._result_pairs):  # noqa: B905  # hot
            shards.raw = raw
            shards.type = result_type
            shards.place = place
        return made

    @property
    def launcher(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """`execute` without its checks, from jaxlib's arrays to jaxlib's arrays.

        Reading and making a wrapper of each at every launch costs a tenth of a launch with 40
        arguments and results.
        """
        return self._launch_donating if self._donated else self._launch_raw

    @property
    def launch_steps(self) -> LaunchSteps | None:
        """Like `_launch_raw`, with separate functions for the launch in jaxlib and its results."""
        return LaunchSteps(
            launch=self._launch,
            take=adapter.take_results,
            take_arguments=(self._handlers, False),
            argument_class=adapter.RawArray,
            unless=(collecting, self._refusals),
            explain=self._explain,
            donated=tuple(self._donated),
            is_deleted=adapter.is_deleted,
            delete=adapter.delete,
            tidy=adapter.collect_garbage,
            waits_for_uses=True,
            make_scratch=self._make_scratch if self._result_types else None,
            is_ready=adapter.is_ready,
        )

    def _make_scratch(self, numbers: Sequence[int]) -> Sequence[MakeScratch] | None:
        if not {*numbers}.isdisjoint(self._donated):
            return None
        return make_scratch(
            self.addressable_devices[0], [self._parameter_types[i] for i in numbers]
        )

    def _explain(self, error: Exception, raws: list[Any]) -> Exception:
        if not isinstance(error, JAXLIB_ERRORS):
            return error
        found = self._launch_error(error, raws)
        found.__cause__ = error
        return found

    def _launch_raw(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            if collecting:
                stop_recording()
            if is_due():
                adapter.collect_garbage()
            results: list[Any] = self._launch(arguments).consume_with_handlers(
                self._handlers, False
            )
        except JAXLIB_ERRORS as error:
            # They may include `Shards`, or None in place of deleted arrays.
            raws = self._raws(arguments)
            if type(error) is TypeError and [*map(id, raws)] != [*map(id, arguments)]:
                return self._launch_raw(raws)
            raise self._launch_error(error, raws) from error
        return results

    def _launch_donating(self, arguments: Sequence[Any]) -> Sequence[Any]:
        results = self._launch_raw(arguments)
        for index in self._donated:
            raw = arguments[index]
            if type(raw) is not adapter.RawArray:
                [raw] = self._raws((raw,))
            if not raw.is_deleted():  # jaxlib leaves it alive while a host array views it
                adapter.delete(raw)
        return results

    def _raws(self, arguments: Sequence[Any]) -> list[Any]:
        """Returns jaxlib's arrays of arguments some of which are `Shards`."""
        return [
            argument if type(argument) is adapter.RawArray else self._adopt((argument,))[0].raw
            for argument in arguments
        ]

    def delete(self) -> None:
        self._deleted = True
        self.refuse_launches()

    def refuse_launches(self) -> None:
        """Makes every later launch raise: the program was deleted, or the process is a child."""
        self._refusals.append("refused")
        self._launch = self._refuse_launch

    def is_deleted(self) -> bool:
        return self._deleted

    def _prepare(
        self, arguments: Sequence[Shards], options: ExecuteOptions
    ) -> tuple[list[CpuShards], Callable[..., Any]]:
        """Returns the arguments and jaxlib's launch function for a launch with options."""
        if not isinstance(options, ExecuteOptions):
            raise ArgumentTypeError(f"a launch takes ExecuteOptions; got {options!r:.60}")
        adopted = self._adopt(arguments)
        for index in options.non_donatable_input_indices:
            if index in self._donated:
                adopted[index] = self._copy(adopted[index])
        return adopted, adapter.with_launch_id(self._launch, options.launch_id)

    def _adopt(self, arguments: Sequence[Shards]) -> list[CpuShards]:
        try:
            return [
                a if type(a) is CpuShards else CpuShards.from_buffers(a, self._sources)
                for a in arguments
            ]
        except PYTHON_ERRORS as error:
            refuse_call(self.execute, error, arguments=arguments)

    def _copy(self, shards: CpuShards) -> CpuShards:
        copies = [b.copy_to_memory(b.memory) for b in shards.buffers()]
        return CpuShards.from_buffers(copies, shards.place)

    def _check(self, arguments: list[CpuShards]) -> None:
        """Raises `InvalidArgument` for a wrong number or types."""
        expected, name = self._parameter_types, self.executable.name
        if len(arguments) != len(expected):
            raise InvalidArgument(
                f"the program {name!r} takes {len(expected)} arguments; {len(arguments)} were given"
            )
        for i, (argument, wanted) in enumerate(zip(arguments, expected, strict=True)):
            if argument.type is not wanted and not fits(argument.type, wanted):
                raise InvalidArgument(
                    f"argument {i} of the program {name!r} must be {wanted}; "
                    f"{argument.type} was given"
                )

    def _launch_error(self, error: Exception, raws: Sequence[Any]) -> PlugrtError:
        # Workaround for jaxlib-message-of-deleted: jaxlib 0.10 reports a deleted argument as an
        # array without shards ("shards, got: []"), a donated one as deleted.
        translated = translate(error)
        if isinstance(translated, DeletedBuffer) or "shards, got: [" in str(error):
            lost = [i for i, raw in enumerate(raws) if raw.is_deleted()]
            if lost:
                return DeletedBuffer(
                    f"arguments {lost} of the program {self.executable.name!r} were deleted or "
                    "donated before"
                )
        return translated

    def _refuse_launch(self, *_: Any, **__: Any) -> NoReturn:
        if self.client.is_forked:
            self.client.require_open()
        raise FailedPrecondition(f"the executable {self.executable.name!r} was deleted")
