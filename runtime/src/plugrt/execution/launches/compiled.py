"""`CompiledBase` and `CompiledCall`: queries on compiled programs, and calls with checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import ml_dtypes

from plugrt.errors import ArgumentError, ArgumentMismatch, IntegerOverflow, NotAnArray
from plugrt.execution.arrays.arguments import ParameterType, read_arguments, widen_scalar
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.aval import ArrayAval, Aval, is_placed
from plugrt.execution.arrays.casting import dtype_kind, kind_rank
from plugrt.execution.executables.tracked_executable import refuse_to_save
from plugrt.execution.launches.call_object import CallObject
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.launches.pipeline import Runner, RunnerCache, make_runner
from plugrt.execution.placement.placement import AnyLayout
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import Device, Executable, Layout, MemoryAnalysis, OptionValue, TensorType
from plugrt.native.native_core import core
from plugrt.settings.declarations import config
from plugrt.settings.options import Token

_MOST_NAMED = 5


@with_checked_methods
class CompiledBase:
    """Queries on a compiled program: text, costs, memory, serialisation."""

    @property
    def _executable(self) -> Executable:
        raise NotImplementedError

    def as_text(self) -> str:
        """Returns the optimised program as text; `MissingTraceExtra` if that needs jaxlib."""
        from plugrt.stablehlo.hlo import optimized_text

        return optimized_text(self._executable)

    def as_dot(self) -> str:
        """Returns the optimised HLO as Graphviz text: ``dot -Tsvg`` makes a picture of it.

        A node is an instruction with its type and source line, a frame a computation; a dashed
        edge leads from a computation's result to the instruction that uses it. Raises
        `Unimplemented` where the backend does not give the program. (JAX had this as
        ``as_hlo_dot_graph`` of an ``XlaComputation``.)
        """
        from plugrt.stablehlo.hlo import optimized_graph

        return optimized_graph(self._executable)

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """Returns ``flops``, ``bytes accessed`` and the backend's other figures."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Returns the memory that a launch needs, in bytes on each device."""
        return self._executable.memory_analysis()

    def serialize(self) -> bytes:
        """Returns the executable as bytes, for ``client.deserialize_executable``."""
        return self._executable.serialize()

    def fingerprint(self) -> bytes:
        """Returns bytes that are equal for equal programs and options on equal versions."""
        return self._executable.fingerprint()


