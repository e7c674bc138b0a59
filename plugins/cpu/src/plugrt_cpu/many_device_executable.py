"""`ManyDeviceExecutable`: a program that is loaded on several devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from plugrt.errors import InvalidArgument
from plugrt.interface import ExecuteOptions, Shards, TensorType
from plugrt.native.native_core import core
from plugrt_cpu import adapter
from plugrt_cpu.device import ClientBase, CpuDevice
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.executable import CpuExecutable
from plugrt_cpu.loaded_executable import CpuLoadedExecutable, wait_for_token
from plugrt_cpu.part_scratch import HostLauncher, Index, do_nothing, make_host_launcher
from plugrt_cpu.per_device_launch import Replicas
from plugrt_cpu.shards import CpuShards
from plugrt_cpu.tracebacks import collecting

_new = object.__new__


class ManyDeviceExecutable(CpuLoadedExecutable):
    """A program that is loaded on several devices.

    jaxlib 0.10 crashes when such a launch finds a fault in its arguments, so all are checked first.
    Launches are serialised: two whose collectives start in a different order on different devices
    would deadlock. A small program whose replicas exchange no data is launched on each device
    separately (see `plugrt_cpu.per_device_launch`).
    """

    __slots__ = ("_fresh", "_launches_at_once", "_replicas")

    def __init__(
        self, client: ClientBase, executable: CpuExecutable, devices: tuple[CpuDevice, ...]
    ) -> None:
        super().__init__(client, executable, devices)
        # A program that calls Python has one executable: it cannot be serialised.
        self._fresh = not executable.calls_python
        self._replicas: Replicas | None = None
        self._launches_at_once = False

    @property
    def launcher(self) -> Callable[[Sequence[Shards]], Sequence[Shards]]:
        """`execute`, or the compiled core's equivalent."""
        if core is None or len(self.addressable_devices) == 1 or self._deleted:
            return self.execute
        self._settle()
        if self._donated and self._replicas is None:
            return self.execute
        together = partial(self._launch, with_tokens=True)
        launches = ((self._launch, together, self._handlers),)
        launcher: Callable[[Sequence[Shards]], Sequence[Shards]] = core.ShardsLauncher(
            owner=self,
            cls=CpuShards,
            parameters=tuple(self._parameter_types),
            place=self._sources,
            results=tuple(self._result_pairs),
            launches=self._replicas.launches if self._replicas else launches,
            take=adapter.take_results,
            take_token=adapter.take_token,
            make_wait=_give_nothing if self._replicas else partial(partial, wait_for_token),
            is_deleted=adapter.is_deleted,
            prepare=_prepare_nothing if self._replicas else adapter.prepare_several_devices,
            lock=self.client.launch_lock,
            unless=(collecting, self._refusals) if self._replicas else (self._refusals,),
            explain=_explain,
            tidy=adapter.collect_garbage,
            donated=tuple(self._donated),
            delete=partial(_delete_part, self.client.launch_lock),
        )
        return launcher

    def _settle(self) -> None:
        """Chooses the way to launch, before the first launch."""
        if self._fresh:
            self._fresh = False
            self._replicas = Replicas.load(self.client, self.executable, self.addressable_devices)
            self._launches_at_once = self._replicas is None and not self._donated

    @property
    def launch_steps(self) -> None:
        return None

    def host_launcher(self, parts: Mapping[int, Sequence[Index]]) -> HostLauncher | None:
        """None if launches run on all devices at once, which end after they have returned."""
        self._settle()
        if self._replicas is None or self._donated or not self._result_types:
            return None
        wanted = [(i, self._parameter_types[i], indices) for i, indices in parts.items()]
        launcher: Any = self.launcher
        return make_host_launcher(self.client, self._sources, launcher, wanted)

    def execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> Sequence[Shards]:
        usual = None
        if options is None and self._launches_at_once:
            usual = self._execute_usual(arguments, False)
        return (usual or self._execute(arguments, options, with_token=False))[0]

    def execute_with_wait(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None = None
    ) -> tuple[Sequence[Shards], Callable[[], None]]:
        usual = None
        if options is None and self._launches_at_once:
            usual = self._execute_usual(arguments, True)
        results, token = usual or self._execute(arguments, options, with_token=True)
        return results, do_nothing if token is None else partial(wait_for_token, token)

    def _execute(
        self, arguments: Sequence[Shards], options: ExecuteOptions | None, *, with_token: bool
    ) -> tuple[list[CpuShards], Any | None]:
        """Returns the results, and jaxlib's token of the launch if requested and available.

        Separate launches on each device have none: they need no shared threads that could run out.
        """
        launch, token = self._launch, None
        if options is not None:
            arguments, launch = self._prepare(arguments, options)
        self._settle()
        if len(self.addressable_devices) == 1 and len(arguments) == len(self._parameter_types):
            arguments = list(map(self._spread, arguments, self._parameter_types))
        adopted = self._fitting(arguments)
        devices = self.addressable_devices
        with self.client.launch_lock:
            for shards in adopted:
                shards.require_alive()
                if shards.place.devices != devices:
                    raise InvalidArgument(f"{shards!r} was given to a program on {list(devices)}")
            ending = self._begin_donation(adopted) if self._donated else None
            # An array on several devices is not split: that costs more than the launch saves.
            if self._replicas and options is None and all(shards.is_split for shards in adopted):
                made = self._replicas.launch([shards.parts() for shards in adopted])
            else:
                made, token = self._launch_on_all(adopted, launch, with_token)
        if ending is not None:
            ending()
        return made, token

    def _execute_usual(
        self, arguments: Sequence[Any], with_token: bool
    ) -> tuple[list[CpuShards], Any | None] | None:
        """Like `_execute`, for arrays on the program's devices; returns None for others.

        In one piece: between launches the caches of the processor are cold, so that each call of a
        function costs ten times as much as in a loop.
        """
        sources, raws = self._sources, []
        with self.client.launch_lock:
            for argument, kind in zip(arguments, self._parameter_types):  # noqa: B905  # hot
                if type(argument) is not CpuShards or argument.place is not sources:
                    return None
                if argument.type is not kind:
                    return None
                for part in argument._parts or (argument.raw,):
                    if part.is_deleted():
                        return None
                raws.append(argument.raw)
            if len(raws) != len(arguments) or len(raws) != len(self._parameter_types):
                return None
            adapter.prepare_several_devices()
            token = None
            try:
                if with_token:
                    results = self._launch(raws, with_tokens=True)
                    token = results.consume_token()
                else:
                    results = self._launch(raws)
                made = results.consume_with_handlers(self._handlers, False)
            except JAXLIB_ERRORS as error:
                raise translate(error) from error
        # like calling the class, at half the cost
        shards = [*map(_new, repeat(CpuShards, len(made)))]
        for each, raw, (result_type, place) in zip(shards, made, self._result_pairs):  # noqa: B905  # hot
            each.raw = raw
            each.type = result_type
            each.place = place
            each._parts = None
        return shards, token

    def _fitting(self, arguments: Sequence[Shards]) -> Sequence[CpuShards]:
        """Returns the arguments as `CpuShards`, of the expected number and types."""
        # The usual case, as in `CpuLoadedExecutable.execute`.
        if [*map(type, arguments)].count(CpuShards) == len(arguments):
            ours: Sequence[CpuShards] = arguments  # type: ignore[assignment]
            if [shards.type for shards in ours] == self._parameter_types:
                return ours
        # Workaround for jaxlib-wrong-shape
        adopted = self._adopt(arguments)
        self._check(adopted)
        return adopted

    def _begin_donation(self, adopted: Sequence[CpuShards]) -> Callable[[], None]:
        """Returns a function that deletes the donated arguments after the launch.

        jaxlib 0.10.2 leaves a donated array alive (is_deleted() is False) while a host array views
        it, and is_deleted() of an array on several devices returns the state of its first buffer.
        """
        # Workaround for jaxlib-donated-twice
        self._require_distinct(adopted)
        donated = [adopted[i] for i in self._donated]
        for shards in donated:
            shards.prepare_deletion()
        doomed = [shards.raw.clone() for shards in donated if not shards.is_split]

        # Workaround for jaxlib-donated-view
        def end() -> None:  # another launch may read these, and crashes if they are deleted
            lock = self.client.launch_lock
            for raw in doomed:
                adapter.end_between_launches(raw, lock)
            for shards in donated:
                for part in shards._parts or (shards.raw,):
                    adapter.delete_between_launches(part, lock)

        return end

    def _spread(self, argument: Any, expected: TensorType) -> Any:
        """Returns the part of an array on the one device of this process as a part of several."""
        if isinstance(argument, adapter.RawArray):
            return CpuShards.from_parts([argument], expected, self._sources)
        if isinstance(argument, CpuShards) and argument.place.single:
            return CpuShards.from_parts([argument.raw], argument.type, self._sources)
        return argument

    def refuse_launches(self) -> None:
        super().refuse_launches()
        self._replicas = None
        self._fresh = self._launches_at_once = False

    def _launch_on_all(
        self, adopted: Sequence[CpuShards], launch: Callable[..., Any], with_token: bool
    ) -> tuple[list[CpuShards], Any | None]:
        raws = [shards.raw for shards in adopted]
        adapter.prepare_several_devices()
        try:
            results = launch(raws, with_tokens=True) if with_token else launch(raws)
            token = results.consume_token() if with_token else None
            made = results.consume_with_handlers(self._handlers, False)
        except JAXLIB_ERRORS as error:
            raise translate(error) from error
        return list(map(CpuShards, made, self._result_types, self._result_places)), token

    def _require_distinct(self, arguments: Sequence[CpuShards]) -> None:
        given = [set(map(id, s.parts() if s.is_split else (s.raw,))) for s in arguments]
        for i in self._donated:
            if any(i != j and given[i] & other for j, other in enumerate(given)):
                raise InvalidArgument(
                    f"argument {i} of {self.executable.name!r} is donated and passed twice"
                )


def _delete_part(launch_lock: threading.RLock, array: Any) -> None:
    adapter.delete_between_launches(array, launch_lock)


def _give_nothing(token: None) -> Callable[[], None]:
    """Returns a function that waits for a launch without a token."""
    return do_nothing


def _explain(error: Exception) -> Exception:
    """Returns the exception for one that a launch raised."""
    if not isinstance(error, JAXLIB_ERRORS):
        return error
    found = translate(error)
    found.__cause__ = error
    return found


_prepare_nothing: Callable[[], object] = int
