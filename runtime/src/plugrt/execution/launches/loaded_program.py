"""`LoadedProgram`: launches of a compiled program on flat arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy.typing as npt

from plugrt.errors import InvalidArgument
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.array import Array, array_holding, blank
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.aval import ArrayAval, Aval, is_placed
from plugrt.execution.executables.bounded_executable import split_launcher
from plugrt.execution.launches.donation import Donation, Taken, give_back, raise_explained
from plugrt.execution.launches.placer import Placer, is_placed_for, make_placer
from plugrt.execution.launches.scratch_parts import LaunchOnScratch, find_scratch_parts
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan, Source
from plugrt.execution.shardings.sharding_base import SingleDeviceSharding
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.interface import LoadedExecutable, Shards
from plugrt.native.finalizers import finish_pending

Run = Callable[[Sequence[object]], list[Array]]
"""Takes the flat arguments of a call (arrays, host arrays, scalars), and returns flat results."""

_Forwarded = tuple[int, str, int, int, ArrayAval, bool]
"""The number of an output, its source, the source's index among the placed arguments, its aval, and
whether it shares the buffers of the passed array."""


class LoadedProgram:
    """An executable with the data it closed over, loaded for one `Launch`.

    ``outputs`` are the avals of the flat outputs, in their order; ``module`` returns the StableHLO
    module, for the debug checks, or None if it cannot be read.
    """

    __slots__ = ("constants", "executable", "launch", "module", "outputs", "plan", "types")

    def __init__(
        self,
        plan: Plan,
        types: Sequence[ParameterType],
        launch: Launch,
        executable: LoadedExecutable | None,
        constants: Sequence[Array],
        outputs: Sequence[ArrayAval],
        module: Callable[[], object] | None = None,
    ) -> None:
        self.plan = plan
        self.module = module
        self.types = tuple(types)
        self.launch = launch
        self.executable = executable
        self.constants = tuple(constants)
        self.outputs = tuple(outputs)

    def make_runner(self, avals: Sequence[Aval], *, keep_donated: bool = False) -> Run:
        """Returns a function that runs it on arguments of these avals.

        It places the arguments, launches, and wraps the results, in this order. With
        ``keep_donated`` it launches with copies of donated arguments, which stay valid.
        """
        plan, constants, fail, make = self.plan, self.constants, self._fail, blank
        donation = self._make_donation() if plan.donated and not keep_donated else None
        place, execute = self._make_placer_and_launcher(avals, keep_donated)
        free, calling = split_launcher(execute)
        kept, fed = len(plan.kept), plan.fed
        results = [s for s, (origin, _) in zip(self.outputs, plan.sources, strict=True)
                   if origin == "result"]  # fmt: skip
        forwarded = self._find_forwarded(avals)
        clashing = [(i, j) for i in (plan.donated if donation else ()) for j in plan.passed]

        def run(values: Sequence[Any]) -> list[Array]:
            finish_pending()
            for i, j in clashing:
                if values[i] is values[j] and type(values[i]) is Array:
                    raise InvalidArgument(
                        f"{plan.describe(i)} of {plan.name!r} is donated, and the same array is "
                        f"{plan.describe(j)}, which is a result as it is; pass a copy of one"
                    )
            new: dict[int, Array] = {}
            taken: Taken = []
            given: list[object] = []
            try:
                given = place(values)
                # Before the launch, so that a thread that donates the buffers from now on sees
                # them shared.
                passed = [
                    share_buffers((constants if origin == "constant" else values)[i], aval)
                    if shared
                    else _hold_new(given, position, aval, new)
                    for _, origin, i, position, aval, shared in forwarded
                ]
                if donation:
                    donation.take(values, given, taken)
                launched = given
                if fed or len(given) > kept:
                    launched = [*given[:kept], *(x._held() for x in constants[:fed])]
                outputs = execute(launched) if calling else free(launched)
            except BaseException as error:  # noqa: BLE001  # always raised again, explained
                fail(values, error, taken, given)
            made = []
            for shards, aval in zip(outputs, results):  # noqa: B905  # hot
                array = make()  # as `array_holding`, without the call
                array._shards = shards
                array._aval = aval
                array._extra = None
                made.append(array)
            for (output, *_), array in zip(forwarded, passed):  # noqa: B905  # hot
                made.insert(output, array)
            return made

        return run

    def _make_donation(self) -> Donation:
        steps = self.executable.launch_steps if self.executable else None
        return Donation(self.plan, alone=steps is not None and steps.waits_for_uses)

    def _make_placer_and_launcher(
        self, avals: Sequence[Aval], keep_donated: bool
    ) -> tuple[Placer, LaunchOnScratch]:
        """Returns a function that places needed arguments and literals, and their launcher."""
        plan, executable = self.plan, self.executable
        scratch: tuple[int, ...] = ()
        launch: LaunchOnScratch = executable.launcher if executable else _execute_nothing
        if executable and not plan.donated and all(s[0] == "result" for s in plan.sources):
            scratch, launch_on_scratch = find_scratch_parts(
                executable, avals, self.types, plan.needed, self.launch
            )
            launch = launch_on_scratch or launch
        place = make_placer(
            avals,
            self.types,
            plan.needed,
            self.launch,
            donated=plan.donated,
            passed=plan.passed,
            keep_donated=keep_donated,
            skip=scratch,
        ) or _take_shards(plan.needed)
        if plan.literals:
            place = _place_literals(place, plan.literals, self.launch)
        return place, launch

    def _find_forwarded(self, avals: Sequence[Aval]) -> list[_Forwarded]:
        """Returns the outputs that the launch does not compute, in their order."""
        plan = self.plan
        position_of: dict[Source, int] = {("argument", i): p for p, i in enumerate(plan.needed)}
        for i in range(len(plan.literals)):
            position_of["literal", i] = len(plan.needed) + i
        return [
            (output, *source, position_of.get(source, -1), self.outputs[output],
             source[0] == "constant" or self._is_placed_for(source, avals))
            for output, source in enumerate(plan.sources)
            if source[0] != "result"
        ]  # fmt: skip

    def _is_placed_for(self, source: Source, avals: Sequence[Aval]) -> bool:
        """Whether an output is an argument that shares the passed array's buffers."""
        origin, i = source
        if origin != "argument":
            return False
        aval = avals[i]
        return is_placed(aval) and is_placed_for(aval, i, self.launch)

    def _fail(
        self, values: Sequence[object], error: BaseException, taken: Taken, given: Sequence[object]
    ) -> NoReturn:
        """Restores the arrays that a launch of ``values`` consumed, and raises an error that
        explains the failure.
        """
        give_back(taken)
        if isinstance(error, Exception):
            self.explain(values, error, given)
        raise error

    def explain(
        self, values: Sequence[object], error: Exception, given: Sequence[object] = ()
    ) -> NoReturn:
        """Raises an error that names the argument which made a launch fail, or else ``error``.

        ``values`` are the arguments of the launch, and ``given`` the shards that it got of them.
        """
        raise_explained(error, values, given, self.plan, self.constants)

    def delete(self) -> None:
        """Unloads the executable."""
        if self.executable is not None:
            self.executable.delete()