@with_checked_methods
class CompiledCall(CompiledBase, CallObject):
    """A loaded program that is called with arguments of the types it was compiled for.

    A call with arrays of known avals is one cache look-up; others are checked first.
    """

    _any_place = False
    """Whether arguments that are committed to other devices are moved."""
    _any_scalar = False
    """Whether a Python scalar gets a parameter's dtype of the same or a wider kind."""
    _most_runners = 256
    """The number of runners that are kept."""
    _rerun: Rerun | None = None
    """A function that repeats a call operation by operation, for the debug checks."""

    def __init__(
        self,
        program: LoadedProgram,
        in_tree: pytrees.PyTreeSpec | None,
        out_tree: pytrees.PyTreeSpec,
        types: Sequence[ParameterType] | None,
        title: str,
    ) -> None:
        """``in_tree`` None means flat positional arguments; ``types`` None means any types."""
        self._program = program
        self._in_tree = in_tree
        self._out_tree = out_tree
        self._types = types
        self._title = title
        self._runners = RunnerCache(self._most_runners)
        if core is not None:  # `inspect` cannot find the signature of the core's type
            self.__signature__ = inspect.signature(self._call_in_python)

    @property
    def _executable(self) -> Executable:
        loaded = self._program.executable
        if loaded is None:
            raise ArgumentError(
                f"{self._title} computes nothing, its results are arguments or known: nothing was "
                "compiled for it"
            )
        return loaded.executable

    def serialize(self) -> bytes:
        """As `CompiledBase.serialize`; raises `Unimplemented` for a program that calls Python."""
        refuse_to_save(self._program.executable)
        return super().serialize()

    def __copy__(self) -> Self:
        return self  # as for functions

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError(f"cannot pickle {self._title}, which is loaded on devices of this process")

    def _read(self, call: FlatCall, token: Token) -> tuple[Sequence[Any], list[Aval]]:
        try:
            return read_arguments(call.leaves, lambda i: self._name_in(call, i), token)
        except NotAnArray:
            self._refuse_traced(call.leaves)
            raise

    def _make_runner(self, key: Any, call: FlatCall, avals: Sequence[Aval]) -> Runner:
        self._check_structure(call)
        self._check(avals)
        what, moment = f"the output of {self._title}", config.moment
        run = make_runner(self._program_for(avals), self._out_tree, avals, what, self._rerun)
        if self._can_overflow(avals):
            run = self._blaming_integers(run)
        if moment is config.moment and key[0] is config.token():  # no setting has changed
            self._runners.keep(key, run)
        return run

    def _check_structure(self, call: FlatCall) -> None:
        """Raises `ArgumentMismatch` for a call with another structure than the compiled one."""
        if self._in_tree is not None and call.spec != self._in_tree:
            raise ArgumentMismatch(
                f"{self._title} was compiled for arguments of the structure "
                f"{self._in_tree}; called with {call.spec} (static arguments are left out of the "
                "call)"
            )

    def _name_in(self, call: FlatCall, i: int) -> str:
        """Returns the name of an argument; raises for a call with another structure."""
        self._check_structure(call)
        return f"{self._name(i)} of {self._title}"

    def _refuse_traced(self, leaves: Sequence[Any]) -> None:
        for i, x in enumerate(leaves):
            if type(x) is not Array and isinstance(x, Array):
                raise NotAnArray(
                    f"{self._title} was called within a traced function: {self._name(i)} is "
                    f"{x!r:.80}. A compiled program is launched; it cannot become part of another "
                    "one. Fix: call the function that it was compiled from there"
                )

    def _can_overflow(self, avals: Sequence[Aval]) -> bool:
        """Whether a Python integer of these avals may not fit its parameter."""
        return any(
            aval.is_number and dtype_kind(dtype) in "iu" and aval.dtype != dtype
            for aval, (_, dtype, _) in zip(avals, self._types or (), strict=False)
        )

    def _blaming_integers(self, run: Runner) -> Runner:
        def run_blaming(values: Sequence[Any]) -> Any:
            try:
                return run(values)
            except IntegerOverflow as error:
                self._blame_integer(values, error)
                raise

        return run_blaming

    def _blame_integer(self, leaves: Sequence[Any], error: IntegerOverflow) -> None:
        """Raises `IntegerOverflow` with the name of the argument that does not fit, if any."""
        for i, (_, dtype, _) in enumerate(self._types or ()):
            if type(leaves[i]) is int and dtype_kind(dtype) in "iu":
                limits: Any = ml_dtypes.iinfo(dtype)
                if not limits.min <= leaves[i] <= limits.max:
                    raise IntegerOverflow(f"{self._name(i)} of {self._title}: {error}") from None

    def _require_one(self) -> None:
        """Raises `ArgumentError` if it has a program for each combination of shapes."""

    def _program_for(self, avals: Sequence[Aval]) -> LoadedProgram:
        return self._program

    def _name(self, i: int) -> str:
        return self._program.plan.describe(i)

    def _check(self, avals: Sequence[Aval]) -> None:
        if self._types is not None:
            wrong = [
                f"  {self._name(i)}: takes {TensorType(*expected[:2])}, called with "
                f"{aval.tensor_type}"
                for i, (expected, aval) in enumerate(zip(self._types, avals, strict=True))
                if not self._can_accept(expected, aval)
            ]
            refuse(f"{self._title} was called with arguments of other types", wrong)
        if not self._any_place:
            self._check_places(avals)
            self._check_layouts(avals)

    def _check_places(self, avals: Sequence[Aval]) -> None:
        """Raises `ArgumentMismatch` for committed arguments that are on other devices."""
        launch = self._program.launch
        needed = [(i, avals[i], launch.in_shardings[i]) for i in sorted(self._program.plan.needed)]
        wrong = [
            f"  {self._name(i)}: on {_describe_mismatch(aval.sharding, target)}"
            for i, aval, target in needed
            if is_placed(aval) and aval.committed and not self._can_use(i, aval)
        ]
        if len(launch.devices) > 1 or launch.of_parts:
            what = (
                f"{self._title} was compiled for other shardings than these arguments have; "
                "device_put them to its input_shardings"
            )
        else:
            [where] = launch.devices
            what = (
                f"{self._title} runs on {where!r}; these arguments are committed elsewhere: "
                "device_put them there, or compile it with device=, which moves them"
            )
        refuse(what, wrong)

    def _can_use(self, i: int, aval: ArrayAval) -> bool:
        """Whether an array is placed as the i-th parameter requires."""
        return _is_placed_for(aval, self._program.launch.in_shardings[i])

    def _check_layouts(self, avals: Sequence[Aval]) -> None:
        """Raises `ArgumentMismatch` for committed arguments with another layout in memory."""
        launch = self._program.launch
        wrong = [
            f"  {self._name(i)}: takes {aval.tensor_type} as {_order(launch.in_layout(i))}, called "
            f"with one in the layout {_order(aval.layout)}"
            for i in sorted(self._program.plan.needed)
            if is_placed(aval := avals[i]) and aval.committed and aval.layout != launch.in_layout(i)
        ]
        refuse(
            f"{self._title} was compiled for arguments in other layouts; device_put them to its "
            "input_formats",
            wrong,
        )

    def _can_accept(self, expected: ParameterType, aval: Aval) -> bool:
        shape, dtype, _ = expected
        if shape != aval.shape:
            return False
        return aval.dtype == dtype or (
            aval.is_number
            and (
                kind_rank(aval.dtype) <= kind_rank(dtype)
                if self._any_scalar
                else widen_scalar(aval.dtype) == dtype
            )
        )


