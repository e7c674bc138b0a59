"""`LoadedProgram`: launches of a compiled program on flat arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any, NoReturn

import numpy.typing as npt

from plugrt.errors import InvalidArgument
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.array import Array, array_holding, blank
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.aval import ArrayAval, Aval, is_placed
from plugrt.execution.executables.bounded_executable import split_launcher
from plugrt.execution.launches.donation import Donation, Taken, give_back, raise_explained
from plugrt.execution.launches.placer import (
    Placer,
    find_scratch_arguments,
    is_placed_for,
    make_placer,
)
from plugrt.execution.launches.scratch_parts import find_scratch_parts
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan, Source
from plugrt.execution.shardings.sharding_base import SingleDeviceSharding
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.interface import LoadedExecutable, Shards

Run = Callable[[Sequence[Any]], list[Array]]
"""Takes the flat arguments of a call (arrays, host arrays, scalars), and returns flat results."""


class LoadedProgram:
    """An executable with the data it closed over, loaded for one `Launch`.

    ``outputs`` are the avals of the flat outputs, in their order; ``module`` gives the
    StableHLO module, for the debug checks, or None where it cannot be read.
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
        module: Callable[[], Any] | None = None,
    ) -> None:
        self.plan = plan
        self.module = module
        self.types = tuple(types)
        self.launch = launch
        self.executable = executable
        self.constants = tuple(constants)
        self.outputs = tuple(outputs)

    def make_runner(self, avals: Sequence[Aval], *, keep_donated: bool = False) -> Run:
        """Returns the shortest way to run it on arguments of these avals.

        With ``keep_donated`` it takes copies of donated arguments, which stay as they are.
        """
        run: Run = self._make_runner(avals, keep_donated)
        return run

    def make_dict_runner(
        self, avals: Sequence[Aval], numbered: dict[Any, int]
    ) -> Callable[[Sequence[Any]], dict[Any, Array]]:
        """Returns the shortest way to a dict of the results, which are ``numbered`` under its keys.

        It has its keys in the same order.
        """
        run: Callable[[Sequence[Any]], dict[Any, Array]] = self._make_runner(avals, False, numbered)
        return run

    def _make_runner(
        self, avals: Sequence[Aval], keep_donated: bool, numbered: dict[Any, int] | None = None
    ) -> Callable[[Sequence[Any]], Any]:
        plan = self.plan
        place = make_placer(
            avals,
            self.types,
            plan.needed,
            self.launch,
            donated=plan.donated,
            passed=plan.passed,
            keep_donated=keep_donated,
        )
        plain = all(origin == "result" for origin, _ in plan.sources)
        donation = self._make_donation() if plan.donated and not keep_donated else None
        if plan.constants or not plain or self.executable is None:
            run = self._make_general(place or _take_shards(plan.needed), donation, avals)
            if numbered is None:
                return run
            keys = _sort_keys(numbered)
            return lambda values: numbered | dict(zip(keys, run(values)))  # noqa: B905  # hot
        if place is None and (donation or plan.kept != tuple(range(len(avals)))):
            place = _take_shards(plan.kept)
        return self._make_plain(*self._split_placement(place, avals), donation, numbered)

    def make_single_runner(self, avals: Sequence[Aval]) -> Callable[[Sequence[Any]], Array] | None:
        """Returns a runner for a program with one computed result, not in a list; else None.

        The hot path of most calls: a closure, since attribute look-ups on ``self`` cost more.
        """
        plan = self.plan
        if plan.sources != (("result", 0),) or plan.constants:
            return None
        if plan.kept != tuple(range(len(avals))) or self.executable is None:
            return None
        place = make_placer(avals, self.types, plan.kept, self.launch, donated=plan.donated)
        donation = self._make_donation() if plan.donated else None
        if place is None and donation:
            place = _take_shards(plan.kept)
        place, execute = self._split_placement(place, avals)
        free, calling = split_launcher(execute)
        explain, fail, make = self.explain, self._fail, blank
        [aval] = self.outputs
        two = len(avals) == 2

        def run_single(values: Sequence[Any]) -> Array:
            given: Sequence[Any] = ()
            try:
                if two:  # the usual number, unrolled
                    first, second = values
                    given = [first._shards, second._shards]
                else:
                    given = [x._shards for x in values]
                [shards] = execute(given) if calling else free(given)
            except Exception as error:  # noqa: BLE001  # always raised again, explained
                explain(values, error, given)
            array = make()  # as `array_holding`, without the call
            array._shards = shards
            array._aval = aval
            array._extra = None
            return array

        def place_and_run(values: Sequence[Any]) -> Array:
            taken: Taken = []
            given: list[Any] = []
            try:
                given = place(values)  # type: ignore[misc]
                if donation:
                    donation.take(values, given, taken)
                [shards] = execute(given) if calling else free(given)
            except BaseException as error:  # noqa: BLE001  # always raised again, explained
                fail(values, error, taken, given)
            array = make()
            array._shards = shards
            array._aval = aval
            array._extra = None
            return array

        return run_single if place is None else place_and_run

    def _make_donation(self) -> Donation:
        steps = self.executable.launch_steps if self.executable else None
        return Donation(self.plan, alone=steps is not None and steps.waits_for_uses)

    def _split_placement(
        self, place: Placer | None, avals: Sequence[Aval]
    ) -> tuple[Placer | None, Callable[[list[Any]], Sequence[Shards]]]:
        """Returns what places the arguments, ``place`` or less, and what launches on those."""
        assert self.executable is not None
        plan = self.plan
        if place is not None and not plan.donated:
            scratch = find_scratch_arguments(avals, plan.kept, self.launch)
            launch_on_scratch = self.executable.lending_launcher(scratch) if scratch else None
            if not scratch:
                scratch, launch_on_scratch = find_scratch_parts(
                    self.executable, avals, self.types, plan.kept, self.launch
                )
            if launch_on_scratch is not None:
                leaving = make_placer(avals, self.types, plan.kept, self.launch, skip=scratch)
                if leaving is None and plan.kept != tuple(range(len(avals))):
                    leaving = _take_shards(plan.kept)
                return leaving, launch_on_scratch
        return place, self.executable.launcher

    def _make_plain(
        self,
        place: Placer | None,
        execute: Callable[[list[Any]], Sequence[Shards]],
        donation: Donation | None,
        numbered: dict[Any, int] | None,
    ) -> Callable[[Sequence[Any]], Any]:
        """Returns the runner where outputs are the executable's results, one to one.

        With ``numbered`` it gives a dict of them, under the key that has the number of each.
        """
        fail, make = self._fail, blank
        avals = self.outputs
        nothings = [()] * len(avals)
        free, calling = split_launcher(execute)
        keys = None if numbered is None else _sort_keys(numbered)
        template: dict[Any, Any] = numbered or {}

        def run(values: Sequence[Any]) -> list[Array] | dict[Any, Array]:
            taken: Taken = []
            given: list[Any] = []
            try:
                given = place(values) if place else [x._shards for x in values]
                if donation:
                    donation.take(values, given, taken)
                outputs = execute(given) if calling else free(given)
            except BaseException as error:  # noqa: BLE001  # always raised again, explained
                fail(values, error, taken, given)
            made = [*starmap(make, nothings)]
            if keys is None:
                for array, shards, aval in zip(made, outputs, avals):  # noqa: B905  # hot
                    array._shards = shards
                    array._aval = aval
                    array._extra = None
                return made
            results = template.copy()  # a dict of a zip takes longer
            for array, shards, aval, key in zip(made, outputs, avals, keys):  # noqa: B905
                array._shards = shards
                array._aval = aval
                array._extra = None
                results[key] = array
            return results

        return run

    def _make_general(self, place: Placer, donation: Donation | None, avals: Sequence[Aval]) -> Run:
        """Returns the runner where arguments are donated or passed through, or data closed over."""
        plan, constants = self.plan, self.constants
        execute = self.executable.launcher if self.executable else _execute_nothing
        free, calling = split_launcher(execute)
        kept, fed, fail = len(plan.kept), plan.fed, self._fail
        if plan.literals:
            place = _place_literals(place, plan.literals, self.launch)
        position_of: dict[Source, int] = {("argument", i): p for p, i in enumerate(plan.needed)}
        for i in range(len(plan.literals)):
            position_of["literal", i] = len(plan.needed) + i
        results = [s for s, (origin, _) in zip(self.outputs, plan.sources, strict=True)
                   if origin == "result"]  # fmt: skip
        forwarded = [
            (output, *source, position_of.get(source, -1), self.outputs[output],
             source[0] == "constant" or self._is_placed_for(source, avals))
            for output, source in enumerate(plan.sources)
            if source[0] != "result"
        ]  # fmt: skip
        clashing = [(i, j) for i in (plan.donated if donation else ()) for j in plan.passed]

        def run(values: Sequence[Any]) -> list[Array]:
            for i, j in clashing:
                if values[i] is values[j] and type(values[i]) is Array:
                    raise InvalidArgument(
                        f"{plan.describe(i)} of {plan.name!r} is donated, and the same array is "
                        f"{plan.describe(j)}, which is a result as it is; pass a copy of one"
                    )
            new: dict[int, Array] = {}
            taken: Taken = []
            shards: list[Any] = []
            try:
                shards = place(values)
                # Before the launch: what takes the buffers from now on finds that they are shared.
                passed = [
                    share_buffers((constants if origin == "constant" else values)[i], aval)
                    if shared
                    else _hold_new(shards, position, aval, new)
                    for _, origin, i, position, aval, shared in forwarded
                ]
                if donation:
                    donation.take(values, shards, taken)
                closed_over = [constant._held() for constant in constants[:fed]]
                given = [*shards[:kept], *closed_over]
                outputs = execute(given) if calling else free(given)
            except BaseException as error:  # noqa: BLE001  # always raised again, explained
                fail(values, error, taken, shards)
            made = [*map(array_holding, outputs, results)]
            for (output, *_), array in zip(forwarded, passed):  # noqa: B905  # hot
                made.insert(output, array)
            return made

        return run

    def _is_placed_for(self, source: Source, avals: Sequence[Aval]) -> bool:
        """Whether an output is an argument whose buffers are those of the array that is given."""
        origin, i = source
        if origin != "argument":
            return False
        aval = avals[i]
        return is_placed(aval) and is_placed_for(aval, i, self.launch)

    def _fail(
        self, values: Sequence[Any], error: BaseException, taken: Taken, given: Sequence[Any]
    ) -> NoReturn:
        """Gives back what a launch of ``values`` took, and raises what explains the error."""
        give_back(taken)
        if isinstance(error, Exception):
            self.explain(values, error, given)
        raise error

    def explain(
        self, values: Sequence[Any], error: Exception, given: Sequence[Any] = ()
    ) -> NoReturn:
        """Raises what explains the error of a launch of ``values``; else the error itself.

        ``given`` is what the launch took of those that it needs.
        """
        raise_explained(error, values, given, self.plan, self.constants)

    def delete(self) -> None:
        """Unloads the executable."""
        if self.executable is not None:
            self.executable.delete()


def _hold_new(
    shards: Sequence[Any], position: int, aval: ArrayAval, new: dict[int, Array]
) -> Array:
    """Returns a forwarded result: the array of what was put or moved for this call.

    ``new`` holds those made so far, by position; another result of the same shares its buffers.
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
        return [values[i]._shards for i in needed]

    return place


def _sort_keys(numbered: dict[Any, int]) -> list[Any]:
    return sorted(numbered, key=numbered.__getitem__)


def _execute_nothing(arguments: Sequence[Shards]) -> Sequence[Shards]:
    return ()