def _hold_new(
    shards: Sequence[object], position: int, aval: ArrayAval, new: dict[int, Array]
) -> Array:
    """Returns a forwarded result: the array that was put or moved for this call.

    ``new`` holds the arrays made so far, by position; another result of the same source shares its
    buffers.
    """
    if position in new:
        return share_buffers(new[position], aval)
    made = new[position] = array_holding(shards[position], aval)
    return made


def _place_literals(place: Placer, literals: Sequence[npt.NDArray[Any]], launch: Launch) -> Placer:
    """Returns a placer that also puts the literal results."""
    client, everywhere = launch.client, launch.everywhere
    if isinstance(everywhere, SingleDeviceSharding):
        device = everywhere.device
        return lambda values: [*place(values), *client.shards_from_host(literals, device)]
    return lambda values: [*place(values), *(put_sharded(x, everywhere)._held() for x in literals)]


def _take_shards(needed: Sequence[int]) -> Placer:
    def place(values: Sequence[Any]) -> list[Shards | None]:
        held = [values[i]._shards for i in needed]
        for position, i in enumerate(needed):
            if held[position] is None:  # deleted, or being assigned to
                held[position] = values[i]._settled()
        return held

    return place


def _execute_nothing(arguments: Sequence[Shards]) -> Sequence[Shards]:
    return ()