class SavableCall(CompiledCall):
    """A compiled function that `plugrt.serialize_executable` saves."""


class FollowingCall(CompiledCall):
    """A compiled program for one device that may run on another, the device of its arguments."""

    _any_place = True
    _any_scalar = True
    _follows: Callable[[Device], bool] | None = None
    """Whether it can run on a device; if None, arguments elsewhere are moved."""
    device: Device

    def _find_place(self, avals: Sequence[Aval], used: Sequence[int]) -> Device:
        """Returns the device of a call, from the arguments that the program uses.

        Raises `ArgumentMismatch` if these are committed to several devices, or to one that the
        program cannot run on.
        """
        if self._follows is None:
            return self.device
        placed = [
            (i, aval.sharding) for i in used if is_placed(aval := avals[i]) and aval.committed
        ]
        devices = {device for _, sharding in placed for device in sharding.devices}
        lines = [f"  {self._name(i)}: on {sharding!r}" for i, sharding in placed]
        if len(devices) > 1:
            refuse(
                f"{self._title} runs on one device, where its arguments are; these are committed "
                "to several devices, and have to be device_put to one of them, or given as host "
                "data",
                lines,
            )
        [device] = devices or (self.device,)
        if not self._follows(device):
            refuse(
                f"{self._title} runs on {self.device!r}; these arguments are committed elsewhere: "
                "device_put them there, or compile it with device=, which moves them",
                lines,
            )
        return device


def _order(layout: AnyLayout) -> str:
    return layout.text if isinstance(layout, Layout) else "the default"


def _describe_mismatch(lies: Sharding, target: Sharding) -> str:
    if not isinstance(target, TiledSharding):
        return repr(lies)
    if lies.devices == target.devices or not isinstance(lies, TiledSharding):
        return f"{lies!r}; taken in {target!r}"
    ids = [[device.id for device in sharding.devices] for sharding in (lies, target)]
    other = "the same" if repr(lies) == repr(target) else repr(target)
    return f"{lies!r} over the devices {ids[0]}; taken in {other} over {ids[1]}"


def _is_placed_for(aval: ArrayAval, target: Sharding) -> bool:
    """Whether an array is placed as a parameter requires.

    An array in another memory of the device is moved to the default memory, as in calls of `jit`.
    """
    lies = aval.sharding
    if isinstance(target, SingleDeviceSharding):
        return lies.devices == target.devices and (
            target.memory_kind is None
            or lies == target
            or not isinstance(lies, SingleDeviceSharding)
        )
    return aval.sharding == target or aval.sharding.is_equivalent_to(target, aval.ndim)


def refuse(what: str, wrong: Sequence[str]) -> None:
    """Raises `ArgumentMismatch` with the first lines of ``wrong``, unless it is empty."""
    if wrong:
        more = f"\n  and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        raise ArgumentMismatch(f"{what}:\n" + "\n".join(wrong[:_MOST_NAMED]) + more)
